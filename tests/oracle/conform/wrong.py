"""What wrong hubs decide, say and write."""

from collections.abc import Iterable
from typing import Any

from attrs import evolve

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
from tests.oracle.conform.breaking import Decide, body_of, with_state


def caches_upstream(policy: Policy, state: State, received: Received) -> Step:
    done = step(policy, state, received)
    for output in done.outputs:
        if isinstance(output, Send) and isinstance(output.frame.body, Answer):
            answer = output.frame.body
            if answer.action is Action.ASSIST_REGISTER and answer.reason is Reason.OK:
                entry = Entry(answer.node_id, answer.credential)
                return with_state(done, policy, whitelist=done.state.whitelist.set(answer.device_id, entry))
    return done


def admits_without_asking(policy: Policy, state: State, received: Received) -> Step:
    """As if an empty role were all that is known of every device with an entry."""
    unknown = {entry.node_id: NO_GRANT for entry in state.whitelist.values() if entry.node_id not in state.perms}
    knowing = evolve(state, perms=state.perms.update(unknown))
    done = step(policy, evolve(knowing, index=derive_index(policy, knowing)), received)
    return with_state(done, policy, perms=state.perms)


def same_credential() -> Decide:
    issued: dict[str, str] = {}

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        if isinstance(happened, Received) and isinstance(happened.frame.body, Register | AssistRegister):
            fresh = issued.setdefault(happened.frame.body.device_id, happened.fresh)
            happened = evolve(happened, fresh=fresh)
        return step(policy, state, happened)

    return decide


def answers_when_not_found(policy: Policy, state: State, received: Received) -> Step:
    done = step(policy, state, received)
    revoke = body_of(received)
    if revoke.device_id in state.whitelist:
        return done
    answer = Answer(Action.REVOKE, Reason.NOT_WHITELISTED, revoke.device_id)
    frame = Frame(answer, Major.ERR_RESP, received.frame.msg_id, state.node_id)
    return evolve(done, outputs=(*done.outputs, Send(received.link, frame)))


def allocates_when_alone(policy: Policy, state: State, received: Received) -> Step:
    return step(policy, state, received) if state.parent_present else allocates(policy, state, received)


def allocates(policy: Policy, state: State, received: Received) -> Step:
    root = evolve(policy, has_parent=False, first_node_id=5000)
    return step(root, state, received)


def revokes_to_devices(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(output, Send) and isinstance(output.frame.body, Revoke):
        for link, session in state.links.items():
            if session is not None and not session.is_hub and link != PARENT:
                yield Send(link, output.frame)


def serves_strangers(policy: Policy, state: State, received: Received) -> Step:
    """Reads permissions as the admin would, for anybody."""
    if state.links.get(received.link) is not None:
        return step(policy, state, received)
    body = received.frame.body
    grant = policy.resolve(body.node_id) if isinstance(body, GetPerms) else NO_GRANT
    action = Action.GET_PERMS if isinstance(body, GetPerms) else Action.LIST_ROLES
    answer = Answer(action, Reason.OK, node_id=getattr(body, "node_id", 0), grant=grant)
    frame = Frame(answer, Major.OK_RESP, received.frame.msg_id, state.node_id)
    return evolve(step(policy, state, received), outputs=(Send(received.link, frame),))


def wrong_code(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.AUTHENTICATE and answer.reason is Reason.NOT_ADMITTED
    return evolve(frame, body=evolve(answer, reason=Reason.UNREACHABLE)) if wrong else frame


def surely_not(frame: Frame, answer: Answer) -> Frame:
    hides = answer.action is Action.AUTHENTICATE and answer.reason is Reason.UNREACHABLE
    return evolve(frame, body=evolve(answer, reason=Reason.NOT_ADMITTED)) if hides else frame


def out_of_order() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        if isinstance(body_of(happened), AssistRegister):
            return evolve(done, outputs=tuple(reversed(done.outputs)))
        return done

    return decide


def accepts_any_credential(policy: Policy, state: State, received: Received) -> Step:
    body = body_of(received)
    entry = state.whitelist.get(body.device_id)
    if entry is not None and body.credential:
        received = evolve(received, frame=evolve(received.frame, body=evolve(body, credential=entry.credential)))
    return step(policy, state, received)


def keeps_the_session(policy: Policy, state: State, received: Received) -> Step:
    """Deletes the entry, but lets the device stay."""
    done = step(policy, state, received)
    kept = tuple(output for output in done.outputs if not isinstance(output, Close))
    sessions = {link: session for link, session in state.links.items() if session is not None}
    tables = {"links": done.state.links.update(sessions), "directory": state.directory}
    return evolve(with_state(done, policy, **tables), outputs=kept)


def ignores(policy: Policy, state: State, received: Received) -> Step:
    return evolve(step(policy, state, received), state=state, outputs=())


def late_offline(policy: Policy, state: State, received: Received) -> Step:
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


def successes_first() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        return evolve(done, outputs=tuple(sorted(done.outputs, key=lambda output: not is_success(output))))

    return decide


def is_success(output: Output) -> bool:
    return isinstance(output, Send) and getattr(output.frame.body, "reason", None) is Reason.OK


def back_to_the_sender(_: Policy, state: State, happened: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(happened, Received) and happened.frame.sub_proto != 2 and state.links.get(happened.link) is not None:
        yield Send(happened.link, happened.frame)


def to_everybody(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    yield output
    if isinstance(output, Send) and isinstance(output.frame.body, bytes) and output.frame.target == 0:
        yield from (Send(link, output.frame) for link, session in state.links.items() if session is None)


def without_homes() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        return evolve(done, state=evolve(done.state, homes=State().homes))

    return decide


def one_leg() -> Decide:
    """Takes the word of the child hub that it asked for everybody's."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        pending = {key: evolve(one, climbs=False) for key, one in done.state.pending.items()}
        return evolve(done, state=evolve(done.state, pending=done.state.pending.update(pending)))

    return decide


def asks_nobody(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    body = output.frame.body if isinstance(output, Send) else None
    if not (isinstance(body_of(happened), AssistRegister) and isinstance(body, AssistAuthenticate)):
        yield output


def believes_announcements() -> Decide:
    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done, body = step(policy, state, happened), body_of(happened)
        registration = done.state.registry.get(getattr(body, "device_id", ""))
        if not isinstance(body, HubOnline) or registration is None:
            return done
        confirmed = done.state.registry.set(body.device_id, evolve(registration, confirmed=True))
        return evolve(done, state=evolve(done.state, registry=confirmed))

    return decide


def without_counting(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    if isinstance(output, Send) and isinstance(output.frame.body, bytes) and isinstance(happened, Received):
        output = Send(output.link, evolve(output.frame, hop_limit=happened.frame.hop_limit))
    yield output


def assists_devices(policy: Policy, state: State, received: Received) -> Step:
    session = state.links.get(received.link)
    if session is None or session.is_hub:
        return step(policy, state, received)
    promoted = evolve(state, links=state.links.set(received.link, evolve(session, is_hub=True)))
    done = step(policy, promoted, received)
    return evolve(done, state=evolve(done.state, links=done.state.links.set(received.link, session)))


def skips_a_node() -> Decide:
    """Counts downwards."""
    at = 4000

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        nonlocal at
        if isinstance(body_of(happened), Register):
            at -= 1
            state = evolve(state, next_node_id=at)
        return step(policy, state, happened)

    return decide


def mentions_role(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "auth_resp" and payload["data"]["code"] != 1:
        payload["data"] |= {"role": "node", "perms": ["secret"]}
    return payload


def other_word(payload: dict[str, Any]) -> dict[str, Any]:
    return {**payload, "action": payload["action"].replace("register_resp", "register_response")}


def without_node(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "auth_resp":
        payload["data"].pop("node_id", None)
    return payload


def short(payload: dict[str, Any]) -> dict[str, Any]:
    if payload.get("action") == "register_resp" and "credential" in payload["data"]:
        payload["data"]["credential"] = payload["data"]["credential"][:20]
    return payload


def wrong_perms(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.GET_PERMS and answer.reason is Reason.OK
    return evolve(frame, body=evolve(answer, grant=Grant(answer.grant.role, ("*",)))) if wrong else frame


def unsorted(frame: Frame, answer: Answer) -> Frame:
    return evolve(frame, body=evolve(answer, roles=tuple(reversed(answer.roles))))


def silent_when_left(_: Policy, __: State, happened: Input, output: Output) -> Iterable[Output]:
    """Lets whoever says offline wait for what it had asked."""
    answer = output.frame.body if isinstance(output, Send) else None
    if not (
        isinstance(body_of(happened), Offline) and isinstance(answer, Answer) and answer.action is Action.GET_PERMS
    ):
        yield output


def drops_zero() -> Decide:
    """Takes SourceID 0 from nobody who is admitted."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        nobody = isinstance(happened, Received) and not happened.frame.source and state.links.get(happened.link)
        if nobody and not isinstance(body_of(happened), bytes | Answer | Register | Authenticate):
            return evolve(step(policy, state, happened), state=state, outputs=())
        return step(policy, state, happened)

    return decide


def forbids_offline(frame: Frame, answer: Answer) -> Frame:
    wrong = answer.action is Action.OFFLINE and answer.reason is Reason.NOT_INDEXED
    return evolve(frame, body=evolve(answer, reason=Reason.FORBIDDEN)) if wrong else frame


def has_its_own_reason(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
    body = output.frame.body if isinstance(output, Send) else None
    if isinstance(output, Send) and isinstance(body, AssistOffline):
        output = Send(output.link, evolve(output.frame, body=evolve(body, reason="offline")))
    yield output


def hubs_say_it_for_themselves(policy: Policy, state: State, received: Received) -> Step:
    """Takes an offline of a hub for a device's own."""
    session, body = state.links.get(received.link), body_of(received)
    if session is None or not session.is_hub or body.device_id == session.device_id:
        return step(policy, state, received)
    answer = Answer(Action.OFFLINE, Reason.FORBIDDEN, body.device_id, body.node_id)
    frame = Frame(answer, Major.ERR_RESP, received.frame.msg_id, state.node_id, session.node_id)
    return evolve(step(policy, state, received), state=state, outputs=(Send(received.link, frame),))


def addresses_invalidations(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    if isinstance(output, Send) and isinstance(output.frame.body, PermsInvalidate):
        session = state.links.get(output.link)
        output = Send(output.link, evolve(output.frame, target=session.node_id if session is not None else 0))
    yield output


def lists_the_cache(policy: Policy, state: State, received: Received) -> Step:
    """Knows nobody but whom it has asked about."""
    others = evolve(state.index.others, named=EMPTY)
    done = step(policy, evolve(state, index=evolve(state.index, others=others)), received)
    return evolve(done, state=state)


def keeps_hubs(_: Policy, state: State, __: Input, output: Output) -> Iterable[Output]:
    """Closes no link of a hub."""
    session = state.links.get(output.link) if isinstance(output, Close) else None
    if session is None or not session.is_hub:
        yield output
