"""One page of ratios, goal and reached, from ``build/bench/*.json``: ``python -m tests.bench.page``."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from tests.bench.report import BENCH, show

MANY, HOT = "many hubs", "one hot hub"


def main() -> int:
    rows = [*_compiled(), *_spark(), *_hub(), *_core()]
    show("Goals", ["what", "goal", "reached", ""], rows)
    return 0


def _read(name: str) -> dict[str, Any]:
    path = BENCH / f"{name}.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found


def _row(what: str, goal: float, found: Callable[[], float], *, least: bool, unit: str = " x") -> list[str]:
    """Goal, and what was reached: at least or at most so much."""
    said = f"{'at least' if least else 'at most'} {goal:g}{unit}"
    try:
        reached = found()
    except (LookupError, ValueError, StopIteration):
        return [what, said, "not measured", ""]
    return [what, said, f"{reached:.2f}{unit}", "" if (reached >= goal) == least or reached == goal else "missed"]


def _compiled() -> Iterator[list[str]]:
    said = _read("compiled")
    yield _row("replay, one process, compiled : pure", 2.6, lambda: _gain(said["replay"]), least=True)
    yield _row("replay, one process, events/s", 125_000, lambda: 1e6 / said["replay"]["compiled"], least=True, unit="")
    yield _row("step, compiled : pure", 2.6, lambda: _gain(said["step"]), least=True)
    for kind, mode, goal in (
        ("register", "closed loop", 2.5),
        ("register", "pipelined", 2.5),
        ("auth", "closed loop", 2.5),
        ("auth", "pipelined", 1.8),
    ):
        what = f"hub, CPU per {kind}, {mode}, 16 connections, compiled : pure"
        yield _row(what, goal, lambda kind=kind, mode=mode: _gain(_case(said["hub"], kind, mode)), least=True)  # type: ignore[misc]


def _gain(measured: dict[str, float]) -> float:
    return measured["pure"] / measured["compiled"]


def _case(cases: list[dict[str, Any]], kind: str, mode: str, connections: int | None = None) -> dict[str, Any]:
    return next(
        case
        for case in cases
        if (case["kind"], case["mode"]) == (kind, mode) and case.get("connections") == connections
    )


def _spark() -> Iterator[list[str]]:
    runs = _read("spark").get("runs", [])

    def run(shape: str, way: str, cores: int) -> dict[str, Any]:
        fitting = [one for one in runs if (one["shape"], one["way"], one["cores"]) == (shape, way, cores)]
        return max(fitting, key=lambda one: float(one["events"]))

    for shape, goal in ((MANY, 1.7), (HOT, 1.6)):
        alone, spread = (lambda shape=shape: run(shape, "one process", 1)), (lambda shape=shape: run(shape, "Spark", 2))
        yield _row(
            f"Spark, 2 cores : one process, {shape}",
            goal,
            lambda alone=alone, spread=spread: alone()["seconds"] / spread()["seconds"],  # type: ignore[misc]
            least=True,
        )
        yield _row(
            f"Spark, processor time : one process, {shape}",
            1.2,
            lambda alone=alone, spread=spread: spread()["cpu_seconds"] / alone()["cpu_seconds"],  # type: ignore[misc]
            least=False,
        )


def _hub() -> Iterator[list[str]]:
    said = _read("hub")
    for kind, goal in (("auth", 15), ("register", 22)):

        def against_echo(kind: str = kind) -> float:
            case = _case(said["cases"], kind, "pipelined", 16)
            return float(case["hubs"][0]["cpu"] / case["echo"]["cpu"])

        yield _row(f"hub, {kind}, pipelined, 16 connections : raw echo", goal, against_echo, least=False)
    yield _row(
        "start with 1,000,000 devices",
        5,
        lambda: next(hub["seconds"] for hub in said["hubs"] if hub["devices"] == 1_000_000),
        least=False,
        unit=" s",
    )


def _core() -> Iterator[list[str]]:
    steps = _read("core").get("steps", {})
    yield _row(
        "step at 1,000,000 : 1,000 devices, worst", 1.3, lambda: max(s["ratio"] for s in steps.values()), least=False
    )


if __name__ == "__main__":
    sys.exit(main())
