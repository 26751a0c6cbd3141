"""The trees that the network machine runs on."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from attrs import evolve, frozen

from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister
from hubauth.lab import tree
from hubauth.lab.story import ADMIN_NODE, child_hub, listed, root_hub, verified
from hubauth.lab.tree import Network

T = TypeVar("T")


class Pick(Protocol):
    """Chooses what happens next: Hypothesis, or a seeded generator."""

    def __call__(self, options: Sequence[T]) -> T: ...


ADMIN_KEY = "a" * 43
SPARE_KEY = "s" * 43
SPARE_NODE = 8
_ADMIN = Provisioned("admin", ADMIN_NODE, ADMIN_KEY, "admin")
_ADMIN_LISTED = Provisioned("admin", ADMIN_NODE, "", "admin")
SPARE = Provisioned("spare", SPARE_NODE, SPARE_KEY, "reader")
"""A binding that a changed policy brings and takes away."""


@frozen
class Shape:
    """A tree, and which of its hubs hands out node ids."""

    name: str
    authority: str
    build: Callable[[dict[str, Any]], Network]


def _two_levels(options: dict[str, Any]) -> Network:
    return tree.build(
        {
            "root": (None, root_hub((verified(2), verified(3), _ADMIN_LISTED), **options)),
            "A": ("root", child_hub(2, (_ADMIN,), **options)),
            "B": ("root", child_hub(3, **options)),
        }
    )


def _three_levels(options: dict[str, Any]) -> Network:
    return tree.build(
        {
            "root": (None, root_hub((verified(2), listed(3), verified(4), _ADMIN), **options)),
            "mid": ("root", child_hub(2, (verified(3),), **options)),
            "A": ("mid", child_hub(3, **options)),
            "B": ("root", child_hub(4, **options)),
        }
    )


def _two_below_the_middle(options: dict[str, Any]) -> Network:
    return tree.build(
        {
            "root": (None, root_hub((verified(2), listed(3), listed(4), _ADMIN), **options)),
            "mid": ("root", child_hub(2, (verified(3), verified(4)), **options)),
            "A": ("mid", child_hub(3, **options)),
            "B": ("mid", child_hub(4, **options)),
        }
    )


def _authority_at_a_leaf(options: dict[str, Any]) -> Network:
    options = {**options, "authority": 2}
    return tree.build(
        {
            "root": (None, root_hub((verified(2), verified(3)), **options)),
            "A": ("root", child_hub(2, (listed(3), _ADMIN_LISTED), **options)),
            "B": ("root", child_hub(3, (_ADMIN,), **options)),
        }
    )


def _authority_in_the_middle(options: dict[str, Any]) -> Network:
    options = {**options, "authority": 2}
    return tree.build(
        {
            "root": (None, root_hub((verified(2), verified(4)), **options)),
            "mid": ("root", child_hub(2, (verified(3), listed(4), _ADMIN), **options)),
            "A": ("mid", child_hub(3, **options)),
            "B": ("root", child_hub(4, **options)),
        }
    )


SHAPES = (
    Shape("two levels", "root", _two_levels),
    Shape("three levels", "root", _three_levels),
    Shape("two below the middle", "root", _two_below_the_middle),
    Shape("authority at a leaf", "A", _authority_at_a_leaf),
    Shape("authority in the middle", "mid", _authority_in_the_middle),
)


def draw_options(pick: Pick, dialect: Dialect) -> dict[str, Any]:
    """A configuration for all hubs of a tree; the defaults come up most often."""
    return {
        "dialect": dialect,
        "assist": pick((Assist.AUTH, Assist.AUTH, Assist.QUERY, Assist.NONE)),
        "reregister": pick((Reregister.OPEN, Reregister.OPEN, Reregister.AFTER_REVOKE)),
        "revoke_on_reregister": pick((True, True, True, False)),
        "close_superseded": pick((True, False)),
        "close_on_revoke": pick((True, False)),
        "answer_mismatch": pick((True, False)),
        "pending_limit": pick((256, 256, 2)),
        "hub_pending_limit": pick((4096, 4096, 1)),
        "announce_batch": pick((256, 1)),
        "revoke_batch": pick((256, 1, 1, 2)),
        "extension": pick((*(True,) * 7, False)),
    }


def changed(policy: Policy, pick: Pick, *, is_authority: bool) -> dict[str, Any]:
    """One thing about a policy that its operator changes."""
    roles: tuple[Any, ...] = ({}, {10: "admin"}, {11: "admin", 10: "reader"})
    perms: tuple[Any, ...] = (policy.role_perms, policy.role_perms.set("node", ("auth.revoke",)))
    changes: list[dict[str, Any]] = [
        {"node_roles": pick(roles)},
        {"role_perms": pick(perms)},
        {"answer_offline": not policy.answer_offline},
        {"dialect": Dialect.LOGIN if policy.dialect is Dialect.AUTH else Dialect.AUTH},
    ]
    if is_authority and policy.dialect is not Dialect.FLAT:
        without = tuple(binding for binding in policy.provisioned if binding.device_id != SPARE.device_id)
        changes.append({"provisioned": without if SPARE in policy.provisioned else (*policy.provisioned, SPARE)})
        changes.append({"provisioned": rebound(policy.provisioned, pick)})
    return pick(changes)


def rebound(bindings: tuple[Provisioned, ...], pick: Pick) -> tuple[Provisioned, ...]:
    """Another device in the place of one that was provisioned, or another node for it."""
    at = pick(range(len(bindings)))
    changes: tuple[dict[str, Any], ...] = ({"device_id": "somebody else"}, {"node_id": SPARE_NODE + 100})
    return (*bindings[:at], evolve(bindings[at], **pick(changes)), *bindings[at + 1 :])


def child_hubs(policy: Policy) -> list[Provisioned]:
    """The hubs that a hub verifies, whatever they may do at the moment."""
    return [binding for binding in policy.verified_here if binding.device_id.startswith("hub-")]


def with_binding(policy: Policy, binding: Provisioned) -> Policy:
    """The same configuration with another word about one device."""
    kept = tuple(binding if known.device_id == binding.device_id else known for known in policy.provisioned)
    return evolve(policy, provisioned=kept)


def renewed(binding: Provisioned) -> Provisioned:
    """The same hub with a credential that it never had."""
    return evolve(binding, credential="n" + binding.credential[1:-1] + chr(ord(binding.credential[-1]) + 1))
