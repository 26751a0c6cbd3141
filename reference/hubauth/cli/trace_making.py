"""``hubauth trace tap``, ``import-pcap`` and ``generate``: where traces come from, besides ``hubauth hub --trace``."""

import argparse
import asyncio
import json
import signal
import time
from functools import partial
from pathlib import Path

from hubauth.cli.declared import Declared, add_declared, declared_in
from hubauth.cli.grammar import add_command
from hubauth.cli.problems import FAILED, UNREADABLE, CommandError
from hubauth.cli.terminal import tell
from hubauth.core.policy import Dialect
from hubauth.forms.events import TraceError
from hubauth.shell.addresses import Address, parse_address
from hubauth.shell.observe import set_up_logging
from hubauth.shell.settings import LogTable
from hubauth.trace.faults import FAULTS
from hubauth.trace.generate import Blueprint, generate
from hubauth.trace.rows import Recording
from hubauth.trace.storage import TraceWriter
from hubauth.trace.tap import Crossing, Tap
from hubauth.trace.watching import Watch, show


def add_to(inner: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of these commands."""
    tap = add_command(
        inner,
        "tap",
        run_tap,
        "record any hub from outside",
        "127.0.0.1:7081 127.0.0.1:7080 --policy hub.toml --out traces/tapped",
    )
    tap.add_argument("listen", metavar="LISTEN", help="HOST:PORT for devices and child hubs")
    tap.add_argument("target", metavar="TARGET", help="HOST:PORT where the hub listens")
    tap.add_argument(
        "--parent", nargs=2, metavar=("LISTEN", "TARGET"), help="likewise to its parent, if the hub connects to LISTEN"
    )
    _add_recording(tap)
    capture = add_command(
        inner,
        "import-pcap",
        run_import,
        "a packet capture as a trace",
        "hub.pcap --listens 10.0.0.1:7080 --out traces/captured",
    )
    capture.add_argument("file", type=Path, metavar="FILE", help="pcap or pcapng")
    capture.add_argument("--listens", required=True, metavar="HOST:PORT", help="where the hub listens")
    capture.add_argument("--parent", metavar="HOST:PORT", help="where its parent listens")
    _add_recording(capture)
    capture.add_argument("--json", action="store_true", help="say what was written as JSON")
    making = add_command(
        inner, "generate", run_generate, "make a trace of any size", "--hubs 64 --events 1000000 --out traces/made"
    )
    making.add_argument("--hubs", type=int, default=4, metavar="N", help="how many (default: 4)")
    making.add_argument("--devices", type=int, default=100, metavar="N", help="how many (default: 100)")
    making.add_argument("--events", type=int, default=10_000, metavar="N", help="about how many rows (default: 10000)")
    making.add_argument(
        "--seed", type=int, default=1, metavar="N", help="the same seed gives the same trace (default: 1)"
    )
    making.add_argument("--dialect", choices=["auth", "login", "flat"], default="auth", help="default: auth")
    making.add_argument("--format", choices=["jsonl", "parquet"], default="parquet", help="default: parquet")
    making.add_argument("--checkpoints", type=int, default=50_000, metavar="ROWS", help="one per hub and so many rows")
    making.add_argument("--fault", choices=[*FAULTS], metavar="KIND", help=f"plant one: {', '.join(FAULTS)}")
    making.add_argument("--out", type=Path, required=True, metavar="DIR", help="the directory to write")
    making.add_argument("--json", action="store_true", help="say what was written as JSON")


def _add_recording(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="the trace to write")
    parser.add_argument("--hub", default="hub", metavar="NAME", help="the hub's name in the trace (default: hub)")
    add_declared(parser)
    parser.add_argument("--trace-key", type=Path, metavar="FILE", help="recordings that share it use the same tokens")
    parser.add_argument("--keep-credentials", action="store_true", help="leave credentials in the trace")


def _recording(chosen: argparse.Namespace) -> tuple[Recording, Declared]:
    return Recording(chosen.out, chosen.keep_credentials, chosen.trace_key), declared_in(chosen)


def _address(name: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as problem:
        raise CommandError(f"{name}: {problem}") from None


def run_tap(chosen: argparse.Namespace) -> int:
    """Pass on what clients and a hub say to each other, byte by byte, and record it as a trace of that hub."""
    crossings = [Crossing(_address("LISTEN", chosen.listen), _address("TARGET", chosen.target))]
    if chosen.parent is not None:
        listen, target = (_address("--parent", text) for text in chosen.parent)
        crossings.append(Crossing(listen, target, is_parent=True))
    recording, known = _recording(chosen)
    try:
        watch = Watch(recording, chosen.hub, known.policy, time.time_ns() // 1000, known.habits)
        asyncio.run(_tap(Tap(watch, crossings)))
    except TraceError as problem:
        raise CommandError(str(problem)) from None
    except OSError as problem:
        raise CommandError(f"cannot listen: {problem.strerror or problem}") from None
    return 0


async def _tap(tap: Tap) -> None:
    set_up_logging(LogTable())
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    try:
        for address in await tap.start():
            tell(f"listening on {show(address)}")
        await stopping.wait()
    finally:
        await tap.stop()


def run_import(chosen: argparse.Namespace) -> int:
    """Record what a packet capture shows of a hub. Needs dpkt: pip install 'hubauth[pcap]'."""
    try:
        from hubauth.trace.pcap import import_capture
    except ImportError:
        raise CommandError("dpkt is not installed", "pip install 'hubauth[pcap]'") from None
    listens = _address("--listens", chosen.listens)
    parent = _address("--parent", chosen.parent) if chosen.parent is not None else None
    recording, known = _recording(chosen)
    try:
        watched = partial(Watch, recording, chosen.hub, known.policy, habits=known.habits)
        connections = import_capture(chosen.file, watched, listens, parent)
    except TraceError as problem:
        raise CommandError(str(problem), code=UNREADABLE) from None
    said = {"connections": connections, "directory": str(chosen.out)}
    tell(json.dumps(said) if chosen.json else f"{connections} connections: {chosen.out}")
    return 0


def run_generate(chosen: argparse.Namespace) -> int:
    """Make a trace of a tree of hubs with devices that come, go, roam and are revoked, by the reference itself."""
    for name in ("hubs", "devices", "events"):
        if getattr(chosen, name) < 1:
            raise CommandError(f"--{name} must be at least 1")
    if chosen.checkpoints < 0:
        raise CommandError("--checkpoints must not be negative", "0: none")
    blueprint = Blueprint(
        chosen.hubs,
        chosen.devices,
        chosen.events,
        chosen.seed,
        Dialect(chosen.dialect),
        chosen.fault or "",
        chosen.checkpoints,
        chosen.out.resolve().name,
    )
    try:
        with TraceWriter(chosen.out, chosen.format) as writer:
            plan = generate(blueprint, writer.event, writer.checkpoint)
            rows = writer.rows
    except TraceError as problem:
        raise CommandError(str(problem)) from None
    except ValueError as problem:
        raise CommandError(str(problem), code=FAILED) from None
    said: dict[str, object] = {"rows": rows, "directory": str(chosen.out)}
    if plan is not None:
        said |= {"fault": chosen.fault, "rule": plan.fault.rule, "hub": plan.hub, "sequence": plan.sequence}
    if chosen.json:
        tell(json.dumps(said))
    else:
        planted = f"; {plan.fault.about}: {plan.fault.rule} at {plan.hub} row {plan.sequence}" if plan else ""
        tell(f"{rows} rows: {chosen.out}{planted}")
    return 0
