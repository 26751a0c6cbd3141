"""Hubs that are wrong on purpose: the reference with one decision changed, and the rule that must find it out."""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from hubauth.core.indexes import derive_index
from hubauth.core.inputs import PARENT, Input, Received
from hubauth.core.messages import (
    NO_GRANT,
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    Authenticate,
    Frame,
    GetPerms,
    Grant,
    HubOnline,
    ListRoles,
    Major,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, State
from hubauth.core.ordered import EMPTY
from hubauth.core.outputs import Close, Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step

Decide: TypeAlias = Callable[[Policy, State, Input], Step]
Rewrite: TypeAlias = Callable[[Policy, State, Input, Output], Iterable[Output]]
Spoil: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


@frozen
class Broken:
    """A wrong hub: how it decides or writes, in which role it shows, and which rule says so."""

    rule: str
    decide: Callable[[], Decide] = field(default=lambda: step)
    """Makes the decision function of one hub, which may remember things."""
    spoil: Spoil | None = None
    """Changes a payload before it is sent."""
    role: str = "root"
    profile: dict[str, Any] = field(factory=dict)
    """Choices that hub and profile agree on."""
    hub: dict[str, Any] = field(factory=dict)
    """Configuration that the profile does not know of."""
    limits: dict[str, Any] = field(factory=dict)
    also: frozenset[str] = frozenset()
    """Other rules that this breaks as well, among those looked at."""


def rewriting(rewrite: Rewrite) -> Callable[[], Decide]:
    """A hub that decides rightly and then sends something else."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        outputs = tuple(new for old in done.outputs for new in rewrite(policy, state, happened, old))
        return evolve(done, outputs=outputs)

    return lambda: decide


def answering(change: Callable[[Frame, Answer], Frame]) -> Callable[[], Decide]:
    """A hub whose answers are changed."""

    def rewrite(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
        if isinstance(output, Send) and isinstance(output.frame.body, Answer):
            output = Send(output.link, change(output.frame, output.frame.body))
        yield output

    return rewriting(rewrite)


def instead(kind: type, other: Callable[[Policy, State, Received], Step]) -> Callable[[], Decide]:
    """A hub that treats one kind of message in another way."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        if isinstance(happened, Received) and isinstance(happened.frame.body, kind):
            return other(policy, state, happened)
        return step(policy, state, happened)

    return lambda: decide


def dropping(kind: type) -> Callable[[], Decide]:
    """A hub that never sends one kind of message."""
    return rewriting(
        lambda _, __, ___, output: () if isinstance(output, Send) and isinstance(output.frame.body, kind) else (output,)
    )


def with_state(done: Step, policy: Policy, **tables: Any) -> Step:
    state = evolve(done.state, **tables)
    return evolve(done, state=evolve(state, index=derive_index(policy, state)))


def body_of(happened: Input) -> Any:
    return happened.frame.body if isinstance(happened, Received) else None


# The wrong decisions


def _caches_upstream(policy: Policy, state: State, received: Received) -> Step:
    done = step(policy, state, received)
    for output in done.outputs:
        if isinstance(output, Send) and isinstance(output.frame.body, Answer):
            answer = output.frame.body
            if answer.action is Action.ASSIST_REGISTER and answer.reason is Reason.OK:
                entry = Entry(answer.node_id, answer.credential)
                return with_state(done, policy, whitelist=done.state.whitelist.set(answer.device_id, entry))
    return done


def _admits_without_asking(policy: Policy, state: State, received: Received) -> Step:
    """As if an empty role were all that is known of every device with an entry."""
    unknown = {entry.node_id: NO_GRANT for entry in state.whitelist.values() if entry.node_id not in state.perms}
    knowing = evolve(state, perms=state.perms.update(unknown))
    done = step(policy, evolve(knowing, index=derive_index(policy, knowing)), received)
    return with_state(done, policy, perms=state.perms)


def _same_credential() -> Decide:
    issued: dict[str, str] = {}

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        if isinstance(happened, Received) and isinstance(happened.frame.body, Register | AssistRegister):
            fresh = issued.setdefault(happened.frame.body.device_id, happened.fresh)
            happened = evolve(happened, fresh=fresh)
        return step(policy, state, happened)

    return decide


def _answers_when_not_found(policy: Policy, state: State, received: Received) -> Step:
    done = step(policy, state, received)
    revoke = body_of(received)
    if revoke.device_id in state.whitelist:
        return done
    answer = Answer(Action.REVOKE, Reason.NOT_WHITELISTED, revoke.device_id)
    frame = Frame(answer, Major.ERR_RESP, received.frame.msg_id, state.node_id)
    return evolve(done, outputs=(*done.outputs, Send(received.link, frame)))


def _allocates_when_alone(policy: Policy, state: State, received: Received) -> Step:
    return step(policy, state, received) if state.parent_present else _allocates(policy, state, received)


def _allocates(policy: Policy, state: State, received: Received) -> Step:
    root = evolve(policy, has_parent=False, first_node_id=5000)
    return step(root, state, received)


def _revokes_to_devices(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(output, Send) and isinstance(output.frame.body, Revoke):
        for link, session in state.links.items():
            if session is not None and not session.is_hub and link != PARENT:
                yield Send(link, output.frame)


def _serves_strangers(policy: Policy, state: State, received: Received) -> Step:
    """Reads permissions as the admin would, for anybody."""
    if state.links.get(received.link) is not None:
        return step(policy, state, received)
    body = received.frame.body
    grant = policy.resolve(body.node_id) if isinstance(body, GetPerms) else NO_GRANT
    action = Action.GET_PERMS if isinstance(body, GetPerms) else Action.LIST_ROLES
    answer = Answer(action, Reason.OK, node_id=getattr(body, "node_id", 0), grant=grant)
    frame = Frame(answer, Major.OK_RESP, received.frame.msg_id, state.node_id)
    return evolve(step(policy, state, received), outputs=(Send(received.link, frame),))


def _wrong_code(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.AUTHENTICATE and answer.reason is Reason.NOT_ADMITTED
    return evolve(frame, body=evolve(answer, reason=Reason.UNREACHABLE)) if wrong else frame


def _surely_not(frame: Frame, answer: Answer) -> Frame:
    hides = answer.action is Action.AUTHENTICATE and answer.reason is Reason.UNREACHABLE
    return evolve(frame, body=evolve(answer, reason=Reason.NOT_ADMITTED)) if hides else frame


def _out_of_order() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        if isinstance(body_of(happened), AssistRegister):
            return evolve(done, outputs=tuple(reversed(done.outputs)))
        return done

    return decide


def _accepts_any_credential(policy: Policy, state: State, received: Received) -> Step:
    body = body_of(received)
    entry = state.whitelist.get(body.device_id)
    if entry is not None and body.credential:
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, credential=entry.credential)))
    return step(policy, state, received)


def _keeps_the_session(policy: Policy, state: State, received: Received) -> Step:
    """Deletes the entry, but lets the device stay."""
    done = step(policy, state, received)
    kept = tuple(output for output in done.outputs if not isinstance(output, Close))
    sessions = {link: session for link, session in state.links.items() if session is not None}
    tables = {"links": done.state.links.update(sessions), "directory": state.directory}
    return evolve(with_state(done, policy, **tables), outputs=kept)


def _ignores(policy: Policy, state: State, received: Received) -> Step:
    return evolve(step(policy, state, received), state=state, outputs=())


def _late_offline(policy: Policy, state: State, received: Received) -> Step:
    """Believes every report, whoever sends it."""
    body = body_of(received)
    done = step(policy, state, received)
    route = state.directory.get(body.node_id)
    if route is None:
        return done
    directory = state.directory.set(body.node_id, evolve(route, online=False))
    answer = Answer(Action.ASSIST_OFFLINE, Reason.OK, body.device_id, body.node_id)
    frame = evolve(done.outputs[0].frame, body=answer, major=Major.OK_RESP)  # type: ignore[union-attr]
    return evolve(with_state(done, policy, directory=directory), outputs=(Send(received.link, frame),))


def _successes_first() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        return evolve(done, outputs=tuple(sorted(done.outputs, key=lambda output: not _is_success(output))))

    return decide


def _is_success(output: Output) -> bool:
    return isinstance(output, Send) and getattr(output.frame.body, "reason", None) is Reason.OK


def _back_to_the_sender(_: Policy, state: State, happened: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(happened, Received) and happened.frame.sub_proto != 2 and state.links.get(happened.link) is not None:
        yield Send(happened.link, happened.frame)


def _to_everybody(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(output, Send) and isinstance(output.frame.body, bytes) and output.frame.target == 0:
        yield from (Send(link, output.frame) for link, session in state.links.items() if session is None)


def _without_homes() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        return evolve(done, state=evolve(done.state, homes=State().homes))

    return decide


def _one_leg() -> Decide:
    """Takes the word of the child hub that it asked for everybody's."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        pending = {key: evolve(one, climbs=False) for key, one in done.state.pending.items()}
        return evolve(done, state=evolve(done.state, pending=done.state.pending.update(pending)))

    return decide


def _asks_nobody(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    body = output.frame.body if isinstance(output, Send) else None
    if not (isinstance(body_of(happened), AssistRegister) and isinstance(body, AssistAuthenticate)):
        yield output


def _believes_announcements() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done, body = step(policy, state, happened), body_of(happened)
        registration = done.state.registry.get(getattr(body, "device_id", ""))
        if not isinstance(body, HubOnline) or registration is None:
            return done
        confirmed = done.state.registry.set(body.device_id, evolve(registration, confirmed=True))
        return evolve(done, state=evolve(done.state, registry=confirmed))

    return decide


def _without_counting(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    if isinstance(output, Send) and isinstance(output.frame.body, bytes) and isinstance(happened, Received):
        output = Send(output.link, evolve(output.frame, hop_limit=happened.frame.hop_limit))
    yield output


def _assists_devices(policy: Policy, state: State, received: Received) -> Step:
    session = state.links.get(received.link)
    if session is None or session.is_hub:
        return step(policy, state, received)
    promoted = evolve(state, links=state.links.set(received.link, evolve(session, is_hub=True)))
    done = step(policy, promoted, received)
    return evolve(done, state=evolve(done.state, links=done.state.links.set(received.link, session)))


def _skips_a_node() -> Decide:
    """Counts downwards."""
    at = 4000

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        nonlocal at
        if isinstance(body_of(happened), Register):
            at -= 1
            state = evolve(state, next_node_id=at)
        return step(policy, state, happened)

    return decide


def _mentions_role(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "auth_resp" and payload["data"]["code"] != 1:
        payload["data"] |= {"role": "node", "perms": ["secret"]}
    return payload


def _other_word(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "action": payload["action"].replace("register_resp", "register_response")}


def _without_node(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "auth_resp":
        payload["data"].pop("node_id", None)
    return payload


def _short(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "register_resp" and "credential" in payload["data"]:
        payload["data"]["credential"] = payload["data"]["credential"][:20]
    return payload


def _wrong_perms(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.GET_PERMS and answer.reason is Reason.OK
    return evolve(frame, body=evolve(answer, grant=Grant(answer.grant.role, ("*",)))) if wrong else frame


def _unsorted(frame: Frame, answer: Answer) -> Frame:
    return evolve(frame, body=evolve(answer, roles=tuple(reversed(answer.roles))))


def _silent_when_left(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    """Lets whoever says offline wait for what it had asked."""
    answer = output.frame.body if isinstance(output, Send) else None
    if not (
        isinstance(body_of(happened), Offline) and isinstance(answer, Answer) and answer.action is Action.GET_PERMS
    ):
        yield output


def _drops_zero() -> Decide:
    """Takes SourceID 0 from nobody who is admitted."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        nobody = isinstance(happened, Received) and not happened.frame.source and state.links.get(happened.link)
        if nobody and not isinstance(body_of(happened), bytes | Answer | Register | Authenticate):
            return evolve(step(policy, state, happened), state=state, outputs=())
        return step(policy, state, happened)

    return decide


def _forbids_offline(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.OFFLINE and answer.reason is Reason.NOT_INDEXED
    return evolve(frame, body=evolve(answer, reason=Reason.FORBIDDEN)) if wrong else frame


def _has_its_own_reason(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
    body = output.frame.body if isinstance(output, Send) else None
    if isinstance(output, Send) and isinstance(body, AssistOffline):
        output = Send(output.link, evolve(output.frame, body=evolve(body, reason="offline")))
    yield output


def _hubs_say_it_for_themselves(policy: Policy, state: State, received: Received) -> Step:
    """Takes an offline of a hub for a device's own."""
    session, body = state.links.get(received.link), body_of(received)
    if session is None or not session.is_hub or body.device_id == session.device_id:
        return step(policy, state, received)
    answer = Answer(Action.OFFLINE, Reason.FORBIDDEN, body.device_id, body.node_id)
    frame = Frame(answer, Major.ERR_RESP, received.frame.msg_id, state.node_id, session.node_id)
    return evolve(step(policy, state, received), state=state, outputs=(Send(received.link, frame),))


def _addresses_invalidations(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    if isinstance(output, Send) and isinstance(output.frame.body, PermsInvalidate):
        session = state.links.get(output.link)
        output = Send(output.link, evolve(output.frame, target=session.node_id if session is not None else 0))
    yield output


def _lists_the_cache(policy: Policy, state: State, received: Received) -> Step:
    """Knows nobody but whom it has asked about."""
    others = evolve(state.index.others, named=EMPTY)
    done = step(policy, evolve(state, index=evolve(state.index, others=others)), received)
    return evolve(done, state=state)


def _keeps_hubs(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    """Closes no link of a hub."""
    session = state.links.get(output.link) if isinstance(output, Close) else None
    if session is None or not session.is_hub:
        yield output


BROKEN: dict[str, Broken] = {
    "admits without asking": Broken("AUTH-27", instead(Authenticate, _admits_without_asking), role="middle"),
    "caches upstream": Broken("REG-7", instead(AssistRegister, _caches_upstream)),
    "same credential on re-register": Broken("REG-9", _same_credential, also=frozenset({"REG-4"})),
    "forgets MsgID": Broken("FRAME-12", answering(lambda frame, _: evolve(frame, msg_id=0))),
    "answers revoke when not found": Broken("REV-9", instead(Revoke, _answers_when_not_found)),
    "allocates when asked": Broken("AUTHY-4", instead(AssistRegister, _allocates), role="middle"),
    "broadcasts revoke to devices": Broken("REV-2", rewriting(_revokes_to_devices)),
    "leaks role in a refusal": Broken("MSG-13", spoil=_mentions_role),
    "wrong code": Broken("AUTH-2", answering(_wrong_code)),
    "wrong action in the answer": Broken("MSG-1", spoil=_other_word),
    "leaves node_id out": Broken("MSG-10", spoil=_without_node),
    "answers before it revokes": Broken("REG-10", _out_of_order),
    "lets strangers ask for permissions": Broken("FRAME-23", instead(GetPerms, _serves_strangers)),
    "lets strangers list roles": Broken("FRAME-23", instead(ListRoles, _serves_strangers)),
    "accepts any credential": Broken("AUTH-2", instead(Authenticate, _accepts_any_credential)),
    "keeps session after revoke": Broken(
        "REV-6", instead(Revoke, _keeps_the_session), profile={"close_on_revoke": False}
    ),
    "ignores perms_invalidate": Broken("PERM-12", instead(PermsInvalidate, _ignores), role="child"),
    "answers offline though it says not": Broken(
        "OFF-2", profile={"answer_offline": False}, hub={"answer_offline": True}
    ),
    "drops SourceID 0 of who is admitted": Broken("FRAME-21", _drops_zero),
    "forbids offline to who is not there": Broken("OFF-10", answering(_forbids_offline)),
    "forbids offline to hubs": Broken("OFF-12", instead(Offline, _hubs_say_it_for_themselves)),
    "gives a reason of its own": Broken("OFF-13", rewriting(_has_its_own_reason), role="child"),
    "addresses invalidations": Broken("PERM-18", rewriting(_addresses_invalidations)),
    "lists its cache alone": Broken("PERM-19", instead(ListRoles, _lists_the_cache), role="child"),
    "wrong Major": Broken("FRAME-13", answering(lambda frame, _: evolve(frame, major=Major.OK_RESP))),
    "wrong TargetID": Broken("FRAME-14", answering(lambda frame, _: evolve(frame, target=77))),
    "sends frames back": Broken("FRAME-7", rewriting(_back_to_the_sender)),
    "broadcasts to strangers": Broken("FRAME-6", rewriting(_to_everybody)),
    "counts no hops": Broken("FRAME-8", rewriting(_without_counting)),
    "forgets homes": Broken("REG-15", _without_homes),
    "takes what it could not ask for a no": Broken("AUTH-10", answering(_surely_not), role="middle"),
    "searches one child hub only": Broken("AUTH-21", _one_leg, role="middle"),
    "asks for no confirmation": Broken("REG-16", rewriting(_asks_nobody), profile={"reregister": "after_revoke"}),
    "takes an announcement for a confirmation": Broken(
        "REG-17", _believes_announcements, profile={"reregister": "after_revoke"}
    ),
    "owes no batches": Broken("REV-21", limits={"revoke_batch": 9}),
    "lets successes overtake": Broken("REV-22", _successes_first),
    "short credentials": Broken("REG-4", spoil=_short),
    "decreasing node ids": Broken("REG-2", _skips_a_node),
    "believes late reports": Broken("OFF-7", instead(AssistOffline, _late_offline)),
    "allocates while the parent is away": Broken("AUTHY-5", instead(Register, _allocates_when_alone), role="child"),
    "lets who left wait": Broken("LINK-10", rewriting(_silent_when_left), role="child"),
    "keeps superseded hubs": Broken("LINK-11", rewriting(_keeps_hubs), profile={"close_superseded": False}),
    "lets devices assist": Broken("TRUST-3", instead(AssistRegister, _assists_devices)),
    "keeps superseded sessions": Broken("BIND-3", hub={"close_superseded": False}),
    "accepts long payloads": Broken("WIRE-6", limits={"payload": 65536}),
    "grants everything": Broken("PERM-1", answering(_wrong_perms)),
    "lists unsorted": Broken("PERM-19", answering(_unsorted)),
}


def spoiling(spoil: Spoil, encode: Callable[..., bytes]) -> Callable[..., bytes]:
    """``encode_frame`` with payloads changed on the way out."""

    def spoiled(version: Any, codec: Any, frame: Frame, now: int = 0) -> bytes:
        data = encode(version, codec, frame, now)
        if isinstance(frame.body, bytes):
            return data
        size = len(codec.encode(frame.body))
        payload = json.dumps(spoil(json.loads(data[-size:]))).encode()
        at = 18 if int(version) == 1 else 28
        header = data[: len(data) - size]
        return header[:at] + len(payload).to_bytes(4, "big") + header[at + 4 :] + payload

    return spoiled
