"""The core beside the hub under test: it is given the same inputs and says what must come out.

What is free by nature is a placeholder in the prediction (the credential that is issued, the node id that is handed
out) and is bound from what was seen; then the same input goes through the core again, with the values of the hub
under test. MsgIDs that a hub chooses are free too: they are translated, so that answers find their request on both
sides. So are the numbers of its revokes.
"""

import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

from attrs import evolve
from immutables import Map

from hubauth.core.credentials import is_well_formed
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, Link, LinkUp, Received
from hubauth.core.messages import Action, Answer, AssistRegister, Ext, Frame, Major, Reason, Register, Request
from hubauth.core.model import Neighbour, State, is_authority
from hubauth.core.outputs import CancelTimer, Send, StartTimer
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.wire.dialects.codec import Codec

_FIRST_FREE_NODE = 0xFFFF_0000
_UNKNOWN_MSG_ID = 0xF000_0000
_UNKNOWN_JOURNAL = "the journal of the hub under test"
"""Where it has not said one, though it says that it speaks the extension."""


def free_node(at: int) -> int:
    """Stands for the node id that the hub under test will hand out for input ``at``."""
    return _FIRST_FREE_NODE + at


def free_credential(at: int) -> str:
    """Stands for the credential that it will issue for input ``at``; has the shape of one."""
    return f"FREE{at:039d}"


FREE = {free_node(at) for at in range(64)} | {free_credential(at) for at in range(64)}


def show_free(text: str) -> str:
    """A prediction for people: what is free is named."""
    for at in range(64):
        text = text.replace(f'"{free_credential(at)}"', "<any new credential>").replace(
            str(free_node(at)), "<any new node id>"
        )
    return text


def bind(expected: Any, seen: Any, bound: dict[Any, Any]) -> None:
    """Learn what the placeholders in an expected payload stand for."""
    if isinstance(expected, dict) and isinstance(seen, dict):
        for key, value in expected.items():
            bind(value, seen.get(key), bound)
    elif isinstance(expected, int | str) and expected in FREE and type(expected) is type(seen) and seen:
        bound.setdefault(expected, seen)


class Mirror:
    """What the core says the hub under test is and does."""

    def __init__(self, policy: Policy, journal: str, neighbours: Mapping[int, Neighbour]) -> None:
        """``neighbours``: hubs that the hub under test has known before, and owes what it revokes meanwhile."""
        self.policy = policy
        begun = initial_state(policy, journal or _UNKNOWN_JOURNAL)
        self.state: State = evolve(begun, neighbours=Map(neighbours))
        self.first = self.state
        self.rules: set[str] = set()
        """Every rule that decided something so far."""
        self.timers: dict[int, float] = {}
        """What the hub must have started and not cancelled -> when it runs out, by ``time.monotonic``."""
        self.taken: list[tuple[Input, bytes, Step]] = []
        """Every step so far: the input with the values of the hub under test, its payload, and what follows."""
        self._issued: dict[str, str] = {}
        """What stands for a credential here -> what the hub under test issued."""
        self._numbers: dict[tuple[int, int], int] = {}
        self._seen_id: dict[tuple[int, int], int] = {}
        self._own_id: dict[tuple[Link, int], int] = {}

    def predict(self, inputs: Sequence[Input]) -> list[Step]:
        """What the inputs lead to, placeholders and all. Changes nothing."""
        return self._run(inputs, {})[1]

    def settle(
        self,
        inputs: Sequence[Input],
        bound: dict[Any, Any],
        payloads: Sequence[bytes] = (),
        began: float | None = None,
    ) -> list[Step]:
        """Take the inputs over, free values bound as far as they were seen; timers run from ``began``, or now, on."""
        self.state, steps = self._run(inputs, bound, self.taken, payloads)
        for done in steps:
            self._note(done, time.monotonic() if began is None else began)
        return steps

    def _note(self, done: Step, began: float) -> None:
        self.rules.update(done.rules)
        for output in done.outputs:
            if isinstance(output, StartTimer):
                self.timers[output.timer] = began + output.seconds
            elif isinstance(output, CancelTimer):
                self.timers.pop(output.timer, None)

    def _run(
        self,
        inputs: Sequence[Input],
        bound: dict[Any, Any],
        taken: list[tuple[Input, bytes, Step]] | None = None,
        payloads: Sequence[bytes] = (),
    ) -> tuple[State, list[Step]]:
        state, steps = self.state, list[Step]()
        for at, happened in enumerate(inputs):
            if isinstance(happened, Received):
                happened = self._translated(happened)
                body = happened.frame.body
                if isinstance(body, Register | AssistRegister):
                    happened = evolve(happened, fresh=bound.get(free_credential(at), free_credential(at)))
                    known = body.device_id in state.registry or self.policy.is_provisioned(body.device_id)
                    if not known and is_authority(self.policy, state.node_id):
                        state = evolve(state, next_node_id=bound.get(free_node(at), free_node(at)))
            done = step(self.policy, state, happened)
            state = done.state
            steps.append(done)
            if taken is not None:
                taken.append((happened, payloads[at] if at < len(payloads) else b"", done))
        return state, steps

    def alias(self, issued: str) -> str:
        """What stands here for a credential that the core would not issue."""
        if is_well_formed(issued):
            return issued
        own = urlsafe_b64encode(sha256(issued.encode()).digest()).decode().rstrip("=")
        self._issued[own] = issued
        return own

    def as_seen(self, frame: Frame) -> Frame:
        """A frame of the core with the credentials of the hub under test."""
        body = frame.body
        issued = self._issued.get(getattr(body, "credential", ""))
        if issued is None or isinstance(body, bytes):
            return frame
        return evolve(frame, body=evolve(body, credential=issued))  # type: ignore[arg-type]

    def _translated(self, received: Received) -> Received:
        """An answer names the request by the hub's MsgID; here it has another. So may a credential."""
        frame = received.frame
        shown = getattr(frame.body, "credential", "")
        for alias, issued in self._issued.items():
            if shown == issued and not isinstance(frame.body, bytes):
                frame = evolve(frame, body=evolve(frame.body, credential=alias))  # type: ignore[arg-type]
                received = evolve(received, frame=frame)
        if not isinstance(frame.body, Answer) or frame.body.action is Action.REVOKE:
            return received
        unknown = _UNKNOWN_MSG_ID | frame.msg_id & 0x0FFF_FFFF
        own = self._own_id.get((received.link, frame.msg_id), unknown)
        return evolve(received, frame=evolve(frame, msg_id=own))

    def chosen_id(self, link: Link, expected: int, seen: int) -> int:
        """The MsgID of a request of the hub: what it chose, which is fixed afterwards."""
        self._own_id.setdefault((link, seen), expected)
        return self._seen_id.setdefault((self.neighbour(link), expected), seen)

    def highest_number(self, neighbour: int) -> int:
        """Of the revokes that the neighbour was sent, as they are numbered here."""
        return max((number for key, number in self._numbers if key == neighbour), default=0)

    def chosen_number(self, neighbour: int, expected: int, seen: int) -> tuple[int, bool]:
        """The number that a revoke must have, and whether the hub chose it only now: sent again, it keeps it."""
        key = (neighbour, expected)
        if key in self._numbers:
            return self._numbers[key], False
        self._numbers[key] = seen
        return seen, True

    def forget_numbers(self, neighbour: int) -> None:
        """A neighbour begins anew."""
        self._numbers = {key: seen for key, seen in self._numbers.items() if key[0] != neighbour}

    def neighbour(self, link: Link) -> int:
        """The node at the other end of a link; 0 for the parent."""
        session = self.state.links.get(link)
        return session.node_id if session is not None else 0

    def joined(self, parent_node: int, codec: Codec, ext: Ext | None) -> None:
        """Begin with a parent that is present; how that comes about is the matter of other cases."""
        joining = self.settle([LinkUp(PARENT)], {})[0]
        request = next(output.frame for output in joining.outputs if isinstance(output, Send))
        assert isinstance(request.body, Request)
        policy = self.policy
        answer = Answer(request.body.action, Reason.OK, policy.device_id, policy.node_id, policy.credential, ext=ext)
        frame = Frame(answer, Major.OK_RESP, request.msg_id, parent_node)
        self._own_id[PARENT, request.msg_id] = request.msg_id
        self.settle([Received(PARENT, frame)], {}, [codec.encode(answer)])
