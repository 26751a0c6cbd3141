"""What can be seen of the hubs of a tree, for the monitor of promises: the only place that knows both."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve

from hubauth import seen
from hubauth.core.inputs import Input, LinkDown, LinkUp, OperatorRevoke, PolicyChanged, Received, TimerFired
from hubauth.core.messages import Answer, Frame
from hubauth.core.model import Purpose, State
from hubauth.core.outputs import Close, Note, NoteKind, Send
from hubauth.core.policy import Assist, Policy
from hubauth.core.transition import Change, Step
from hubauth.promises.events import Event, Setting


def setting_of(policies: Mapping[str, Policy], hub: str, state: State) -> Setting:
    """What the monitor is told of a hub's configuration among those of its tree."""
    policy, everybody = policies[hub], list(policies.values())
    extended = all(each.has_extension for each in everybody)
    at_root = all(each.authority == 0 for each in everybody)
    by_query = all(each.assist is Assist.QUERY for each in everybody)
    replace = all(each.revoke_on_reregister and each.has_presence for each in everybody)
    return evolve(
        seen.setting_of(policy, state.node_id),
        replaces=policy.revoke_on_reregister and policy.has_presence,
        extended=extended,
        searches=at_root and extended and replace and (policy.assist is Assist.AUTH or by_query),
    )


def observe(policies: Mapping[str, Policy], hub: str, before: State, happened: Input, done: Step) -> Iterator[Event]:
    """What one step of a hub shows: what it was told, what it says, and what it has then."""
    refused = any(isinstance(output, Note) and output.kind is NoteKind.COMMAND_REFUSED for output in done.outputs)
    match happened:
        case LinkUp(link) if link not in before.links:
            yield Event("up", hub, link)
        case LinkDown(link):
            yield Event("down", hub, link)
        case Received(link, frame, _) if link in before.links:
            yield Event("received", hub, link, frame)
            asked = [new for table, _, _, new in done.changes if table == "pending" and new is not None]
            if any(pending.purpose is Purpose.REVOKE for pending in asked):
                # A device's revoke, which may have waited for its permissions: the hub has taken it for its own.
                held = before.pending[frame.msg_id].held if isinstance(frame.body, Answer) else frame
                assert held is not None
                yield Event("commanded", hub, frame=held)
        case TimerFired(_):
            yield Event("late", hub)
        case OperatorRevoke(revoke, target) if not refused:
            yield Event("commanded", hub, frame=Frame(revoke, target=target))
        case PolicyChanged(policy) if done.policy is policy:
            yield Event("configured", hub, setting=setting_of({**policies, hub: policy}, hub, done.state))
        case _:
            pass
    for output in done.outputs:
        if isinstance(output, Send):
            yield Event("sent", hub, output.link, output.frame)
        elif isinstance(output, Close):
            yield Event("closed", hub, output.link)
    yield from at_rest(hub, done.changes)


def at_rest(hub: str, changes: Iterable[Change]) -> Iterator[Event]:
    """What a hub has after these changes of its tables, as far as it names a device or holds a credential."""
    last = {(table, key): new for table, key, _, new in changes}
    for (table, key), new in last.items():
        place, about = "binding", tuple[Any, ...]()
        match table:
            case "whitelist":
                place, about = "kept", (key, new.node_id, new.credential) if new is not None else ()
            case "registry":
                place, about = "binding", (key, new.node_id) if new is not None else ()
            case "directory":
                place, about = "binding", (new.device_id, key) if new is not None else ()
            case "owed":
                place, about = "owed", (key[1].device_id, 0, key[1].credential) if new is not None else ()
            case "beaten":
                place, about = "barred", (key, 0, new) if new is not None else ()
            case "pending":
                held = getattr(getattr(new, "held", None), "body", None)
                secret = getattr(new, "credential", "") or getattr(held, "credential", "")
                place, about = "memory", ("somebody", 0, secret) if secret else ()
            case _:
                continue
        yield Event("rests", hub, 0, Frame(b""), (place, (table, key)), *about)
