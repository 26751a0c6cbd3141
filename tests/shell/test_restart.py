"""Hubs that stop, come back, lose their parent, or lose their disk."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Reason, Revoke
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient, Options, Unavailable
from hubauth.shell.configuration import ConfigurationError, HubConfig
from hubauth.shell.hub import Hub
from tests.shell.harness import (
    child_config,
    config,
    digest,
    joined,
    refusal,
    run,
    running,
    until,
    verified,
)
from tests.shell.raw import peer, register

QUICK = Options(retry_first=0.02, retry_most=0.1)


def stored(directory: Path, durability: str = "os", **storage: Any) -> dict[str, Any]:
    return {"storage": {"data_dir": str(directory), "durability": durability, **storage}}


def at(address: Address) -> dict[str, Any]:
    """Listen there again."""
    return {"listen": {"address": str(address)}}


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_a_restarted_hub_knows_its_devices_and_goes_on_counting(tmp_path: Path, durability: str) -> None:
    async def story() -> None:
        tables = stored(tmp_path, durability)
        async with running(config(**tables)) as hub:
            async with DeviceClient(hub.address, "first") as device:
                await device.register()
                known = device.credential
            await until(lambda: not hub.engine.state.links)
            await hub.engine.settle()
            before = digest(hub)
        async with running(config(**tables)) as hub:
            assert digest(hub) == before
            async with DeviceClient(hub.address, "first", credential=known) as device:
                assert (await device.authenticate()).node_id == 10
            async with DeviceClient(hub.address, "second") as other:
                assert (await other.register()).node_id == 11

    run(story())


def test_links_of_a_former_life_are_down(tmp_path: Path) -> None:
    async def story() -> None:
        tables = stored(tmp_path)
        async with running(config(**tables)) as hub:
            device = DeviceClient(hub.address, "device")
            async with device:
                await device.register()
                assert hub.engine.state.links and hub.engine.state.directory[10].online
                await hub.stop()
        async with running(config(**tables)) as again:
            assert not again.engine.state.links and not again.engine.state.directory[10].online

    run(story())


def test_a_hub_that_is_asked_without_pause_stops_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(address: Address, name: str, after: float) -> None:
        await asyncio.sleep(after)  # so that while one is made safe, another already waits
        async with peer(address) as eager:
            for number in range(100_000):
                await eager.send(register(f"{name}-{number}"))
                if not await eager.frames(1):
                    return

    async def story() -> None:
        hub = Hub(config(**stored(tmp_path, "fsync")))
        await hub.start()
        assert hub._journal is not None
        monkeypatch.setattr(hub._journal, "sync", lambda: time.sleep(0.01))
        asking = [asyncio.ensure_future(ask(hub.address, f"device-{at}", at / 200)) for at in range(8)]
        await until(lambda: len(hub.engine.state.registry) > 20)
        await asyncio.wait_for(hub.stop(), 10)
        await asyncio.gather(*asking)

    run(story())


def test_a_device_comes_back_by_itself(tmp_path: Path) -> None:
    async def story() -> None:
        tables = stored(tmp_path)
        hub = Hub(config(**tables))
        await hub.start()
        async with DeviceClient(hub.address, "device", options=QUICK) as device:
            await device.register()
            address = hub.address
            await hub.stop()
            async with running(config(**tables, **at(address))):
                await until(lambda: device.sessions == 2, "the device has a session again")
                assert (await device.get_perms()).grant.role == "node"

    run(story())


def test_offline_authentication_and_a_parent_that_returns(tmp_path: Path) -> None:
    async def story() -> None:
        tables = {**stored(tmp_path), "provisioned": [verified(2)]}
        root = Hub(config(**tables))
        await root.start()
        address = root.address
        async with running(child_config(2, address)) as child:
            await joined(child)
            async with DeviceClient(child.address, "device", options=QUICK) as device:
                await device.register()
                await root.stop()
                await until(lambda: not child.engine.state.parent_present)
                assert (await device.authenticate()).node_id == 10, "known here, so the parent is not needed"
                async with DeviceClient(child.address, "stranger", credential="x" * 43) as stranger:
                    assert await refusal(stranger.authenticate()) is Reason.UNREACHABLE
                    assert await refusal(stranger.register()) is Reason.UNREACHABLE
                async with running(config(**tables, **at(address))) as root_again:
                    await joined(child)
                    await until(lambda: root_again.engine.state.directory[10].online, "announced again")
                    async with DeviceClient(child.address, "next") as other:
                        assert (await other.register()).node_id == 11

    run(story())


def test_a_revoke_reaches_a_hub_that_was_cut_off(tmp_path: Path) -> None:
    async def story() -> None:
        child_tables = stored(tmp_path / "child")
        async with running(config(**stored(tmp_path / "root"), provisioned=[verified(2)])) as root:
            child = Hub(child_config(2, root.address, **child_tables))
            await child.start()
            await joined(child)
            async with DeviceClient(child.address, "device") as device:
                await device.register()
            await until(lambda: not child.engine.state.directory[10].online)
            await child.stop()
            await until(lambda: not root.engine.state.index.link_of_node)
            root.engine.feed(OperatorRevoke(Revoke("device")))
            async with running(child_config(2, root.address, **child_tables)) as again:
                assert "device" in again.engine.state.whitelist
                await joined(again)
                await until(lambda: "device" not in again.engine.state.whitelist, "the revoke has arrived")
                await until(lambda: not root.engine.state.owed, "and was acknowledged")

    run(story())


def test_a_changed_configuration_applies_to_what_is_remembered(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(config(**stored(tmp_path))) as hub, DeviceClient(hub.address, "device") as device:
            await device.register()
            known = device.credential
        changed = config(**stored(tmp_path), auth={"node_roles": "10:boss", "role_perms": "boss:*"})
        for _ in range(2):
            async with running(changed) as hub, DeviceClient(hub.address, "device", credential=known) as device:
                assert (await device.authenticate()).grant.role == "boss"
                hub.reconfigure(changed.policy)
        with pytest.raises(ConfigurationError, match="dialect"):
            async with running(config(**stored(tmp_path), hub={"dialect": "login"})):
                pass
        async with running(changed):
            pass

    run(story())


@pytest.mark.parametrize("durability", ["fsync", "os"])
def test_snapshots_under_load_lose_nothing(tmp_path: Path, durability: str) -> None:
    async def story() -> None:
        tables = stored(tmp_path, durability, snapshot_records=50)
        async with running(config(**tables)) as hub:
            async with peer(hub.address) as busy:
                for batch in range(20):
                    await busy.send(b"".join(register(f"d{batch}-{at}", at + 1) for at in range(40)))
                    assert len(await busy.frames(40)) == 40
            await until(lambda: hub.observer.counters["snapshots", ""] >= 2, "snapshots were taken")
            await until(lambda: not hub.engine.state.links)
            await hub.engine.settle()
            before = digest(hub)
        assert len(list(tmp_path.glob("snapshot-*"))) >= 1
        async with running(config(**tables)) as again:
            assert digest(again) == before and len(again.engine.state.registry) == 800

    run(story())


def test_without_a_journal_nothing_is_answered(tmp_path: Path) -> None:
    """A full disk: the hub falls silent and says so, instead of promising what it cannot keep."""

    async def story() -> None:
        hub = Hub(config(**stored(tmp_path)))
        await hub.start()
        async with DeviceClient(hub.address, "device", options=Options(timeout=0.5)) as device:
            await device.connected()
            assert hub._journal is not None
            full, kept = os.open("/dev/full", os.O_WRONLY), hub._journal._file
            hub._journal._file = full
            with pytest.raises(Unavailable):
                await device.register()
            await asyncio.wait_for(hub.failed.wait(), 10)
            hub._journal._file = kept
            os.close(full)
        await hub.stop()
        async with running(config(**stored(tmp_path))) as again:
            assert not again.engine.state.registry

    run(story())


def test_two_hubs_cannot_share_an_address(tmp_path: Path) -> None:
    async def story() -> None:
        async with running(config()) as hub:
            second: HubConfig = config(**stored(tmp_path), **at(hub.address))
            with pytest.raises(ConfigurationError, match="cannot listen"):
                await Hub(second).start()
        async with running(second):
            pass

    run(story())
