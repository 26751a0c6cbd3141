"""Records one running hub, in the order in which it handles what happens."""

import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from hubauth.core.canonical import digest_of, encode_state
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import (
    Input,
    Link,
    LinkDown,
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
    PolicyChanged,
    Received,
    TimerFired,
)
from hubauth.core.model import State
from hubauth.core.policy import Policy
from hubauth.forms.events import Kind, Opening, Order, encode_command, encode_opening, encode_origin
from hubauth.forms.policies import encode_policy, form_of
from hubauth.trace.redact import Redactor
from hubauth.trace.rows import Recording, RowWriter
from hubauth.wire.framing import RawFrame
from hubauth.wire.header import Refused, Version, decode_v1, decode_v2

clock = time.time_ns


class Named(Protocol):
    """A connection, as far as a trace names it."""

    @property
    def peer(self) -> str: ...
    @property
    def connection(self) -> str: ...


class Recorder:
    """What happens to a hub and what it does. ``seal`` and ``release`` follow the hub's own batches."""

    def __init__(self, recording: Recording, policy: Policy, state: State) -> None:
        """Begins with a hub in this state. Raises TraceError."""
        self._rows = RowWriter(recording, policy.device_id)
        self._redactor = self._rows.redactor
        self._checkpoint_events = recording.checkpoint_events
        self._checkpointed = self._rows.sequence
        self._connections: dict[Link, str] = {}
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._checkpointing: Future[None] | None = None
        self._start(policy, state)

    def _start(self, policy: Policy, state: State) -> None:
        if self._redactor is not None:
            policy, state = self._redactor.policy(policy), self._redactor.state(state)
        digest = digest_of(state).hex()
        is_first = digest == digest_of(initial_state(policy, state.journal)).hex()
        if not is_first:
            self._rows.keep(self._rows.sequence, policy, digest, encode_state(state))
        begins = "" if is_first else digest
        opening = Opening(Order.HANDLED, form_of(policy), begins, state.journal, self._rows.tokens)
        self._rows.add(Kind.START, _now(), payload=encode_opening(opening))

    # What happens

    def received(self, link: Link, raw: RawFrame, version: Version) -> None:
        connection = self._connections.get(link, "")
        self._rows.add_frame(Kind.FRAME_IN, _now(), link, connection, raw.header, version, raw.payload)

    def happened(self, happened: Input, ports: Mapping[Link, Named]) -> None:
        """Any input but a frame. ``ports`` are the open connections."""
        rows, redactor, now = self._rows, self._redactor, _now()
        match happened:
            case LinkUp(link):
                port = ports[link]
                self._connections[link] = port.connection
                payload = encode_origin(happened)
                rows.add(Kind.LINK_UP, now, link, port.connection, peer=port.peer, payload=payload)
            case LinkDown(link):
                rows.add(Kind.LINK_DOWN, now, link, self._connections.pop(link, ""))
            case TimerFired(timer):
                rows.add(Kind.TIMER, now, msg_id=timer)
            case OperatorRevoke():
                if redactor is not None:
                    redactor.know(happened.revoke.credential)
                command = happened if redactor is None else redactor.value(happened)
                rows.add(Kind.OPERATOR, now, payload=encode_command(command))
            case OperatorInvalidate():
                command = happened if redactor is None else redactor.value(happened)
                rows.add(Kind.OPERATOR, now, payload=encode_command(command))
            case PolicyChanged(policy):
                shown = policy if redactor is None else redactor.policy(policy)
                rows.add(Kind.POLICY, now, payload=encode_policy(shown))
            case Received():
                raise TypeError("a frame is recorded as it came: received")

    # What the hub does

    def sent(self, link: Link, data: bytes, version: Version) -> None:
        """A frame as it goes to the wire."""
        header = decode_v1(data) if version is Version.V1 else decode_v2(data)
        assert not isinstance(header, Refused)
        connection = self._connections.get(link, "")
        self._rows.add_frame(Kind.FRAME_OUT, _now(), link, connection, header, version, data[header.length :])

    def closed(self, link: Link) -> None:
        self._rows.add(Kind.CLOSE, _now(), link, self._connections.pop(link, ""))

    # Batches

    def seal(self) -> None:
        self._rows.seal()

    def release(self) -> None:
        self._rows.release()

    def checkpoint(self, policy: Policy, state: State) -> None:
        """Between two steps: perhaps keep the state. Encoding it takes a thread's time, not the hub's."""
        if self._rows.sequence - self._checkpointed < self._checkpoint_events:
            return
        if self._checkpointing is not None and not self._checkpointing.done():
            return
        self._checkpointed = self._rows.sequence
        # Not the hub's own redactor: its memory belongs to the other thread.
        redactor = self._redactor.alone() if self._redactor is not None else None
        self._checkpointing = self._thread.submit(self._keep, self._rows.sequence, policy, state, redactor)
        self._rows.add(Kind.CHECKPOINT, _now())

    def _keep(self, sequence: int, policy: Policy, state: State, redactor: Redactor | None) -> None:
        if redactor is not None:
            policy, state = redactor.policy(policy), redactor.state(state)
        self._rows.keep(sequence, policy, digest_of(state).hex(), encode_state(state))

    def close(self, *, in_order: bool = True) -> None:
        """The hub has stopped in order; or it has failed, and what is not in its journal has never happened."""
        if in_order:
            self._rows.add(Kind.END, _now())
        else:
            self._rows.forget()
        self._thread.shutdown()
        self._rows.close()


def _now() -> int:
    return clock() // 1000
