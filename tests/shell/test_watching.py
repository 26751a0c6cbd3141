"""``hubauth hub --watch``: a live hub that breaks a promise says so, in log, counters and status, and goes on."""

import io
from pathlib import Path

import pytest

from hubauth.core.messages import Authenticate, Frame, Reason, Register, Revoke
from hubauth.shell import engine
from hubauth.shell.client import DeviceClient
from tests.cli.test_ctl import ctl
from tests.oracle.conform.broken_promises import BROKEN_PROMISES
from tests.shell.harness import ADMIN, config, refusal, run, running
from tests.shell.process import hub_process
from tests.shell.raw import peer, written
from tests.shell.test_observe import lines, log

__all__ = ["log"]


def plant(monkeypatch: pytest.MonkeyPatch, name: str) -> frozenset[str]:
    monkeypatch.setattr(engine, "step", BROKEN_PROMISES[name].decide())
    return BROKEN_PROMISES[name].promises


def test_a_revoked_device_that_is_admitted_raises_an_alarm_and_the_hub_goes_on(
    log: io.StringIO, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    promises = plant(monkeypatch, "answers a revoke without obeying it")
    storage = {"durability": "os", "data_dir": str(tmp_path / "hub")}

    async def story() -> None:
        async with (
            running(config(provisioned=[ADMIN], storage=storage), breaks=promises) as hub,
            DeviceClient(hub.address, "sensor") as sensor,
            DeviceClient(hub.address, "admin", credential=str(ADMIN["credential"])) as admin,
        ):
            await sensor.register()
            assert "none broken" in (await ctl("status", "--data-dir", str(tmp_path / "hub")))[1]
            await admin.authenticate()
            await admin.revoke(Revoke("sensor"))
            async with DeviceClient(hub.address, "sensor", credential=sensor.credential) as again:
                await again.authenticate()
            often = hub.observer.counters["promises_broken", "RevokedStaysOut"]
            assert often == hub.observer.counters["alarms", "promise_broken"] >= 1, "the sensor may have come back, too"
            assert "BROKEN: RevokedStaysOut" in (await ctl("status", "--data-dir", str(tmp_path / "hub")))[1]

    run(story())
    line, *_ = lines(log, "promise_broken")
    assert line["promise"] == "RevokedStaysOut" and line["device"] == "sensor" and line["level"] == "warning"
    assert line["detail"].startswith("sent Answer ok on link ") and "after commanded Revoke" in line["detail"]


@pytest.mark.parametrize(
    "name", ["forgets nodes", "gives one node to all", "answers twice", "obeys who may not revoke"]
)
def test_each_broken_promise_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    promises = plant(monkeypatch, name)

    async def story() -> None:
        async with running(config(), breaks=promises) as hub, peer(hub.address) as one, peer(hub.address) as other:
            await one.send(written(Frame(Register("one"), msg_id=1)))
            (answer, *_) = await one.frames(2 if name == "answers twice" else 1)
            await other.send(written(Frame(Register("other"), msg_id=2)))
            await other.frames(1)
            await one.send(written(Frame(Register("one"), msg_id=3)))
            (answer, *_) = await one.frames(1)
            if name == "obeys who may not revoke":
                async with DeviceClient(hub.address, "thief") as thief:
                    await thief.register()
                    assert await refusal(thief.revoke(Revoke("one"))) is Reason.FORBIDDEN
                shown = answer.body.credential  # type: ignore[union-attr]
                await other.send(written(Frame(Authenticate("one", shown), msg_id=4)))
                await other.frames(1)

    run(story())


def test_a_restarted_hub_is_judged_by_what_it_has_kept(tmp_path: Path) -> None:
    storage = {"durability": "os", "data_dir": str(tmp_path / "hub")}

    async def story() -> None:
        async with running(config(storage=storage)) as hub, DeviceClient(hub.address, "sensor") as sensor:
            await sensor.register()
        async with (
            running(config(storage=storage)) as hub,
            DeviceClient(hub.address, "sensor", credential=sensor.credential) as again,
            DeviceClient(hub.address, "sensor", credential="x" * 43) as guesser,
        ):
            await again.authenticate()
            assert await refusal(guesser.authenticate()) is Reason.NOT_ADMITTED

    run(story())


def test_the_command_watches(tmp_path: Path) -> None:
    async def story() -> None:
        for flags, shown in ((["--watch"], True), ([], False)):
            async with hub_process(tmp_path, *flags):
                assert ("none broken" in (await ctl("status", "--data-dir", str(tmp_path)))[1]) == shown

    run(story())
