"""The promises, watched on what a live hub is sent and sends (``hubauth hub --watch``).

A broken promise is an alarm, a counter and a line of ``hub ctl status``; the hub goes on. The monitor's memory is
bounded: see ``hubauth.seen.Guard``.
"""

from collections import Counter

from attrs import evolve

from hubauth.core.inputs import Input, LinkDown, LinkUp, OperatorRevoke, PolicyChanged, Received
from hubauth.core.model import State, bound_node
from hubauth.core.outputs import Close, Note, NoteKind, Send
from hubauth.core.policy import Policy
from hubauth.core.transition import Step
from hubauth.promises.events import Event, Setting
from hubauth.seen import Guard, Onlooker, setting_of
from hubauth.shell.alarms import named
from hubauth.shell.observe import Observer


class Watcher:
    """Follows the steps of one hub, knowing nothing of what is right."""

    def __init__(self, policy: Policy, state: State, observer: Observer) -> None:
        self._policy, self._state, self._observer = policy, state, observer
        self._guard = Guard(Onlooker("this hub", _setting(policy, state)), self._known)
        self.broken: Counter[str] = Counter()
        """Promise -> how often it was broken since the hub began."""

    def follow(self, before: State, happened: Input, done: Step) -> None:
        """The hub has taken a step."""
        guard, self._state = self._guard, before
        found = []
        match happened:
            case LinkUp(link):
                found += guard.link("up", link)
            case LinkDown(link):
                found += guard.link("down", link)
            case Received(link, frame, _):
                found += guard.received(link, frame)
            case OperatorRevoke(revoke, target) if not _refused(done):
                found += guard.commanded(revoke, target)
            case PolicyChanged(policy):
                self._policy = policy
                found += guard.configured(_setting(policy, done.state))
        for output in done.outputs:
            if isinstance(output, Send):
                found += guard.sent(output.link, output.frame)
            elif isinstance(output, Close):
                found += guard.link("closed", output.link)
        found += guard.handled()
        for promise, later, earlier in found:
            self._tell(promise, later, earlier)

    def _known(self, device_id: str) -> tuple[int, str]:
        entry = self._state.whitelist.get(device_id)
        return bound_node(self._state, device_id), entry.credential if entry is not None else ""

    def _tell(self, promise: str, later: Event, earlier: Event | None) -> None:
        self.broken[promise] += 1
        self._observer.count("promises_broken", promise)
        about = named(self._policy, self._state, getattr(later.frame.body, "device_id", "") or later.device_id)
        said = f"{_words(later)} after {_words(earlier)}" if earlier is not None else _words(later)
        self._observer.alarm("promise_broken", promise=promise, detail=said, **about)


def _setting(policy: Policy, state: State) -> Setting:
    """What the configuration says, without reserving nodes that a device had before the configuration named them."""
    setting = setting_of(policy, state.node_id)
    taken = (*state.index.roster, *state.index.named_and_registered) if setting.reserved else ()
    return evolve(setting, reserved=setting.reserved - frozenset(taken))


def _refused(done: Step) -> bool:
    return any(isinstance(output, Note) and output.kind is NoteKind.COMMAND_REFUSED for output in done.outputs)


def _words(event: Event) -> str:
    """Name no device: one that is not known here may have sent a credential as its name."""
    body = event.frame.body
    reason = getattr(body, "reason", None)
    words = [event.kind, "" if isinstance(body, bytes) else type(body).__name__, getattr(reason, "value", "")]
    return " ".join([*filter(None, words), f"on link {event.link}"])
