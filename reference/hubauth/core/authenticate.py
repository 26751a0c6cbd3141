"""auth (login), assist_auth (assist_login) and assist_query_credential: who knows the credential.

Verification only reads: a search (search.py) asks from hub to hub until somebody has an entry, and its answer
changes nothing on the way back. Only the hub that the device is connected to stores anything.
"""

from hubauth.core import authority, plain, presence, search
from hubauth.core.admission import admit, make_way, told_with
from hubauth.core.credentials import same_credential
from hubauth.core.inputs import PARENT, Link, Received
from hubauth.core.messages import (
    CODES,
    NO_GRANT,
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    Authenticate,
    Reason,
)
from hubauth.core.model import Entry, Pending, Purpose
from hubauth.core.perms import known_grant
from hubauth.core.policy import Assist
from hubauth.core.talk import answer_to, ask, refuse, settle, waiting_for
from hubauth.core.transition import Transition

_AUTHENTICATE, _RELAY = Purpose.AUTHENTICATE, Purpose.RELAY
_PASSED_ON = (4001, 4002, 4500)
"""The codes of a failed search that a device may hear; any other means the assistance failed."""


def on_authenticate(t: Transition, received: Received, message: Authenticate) -> None:
    """A device presents itself at this hub."""
    make_way(t, received.link)
    if t.node_id == 0:
        refuse(t, received, Reason.UNREACHABLE, "TRUST-8")
        return
    if t.policy.has_credentials and not message.credential:
        refuse(t, received, Reason.NOT_ADMITTED, "AUTH-3")
        return
    entry = find_entry(t, message.device_id)
    if entry is None:
        _search_for_device(t, received, message)
    elif verify(t, entry, message.credential):
        if t.policy.has_credentials:
            t.cite("AUTH-1")
        if t.policy.has_parent and not t.parent_present:
            t.cite("AUTH-18")
        asker = waiting_for(received, _AUTHENTICATE, None, message.device_id, ext=message.ext)
        admit(t, asker, entry, by_entry=True)
        let_routes_follow(t, message.device_id)
    else:
        refuse(t, received, Reason.NOT_ADMITTED, "AUTH-2")


def let_routes_follow(t: Transition, device_id: str) -> None:
    """Where no presence messages exist, a search whose result is known shows the hubs above where the device is."""
    if t.policy.has_presence or not t.parent_present:
        return
    t.cite("AUTH-25")
    if len(t.queues.get((None, PARENT), ())) >= t.policy.hub_pending_limit:
        t.note("TIME-7", f"too much waits for the parent to ask it about {device_id}")
        return
    about = Pending(Purpose.RELAY, Action.ASSIST_AUTHENTICATE, PARENT, device_id=device_id)
    ask(t, AssistAuthenticate(device_id), about)


def find_entry(t: Transition, device_id: str) -> Entry | None:
    """The entry that can verify a device here; without credentials a registration is as good."""
    entry = t.whitelist.get(device_id)
    if entry is None and not t.policy.has_credentials:
        registration = t.registry.get(device_id)
        if registration is not None:
            entry = Entry(registration.node_id, "")
    return entry


def verify(t: Transition, entry: Entry, presented: str) -> bool:
    """Whether what was presented proves the binding."""
    if not t.policy.has_credentials:
        t.cite("AUTH-15")
        return True
    return same_credential(entry.credential, presented)


def _search_for_device(t: Transition, received: Received, message: Authenticate) -> None:
    strategy = t.policy.assist
    if strategy is Assist.NONE:
        refuse(t, received, Reason.NOT_ADMITTED, "AUTH-4")
        return
    query = strategy is Assist.QUERY and t.policy.has_credentials
    t.cite("AUTH-6" if query else "AUTH-5")
    purpose, presented = Purpose.QUERY if query else Purpose.AUTHENTICATE, message.credential
    about = waiting_for(
        received,
        purpose,
        None,
        message.device_id,
        credential=presented,
        epoch=t.invalidations,
        ext=message.ext,
    )
    search.begin(t, about, presented)


def on_assist_authenticate(t: Transition, received: Received, message: AssistAuthenticate) -> None:
    """Another hub searches for somebody who can verify."""
    if t.policy.has_credentials and not message.credential:
        refuse(t, received, Reason.NOT_ADMITTED, "EXT-14")
        return
    entry = find_entry(t, message.device_id)
    if entry is None:
        search.begin(t, waiting_for(received, _RELAY, None, message.device_id), message.credential)
        return
    if t.policy.has_credentials:
        t.cite("AUTH-7")
    if not verify(t, entry, message.credential):
        refuse(t, received, Reason.NOT_ADMITTED)
        return
    follow_answer(t, received.link, entry.node_id, message.device_id)
    grant = known_grant(t, entry.node_id) or NO_GRANT
    answer_to(t, received, Reason.OK, node_id=entry.node_id, credential=entry.credential, grant=grant)


def on_query_credential(t: Transition, received: Received, message: AssistQueryCredential) -> None:
    """Another hub wants the credential itself."""
    t.cite("AUTH-13")
    if t.policy.assist is not Assist.QUERY:
        refuse(t, received, Reason.FORBIDDEN)
        return
    entry = t.whitelist.get(message.device_id)
    if entry is None:
        search.begin(t, waiting_for(received, _RELAY, None, message.device_id, message.node_id), "")
        return
    t.cite("AUTH-7")
    follow_answer(t, received.link, entry.node_id, message.device_id, proved=False)
    answer_to(t, received, Reason.OK, node_id=entry.node_id, credential=entry.credential)


def on_search_answer(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
    """A search that this hub began for its own device is over, or goes on to the parent."""
    if answer.reason is not Reason.OK and pending.climbs:
        search.go_on(t, pending, answer.reason)
        return
    if answer.reason is not Reason.OK:
        t.cite("AUTH-19")
        reason = search.outcome(t, pending, answer.reason)
        settle(t, pending, reason if CODES[reason] in _PASSED_ON else Reason.UNREACHABLE, source=source)
        return
    if not is_usable(t, pending, answer):
        t.cite("AUTH-19")
        settle(t, pending, Reason.UNREACHABLE)
        return
    if pending.purpose is Purpose.AUTHENTICATE and t.policy.has_credentials:
        t.cite("AUTH-32")
        if not same_credential(answer.credential, pending.credential):
            settle(t, pending, Reason.UNREACHABLE)
            return
    if pending.purpose is Purpose.QUERY:
        t.cite("AUTH-14")
        if not same_credential(answer.credential, pending.credential):
            settle(t, pending, Reason.NOT_ADMITTED)
            return
    entry = t.whitelist.get(pending.device_id)
    if entry is not None and not verify(t, entry, pending.credential):
        # Stored since the search began. What a registration replaced may still be good elsewhere, if nobody revoked it.
        t.cite("AUTH-2")
        settle(t, pending, Reason.NOT_ADMITTED)
        return
    t.cite("AUTH-12")
    admit(t, pending, Entry(answer.node_id, pending.credential), told_with(t, pending, answer), source)


def on_relayed_answer(t: Transition, pending: Pending, answer: Answer, source: int = 0) -> None:
    """Pass an answer back to the hub that asked, unless it is a search that goes on to the parent.

    Where no hub asked, the question was all that mattered.
    """
    if answer.reason is not Reason.OK and pending.climbs:
        search.go_on(t, pending, answer.reason)
        return
    if answer.reason is Reason.OK and pending.asker is not None:
        proved = pending.action is not Action.ASSIST_QUERY_CREDENTIAL
        follow_answer(t, pending.asker, answer.node_id, pending.device_id, proved=proved)
    if pending.action is Action.ASSIST_REGISTER:
        t.cite("REG-8")
        if answer.reason is Reason.OK:
            remember_home(t, pending.asker, pending.device_id)
    elif t.policy.has_credentials:
        t.cite("AUTH-11")
    reason = search.outcome(t, pending, answer.reason)
    settle(t, pending, reason, answer.node_id, answer.credential, answer.grant, source)


def remember_home(t: Transition, asker: Link | None, device_id: str) -> None:
    """A child hub is told that a registration succeeded: it, or one below it, will have the entry."""
    session = t.links.get(asker) if asker is not None else None
    if t.policy.has_credentials and session is not None and session.is_hub:
        t.cite("REG-15")
        t.put_home(device_id, session.node_id)


def is_usable(t: Transition, pending: Pending, answer: Answer) -> bool:
    """Whether a success names the device that was asked about, and a node that can be its."""
    node_id, device_id = answer.node_id, answer.device_id
    if node_id in (0, t.node_id) or device_id != pending.device_id:
        return False
    if authority.is_here(t) and device_id not in t.registry and not t.policy.is_provisioned(device_id):
        return False  # whoever says so, the authority never bound it
    return not presence.contradicts(t, device_id, node_id)


def follow_answer(t: Transition, asker: Link, node_id: int, device_id: str, *, proved: bool = True) -> None:
    """A plain hub announces nothing: a success on its way back to it shows where the device is.

    Unless it was ``proved`` that the device is there, one that is online elsewhere is left where it is.
    """
    session = t.links.get(asker)
    if session is None or not session.is_hub or session.extended:
        return
    if not proved and plain.is_live(t, node_id):
        return
    if node_id in (0, t.node_id, session.node_id) or presence.contradicts(t, device_id, node_id):
        return
    t.cite("AUTH-33")
    own = t.session_of_node(node_id)
    if own is not None:
        t.cite("BIND-3")
        presence.displace(t, own[0])
    presence.point_at(t, node_id, device_id, via=session.node_id)
    presence.announce(t, node_id, device_id)
