"""Contracts for CrossHair: what small pure functions promise for *every* argument.

Each function states, in its postcondition, a property of real code. CrossHair runs it with symbolic arguments and a
solver looks for those that break it. ``test_contracts`` also plants a bug under each contract, which must be found.
"""

from itertools import islice

from attrs import frozen

from hubauth.core.authority import Authority, choose_authority
from hubauth.core.credentials import same_credential
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import PARENT, Input, LinkUp, OperatorRevoke, Received
from hubauth.core.messages import (
    Action,
    Answer,
    Authenticate,
    Frame,
    Grant,
    Major,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Entry, State
from hubauth.core.ordered import EMPTY, OrderedIds
from hubauth.core.perms import MAX_PAGE, is_hub_grant, is_privileged, select_page
from hubauth.core.policy import Policy, Provisioned
from hubauth.core.revoke import agrees
from hubauth.core.routing import lower_hop_limit
from hubauth.core.step import step
from hubauth.wire.header import Header, Refused, decode_v1, decode_v2, encode_v1, encode_v2


@frozen
class PlainHeader:
    """Stands in for ``Header`` while CrossHair looks: it cannot follow a msgspec value."""

    rules: tuple[str, ...]
    length: int
    payload_length: int
    major: Major
    sub_proto: int
    flags: int
    msg_id: int
    source: int
    target: int
    timestamp: int
    trace_id: int = 0
    hop_limit: int = 0


@frozen
class PlainLayout:
    """Stands in for ``struct.Struct``, which turns symbolic numbers into plain ones: the same fields, kept as they are.

    That ``struct`` writes and reads big-endian numbers is taken for granted; their order, their widths and what is
    packed into one byte is what the contracts are about.
    """

    widths: tuple[int, ...]

    def pack(self, *values: int) -> tuple[int, ...]:
        for width, value in zip(self.widths, values, strict=True):
            if not 0 <= value < 256**width:
                raise ValueError("a value does not fit its field")
        return values

    def unpack_from(self, data: tuple[int, ...], offset: int) -> tuple[int, ...]:
        return data[offset:]


PLAIN_HEADER: dict[str, object] = {
    "Header": PlainHeader,
    "_V1": PlainLayout((1, 1, 4, 4, 4, 4, 4, 2)),
    "_V2": PlainLayout((2, 1, 1, 1, 1, 1, 1, 4, 4, 4, 4, 4, 4)),
}
"""What takes the place of names in ``hubauth.wire.header`` while CrossHair looks."""

LISTED = OrderedIds.of(range(10, 80, 3)), OrderedIds.of(range(11, 80, 3)), OrderedIds.of(range(12, 80, 3))
POLICY = Policy(
    default_role="guest",
    default_perms=("p.look",),
    node_roles={2: "admin", 3: "unheard-of"},
    role_perms={"admin": ("auth.revoke",), "hub": ("auth.assist",), "guest": ()},
    provisioned=(Provisioned("hub-a", 4, "", "hub"), Provisioned("lamp", 5)),
)


def _after(policy: Policy, *happened: Input) -> State:
    state = initial_state(policy)
    for each in happened:
        state = step(policy, state, each).state
    return state


ISSUED = ("a" * 43, "b" * 43)
"""The credentials of a first and a second registration."""
AUTHORITY = Policy(revoke_on_reregister=False)
"""So that the second registration finds the entry of the first, which is otherwise revoked before."""
TWO_LINKS = _after(AUTHORITY, LinkUp(1), LinkUp(2))
BELOW = Policy(node_id=5, credential="h" * 43, has_parent=True)
JOINED = _after(
    BELOW,
    LinkUp(1),
    LinkUp(PARENT),
    Received(PARENT, Frame(Answer(Action.AUTHENTICATE, Reason.OK, node_id=5), Major.OK_RESP, msg_id=1, source=1)),
)


def header_v1_round_trip(kind: int, sub_proto: int, flags: int, msg_id: int, source: int, length: int) -> bool:
    """What is written is read back.

    pre: 0 <= kind < 4 and 0 <= sub_proto < 64 and 0 <= flags < 256 and 0 <= length < 2**32
    pre: 0 <= msg_id < 2**32 and 0 <= source < 2**32
    post: _
    """
    frame = Frame(b"", Major(kind), msg_id, source, source // 2, sub_proto, flags=flags, timestamp=9)
    read = decode_v1(encode_v1(frame, length))
    return _same_fields(frame, read, length) and (read.trace_id, read.hop_limit) == (0, 0)


def header_v2_round_trip(kind: int, sub_proto: int, flags: int, msg_id: int, hop_limit: int, length: int) -> bool:
    """What is written is read back, trace and hop limit included.

    pre: 0 <= kind < 4 and 0 <= sub_proto < 64 and 0 <= flags < 256 and 0 <= length < 2**32
    pre: 0 <= msg_id < 2**32 and 0 <= hop_limit < 256
    post: _
    """
    frame = Frame(b"", Major(kind), msg_id, 1, 2, sub_proto, msg_id // 2, hop_limit, flags, 4)
    read = decode_v2(encode_v2(frame, length))
    return (
        not isinstance(read, Refused)
        and _same_fields(frame, read, length)
        and (read.trace_id, read.hop_limit) == (frame.trace_id, frame.hop_limit)
    )


def _same_fields(frame: Frame, read: Header | PlainHeader, length: int) -> bool:
    short = (read.major, read.sub_proto, read.flags, read.payload_length)
    long = (read.msg_id, read.source, read.target, read.timestamp)
    return short == (frame.major, frame.sub_proto, frame.flags, length) and long == (
        frame.msg_id,
        frame.source,
        frame.target,
        frame.timestamp,
    )


def authority_choice(configured: int, own: int, has_parent: bool) -> bool:
    """A configured node decides; without one, and with a parent, no hub ever takes itself for the authority.

    post: _
    """
    chosen = choose_authority(configured, own, has_parent)
    if configured != 0:
        return chosen is (Authority.SELF if own == configured else Authority.NODE)
    return chosen is (Authority.PARENT if has_parent else Authority.SELF)


def role_resolution(node_id: int) -> bool:
    """A binding's role, else the node's, else the default; the role's permissions, else the default ones.

    pre: 0 <= node_id < 8
    post: _
    """
    grant = POLICY.resolve(node_id)
    if node_id == 2:
        return grant == Grant("admin", ("auth.revoke",))
    if node_id == 3:
        return grant == Grant("unheard-of", ("p.look",))
    if node_id == 4:
        return is_hub_grant(grant) and grant.role == "hub"
    return grant == Grant("guest", ())


def star_is_not_assist(first: str, second: str, wanted: str) -> bool:
    """Only the literal permission makes a hub; a star grants everything else, and nothing grants what is not held.

    post: _
    """
    allowed = Grant("role", (first, second)).allows(wanted)
    if wanted in (first, second):
        return allowed
    return allowed == ("*" in (first, second) and wanted != "auth.assist")


def privileged(first: str, second: str) -> bool:
    """A node is protected if and only if it may do something to others.

    post: _
    """
    held = (first, second)
    return is_privileged(Grant("role", held)) == any(name == "*" or name[:5] == "auth." for name in held)


def credential_comparison(known: str, presented: str) -> bool:
    """Equality, except that nothing equals an empty credential.

    post: _
    """
    return same_credential(known, presented) == (known == presented and known != "")


def revoke_meaning(node_id: int, credential: str, given_node: int, given_credential: str) -> bool:
    """A revoke means an entry if nothing that it gives disagrees.

    pre: node_id > 0 and credential != ""
    post: _
    """
    meant = agrees(Revoke("lamp", given_node, given_credential), node_id, credential)
    return meant == (given_node in (0, node_id) and given_credential in ("", credential))


def entry_of_a_registration(again: bool, given_node: int, given_credential: str, presented: str) -> bool:
    """At the authority: an entry is stored, replaced when its device registers again, deleted by a revoke that means
    it and kept by any other; and it admits its own credential as long as it is there.

    pre: 0 <= given_node < 2**32
    post: _
    """
    state, credential = TWO_LINKS, ""
    for credential in ISSUED if again else ISSUED[:1]:
        state = step(AUTHORITY, state, Received(1, Frame(Register("lamp")), credential)).state
    entry = Entry(AUTHORITY.first_node_id, credential)
    if state.whitelist.get("lamp") != entry:
        return False
    state = step(AUTHORITY, state, OperatorRevoke(Revoke("lamp", given_node, given_credential))).state
    meant = given_node in (0, entry.node_id) and given_credential in ("", credential)
    if state.whitelist.get("lamp") != (None if meant else entry):
        return False
    state = step(AUTHORITY, state, Received(2, Frame(Authenticate("lamp", presented)))).state
    return (state.links[2] is not None) == (presented == credential and not meant)


def entry_of_an_authentication(presented: str, given_node: int, given_credential: str) -> bool:
    """At a hub below: what was presented is stored once somebody above has verified it, deleted together with the
    session by a revoke that means it, and kept, with the session, by any other.

    pre: presented != "" and 0 <= given_node < 2**32
    post: _
    """
    state = step(BELOW, JOINED, Received(1, Frame(Authenticate("lamp", presented)))).state
    if "lamp" in state.whitelist:
        return False
    verified = Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "lamp", 30, presented, Grant("node", ()))
    state = step(BELOW, state, Received(PARENT, Frame(verified, Major.OK_RESP, state.next_msg_id - 1, 1))).state
    entry = Entry(30, presented)
    if state.whitelist.get("lamp") != entry:
        return False
    revoke = Frame(Revoke("lamp", given_node, given_credential), msg_id=1, source=1)
    state = step(BELOW, state, Received(PARENT, revoke)).state
    meant = given_node in (0, 30) and given_credential in ("", presented)
    return state.whitelist.get("lamp") == (None if meant else entry) and (state.links.get(1) is None) == meant


def hop_limit_falls(hop_limit: int) -> bool:
    """Every forward lowers the limit, 0 counting as 16, and 1 is the end.

    pre: 0 <= hop_limit < 256
    post: _
    """
    lowered = lower_hop_limit(Frame(b"", hop_limit=hop_limit))
    if hop_limit == 1:
        return lowered is None
    return lowered is not None and 0 < lowered == (hop_limit if hop_limit > 0 else 16) - 1


def paging(offset: int, limit: int) -> bool:
    """A page is what slicing the sorted list would give, and the total does not depend on it.

    pre: 0 <= offset < 200 and 0 <= limit < 2000
    post: _
    """
    total, page = select_page(LISTED, (), offset, limit)
    return total == 70 and page == list(range(10, 80))[offset : offset + min(limit, MAX_PAGE)]


def paging_of_wanted(first: int, second: int, offset: int) -> bool:
    """Filtered, a page holds only what was wanted and exists, once and in order.

    pre: 0 <= offset < 3
    post: _
    """
    total, page = select_page(LISTED, (first, second, first), offset, 10)
    kept = sorted({node_id for node_id in (first, second) if 10 <= node_id < 80})
    return total == len(kept) and page == kept[offset:]


def ordered_ids_are_a_set(first: int, second: int, third: int) -> bool:
    """Adding, discarding and finding positions agree with a plain sorted set.

    post: _
    """
    ids = EMPTY.add(first).add(second).discard(third)
    plain = sorted({first, second} - {third})
    return (
        list(ids) == plain
        and len(ids) == len(plain)
        and (third not in ids)
        and ids.position(third) == len([item for item in plain if item < third])
        and list(islice(ids.above(third), 2)) == [item for item in plain if item > third]
    )


CONTRACTS = (
    header_v1_round_trip,
    header_v2_round_trip,
    authority_choice,
    role_resolution,
    star_is_not_assist,
    privileged,
    credential_comparison,
    revoke_meaning,
    entry_of_a_registration,
    entry_of_an_authentication,
    hop_limit_falls,
    paging,
    paging_of_wanted,
    ordered_ids_are_a_set,
)
STEPPING = (entry_of_a_registration, entry_of_an_authentication)
"""Those of whole steps: of what they look at, most is not symbolic, and all of it takes its time."""
