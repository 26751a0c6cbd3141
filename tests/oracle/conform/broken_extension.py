"""Hubs that are wrong on purpose about the extension."""

from collections.abc import Callable, Iterable
from typing import Any

from attrs import evolve
from immutables import Map

from hubauth.core.inputs import Input, Received
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    Authenticate,
    Ext,
    Frame,
    HubDismiss,
    HubFence,
    HubOnline,
    Major,
    Reason,
    Revoke,
)
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from tests.oracle.conform.breaking import Broken, Decide, answering, body_of, dropping, instead, rewriting, with_state


def _forgets_what_it_owes() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        return with_state(done, policy, owed=Map())

    return decide


def acts_on_every_number(policy: Policy, state: State, received: Received) -> Step:
    fresh = {key: evolve(one, handled=0) for key, one in state.neighbours.items()}
    done = step(policy, evolve(state, neighbours=state.neighbours.update(fresh)), received)
    neighbours = done.state.neighbours
    for key, former in state.neighbours.items():
        neighbours = neighbours.set(key, evolve(neighbours[key], handled=max(former.handled, neighbours[key].handled)))
    return evolve(done, state=evolve(done.state, neighbours=neighbours))


def _refuses_fences(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.HUB_FENCE
    return evolve(frame, body=evolve(answer, reason=Reason.NOT_INDEXED), major=Major.ERR_RESP) if wrong else frame


def _renumbered(output: Output, number: Callable[[Revoke, Frame], int]) -> Output:
    if isinstance(output, Send) and isinstance(output.frame.body, Revoke):
        revoke = output.frame.body
        return Send(output.link, evolve(output.frame, body=evolve(revoke, seq=number(revoke, output.frame))))
    return output


def _without_numbers(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
    yield _renumbered(output, lambda _, __: 0)


def _numbers_everything(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
    yield _renumbered(output, lambda revoke, _: revoke.seq or 1)


def _extends_every_hub() -> Decide:
    """Takes every child hub for one of its kind."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        hubs = {link: one for link, one in done.state.links.items() if one is not None and one.is_hub}
        links = done.state.links.update({link: evolve(one, extended=True) for link, one in hubs.items()})
        return evolve(done, state=evolve(done.state, links=links))

    return decide


def _offers_nothing(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
    if isinstance(output, Send) and isinstance(output.frame.body, Authenticate):
        output = Send(output.link, evolve(output.frame, body=evolve(output.frame.body, ext=None)))
    yield output


def _with_ext(frame: Frame, answer: Answer, ext: Ext | None, *, hub: bool) -> Frame:
    wrong = answer.ext is not None and answer.ext.hub is hub
    return evolve(frame, body=evolve(answer, ext=ext)) if wrong else frame


def _takes_nothing_up(frame: Frame, answer: Answer) -> Frame:
    return _with_ext(frame, answer, None, hub=True)


def _keeps_to_itself(frame: Frame, answer: Answer) -> Frame:
    return _with_ext(frame, answer, None, hub=False)


def _has_handled_nothing(frame: Frame, answer: Answer) -> Frame:
    ext = evolve(answer.ext, handled=0) if answer.ext is not None else None
    return _with_ext(frame, answer, ext, hub=True)


def _hearing(received: Received, change: Callable[[Ext], Ext | None]) -> Received:
    """The same with another ext, if it has one."""
    body = received.frame.body
    if not isinstance(body, Answer | Authenticate) or body.ext is None:
        return received
    return evolve(received, frame=evolve(received.frame, body=evolve(body, ext=change(body.ext))))


def _believes_an_echo(policy: Policy, state: State, received: Received) -> Step:
    heard = _hearing(received, lambda ext: Ext("anybody", state.journal) if ext.journal == state.journal else ext)
    return step(policy, state, heard)


def _knows_no_journals() -> Decide:
    """Knows a hub by its node, whatever its journal."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done, body = step(policy, state, happened), body_of(happened)
        if not isinstance(body, Authenticate) or body.ext is None:
            return done
        neighbours = done.state.neighbours
        for key, former in state.neighbours.items():
            neighbours = neighbours.set(key, evolve(neighbours[key], handled=former.handled))
        return evolve(done, state=evolve(done.state, neighbours=neighbours))

    return decide


def _hears_of_no_numbers(policy: Policy, state: State, received: Received) -> Step:
    return step(policy, state, _hearing(received, lambda ext: evolve(ext, handled=0)))


def _has_the_same_parent(policy: Policy, state: State, received: Received) -> Step:
    """Takes every parent for the one it had."""
    former = state.neighbours.get(0)
    journal = former.journal if former is not None else ""
    heard = _hearing(received, lambda ext: evolve(ext, journal=journal) if journal and ext.hub else ext)
    return step(policy, state, heard)


def _is_content(policy: Policy, state: State, received: Received) -> Step:
    return step(policy, state, _hearing(received, lambda ext: ext if ext.hub else None))


def _fences_for_plain_hubs(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(output, Send) and isinstance(output.frame.body, Revoke) and output.frame.body.seq == 0:
        session = state.links.get(output.link)
        if session is not None and session.is_hub and output.frame.target == 0:
            yield Send(output.link, Frame(HubFence(), Major.CMD, 0x7000_0000, state.node_id, session.node_id))


def _searches_for_anything(policy: Policy, state: State, received: Received) -> Step:
    """Goes and looks for whoever has an empty credential."""
    body = body_of(received)
    if not body.credential:
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, credential="-")))
    return step(policy, state, received)


def _fences_without_words(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "hub_fence_resp":
        del payload["data"]["msg"]
    return payload


BROKEN_EXTENSION: dict[str, Broken] = {
    "sends no fence": Broken("EXT-11", dropping(HubFence)),
    "refuses fences": Broken("EXT-11", answering(_refuses_fences)),
    "forgets what it owes": Broken("EXT-12", _forgets_what_it_owes),
    "acts on old numbers": Broken("EXT-10", instead(Revoke, acts_on_every_number)),
    "announces nothing": Broken("EXT-8", dropping(HubOnline), role="child"),
    "numbers nothing": Broken("EXT-10", rewriting(_without_numbers)),
    "numbers addressed revokes": Broken("EXT-10", rewriting(_numbers_everything)),
    "speaks the extension with everybody": Broken("EXT-1", _extends_every_hub),
    "offers no extension": Broken("EXT-2", rewriting(_offers_nothing), role="child"),
    "takes no extension up": Broken("EXT-3", answering(_takes_nothing_up)),
    "says that it has handled nothing": Broken("EXT-3", answering(_has_handled_nothing)),
    "is fooled by an echo": Broken(
        "EXT-4", instead(Answer, _believes_an_echo), role="child", also=frozenset({"EXT-2"})
    ),
    "remembers numbers of other journals": Broken("EXT-5", _knows_no_journals),
    "uses numbers twice": Broken("EXT-5", instead(Authenticate, _hears_of_no_numbers)),
    "owes a new parent everything": Broken("EXT-6", instead(Answer, _has_the_same_parent), role="child"),
    "tells nobody that it is no hub": Broken("EXT-7", answering(_keeps_to_itself)),
    "is content to be a device": Broken("EXT-7", instead(Answer, _is_content), role="child"),
    "dismisses nobody": Broken("EXT-9", dropping(HubDismiss)),
    "fences for plain hubs": Broken("REV-23", rewriting(_fences_for_plain_hubs)),
    "searches with an empty credential": Broken(
        "EXT-14", instead(AssistAuthenticate, _searches_for_anything), role="middle"
    ),
    "answers fences without words": Broken("EXT-15", spoil=_fences_without_words),
}
