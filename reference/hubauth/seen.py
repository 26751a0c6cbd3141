"""Frames on the links of a hub as events for the monitor of promises: the one place that turns them into those.

Conformance runs, live hubs and rows of traces all show frames. An ``Onlooker`` is told of every frame of one hub, and
of links that come and go, in the order in which they are seen, and gives the events to let a ``Monitor`` watch. With
``alone`` the hubs around it are not watched: each is taken at its word, so that the hub answers for nothing that a
neighbour told it. A neighbour vouches for a credential by a success that holds it; a hub's revoke is taken for
everybody's if it is new on that link; of whatever else sounds like a revoke nothing more is claimed. ``Guard`` keeps
monitor and onlooker of one hub together, within bounds.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from inspect import cleandoc
from types import FunctionType
from typing import TypeAlias

from attrs import evolve

from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Frame,
    HubOnline,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import is_authority
from hubauth.core.policy import Policy
from hubauth.promises.events import PARENT, Event, Setting
from hubauth.promises.monitor import Monitor

Broken: TypeAlias = tuple[str, Event, Event | None]
"""A promise, and the two events that contradict each other."""
Known: TypeAlias = Callable[[str], tuple[int, str]]
"""What a hub had about a device when it was first seen: its node and credential, 0 and "" if none."""

_NAMED = re.compile(r"^([A-Z][A-Za-z]+): ", re.MULTILINE)
_ASKING = (Register, Authenticate, AssistRegister, AssistAuthenticate, AssistQueryCredential)
_VOUCHING = (Action.ASSIST_REGISTER, Action.ASSIST_AUTHENTICATE, Action.ASSIST_QUERY_CREDENTIAL)


def setting_of(policy: Policy, node_id: int) -> Setting:
    """What the monitor is told of the configuration of a hub with this node id that is watched alone."""
    verified = {binding.device_id for binding in policy.verified_here}
    here, own = is_authority(policy, node_id), {policy.node_id, policy.authority}
    provisioned = policy.provisioned
    bindings = {
        (one.device_id, one.node_id, one.credential if one.device_id in verified else "") for one in provisioned
    }
    bindings |= {(f"hub:{node_id}", node_id, "") for node_id in policy.plain_hubs}
    return Setting(
        device_id=policy.device_id,
        bindings=frozenset(bindings),
        hubs=frozenset(one.device_id for one in provisioned if "auth.assist" in policy.resolve(one.node_id).perms),
        reserved=policy.kept_nodes - {bound for _, bound, _ in bindings} - own if here else frozenset(),
        replaces=here and policy.revoke_on_reregister and policy.has_presence,
    )


class Onlooker:
    """Sees one hub. ``monitor`` in its methods is the one that has watched all events so far."""

    def __init__(self, hub: str, setting: Setting, *, alone: bool = True) -> None:
        self.hub, self.setting, self._alone = hub, setting, alone
        self._numbers: dict[str, int] = {}
        """The highest number of a revoke that a hub has sent."""
        self._wishes: dict[int, Frame] = {}
        """The last revoke that a device has asked for on a link: the hub obeys it if it says so."""

    def begins(self) -> list[Event]:
        """The hub is there, with its setting."""
        return [Event("configured", self.hub, setting=self.setting)]

    def link(self, kind: str, link: int) -> list[Event]:
        """A link is "up", "down" or "closed" by the hub."""
        self._wishes.pop(link, None)
        return [Event(kind, self.hub, link)]

    def commanded(self, revoke: Revoke, target: int = 0) -> list[Event]:
        """The operator of this hub revokes."""
        return [Event("commanded", self.hub, frame=Frame(revoke, target=target))]

    def received(self, monitor: Monitor, link: int, frame: Frame) -> Iterator[Event]:
        """The hub is sent a frame."""
        body = frame.body
        if isinstance(body, HubOnline):
            return  # never answered, and no promise is about it
        yield Event("received", self.hub, link, frame)
        if self._alone and isinstance(body, Revoke):
            name, bare = monitor.sessions.get((self.hub, link), ("", 0))[0], evolve(body, seq=0)
            if link == PARENT or name in self.setting.hubs:
                seen = body.seq <= self._numbers.get(name, 0) if body.seq else bare in monitor.said
                self._numbers[name] = max(body.seq, self._numbers.get(name, 0))
                yield self._says(bare, for_all=not seen and frame.target == 0)
            else:
                self._wishes[link] = frame
        if self._alone and isinstance(body, Answer) and body.reason is Reason.OK and body.action in _VOUCHING:
            yield Event("vouched", "", link, Frame(b""), ("", ""), body.device_id, body.node_id, body.credential)

    def sent(self, monitor: Monitor, link: int, frame: Frame) -> Iterator[Event]:
        """The hub sends a frame."""
        body = frame.body
        if isinstance(body, Answer) and body.action is not Action.REVOKE:
            frame = _as_asked(monitor.asked.get((self.hub, link), ()), frame, body)
        yield Event("sent", self.hub, link, frame)
        if self._alone and isinstance(body, Revoke) and evolve(body, seq=0) not in monitor.said:
            yield self._says(evolve(body, seq=0), for_all=False)
        wish = self._wishes.get(link)
        if wish is not None and isinstance(body, Answer) and body.action is Action.REVOKE and body.reason is Reason.OK:
            assert isinstance(wish.body, Revoke)
            yield self._says(evolve(wish.body, seq=0), for_all=wish.target == 0 and wish.msg_id == frame.msg_id)

    def _says(self, revoke: Revoke, *, for_all: bool) -> Event:
        """A revoke that the hub obeys; if it need not be the last word, as one that is for this hub alone."""
        return Event("commanded", self.hub, frame=Frame(revoke, target=0 if for_all else 1))


def _as_asked(asked: Sequence[tuple[Event, bool]], frame: Frame, answer: Answer) -> Frame:
    """An answer under the number and action of the request that it fits: not every hub copies numbers or names actions.

    One that names neither settles the oldest request. What fits none is left as it is.
    """
    requests = [event.frame for event, _ in asked]
    if not any(request.msg_id == frame.msg_id for request in requests):
        named = [request for request in requests if getattr(request.body, "action", None) is answer.action]
        oldest = next(iter(named if answer.action is not None else requests), frame)
        frame = evolve(frame, msg_id=oldest.msg_id)
    if answer.action is None:
        same = (getattr(request.body, "action", None) for request in requests if request.msg_id == frame.msg_id)
        frame = evolve(frame, body=evolve(answer, action=next(same, None)))
    return frame


class Guard:
    """Watches over the promises of one hub that is seen alone, for as long as it likes, in bounded memory.

    After ``most`` events the monitor begins anew: it takes over open links, who is admitted there and what they wait
    for, and learns of a device what the hub has (``known``) when it is next heard of. Two events are judged together if
    none of these beginnings lies between them.
    """

    def __init__(self, onlooker: Onlooker, known: Known = lambda _: (0, ""), most: int = 20_000) -> None:
        self.onlooker, self._known, self._most = onlooker, known, most
        self._monitor = Monitor().watch(onlooker.begins())
        self._begun = self._monitor.now
        self._revoked = False
        """Whether a revoke has been said since all was handled."""

    def configured(self, setting: Setting) -> list[Broken]:
        """The configuration has changed."""
        self.onlooker.setting = setting
        return self._watch(self.onlooker.begins())

    def link(self, kind: str, link: int) -> list[Broken]:
        """A link is "up", "down" or "closed" by the hub."""
        return self._watch(self.onlooker.link(kind, link))

    def commanded(self, revoke: Revoke, target: int = 0) -> list[Broken]:
        """The operator of this hub revokes."""
        return self._watch([*self._recalled(revoke.device_id), *self.onlooker.commanded(revoke, target)])

    def received(self, link: int, frame: Frame) -> list[Broken]:
        """The hub is sent a frame."""
        about = getattr(frame.body, "device_id", "") if isinstance(frame.body, (*_ASKING, Revoke)) else ""
        broken = self._watch(self._recalled(about))
        return broken + self._watch(self.onlooker.received(self._monitor, link, frame))

    def sent(self, link: int, frame: Frame) -> list[Broken]:
        """The hub sends a frame."""
        return self._watch(self.onlooker.sent(self._monitor, link, frame))

    def handled(self) -> list[Broken]:
        """The hub has handled everything that it was sent so far."""
        broken = self._watch([Event("handled", self.onlooker.hub)] if self._revoked else [])
        self._revoked = False
        if self._monitor.now - self._begun > self._most:
            broken += self._begin_anew()
        return broken

    def _recalled(self, device_id: str) -> list[Event]:
        """What the hub has about a device that the monitor does not know."""
        if not device_id or device_id in self._monitor.given or device_id in self._monitor.bound:
            return []
        node_id, credential = self._known(device_id)
        hub, nothing = self.onlooker.hub, Frame(b"")
        events = [Event("rests", hub, PARENT, nothing, ("binding", device_id), device_id, node_id)]
        events += [Event("vouched", hub, PARENT, nothing, ("", ""), device_id, node_id, credential)]
        return events[: 2 if credential else 1 if node_id else 0]

    def _begin_anew(self) -> list[Broken]:
        old, self._monitor = self._monitor, Monitor()
        self._monitor.now, self._monitor.asked, self._monitor.sessions = old.now, old.asked, old.sessions
        broken = self._watch(self.onlooker.begins())
        for asked in old.asked.values():
            for event, _ in asked:
                broken += self._watch(self._recalled(getattr(event.frame.body, "device_id", "")))
        self._begun = self._monitor.now
        return broken

    def _watch(self, events: Iterable[Event]) -> list[Broken]:
        before, self._monitor = self._monitor, self._monitor.watch(list(events))
        self._revoked |= self._monitor.said is not before.said
        return list(self._monitor.broken[len(before.broken) :])


def promised() -> dict[str, str]:
    """Every promise in English, by its name, in the order in which the monitor has them."""
    found: dict[str, str] = {}
    for judge in vars(Monitor).values():
        pieces = (
            _NAMED.split(cleandoc(getattr(judge, "__doc__", "") or ""))[1:] if isinstance(judge, FunctionType) else []
        )
        found |= {name: " ".join(text.split()) for name, text in zip(pieces[::2], pieces[1::2], strict=True)}
    return found


def tell(promise: str, later: Event, earlier: Event | None) -> str:
    """A broken promise in a line, without credentials."""
    return f"{promise}: {words(later)}" + (f"; but {words(earlier)}" if earlier is not None else "")


def words(event: Event) -> str:
    """An event in a few words, without credentials."""
    body = event if isinstance(event.frame.body, bytes) else event.frame.body
    subject = [getattr(body, name, "") or "" for name in ("device_id", "node_id", "reason")]
    said = [f"[{event.at}]", event.hub, event.kind, "" if body is event else type(body).__name__, *subject]
    return " ".join(str(word) for word in said if word != "")
