"""``hubauth hub``: run a hub, or write a configuration for one."""

import argparse
import asyncio
import gc
import logging
import signal
import sys
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Any

from hubauth import private
from hubauth.cli import ctl
from hubauth.cli.problems import CommandError
from hubauth.cli.template import template
from hubauth.cli.terminal import tell
from hubauth.forms.events import TraceError
from hubauth.shell.configuration import ConfigurationError, HubConfig, configure, load
from hubauth.shell.hub import Hub
from hubauth.shell.metrics import Endpoint, serve_metrics
from hubauth.shell.observe import say, set_up_logging
from hubauth.shell.tls import check_tls
from hubauth.trace.rows import Recording

_FLAGS = {
    "listen": ("listen", "address"),
    "header": ("listen", "header"),
    "parent": ("parent", "address"),
    "dialect": ("hub", "dialect"),
    "device_id": ("hub", "device_id"),
    "data_dir": ("storage", "data_dir"),
    "durability": ("storage", "durability"),
    "metrics": ("metrics", "address"),
    "log_level": ("log", "level"),
    "log_format": ("log", "format"),
}

_EXAMPLES = """\
examples:
  hubauth hub init                                   writes hub.toml
  hubauth hub --config hub.toml
  hubauth hub --config hub.toml --check
  hubauth hub ctl status --config hub.toml           asks a hub that runs
  hubauth hub --listen 127.0.0.1:7080 --data-dir hub-data --trace traces
"""
_INIT_EXAMPLES = """\
examples:
  hubauth hub init
  hubauth hub init leaf.toml --device-id leaf --listen 127.0.0.1:7081 --parent 127.0.0.1:7080 --data-dir leaf-data
"""


class _Alone(argparse._SubParsersAction):  # type: ignore[type-arg]
    """A command whose options stand behind its name: what stands before it would be forgotten, so it is refused."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        for action in parser._actions:
            if getattr(namespace, action.dest, action.default) != action.default:
                message = f"{action.option_strings[-1]} stands before {values[0]}"
                raise CommandError(message, f"options of {values[0]} follow it: {parser.prog} {values[0]} --help")
        super().__call__(parser, namespace, values, option_string)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "Run a hub until it is told to stop (SIGTERM)."
    hub = commands.add_parser("hub", help="run a hub", description=about, epilog=_EXAMPLES)
    hub.set_defaults(run=run_hub)
    hub.add_argument("--config", type=Path, metavar="FILE", help="hub.toml; flags go before what it says")
    hub.add_argument("--listen", metavar="HOST:PORT", help="where devices and child hubs connect")
    hub.add_argument("--parent", metavar="HOST:PORT", help="the hub above; without one this is a root")
    hub.add_argument("--dialect", choices=["auth", "login", "flat"], help="which words the hub speaks")
    hub.add_argument("--header", choices=["1", "2", "auto"], help="which frame header is expected")
    hub.add_argument("--device-id", metavar="NAME", help="the hub's own name towards its parent")
    hub.add_argument("--data-dir", metavar="DIR", help="holds journal and snapshots, credentials included")
    hub.add_argument("--durability", choices=["fsync", "os", "none"], help="when an answer may leave")
    hub.add_argument("--metrics", metavar="HOST:PORT", help="serve Prometheus counters there")
    hub.add_argument("--log-level", choices=["debug", "info", "warning", "error"], help="debug names the rules")
    hub.add_argument("--log-format", choices=["text", "json"], help="of a log line")
    hub.add_argument("--loop", choices=["auto", "asyncio", "uvloop"], default="auto", help="event loop")
    hub.add_argument("--trace", type=Path, metavar="DIR", help="record everything the hub does, without credentials")
    hub.add_argument("--trace-key", type=Path, metavar="FILE", help="hubs that share it use the same tokens")
    hub.add_argument("--keep-credentials", action="store_true", help="leave credentials in the trace")
    hub.add_argument("--watch", action="store_true", help="raise an alarm when the hub breaks one of its promises")
    hub.add_argument("--check", action="store_true", help="only check the configuration")
    inner = hub.add_subparsers(metavar="init|ctl", action=_Alone)
    ctl.add_to(inner)
    about = "Write a commented configuration, never over an existing file."
    init = inner.add_parser("init", help="write a commented configuration", description=about, epilog=_INIT_EXAMPLES)
    init.set_defaults(run=write_configuration)
    init.add_argument("file", type=Path, nargs="?", default=Path("hub.toml"), metavar="FILE", help="default: hub.toml")
    init.add_argument("--device-id", default="hub", metavar="NAME", help="the hub's own name towards its parent")
    init.add_argument("--dialect", choices=["auth", "login", "flat"], default="auth", help="which words the hub speaks")
    init.add_argument("--listen", default="127.0.0.1:7080", metavar="HOST:PORT", help="where devices connect")
    init.add_argument("--parent", default="", metavar="HOST:PORT", help="the hub above; without one this is a root")
    init.add_argument("--data-dir", default="hub-data", metavar="DIR", help="holds journal and snapshots")


def write_configuration(chosen: argparse.Namespace) -> int:
    """``hubauth hub init``: never over an existing file; for its owner only, since credentials will be in it."""
    text = template(chosen.device_id, chosen.dialect, chosen.listen, chosen.parent, chosen.data_dir)
    configure(tomllib.loads(text))
    try:
        private.write(chosen.file, text.encode())
    except FileExistsError:
        raise CommandError(f"{chosen.file} exists already", "name another file, or remove it first") from None
    except OSError as problem:
        raise CommandError(f"cannot write {chosen.file}: {problem.strerror}") from None
    tell(f"wrote {chosen.file}; start the hub with: hubauth hub --config {chosen.file}")
    return 0


def configuration(chosen: argparse.Namespace) -> HubConfig:
    """The file, and the flags over it."""
    overrides: dict[str, dict[str, Any]] = {}
    for flag, (table, key) in _FLAGS.items():
        value = getattr(chosen, flag)
        if value is not None:
            overrides.setdefault(table, {})[key] = int(value) if flag == "header" and value != "auto" else value
    return load(chosen.config, overrides) if chosen.config is not None else configure(overrides)


def run_hub(chosen: argparse.Namespace) -> int:
    """``hubauth hub``."""
    config = configuration(chosen)
    shared = private.why_not_private(chosen.config) if chosen.config is not None else ""
    if chosen.check:
        check_tls(config)
        if shared:
            tell(f"warning: {shared}", to=sys.stderr)
        tell("the configuration is fine")
        return 0
    set_up_logging(config.log)
    if shared:
        say(logging.WARNING, "not_private", detail=shared)
    with asyncio.Runner(loop_factory=_loop_factory(chosen.loop)) as runner:
        try:
            return runner.run(_serve(config, chosen))
        except TraceError as problem:
            raise CommandError(str(problem), "name another directory after --trace") from None


def _loop_factory(choice: str) -> Any:
    if choice == "asyncio":
        return None
    try:
        import uvloop
    except ImportError:
        if choice == "uvloop":
            raise CommandError("uvloop is not installed", "pip install uvloop, or --loop asyncio") from None
        return None
    return uvloop.new_event_loop


def _recording(chosen: argparse.Namespace) -> Recording | None:
    if chosen.trace is None:
        if chosen.trace_key is not None or chosen.keep_credentials:
            raise CommandError("--trace-key and --keep-credentials need --trace DIR")
        return None
    if chosen.trace_key is not None and chosen.keep_credentials:
        raise CommandError("--trace-key is of no use with --keep-credentials")
    return Recording(chosen.trace, chosen.keep_credentials, chosen.trace_key)


async def _serve(config: HubConfig, chosen: argparse.Namespace) -> int:
    read_again = (lambda: configuration(chosen)) if chosen.config is not None else None
    hub = Hub(config, _recording(chosen), read_again, watches=chosen.watch)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, hub)
    # What recovery builds is acyclic and stays: collecting it again and again would only stop the hub.
    gc.disable()
    await hub.start()
    gc.freeze()
    # Often a little instead of seldom a lot: what survives is state, and there is much of it.
    gc.set_threshold(10_000, 3, 10_000)
    gc.enable()
    metrics = await _endpoint(config, hub)
    waits = [loop.create_task(event.wait()) for event in (stopping, hub.failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in waits:
        task.cancel()
    if metrics is not None:
        metrics.stop()
    await hub.stop()
    return 1 if hub.failed.is_set() else 0


async def _endpoint(config: HubConfig, hub: Hub) -> Endpoint | None:
    if config.metrics is None:
        return None
    try:
        return await serve_metrics(config.metrics, hub)
    except ConfigurationError:
        await hub.stop()
        raise


def _reload(hub: Hub) -> None:
    """SIGHUP, as any daemon has it: whoever sends one reads in the log what came of it."""
    with suppress(ConfigurationError):
        hub.reload()
