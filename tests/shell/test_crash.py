"""The real process, killed with SIGKILL at random moments under load: what was answered is never lost.

``HUBAUTH_KILLS`` says how many lives there are, 200 if it is not set.
"""

import asyncio
import contextlib
import json
import os
import random
import signal
from pathlib import Path

import pytest

from hubauth.core.messages import Answer, Authenticate, Frame, Reason, Revoke
from hubauth.shell.addresses import Address
from hubauth.shell.journal import Journal
from tests.shell.harness import ADMIN, run, until
from tests.shell.process import HubProcess, hub_process
from tests.shell.raw import peer, register, written

SEEDS = 4
"""Each tells a story of its own, in a directory of its own."""
KILLS = max(int(os.environ.get("HUBAUTH_KILLS", "200")) // SEEDS, 1)
CONNECTIONS = 4
WINDOW, AGAIN = 20, 4
CONFIGURATION = """
[storage]
snapshot_records = 400
[auth]
role_perms = "admin:auth.revoke"
[[provisioned]]
""" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in ADMIN.items())


class Promises:
    """Everything a hub has ever answered in this test."""

    def __init__(self) -> None:
        self.admitted: dict[str, tuple[int, str]] = {}
        """As the last answer said."""
        self.owners: dict[int, str] = {}
        self.revoked: set[str] = set()
        self.unsure: set[str] = set()
        """Asked for once more, and not answered yet: either way is right."""

    def keep(self, answer: Answer) -> None:
        assert answer.reason is Reason.OK
        owner = self.owners.setdefault(answer.node_id, answer.device_id)
        assert owner == answer.device_id, f"node {answer.node_id} was given to {owner} and to {answer.device_id}"
        node_id, credential = self.admitted.get(answer.device_id, (answer.node_id, ""))
        assert answer.node_id == node_id and answer.credential != credential
        self.admitted[answer.device_id] = (answer.node_id, answer.credential)
        self.unsure.discard(answer.device_id)

    @property
    def certain(self) -> list[str]:
        """The devices that must be admitted with what was answered last."""
        return [name for name in self.admitted if name not in self.unsure and name not in self.revoked]


async def load(address: Address, prefix: str, promises: Promises) -> None:
    """Register one device after the other, many at a time and some of them again, until the hub is gone."""
    again: list[str] = []
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        async with peer(address) as busy:
            for batch in range(100_000):
                names = [f"{prefix}-{batch}-{at}" for at in range(WINDOW - len(again))] + again
                promises.unsure.update(again)
                await busy.send(b"".join(register(name, at) for at, name in enumerate(names)))
                frames = await busy.frames(WINDOW)
                for frame in frames:
                    assert isinstance(frame.body, Answer)
                    promises.keep(frame.body)
                if len(frames) < WINDOW:
                    return
                again = names[:AGAIN]


async def revoke(address: Address, names: list[str], promises: Promises) -> None:
    """Revoke one device after the other, until the hub is gone."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        async with peer(address) as admin:
            await admin.send(written(Frame(Authenticate("admin", "a" * 43))))
            await admin.frames(1)
            for name in names:
                promises.unsure.add(name)
                await admin.send(written(Frame(Revoke(name), source=9)))
                for frame in await admin.frames(1):
                    assert isinstance(frame.body, Answer) and frame.body.reason is Reason.OK
                    promises.revoked.add(name)
                    promises.unsure.discard(name)


async def check(hub: HubProcess, promises: Promises, names: list[str]) -> None:
    """The hub still knows these devices by what it has answered, and nobody who was revoked."""
    async with peer(hub.address) as asker:
        for name in names:
            node_id, credential = promises.admitted[name]
            await asker.send(written(Frame(Authenticate(name, credential))))
            (frame,) = await asker.frames(1)
            assert isinstance(frame.body, Answer)
            if name in promises.revoked:
                assert frame.body.reason is Reason.NOT_ADMITTED, f"{name} is back"
            else:
                assert (frame.body.reason, frame.body.node_id) == (Reason.OK, node_id), f"{name} was lost"


def check_directory(directory: Path, promises: Promises) -> None:
    """Every promise, against what a recovery finds."""
    journal, recovered = Journal.open(directory, "os")
    journal.close()
    assert recovered.hub is not None
    state = recovered.hub.state
    assert all(state.registry[name].node_id == node_id for name, (node_id, _) in promises.admitted.items())
    assert all(state.whitelist[name].credential == promises.admitted[name][1] for name in promises.certain)
    assert not any(name in state.whitelist for name in promises.revoked)
    nodes = [registration.node_id for registration in state.registry.values()]
    assert len(set(nodes)) == len(nodes) and max(nodes) < state.next_node_id
    assert not state.links and not state.pending


async def live_and_die(
    directory: Path, life: int, promises: Promises, choice: random.Random, number: signal.Signals
) -> None:
    """One life of the hub: check what it remembers, put it under load, and end it."""
    durability = choice.choice(["fsync", "os"])
    before = len(promises.admitted)
    config = directory.parent / "hub.toml"
    config.write_text(CONFIGURATION)
    async with hub_process(directory, "--config", str(config), "--durability", durability) as hub:
        certain, revoked = promises.certain, sorted(promises.revoked)
        sample = choice.sample(certain, min(20, len(certain))) + choice.sample(revoked, min(10, len(revoked)))
        await check(hub, promises, list(dict.fromkeys(certain[-20:] + sample)))
        busy = [asyncio.ensure_future(load(hub.address, f"{life}-{at}", promises)) for at in range(CONNECTIONS)]
        busy.append(asyncio.ensure_future(revoke(hub.address, choice.sample(certain, len(certain) // 4), promises)))
        wanted = before + choice.choice([0, 1, 20, 100, 300])
        await until(lambda: len(promises.admitted) >= wanted, "the hub answers")
        await asyncio.sleep(choice.uniform(0.0, 0.05))
        code = await hub.end(number)
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        await asyncio.gather(*busy)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEEDS))
def test_killed_at_random_moments_under_load(seed: int, tmp_path: Path) -> None:
    async def story() -> None:
        choice = random.Random(seed)
        promises = Promises()
        for life in range(KILLS):
            await live_and_die(tmp_path / "data", life, promises, choice, signal.SIGKILL)
        check_directory(tmp_path / "data", promises)
        if KILLS >= 10:
            assert promises.revoked, "some lives must have revoked"
            assert list((tmp_path / "data").glob("snapshot-*")), "some lives must have taken snapshots"

    run(story(), seconds=120 + 20 * KILLS)


def test_told_to_stop_under_load(tmp_path: Path) -> None:
    async def story() -> None:
        promises = Promises()
        for life in range(2):
            await live_and_die(tmp_path / "data", life, promises, random.Random(life), signal.SIGTERM)
        check_directory(tmp_path / "data", promises)

    run(story(), seconds=900)
