"""``hubauth hub``: run a hub, or write a configuration for one."""

import argparse
import asyncio
import gc
import logging
import os
import signal
from pathlib import Path
from typing import Any

from hubauth.cli.problems import CommandError
from hubauth.cli.template import template
from hubauth.shell.configuration import ConfigurationError, HubConfig, configure, load
from hubauth.shell.hub import Hub
from hubauth.shell.metrics import serve_metrics
from hubauth.shell.observe import say, set_up_logging

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


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    hub = commands.add_parser("hub", help="run a hub", description="Run a hub until it is told to stop (SIGTERM).")
    hub.set_defaults(run=run_hub)
    hub.add_argument("--config", type=Path, metavar="FILE", help="hub.toml; flags go before what it says")
    hub.add_argument("--listen", metavar="HOST:PORT")
    hub.add_argument("--parent", metavar="HOST:PORT")
    hub.add_argument("--dialect", choices=["auth", "login", "flat"])
    hub.add_argument("--header", choices=["1", "2", "auto"], help="which frame header is expected")
    hub.add_argument("--device-id", metavar="NAME", help="the hub's own name towards its parent")
    hub.add_argument("--data-dir", metavar="DIR", help="holds journal and snapshots, credentials included")
    hub.add_argument("--durability", choices=["fsync", "os", "none"], help="when an answer may leave")
    hub.add_argument("--metrics", metavar="HOST:PORT", help="serve Prometheus counters there")
    hub.add_argument("--log-level", choices=["debug", "info", "warning", "error"])
    hub.add_argument("--log-format", choices=["text", "json"])
    hub.add_argument("--loop", choices=["auto", "asyncio", "uvloop"], default="auto", help="event loop")
    hub.add_argument("--check", action="store_true", help="only check the configuration")
    inner = hub.add_subparsers(metavar="init")
    init = inner.add_parser("init", help="write a commented configuration")
    init.set_defaults(run=write_configuration)
    init.add_argument("file", type=Path, nargs="?", default=Path("hub.toml"))
    init.add_argument("--device-id", default="hub")
    init.add_argument("--dialect", choices=["auth", "login", "flat"], default="auth")
    init.add_argument("--listen", default="127.0.0.1:7080")
    init.add_argument("--parent", default="")
    init.add_argument("--data-dir", default="hub-data")


def write_configuration(chosen: argparse.Namespace) -> int:
    """``hubauth hub init``: never over an existing file; for its owner only, since credentials will be in it."""
    text = template(chosen.device_id, chosen.dialect, chosen.listen, chosen.parent, chosen.data_dir)
    try:
        descriptor = os.open(chosen.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise CommandError(f"{chosen.file} exists already", "name another file, or remove it first") from None
    except OSError as problem:
        raise CommandError(f"cannot write {chosen.file}: {problem.strerror}") from None
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    print(f"wrote {chosen.file}; start the hub with: hubauth hub --config {chosen.file}")
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
    if chosen.check:
        print("the configuration is fine")
        return 0
    set_up_logging(config.log)
    with asyncio.Runner(loop_factory=_loop_factory(chosen.loop)) as runner:
        return runner.run(_serve(config, chosen))


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


async def _serve(config: HubConfig, chosen: argparse.Namespace) -> int:
    hub = Hub(config)
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    loop.add_signal_handler(signal.SIGHUP, _reload, hub, chosen)
    # What recovery builds is acyclic and stays: collecting it again and again would only stop the hub.
    gc.disable()
    await hub.start()
    gc.freeze()
    # Often a little instead of seldom a lot: what survives is state, and there is much of it.
    gc.set_threshold(10_000, 3, 10_000)
    gc.enable()
    metrics = serve_metrics(config.metrics, hub) if config.metrics is not None else None
    waits = [loop.create_task(event.wait()) for event in (stopping, hub.failed)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for task in waits:
        task.cancel()
    if metrics is not None:
        metrics.stop()
    await hub.stop()
    return 1 if hub.failed.is_set() else 0


def _reload(hub: Hub, chosen: argparse.Namespace) -> None:
    """SIGHUP: take over the protocol's part of the configuration; the rest needs a restart."""
    if chosen.config is None or not hub.serves:
        say(logging.WARNING, "reload_refused", detail="there is no file to reload, or the hub is only starting")
        return
    try:
        hub.reconfigure(configuration(chosen).policy)
    except ConfigurationError as problem:
        say(logging.ERROR, "reload_refused", detail=str(problem))
    else:
        say(logging.INFO, "reloaded")
