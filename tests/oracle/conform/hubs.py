"""Hubs to be judged: the reference as a thread or a process, in every role, and the profile that describes it."""

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import msgspec
from attrs import field, frozen
from msgspec.structs import replace

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.declare import Case
from hubauth.oracle.conform.profile import (
    FEATURES,
    ChoicesTable,
    HubTable,
    Known,
    LimitsTable,
    ParentTable,
    Profile,
    RolesTable,
    TimeoutsTable,
)
from hubauth.oracle.conform.run import Judgement, Run
from hubauth.oracle.conform.subject import Subject
from hubauth.shell.addresses import Address, parse_address
from hubauth.shell.configuration import configure
from hubauth.shell.hub import Hub
from hubauth.wire.header import Version
from tests.toml import to_toml

HUB_CREDENTIAL = "u" * 43
CHILD_HUBS = (
    Known(device_id="child-a", node_id=3, credential="a" * 43, role="hub"),
    Known(device_id="child-b", node_id=4, credential="b" * 43, role="hub"),
)
ADMIN = Known(device_id="admin", node_id=9, credential="c" * 43, role="admin")
ROLE_PERMS = {"hub": ("auth.assist",), "admin": ("auth.revoke", "auth.perms_invalidate")}
ROLES = ("root", "child", "middle")


_PORTS = cycle(range(10_000 + os.getpid() % 400 * 50, 10_050 + os.getpid() % 400 * 50))
"""Below what systems give to connections, which could take a port before anybody listens on it; others' are others."""


def free_port() -> int:
    """A port that nobody listens on, and that nobody is given meanwhile."""
    for port in islice(_PORTS, 50):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


@frozen
class Described:
    """A hub to be: its configuration, and the profile that tells the truth about it."""

    tables: dict[str, Any]
    profile: Profile = field()


def describe(
    role: str = "root", dialect: Dialect = Dialect.AUTH, headers: tuple[int, ...] = (1,), **hub: Any
) -> Described:
    """The reference in a role: ``root`` has child hubs, ``child`` a parent, ``middle`` both."""
    children = CHILD_HUBS if role != "child" else ()
    known = (*children, ADMIN)
    own = HubTable(node_id=1 if role == "root" else 2, device_id="under-test", credential=HUB_CREDENTIAL)
    port = 0 if role == "root" else free_port()
    tables: dict[str, Any] = {
        "hub": {
            "device_id": own.device_id,
            "node_id": own.node_id,
            "credential": own.credential if role != "root" else "",
            "dialect": dialect.value,
            "first_node_id": 10,
            **hub,
        },
        "listen": {"address": "127.0.0.1:0", "header": "auto" if len(headers) > 1 else headers[0]},
        "storage": {"durability": "none"},
        "auth": {"role_perms": ";".join(f"{role}:{','.join(perms)}" for role, perms in ROLE_PERMS.items())},
        "limits": {"request_seconds": 1.0, "pending": 20, "hub_pending": 30, "payload": 4096, "revoke_batch": 4},
        "provisioned": [
            {"device_id": one.device_id, "node_id": one.node_id, "credential": one.credential, "role": one.role}
            for one in known
        ],
    }
    if role != "root":
        tables["parent"] = {
            "address": f"127.0.0.1:{port}",
            "retry_first": 0.02,
            "retry_most": 0.05,
            "header": headers[0],
        }
    choices = {name: value for name, value in hub.items() if name in ChoicesTable.__struct_fields__}
    profile = Profile(
        name=f"reference, {role}",
        dialect=dialect,
        header=headers,  # type: ignore[arg-type]
        hub=own,
        parent=None if role == "root" else ParentTable(listen=f"127.0.0.1:{port}", header=headers[0]),  # type: ignore[arg-type]
        child_hub=children,
        admin=ADMIN,
        roles=RolesTable(role_perms=ROLE_PERMS),
        choices=msgspec.convert({"texts": True, **choices}, ChoicesTable),
        limits=LimitsTable(request_seconds=1.0, pending=20, hub_pending=30, payload=4096, revoke_batch=4),
        timeouts=TimeoutsTable(answer=2.0, silence=0.2, join=20.0),
    )
    return Described(tables, profile)


@contextmanager
def in_thread(described: Described) -> Iterator[Address]:
    """The reference hub in a thread of this process."""
    ready, box = threading.Event(), dict[str, Any]()

    async def serve() -> None:
        hub = Hub(configure(described.tables))
        box["stop"], box["loop"] = asyncio.Event(), asyncio.get_running_loop()
        try:
            await hub.start()
            box["address"] = hub.address
        finally:
            ready.set()
        await box["stop"].wait()
        for _ in range(20):
            await asyncio.sleep(0)  # a connection that is just being accepted would be lost, and its socket with it
        await hub.stop()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait(30)
    try:
        yield box["address"]
    finally:
        box["loop"].call_soon_threadsafe(box["stop"].set)
        thread.join(30)


_PROCESSES: dict[Address, subprocess.Popen[str]] = {}


def kill(address: Address) -> None:
    """End the hub at this address, without a word."""
    _PROCESSES[address].kill()
    _PROCESSES[address].wait(30)


@contextmanager
def as_process(described: Described, directory: Path) -> Iterator[Address]:
    """The reference hub as a process of its own, started by the real command."""
    config = directory / "hub.toml"
    config.write_text(to_toml(described.tables), encoding="utf-8")
    command = [sys.executable, "-m", "hubauth.cli", "hub", "--config", str(config), "--log-format", "json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        address = None
        while address is None:
            line = process.stderr.readline()
            assert line, "the hub did not start"
            said = json.loads(line)
            if said["event"] == "listening":
                address = parse_address(said["address"])
        _PROCESSES[address] = process
        drain = threading.Thread(target=process.stderr.read, daemon=True)
        drain.start()
        yield address
    finally:
        process.kill()
        process.wait(30)
        process.stderr.close()


def judge(
    address: Address, profile: Profile, cases: Sequence[Case] = tuple(CASES.values()), sequences: int = 0
) -> Judgement:
    """Play cases against a hub, as its parent too if the profile says so."""
    with Subject(address.host, address.port, profile, Version(profile.header[0])) as subject:
        if profile.parent is not None:
            subject.listen(*parse_address(profile.parent.listen))
            subject.join()
        return Run(subject, cases, command=("hubauth", "conform", str(address)), sequences=sequences).judge()


def patient(profile: Profile) -> Profile:
    """A hub that is right answers everything it must, however long it is kept from doing so."""
    return replace(profile, timeouts=replace(profile.timeouts, connect=30.0, answer=30.0, join=60.0))


def profile_toml(profile: Profile) -> str:
    """A profile as its file."""
    plain = msgspec.to_builtins(profile)
    if profile.features == FEATURES:
        del plain["features"]  # not named: in login that would say something
    flat = {key: value for key, value in plain.items() if not isinstance(value, dict) and not _is_tables(value)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in flat.items() if value is not None]
    return "\n".join(lines) + "\n" + to_toml({key: value for key, value in plain.items() if key not in flat})


def _is_tables(value: object) -> bool:
    return isinstance(value, list | tuple) and bool(value) and isinstance(value[0], dict)
