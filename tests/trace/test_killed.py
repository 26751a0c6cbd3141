"""A hub that is killed begins again where its trace ends, whatever it was doing."""

import shutil
import signal
from pathlib import Path

import pytest

from hubauth.judge.verdicts import Outcome
from hubauth.shell.client import DeviceClient
from hubauth.shell.configuration import HubConfig
from hubauth.shell.hub import Hub
from hubauth.shell.journal import Journal
from hubauth.shell.snapshot import Snapshot
from hubauth.trace.judge import judge
from hubauth.trace.lint import lint
from hubauth.trace.rows import Recording
from tests.shell.harness import config, run, until
from tests.shell.process import hub_process
from tests.shell.raw import peer, register


def test_a_hub_that_is_killed_while_its_journal_begins_anew_conforms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What both files hold when the next generation begins, taken as they are."""
    alive, killed = tmp_path / "alive", tmp_path / "killed"
    begin = Journal.begin

    def dies(journal: Journal, hub: Snapshot) -> None:
        if hub.state.registry and not killed.exists():
            shutil.copytree(alive, killed, ignore=shutil.ignore_patterns("door"))
        begin(journal, hub)

    def stored(directory: Path) -> HubConfig:
        return config(storage={"data_dir": str(directory / "data"), "durability": "fsync", "snapshot_records": 20})

    async def story() -> None:
        hub = Hub(stored(alive), Recording(alive / "t", keep_credentials=True))
        await hub.start()
        async with peer(hub.address) as device:
            for number in range(1000):
                await device.send(register(f"d{number}"))
            await until(killed.exists)
        await hub.stop()
        again = Hub(stored(killed), Recording(killed / "t", keep_credentials=True))
        await again.start()
        await again.stop()

    monkeypatch.setattr(Journal, "begin", dies)
    run(story())
    judgement = judge([killed / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_a_process_that_is_killed_conforms_from_life_to_life(durability: str, tmp_path: Path) -> None:
    """Also where its last steps changed nothing that lasts: sessions, and what it asked of others, end with it."""
    trace = ["--trace", str(tmp_path / "t"), "--trace-key", str(tmp_path / "key"), "--durability", durability]

    async def story() -> None:
        credential = ""
        for life in range(3):
            async with (
                hub_process(tmp_path / "data", *trace) as hub,
                DeviceClient(hub.address, "sensor", credential=credential) as sensor,
                DeviceClient(hub.address, f"other-{life}") as other,
            ):
                await (sensor.authenticate() if credential else sensor.register())
                credential = sensor.credential
                await other.register()
                await other.offline()
                await other.authenticate()
                await hub.end(signal.SIGKILL)

    run(story())
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst
    assert [finding for finding in lint(tmp_path / "t") if finding.is_error] == []
