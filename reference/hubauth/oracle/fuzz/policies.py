"""Random policies, and random changes of them."""

from collections.abc import Sequence
from random import Random
from typing import Any

from attrs import evolve

from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister, Trust
from hubauth.oracle.fuzz.play import Beginning
from hubauth.wire.header import Version

OWN, HUB_A, HUB_B, ADMIN, AUTHORITY, PLAIN = 5, 20, 21, 22, 40, 70
ROLES: dict[str, tuple[str, ...]] = {
    "hub": ("auth.assist",),
    "admin": ("auth.revoke", "auth.perms_invalidate"),
    "star": ("*",),
    "reader": ("read.own", "read.all"),
}
BINDINGS = (
    Provisioned("hub-a", HUB_A, "A" * 43, "hub"),
    Provisioned("hub-b", HUB_B, "B" * 43, "hub"),
    Provisioned("admin", ADMIN, "C" * 43, "admin"),
)


def mostly(draw: Random, usual: Any, others: Sequence[Any], share: float = 0.8) -> Any:
    """The usual, or now and then something else."""
    return usual if draw.random() < share else draw.choice(others)


def draw_beginning(draw: Random, dialects: Sequence[Dialect]) -> Beginning:
    """Any configuration that a hub may begin with."""
    has_parent = draw.random() < 0.5
    own = draw.choice((OWN, OWN, 0)) if has_parent else 0
    dialect = draw.choice(dialects)
    policy = Policy(
        device_id="self",
        node_id=own,
        credential="S" * 43 if own and dialect is not Dialect.FLAT else "",
        has_parent=has_parent,
        authority=mostly(draw, 0, (OWN, AUTHORITY, HUB_A)),
        dialect=dialect,
        first_node_id=mostly(draw, 10, (2, 2**32 - 2)),
        default_perms=mostly(draw, (), (("read.own",), ("auth.assist",), ("auth.revoke",))),
        node_roles=draw.choice(({}, {}, {10: "admin"}, {10: "hub", 11: "star"}, {11: "reader", 12: "nobody"})),
        role_perms=ROLES,
        provisioned=mostly(draw, BINDINGS, (BINDINGS[:2], (*BINDINGS, Provisioned("d4", 60, "", "reader")), ())),
        assist=mostly(draw, Assist.AUTH, (Assist.QUERY, Assist.NONE), 0.6),
        reregister=mostly(draw, Reregister.OPEN, (Reregister.AFTER_REVOKE,), 0.7),
        trust=mostly(draw, Trust.LINKS, (Trust.OPEN,), 0.9),
        plain_hubs=mostly(draw, (), ((PLAIN,),), 0.7),
        extension=draw.random() < 0.85,
        revoke_on_reregister=draw.random() < 0.7,
        close_superseded=draw.random() < 0.7,
        close_on_revoke=draw.random() < 0.7,
        answer_offline=draw.random() < 0.8,
        answer_mismatch=draw.random() < 0.8,
        pending_limit=mostly(draw, 256, (1, 2)),
        hub_pending_limit=mostly(draw, 4096, (1, 2)),
        announce_batch=mostly(draw, 256, (1, 2)),
        revoke_batch=mostly(draw, 256, (1, 2)),
        learnt_limit=mostly(draw, 4096, (1,)),
    )
    return Beginning(policy, draw.choice((Version.V1, Version.V1, Version.V2)))


def draw_change(draw: Random, policy: Policy) -> Policy:
    """The configuration with something changed in it; a hub need not accept it."""
    changes: tuple[dict[str, Any], ...] = (
        {"provisioned": (*BINDINGS, Provisioned("d1", 60, "D" * 43, "star"))},
        {"provisioned": BINDINGS},
        {"provisioned": BINDINGS[1:]},
        {"provisioned": (evolve(BINDINGS[0], credential="E" * 43), *BINDINGS[1:])},
        {"provisioned": (evolve(BINDINGS[0], role=""), *BINDINGS[1:])},
        {"node_roles": draw.choice(({}, {10: "hub"}, {11: "admin"}, {HUB_A: "star"}))},
        {"role_perms": {**ROLES, "node": ("auth.assist",)}},
        {"role_perms": {**ROLES, "admin": ()}},
        {"default_perms": draw.choice(((), ("auth.revoke",)))},
        {"node_id": 99} if policy.node_id else {},
        {"dialect": draw.choice(tuple(Dialect))},
        {"close_superseded": not policy.close_superseded},
        {"close_on_revoke": not policy.close_on_revoke},
        {"answer_mismatch": not policy.answer_mismatch},
        {"reregister": draw.choice(tuple(Reregister))},
        {"assist": draw.choice(tuple(Assist))},
        {"extension": not policy.extension},
    )
    return evolve(policy, **draw.choice(changes))
