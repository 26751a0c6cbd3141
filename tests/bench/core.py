"""What a step costs at 1,000 and at 1,000,000 devices, measured side by side.

Both hubs take turns in short rounds, so that a busy machine slows both alike; the median round counts.
"""

import gc
import random
import sys
import time
from statistics import median

from attrs import evolve, frozen
from immutables import Map

from hubauth.core.canonical import Digest, advance, digest_of
from hubauth.core.indexes import derive_index, initial_state
from hubauth.core.inputs import Input, LinkDown, LinkUp, OperatorRevoke, Received
from hubauth.core.messages import Authenticate, Frame, GetPerms, ListRoles, Offline, Register, Revoke
from hubauth.core.model import Entry, Registration, Route, State
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.lab.tree import credential
from tests.bench.report import save, show

SMALL, LARGE = 1_000, 1_000_000
ROUNDS, STEPS = 61, 100
GOAL = 1.5
POLICY = Policy(node_roles={1: "admin"}, role_perms={"admin": ("*",)})


@frozen
class Populated:
    """A root hub that knows many devices, none of them connected."""

    count: int
    state: State
    digest: Digest


def populate(count: int) -> Populated:
    """The state that ``count`` registrations, authentications and disconnections leave behind."""
    nodes = range(2, count + 2)
    names = [f"device-{node_id:09d}" for node_id in nodes]
    state = evolve(
        initial_state(POLICY),
        next_node_id=count + 2,
        registry=Map({name: Registration(node_id) for name, node_id in zip(names, nodes, strict=True)}),
        whitelist=Map({name: Entry(node_id, credential(node_id)) for name, node_id in zip(names, nodes, strict=True)}),
        directory=Map({node_id: Route(name, node_id, False) for name, node_id in zip(names, nodes, strict=True)}),
    )
    state = evolve(state, index=derive_index(POLICY, state))
    return Populated(count, state, digest_of(state))


def run(state: State, inputs: list[Input]) -> State:
    for happened in inputs:
        state = step(POLICY, state, happened).state
    return state


def any_node(hub: Populated, choice: random.Random) -> int:
    return choice.randrange(2, hub.count + 2)


def connected(hub: Populated, choice: random.Random, authenticated: bool) -> tuple[State, list[int]]:
    """The hub with STEPS links up, each with a random device behind it."""
    nodes = choice.sample(range(2, hub.count + 2), STEPS)
    state = run(hub.state, [LinkUp(link) for link in range(1, STEPS + 1)])
    if authenticated:
        logins: list[Input] = [_login(link, node_id) for link, node_id in enumerate(nodes, 1)]
        state = run(state, logins)
    return state, nodes


def _login(link: int, node_id: int) -> Input:
    return Received(link, Frame(Authenticate(f"device-{node_id:09d}", credential(node_id)), msg_id=link))


def register(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, _ = connected(hub, choice, authenticated=False)
    return state, [
        Received(link, Frame(Register(f"new-{choice.random()}"), msg_id=link), credential(link))
        for link in range(1, STEPS + 1)
    ]


def auth(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, nodes = connected(hub, choice, authenticated=False)
    return state, [_login(link, node_id) for link, node_id in enumerate(nodes, 1)]


def revoke(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, nodes = connected(hub, choice, authenticated=True)
    return state, [OperatorRevoke(Revoke(f"device-{node_id:09d}", node_id)) for node_id in nodes]


def offline(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, nodes = connected(hub, choice, authenticated=True)
    return state, [
        Received(link, Frame(Offline(f"device-{node_id:09d}", node_id), source=node_id))
        for link, node_id in enumerate(nodes, 1)
    ]


def get_perms(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, nodes = connected(hub, choice, authenticated=True)
    return state, [
        Received(link, Frame(GetPerms(any_node(hub, choice)), source=node_id)) for link, node_id in enumerate(nodes, 1)
    ]


def list_roles(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, nodes = connected(hub, choice, authenticated=True)
    return state, [
        Received(link, Frame(ListRoles(offset=choice.randrange(hub.count - 100)), source=node_id))
        for link, node_id in enumerate(nodes, 1)
    ]


def link_down(hub: Populated, choice: random.Random) -> tuple[State, list[Input]]:
    state, _ = connected(hub, choice, authenticated=True)
    return state, [LinkDown(link) for link in range(1, STEPS + 1)]


SCENARIOS = (register, auth, revoke, offline, get_perms, list_roles, link_down)


def measure(state: State, inputs: list[Input]) -> float:
    """Seconds per step."""
    start = time.perf_counter()
    for happened in inputs:
        state = step(POLICY, state, happened).state
    return (time.perf_counter() - start) / len(inputs)


def measure_digest(hub: Populated, state: State, inputs: list[Input]) -> tuple[float, float]:
    """Seconds per step, and seconds to bring the digest up to date after it."""
    digest, stepping, digesting = hub.digest, 0.0, 0.0
    for happened in inputs:
        start = time.perf_counter()
        done = step(POLICY, state, happened)
        between = time.perf_counter()
        digest = advance(digest, done)
        digesting += time.perf_counter() - between
        stepping += between - start
        state = done.state
    return stepping / len(inputs), digesting / len(inputs)


def main() -> int:
    print(f"building hubs with {SMALL:,} and {LARGE:,} devices ...", file=sys.stderr, flush=True)
    small, large = populate(SMALL), populate(LARGE)
    gc.collect()
    gc.freeze()
    gc.disable()
    rows: list[list[str]] = []
    results: dict[str, dict[str, float]] = {}
    for at, scenario in enumerate(SCENARIOS, 1):
        print(f"[{at}/{len(SCENARIOS)}] {scenario.__name__}", file=sys.stderr, flush=True)
        choice = random.Random(at)
        timings: list[tuple[float, float]] = []
        for _ in range(ROUNDS):
            timings.append((measure(*scenario(small, choice)), measure(*scenario(large, choice))))
        at_small, at_large = (median(column) for column in zip(*timings, strict=True))
        ratio = at_large / at_small
        stepping, digesting = (
            median(c) for c in zip(*(measure_digest(large, *scenario(large, choice)) for _ in range(9)), strict=True)
        )
        results[scenario.__name__] = {
            "microseconds_small": at_small * 1e6,
            "microseconds_large": at_large * 1e6,
            "ratio": ratio,
            "digest_ratio": digesting / stepping,
        }
        rows.append(
            [
                scenario.__name__,
                f"{at_small * 1e6:.1f}",
                f"{at_large * 1e6:.1f}",
                f"{ratio:.2f}" + ("" if ratio <= GOAL else f"  above {GOAL}"),
                f"{1 / at_large:,.0f}",
                f"{digesting / stepping:.2f}",
            ]
        )
    show(
        f"Cost of one step of the core (median of {ROUNDS} rounds of {STEPS} steps, taken in turns)",
        ["step", f"us at {SMALL:,}", f"us at {LARGE:,}", "ratio", "steps/s (large)", "digest/step"],
        rows,
    )
    print(f"\nwrote {save('core', {'goal_ratio': GOAL, 'steps': results})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
