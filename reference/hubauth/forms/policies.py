"""A policy as JSON: a trace can only be judged under the policy its hub ran with.

Fields are named as in ``hubauth.core.policy.Policy``, where they are explained; an absent one has its default.
"""

from typing import Annotated, TypeAlias

import msgspec
from attrs import fields

from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister, Trust

NodeId: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=MAX_NODE_ID)]
Positive: TypeAlias = Annotated[int, msgspec.Meta(ge=1)]


class ProvisionedForm(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    device_id: str
    node_id: NodeId
    credential: str = ""
    role: str = ""


class PolicyForm(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What the JSON object holds."""

    device_id: str = "hub"
    node_id: NodeId = 0
    credential: str = ""
    has_parent: bool = False
    authority: NodeId = 0
    dialect: Dialect = Dialect.AUTH
    first_node_id: NodeId = 2
    default_role: str = "node"
    default_perms: tuple[str, ...] = ()
    node_roles: dict[NodeId, str] = {}
    role_perms: dict[str, tuple[str, ...]] = {}
    provisioned: tuple[ProvisionedForm, ...] = ()
    assist: Assist = Assist.AUTH
    reregister: Reregister = Reregister.OPEN
    trust: Trust = Trust.LINKS
    plain_hubs: tuple[NodeId, ...] = ()
    extension: bool = True
    revoke_on_reregister: bool = True
    close_superseded: bool = True
    close_on_revoke: bool = True
    answer_offline: bool = True
    answer_mismatch: bool = True
    pending_limit: Positive = 256
    hub_pending_limit: Positive = 4096
    request_seconds: float = 5.0
    revoke_memory_seconds: float = 30.0
    learnt_limit: Positive = 4096
    announce_batch: Positive = 256
    revoke_batch: Positive = 256


_NAMES = PolicyForm.__struct_fields__
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(PolicyForm).decode
_USUAL = Policy()
assert set(_NAMES) == {attribute.name for attribute in fields(Policy)}


def form_of(policy: Policy) -> PolicyForm:
    """The policy as what JSON holds."""
    # What equals a default is left to the default: msgspec omits by identity, which equal values need not share.
    values = {name: value for name in _NAMES if (value := getattr(policy, name)) != getattr(_USUAL, name)}
    if policy.has_parent:
        values["node_id"] = policy.node_id  # the usual one is a root's
    values["node_roles"] = dict(sorted(policy.node_roles.items()))
    values["role_perms"] = dict(sorted(policy.role_perms.items()))
    values["provisioned"] = tuple(
        ProvisionedForm(binding.device_id, binding.node_id, binding.credential, binding.role)
        for binding in policy.provisioned
    )
    return PolicyForm(**values)


def policy_of(form: PolicyForm) -> Policy:
    """The policy that JSON described."""
    values = {name: getattr(form, name) for name in _NAMES}
    values["provisioned"] = tuple(
        Provisioned(binding.device_id, binding.node_id, binding.credential, binding.role)
        for binding in form.provisioned
    )
    return Policy(**values)


def encode_policy(policy: Policy) -> bytes:
    """One JSON object, the same for equal policies."""
    return _encode(form_of(policy))


def decode_policy(encoded: bytes) -> Policy:
    """The policy of an encoding. Raises ValueError if it is not one."""
    try:
        return policy_of(_decode(encoded))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise ValueError(f"not a policy: {problem}") from problem
