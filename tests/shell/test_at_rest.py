"""A credential is kept only where a device was admitted with it on the hub's own link, or where it is provisioned."""

import asyncio
import contextlib
import itertools
import secrets
import signal
from pathlib import Path

import pytest

from hubauth.core.messages import ListRoles, PermsInvalidate
from hubauth.core.policy import Assist, Dialect
from hubauth.judge.verdicts import Outcome
from hubauth.shell.client import DeviceClient, Refused, Unavailable
from hubauth.trace.judge import judge
from tests.shell.at_rest import NAMES, Forest, eventually, forest
from tests.shell.harness import PATIENCE, run, until

WAYS = [(dialect, assist) for dialect in (Dialect.AUTH, Dialect.LOGIN) for assist in (Assist.AUTH, Assist.QUERY)]


async def everything(trees: Forest, season: str) -> None:
    """Every flow at every level; ``season`` makes the names new."""
    async with contextlib.AsyncExitStack() as stack:
        met: dict[str, DeviceClient] = {}
        for hub in NAMES:
            client = met[hub] = await stack.enter_async_context(trees.device(hub, f"{season}-{hub}"))
            await trees.register(hub, client)
            await eventually(client.offline)
            await trees.authenticate(hub, client)
        admin = await stack.enter_async_context(trees.device("root", "admin", credential=trees.admin))
        await trees.authenticate("root", admin)
        await _roam(trees, met)
        await _ask(trees, met["leaf"], admin)
        # Registered again: where it was, and elsewhere.
        await trees.register("leaf", met["leaf"])
        async with trees.device("root", f"{season}-mid") as again:
            await trees.register("root", again)
            await _guess(trees, season)
            await trees.revoke(admin, f"{season}-mid")
            await trees.revoke(admin, f"{season}-leaf", met["leaf"].credential)
        for hub in NAMES:
            await trees.count(hub)


async def _roam(trees: Forest, met: dict[str, DeviceClient]) -> None:
    """Up, down, and across: each device at each hub, and back where it was."""
    for home, client in met.items():
        for hub in NAMES:
            if hub != home:
                async with trees.device(hub, client.device_id, client.credential) as moved:
                    await trees.authenticate(hub, moved)
        await trees.authenticate(home, client)


async def _guess(trees: Forest, season: str) -> None:
    """Whoever guesses leaves nothing behind, at no hub on the way."""
    for hub in NAMES:
        guess = secrets.token_urlsafe(32)
        trees.credentials.add(guess)
        async with trees.device(hub, f"{season}-root", credential=guess) as stranger:
            with contextlib.suppress(Refused):
                await stranger.authenticate()


async def _ask(trees: Forest, asker: DeviceClient, admin: DeviceClient) -> None:
    if trees.dialect is Dialect.AUTH:
        await eventually(asker.get_perms)
        await eventually(lambda: asker.get_perms(9))
        await asker.list_roles(ListRoles())
        await admin.perms_invalidate(PermsInvalidate((), "season", refresh=True))


async def newcomers(trees: Forest, prefix: str, enough: asyncio.Event) -> None:
    """Register one device after the other at the leaf, whoever dies meanwhile."""
    for number in itertools.count():
        if enough.is_set():
            return
        async with trees.device("leaf", f"{prefix}-{number}", timeout=1.0) as client:
            try:
                await client.register()
            except (Refused, Unavailable):
                continue
            trees.allowed["leaf"].add(client.credential)
            trees.credentials.add(client.credential)


async def killed_under_load(trees: Forest, name: str) -> None:
    before, enough = len(trees.credentials), asyncio.Event()
    load = [asyncio.ensure_future(newcomers(trees, f"{name}-{before}-{at}", enough)) for at in range(3)]
    await until(lambda: len(trees.credentials) >= before + 5, "the tree is busy")
    await trees.end(name)
    enough.set()
    await asyncio.gather(*load)
    await trees.start(name)
    await trees.at_rest()


async def revoked_while_away(trees: Forest) -> str:
    """A credential of the root's own device is revoked by name while the leaf is away."""
    async with (
        trees.device("root", "admin", credential=trees.admin) as admin,
        trees.device("root", "briefly") as client,
    ):
        await trees.authenticate("root", admin)
        await trees.register("root", client)
        await trees.end("leaf")
        await trees.revoke(admin, "briefly", client.credential)
    await trees.start("leaf")
    await trees.at_rest()
    return client.credential


async def forgotten(trees: Forest) -> None:
    """Wait until nothing is left of what revokes have named."""
    deadline = asyncio.get_running_loop().time() + PATIENCE
    while wrong := trees.found():
        assert asyncio.get_running_loop().time() < deadline, wrong
        await asyncio.sleep(0.2)


@pytest.mark.parametrize(("dialect", "assist"), WAYS, ids=lambda way: way.value)
def test_every_byte_of_every_hub(dialect: Dialect, assist: Assist, tmp_path: Path) -> None:
    async def story() -> None:
        async with forest(tmp_path, dialect, assist) as trees:
            await everything(trees, "spring")
            for name in NAMES:
                await killed_under_load(trees, name)
            await everything(trees, "summer")
            named = await revoked_while_away(trees)
            for name in NAMES:
                await trees.end(name)
            for name in NAMES:
                await trees.start(name)
            await trees.at_rest()
            await everything(trees, "autumn")
            await forgotten(trees)
            for name in reversed(NAMES):
                await trees.end(name, signal.SIGTERM)
            assert trees.found() == []
            _is_no_empty_promise(trees, named)

    run(story(), seconds=900)
    judgement = judge([tmp_path / name / "trace" for name in NAMES])
    assert judgement.outcome is not Outcome.VIOLATES, judgement.worst


def _is_no_empty_promise(trees: Forest, named: str) -> None:
    """Every hub left every kind of file, and what it must know it knows."""
    for name in NAMES:
        remains = trees.remains(name)
        kinds = ("/data/journal-", "/data/snapshot-", "/trace/events/", "log", "metrics")
        assert all(any(kind in file and content for file, content in remains.items()) for kind in kinds), name
        kept = b"".join(content for file, content in remains.items() if "/data/" in file)
        assert sum(credential.encode() in kept for credential in trees.allowed[name]) >= 2
    assert named in trees.allowed["root"] and named not in trees.allowed["leaf"]
