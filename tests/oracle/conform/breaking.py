"""How a hub is made wrong on purpose: the reference with one decision, or one payload, changed."""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from attrs import evolve, field, frozen

from hubauth.core.indexes import derive_index
from hubauth.core.inputs import Input, Received
from hubauth.core.messages import (
    Answer,
    Frame,
)
from hubauth.core.model import State
from hubauth.core.outputs import Output, Send
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step

Decide: TypeAlias = Callable[[Policy, State, Input], Step]
Rewrite: TypeAlias = Callable[[Policy, State, Input, Output], Iterable[Output]]
Spoil: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]


@frozen
class Broken:
    """A wrong hub: how it decides or writes, in which role it shows, and which rule says so."""

    rule: str
    decide: Callable[[], Decide] = field(default=lambda: step)
    """Makes the decision function of one hub, which may remember things."""
    spoil: Spoil | None = None
    """Changes a payload before it is sent."""
    role: str = "root"
    profile: dict[str, Any] = field(factory=dict)
    """Choices that hub and profile agree on."""
    hub: dict[str, Any] = field(factory=dict)
    """Configuration that the profile does not know of."""
    limits: dict[str, Any] = field(factory=dict)
    also: frozenset[str] = frozenset()
    """Other rules that this breaks as well, among those looked at."""
    promises: frozenset[str] = frozenset()
    """What this breaks whatever the rules say, as far as these cases show it."""


def rewriting(rewrite: Rewrite) -> Callable[[], Decide]:
    """A hub that decides rightly and then sends something else."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        done = step(policy, state, happened)
        outputs = tuple(new for old in done.outputs for new in rewrite(policy, state, happened, old))
        return evolve(done, outputs=outputs)

    return lambda: decide


def answering(change: Callable[[Frame, Answer], Frame]) -> Callable[[], Decide]:
    """A hub whose answers are changed."""

    def rewrite(_: Policy, __: State, ___: Input, output: Output) -> Iterable[Output]:
        if isinstance(output, Send) and isinstance(output.frame.body, Answer):
            output = Send(output.link, change(output.frame, output.frame.body))
        yield output

    return rewriting(rewrite)


def instead(kind: type, other: Callable[[Policy, State, Received], Step]) -> Callable[[], Decide]:
    """A hub that treats one kind of message in another way."""

    def decide(policy: Policy, state: State, happened: Input) -> Step:
        if isinstance(happened, Received) and isinstance(happened.frame.body, kind):
            return other(policy, state, happened)
        return step(policy, state, happened)

    return lambda: decide


def dropping(kind: type) -> Callable[[], Decide]:
    """A hub that never sends one kind of message."""
    return rewriting(
        lambda _, __, ___, output: () if isinstance(output, Send) and isinstance(output.frame.body, kind) else (output,)
    )


def with_state(done: Step, policy: Policy, **tables: Any) -> Step:
    state = evolve(done.state, **tables)
    return evolve(done, state=evolve(state, index=derive_index(policy, state)))


def body_of(happened: Input) -> Any:
    return happened.frame.body if isinstance(happened, Received) else None


def spoiling(spoil: Spoil, encode: Callable[..., bytes]) -> Callable[..., bytes]:
    """``encode_frame`` with payloads changed on the way out."""

    def spoiled(version: Any, codec: Any, frame: Frame, now: int = 0) -> bytes:
        data = encode(version, codec, frame, now)
        if isinstance(frame.body, bytes):
            return data
        size = len(codec.encode(frame.body))
        payload = json.dumps(spoil(json.loads(data[-size:]))).encode()
        at = 18 if int(version) == 1 else 28
        header = data[: len(data) - size]
        return header[:at] + len(payload).to_bytes(4, "big") + header[at + 4 :] + payload

    return spoiled
