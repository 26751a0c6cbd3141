"""A sequence that a hub failed, written down as a vector: whoever develops that hub can run it without this tool."""

from secrets import token_bytes

import msgspec
from attrs import evolve

from hubauth.core.canonical import advance, digest_of
from hubauth.core.indexes import derive_index
from hubauth.core.inputs import Received
from hubauth.core.model import is_authority
from hubauth.core.step import step
from hubauth.oracle.conform.mirror import Mirror
from hubauth.oracle.forms import input_form, policy_form, state_form
from hubauth.oracle.vectors import FORMAT, Case, VectorFile, run_case, step_form
from hubauth.trace.redact import KEY_BYTES, Redactor


def vector_of(mirror: Mirror, identity: str, comment: str) -> bytes | None:
    """The steps of a mirror as a file of one vector, with tokens for the credentials that were used.

    None if the hub hands out node ids in an order that no other hub would: then the steps cannot be taken again.
    """
    redactor = Redactor(token_bytes(KEY_BYTES))
    policy, state = redactor.policy(mirror.policy), redactor.state(mirror.first)
    state = evolve(state, index=derive_index(policy, state))
    if is_authority(policy, state.node_id):
        state = evolve(state, next_node_id=_first_node(mirror))
    digest = digest_of(state)
    first, begun = state, digest.hex()
    steps = []
    for taken, said, known in mirror.taken:
        happened, payload = redactor.value(taken), said
        if isinstance(taken, Received):
            payload = redactor.payload(taken.frame.sub_proto, taken.frame.flags, said)
        done = step(policy, state, happened)
        if done.outputs != redactor.value(known.outputs):
            return None
        state, digest = done.state, advance(digest, done)
        steps.append(step_form(input_form(happened, payload), done, policy.dialect, digest.hex()))
    case = Case(id=identity, policy=policy_form(policy), state=state_form(first), digest=begun, steps=tuple(steps))
    file = VectorFile(format=FORMAT, comment=comment, cases=(case,))
    return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n" if run_case(case) is None else None


def _first_node(mirror: Mirror) -> int:
    """The lowest node id that was handed out."""
    nodes = [registration.node_id for registration in mirror.state.registry.values()]
    return min(nodes, default=mirror.first.next_node_id)
