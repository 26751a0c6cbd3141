"""A bug for every contract: plausible mistakes, which CrossHair must find under the contract's name."""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from hubauth.core import revoke
from hubauth.core.authority import Authority
from hubauth.core.messages import Frame, Grant, Revoke
from hubauth.core.model import Entry
from hubauth.core.ordered import OrderedIds
from hubauth.core.policy import Policy
from hubauth.core.transition import Transition
from hubauth.wire.header import decode_v1, decode_v2
from model_tests import contracts

_put_entry, _delete_entry = Transition.put_entry, Transition.delete_entry


def _signed_message_ids(data: bytes) -> Any:
    read: Any = decode_v1(data)
    return evolve(read, msg_id=read.msg_id - 2**32 if read.msg_id >= 2**31 else read.msg_id)


def _hop_limit_of_seven_bits(data: bytes) -> Any:
    read: Any = decode_v2(data)
    return evolve(read, hop_limit=read.hop_limit % 128)


def _asked_hub_allocates(configured: int, own: int, has_parent: bool) -> Authority:
    if configured and configured != own:
        return Authority.NODE
    return Authority.PARENT if has_parent and own != 77 else Authority.SELF


class _UnknownRoleIsAdmin(Policy):
    def resolve(self, node_id: int) -> Grant:
        grant = super().resolve(node_id)
        return Grant(grant.role, ("*",)) if grant.role not in self.role_perms else grant


class _StarIsEverything(Grant):
    def allows(self, permission: str) -> bool:
        return permission in self.perms or "*" in self.perms


def _only_auth_revoke(grant: Grant) -> bool:
    return any(name in ("*", "auth.revoke", "auth.assist", "auth.perms_invalidate") for name in grant.perms)


def _prefix_is_enough(known: str, presented: str) -> bool:
    return bool(known) and bool(presented) and known.startswith(presented)


def _credential_beats_node(message: Revoke, node_id: int, credential: str) -> bool:
    if message.credential:
        return message.credential == credential
    return message.node_id in (0, node_id)


def _node_alone(message: Revoke, node_id: int, _credential: str) -> bool:
    return message.node_id in (0, node_id)


def _beginning_is_enough(message: Revoke, node_id: int, credential: str) -> bool:
    return message.node_id in (0, node_id) and credential.startswith(message.credential)


def _first_entry_stays(t: Transition, device_id: str, entry: Entry) -> None:
    if device_id not in t.whitelist:
        _put_entry(t, device_id, entry)


def _short_entry_stays(t: Transition, device_id: str) -> None:
    if len(t.whitelist[device_id].credential) > 2:
        _delete_entry(t, device_id)


def _wraps(frame: Frame) -> int | None:
    return (frame.hop_limit - 1) % 256 or None


def _off_by_one(listed: tuple[OrderedIds, ...], _: tuple[int, ...], offset: int, limit: int) -> tuple[int, list[int]]:
    everyone = sorted(node_id for one in listed for node_id in one)
    return len(everyone), everyone[offset : offset + limit + (offset == 68)]


def _counts_repeated(
    listed: tuple[OrderedIds, ...], wanted: tuple[int, ...], offset: int, _: int
) -> tuple[int, list[int]]:
    kept = sorted(node_id for node_id in wanted if any(node_id in one for one in listed))
    return len(kept), kept[offset:]


class _ForgetsNegative(OrderedIds):
    def add(self, item: int) -> "OrderedIds":
        return self if item == -5 else _ForgetsNegative.of([*self, item])


_UNKNOWN_ROLE_IS_ADMIN = _UnknownRoleIsAdmin(
    **{name: getattr(contracts.POLICY, name) for name in ("default_role", "node_roles")}
)

PLANTED: tuple[tuple[Callable[..., bool], Any, str, Any], ...] = (
    (contracts.header_v1_round_trip, contracts, "decode_v1", _signed_message_ids),
    (contracts.header_v2_round_trip, contracts, "decode_v2", _hop_limit_of_seven_bits),
    (contracts.authority_choice, contracts, "choose_authority", _asked_hub_allocates),
    (contracts.role_resolution, contracts, "POLICY", _UNKNOWN_ROLE_IS_ADMIN),
    (contracts.star_is_not_assist, contracts, "Grant", _StarIsEverything),
    (contracts.privileged, contracts, "is_privileged", _only_auth_revoke),
    (contracts.credential_comparison, contracts, "same_credential", _prefix_is_enough),
    (contracts.revoke_meaning, contracts, "agrees", _credential_beats_node),
    (contracts.entry_of_a_registration, Transition, "put_entry", _first_entry_stays),
    (contracts.entry_of_a_registration, revoke, "agrees", _beginning_is_enough),
    (contracts.entry_of_an_authentication, revoke, "agrees", _node_alone),
    (contracts.entry_of_an_authentication, Transition, "delete_entry", _short_entry_stays),
    (contracts.hop_limit_falls, contracts, "lower_hop_limit", _wraps),
    (contracts.paging, contracts, "select_page", _off_by_one),
    (contracts.paging_of_wanted, contracts, "select_page", _counts_repeated),
    (contracts.ordered_ids_are_a_set, contracts, "EMPTY", _ForgetsNegative()),
)
"""contract, where the real thing is and by which name, and the broken one"""
