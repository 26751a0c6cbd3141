"""The real process, killed with SIGKILL at random moments under load: what was answered is never lost."""

import asyncio
import contextlib
import random
import signal
from pathlib import Path

import pytest

from hubauth.core.messages import Answer, Authenticate, Frame, Reason
from hubauth.shell.addresses import Address
from hubauth.shell.journal import Journal
from tests.shell.harness import run
from tests.shell.process import HubProcess, hub_process
from tests.shell.raw import peer, register, written

KILLS = 50
CONNECTIONS = 4
WINDOW = 20


class Promises:
    """Everything a hub has ever answered in this test."""

    def __init__(self) -> None:
        self.admitted: dict[str, tuple[int, str]] = {}
        self.owners: dict[int, str] = {}

    def keep(self, answer: Answer) -> None:
        assert answer.reason is Reason.OK
        owner = self.owners.setdefault(answer.node_id, answer.device_id)
        assert owner == answer.device_id, f"node {answer.node_id} was given to {owner} and to {answer.device_id}"
        assert answer.device_id not in self.admitted
        self.admitted[answer.device_id] = (answer.node_id, answer.credential)


async def load(address: Address, prefix: str, promises: Promises) -> None:
    """Register one device after the other, many at a time, until the hub is gone."""
    with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
        async with peer(address) as busy:
            for batch in range(100_000):
                names = [f"{prefix}-{batch}-{at}" for at in range(WINDOW)]
                await busy.send(b"".join(register(name, at) for at, name in enumerate(names)))
                frames = await busy.frames(WINDOW)
                for frame in frames:
                    assert isinstance(frame.body, Answer)
                    promises.keep(frame.body)
                if len(frames) < WINDOW:
                    return


async def check(hub: HubProcess, promises: Promises, names: list[str]) -> None:
    """The hub still knows these devices by what it has answered."""
    async with peer(hub.address) as asker:
        for name in names:
            node_id, credential = promises.admitted[name]
            await asker.send(written(Frame(Authenticate(name, credential))))
            (frame,) = await asker.frames(1)
            assert isinstance(frame.body, Answer)
            assert (frame.body.reason, frame.body.node_id) == (Reason.OK, node_id), f"{name} was lost"


def check_directory(directory: Path, promises: Promises) -> None:
    """Every promise, against what a recovery finds."""
    journal, recovered = Journal.open(directory, "os")
    journal.close()
    assert recovered.hub is not None
    state = recovered.hub.state
    for name, (node_id, credential) in promises.admitted.items():
        assert state.registry[name].node_id == node_id
        assert state.whitelist[name].credential == credential
    nodes = [registration.node_id for registration in state.registry.values()]
    assert len(set(nodes)) == len(nodes) and max(nodes) < state.next_node_id
    assert not state.links and not state.pending


async def live_and_die(
    directory: Path, life: int, promises: Promises, choice: random.Random, number: signal.Signals
) -> int:
    """One life of the hub: check what it remembers, put it under load, and end it. How much it has answered."""
    durability = choice.choice(["fsync", "os"])
    before = len(promises.admitted)
    config = directory.parent / "hub.toml"
    config.write_text("[storage]\nsnapshot_records = 400\n")
    async with hub_process(directory, "--config", str(config), "--durability", durability) as hub:
        recent = list(promises.admitted)[-20:]
        sample = choice.sample(sorted(promises.admitted), min(20, before))
        await check(hub, promises, list(dict.fromkeys(recent + sample)))
        busy = [asyncio.ensure_future(load(hub.address, f"{life}-{at}", promises)) for at in range(CONNECTIONS)]
        await asyncio.sleep(choice.uniform(0.0, 0.25))
        code = await hub.end(number)
        assert code == (-signal.SIGKILL if number == signal.SIGKILL else 0)
        await asyncio.gather(*busy)
    return len(promises.admitted) - before


@pytest.mark.slow
def test_killed_at_random_moments_under_load(tmp_path: Path) -> None:
    async def story() -> None:
        choice = random.Random(4)
        promises = Promises()
        answered = [
            await live_and_die(tmp_path / "data", life, promises, choice, signal.SIGKILL) for life in range(KILLS)
        ]
        assert sum(count > 0 for count in answered) > KILLS // 2, "most lives must have answered something"
        check_directory(tmp_path / "data", promises)
        assert list((tmp_path / "data").glob("snapshot-*")), "some lives must have taken snapshots"

    run(story(), seconds=900)


def test_told_to_stop_under_load(tmp_path: Path) -> None:
    async def story() -> None:
        promises = Promises()
        for life in range(2):
            await live_and_die(tmp_path / "data", life, promises, random.Random(life), signal.SIGTERM)
        check_directory(tmp_path / "data", promises)

    run(story(), seconds=900)
