"""What an implementation says about itself: which features it has, which way it chose, whom it already knows."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from immutables import Map
from msgspec import Meta, Struct

from hubauth.bounded import read_toml
from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister
from hubauth.forms.habits import Habits
from hubauth.judge.declared import codec_of, spoken
from hubauth.seen import promised
from hubauth.specification import rules
from hubauth.wire.dialects.codec import Codec

Feature: TypeAlias = Literal[
    "register", "authenticate", "offline", "revoke", "perms", "list_roles", "perms_invalidate", "routing", "extension"
]
"""What a profile can declare. The rest (``child_hub``, ``parent``, ``admin``, ...) follows from its tables."""
FEATURES: tuple[Feature, ...] = (
    "register",
    "authenticate",
    "offline",
    "revoke",
    "perms",
    "list_roles",
    "perms_invalidate",
    "routing",
    "extension",
)
_NOT_IN = {
    Dialect.AUTH: frozenset[str](),
    Dialect.LOGIN: frozenset({"perms", "list_roles", "perms_invalidate"}),
    Dialect.FLAT: frozenset({"perms", "list_roles", "perms_invalidate", "offline", "revoke", "extension"}),
}

NodeId: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_NODE_ID)]
KnownNode: TypeAlias = Annotated[int, Meta(ge=1, le=MAX_NODE_ID)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=128)]
Seconds: TypeAlias = Annotated[float, Meta(gt=0)]
HeaderVersion: TypeAlias = Literal[1, 2]


class ProfileError(Exception):
    """A profile that cannot be used, and why."""


class Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One table of the file. A key it does not have is an error."""


class Known(Table, frozen=True):
    """A binding that the hub under test has in its configuration."""

    device_id: Name
    node_id: KnownNode
    credential: str = ""
    role: str = ""


class HubTable(Table, frozen=True):
    """The hub under test. ``device_id`` and ``credential`` are its own towards its parent."""

    node_id: NodeId = 0
    """0: taken from the SourceID of its first answer."""
    device_id: Name = "hub"
    credential: str = ""


class ParentTable(Table, frozen=True):
    """Where this tool listens as the parent of the hub under test."""

    listen: str
    node_id: KnownNode = 1
    header: HeaderVersion = 1


class RolesTable(Table, frozen=True):
    """The hub's role configuration."""

    default_role: str = "node"
    default_perms: tuple[str, ...] = ()
    role_perms: dict[str, tuple[str, ...]] = {}


class ChoicesTable(Table, frozen=True):
    """Where implementations may differ: which way this one chose. The defaults are those of the reference."""

    assist: Assist = Assist.AUTH
    reregister: Reregister = Reregister.OPEN
    revoke_on_reregister: bool = True
    close_superseded: bool = True
    close_on_revoke: bool = True
    answer_offline: bool = True
    answer_mismatch: bool = True
    extra_fields: bool = False
    """Whether answers may hold fields that the rules do not list."""
    texts: bool = False
    """Whether ``msg`` is held to the texts of the CODE rules; else another text is only mentioned."""


class HabitsTable(Table, frozen=True):
    """What the hub does otherwise than the rules say, so that a trace of it is judged behind that.

    Beside these there are ``choices.extra_fields``, and permissions in ``login``: by listing ``perms`` in ``features``.
    """

    refusals_as_ok: bool = False
    same_credential: bool = False
    serves: tuple[int, ...] = ()
    answers_without_msg_id: bool = False
    burst: int = 0
    offline_unbinds: bool = False
    strangers_hear_broadcasts: bool = False


class LimitsTable(Table, frozen=True):
    """The hub's limits, as far as a case runs into them."""

    payload: int = 64 * 1024
    opaque_payload: int = 1024 * 1024
    pending: int = 256
    hub_pending: int = 4096
    revoke_batch: Annotated[int, Meta(ge=1)] = 256
    request_seconds: Seconds = 5.0


class TimeoutsTable(Table, frozen=True):
    """How long this tool waits. Nothing waits longer than it must: what is expected ends the wait."""

    connect: Seconds = 5.0
    answer: Seconds = 3.0
    """For a frame that must come."""
    silence: Seconds = 0.5
    """For proving silence where the hub answers no fence."""
    join: Seconds = 60.0
    """For the hub under test to connect to its parent."""


class Profile(Table, frozen=True):
    """The whole file."""

    name: str = ""
    dialect: Dialect = Dialect.AUTH
    header: Annotated[tuple[HeaderVersion, ...], Meta(min_length=1)] = (1,)
    features: tuple[Feature, ...] = FEATURES
    hub: HubTable = HubTable()
    parent: ParentTable | None = None
    child_hub: tuple[Known, ...] = ()
    admin: Known | None = None
    roles: RolesTable = RolesTable()
    choices: ChoicesTable = ChoicesTable()
    habits: HabitsTable = HabitsTable()
    limits: LimitsTable = LimitsTable()
    timeouts: TimeoutsTable = TimeoutsTable()
    known_failing: tuple[str, ...] = ()
    """Rules and promises that the hub is known to break: told, and not counted."""

    @property
    def available(self) -> frozenset[str]:
        """Every feature a case may need: declared ones that the dialect has, and those that follow."""
        declared = frozenset[str](self.features) - (frozenset() if self.declared.perms else _NOT_IN[self.dialect])
        derived = {
            "routes_below": "extension" in declared or self.dialect is Dialect.FLAT,
            "child_hub": bool(self.child_hub),
            "two_child_hubs": len(self.child_hub) > 1,
            "admin": self.admin is not None,
            "known_device": bool(self.bindings),
            "parent": self.parent is not None,
            "root": self.parent is None,
            "both_versions": len(set(self.header)) > 1,
            "credentials": self.dialect is not Dialect.FLAT,
            "reregister_after_revoke": self.choices.reregister is Reregister.AFTER_REVOKE,
            "reregister_open": self.choices.reregister is Reregister.OPEN,
            "revoke_on_reregister": self.choices.revoke_on_reregister and self.choices.reregister is Reregister.OPEN,
            "answers_offline": self.choices.answer_offline,
            "assist_auth": self.choices.assist is Assist.AUTH,
            "assist_query": self.choices.assist is Assist.QUERY,
            "assist_none": self.choices.assist is Assist.NONE,
        }
        return declared | {name for name, present in derived.items() if present}

    @property
    def codec(self) -> Codec:
        """How the hub under test speaks."""
        return codec_of(self.policy(self.hub.node_id), self.declared)

    @property
    def spoken(self) -> Dialect:
        """The dialect whose rules count, in whatever words: ``login`` with permissions is ``auth``."""
        return spoken(self.policy(self.hub.node_id), self.declared).dialect

    @property
    def bindings(self) -> tuple[Known, ...]:
        """What is provisioned at the hub under test."""
        return self.child_hub + ((self.admin,) if self.admin is not None else ())

    @property
    def secrets(self) -> set[str]:
        """The credentials in it."""
        return {self.hub.credential, *(known.credential for known in self.bindings)} - {""}

    @property
    def declared(self) -> Habits:
        """What a judge of its traces takes as given."""
        named = self.features if self.features is not FEATURES else ()
        perms = self.dialect is Dialect.LOGIN and "perms" in named
        habits = msgspec.structs.asdict(self.habits)
        return msgspec.convert({"perms": perms, "extra_fields": self.choices.extra_fields, **habits}, Habits)

    def policy(self, node_id: int) -> Policy:
        """The policy under which the core predicts what the hub under test does."""
        choices = self.choices
        return Policy(
            device_id=self.hub.device_id,
            node_id=node_id,
            credential=self.hub.credential,
            has_parent=self.parent is not None,
            dialect=self.dialect,
            first_node_id=1,
            default_role=self.roles.default_role,
            default_perms=self.roles.default_perms,
            role_perms=Map(self.roles.role_perms),
            provisioned=tuple(
                Provisioned(known.device_id, known.node_id, known.credential, known.role) for known in self.bindings
            ),
            assist=choices.assist,
            extension="extension" in self.available,
            reregister=choices.reregister,
            revoke_on_reregister=choices.revoke_on_reregister,
            close_superseded=choices.close_superseded,
            close_on_revoke=choices.close_on_revoke,
            answer_offline=choices.answer_offline,
            answer_mismatch=choices.answer_mismatch,
            pending_limit=self.limits.pending,
            hub_pending_limit=self.limits.hub_pending,
            revoke_batch=self.limits.revoke_batch,
            request_seconds=self.limits.request_seconds,
        )


def load_profile(path: Path) -> Profile:
    """The profile in a file. Raises ProfileError, and nothing else."""
    try:
        tables = read_toml(path)
        profile = msgspec.convert(tables, Profile)
    except OSError as problem:
        raise ProfileError(f"cannot read {path}: {problem.strerror}") from None
    except msgspec.ValidationError as problem:
        raise ProfileError(f"{path}: {problem}") from None
    except ValueError as problem:
        raise ProfileError(f"{path} is not TOML: {problem}") from None
    taken = [known.node_id for known in profile.bindings] + [profile.hub.node_id]
    if len(set(taken)) < len(taken):
        raise ProfileError(f"{path}: two of hub, child_hub and admin have the same node_id")
    unknown = [name for name in profile.known_failing if name not in rules() and name not in promised()]
    if unknown:
        raise ProfileError(f"{path}: known_failing: no such rule or promise: {unknown[0]}")
    needs_credential = profile.dialect is not Dialect.FLAT
    if profile.parent is not None and not (profile.hub.node_id and (profile.hub.credential or not needs_credential)):
        raise ProfileError(
            f"{path}: with a parent, hub.node_id and hub.credential must be those it shows to its parent"
        )
    return profile
