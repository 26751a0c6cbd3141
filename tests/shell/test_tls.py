"""TLS for devices and between hubs."""

from pathlib import Path
from typing import Any

import pytest

from hubauth.shell.client import DeviceClient, Options, Unavailable
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.hub import Hub
from hubauth.shell.tls import client_context
from tests.shell.certificates import Authority
from tests.shell.harness import child_config, config, joined, run, running, until, verified
from tests.shell.raw import peer, register


def listening(authority: Authority, name: str, **more: str) -> dict[str, Any]:
    certificate, key = authority.issue(name)
    return {"certificate": certificate, "key": key, **more}


def trusting(authority: Authority, **more: Any) -> Options:
    return Options(tls=client_context(str(authority.path), **more), timeout=5.0, retry_first=0.02)


def test_devices_and_hubs_over_tls(tmp_path: Path) -> None:
    async def story() -> None:
        authority = Authority(tmp_path)
        upwards = {"tls": True, "ca": str(authority.path)}
        async with (
            running(config(tls=listening(authority, "root"), provisioned=[verified(2)])) as root,
            running(child_config(2, root.address, parent=upwards, tls=listening(authority, "child"))) as child,
        ):
            await joined(child)
            async with DeviceClient(child.address, "device", options=trusting(authority)) as device:
                assert (await device.register()).node_id == 10
                await until(lambda: root.engine.state.directory[10].online)

    run(story())


def test_who_is_not_trusted_is_not_connected_to(tmp_path: Path) -> None:
    async def story() -> None:
        authority, stranger = Authority(tmp_path), Authority(tmp_path, "stranger")
        async with running(config(tls=listening(authority, "root"), limits={"connections": 2})) as hub:
            mistrusting = Options(tls=client_context(str(stranger.path)), timeout=0.5, retry_first=0.05)
            for options in (mistrusting, Options(timeout=0.3, retry_first=0.05)):
                async with DeviceClient(hub.address, "device", options=options) as device:
                    with pytest.raises(Unavailable):
                        await device.register()
            async with peer(hub.address) as plain:
                await plain.send(register("plain"))
                assert await plain.closed()
            async with DeviceClient(hub.address, "device", options=trusting(authority)) as device:
                await device.register()
            await until(lambda: hub.connections == 0)
            assert hub._room._value in (1, 2), "every place is free again"

    run(story())


def test_certificates_of_clients(tmp_path: Path) -> None:
    async def story() -> None:
        authority = Authority(tmp_path)
        certificate, key = authority.issue("device")
        async with running(config(tls=listening(authority, "root", client_ca=str(authority.path)))) as hub:
            anonymous = Options(tls=client_context(str(authority.path)), timeout=0.5, retry_first=0.05)
            async with DeviceClient(hub.address, "device", options=anonymous) as device:
                with pytest.raises(Unavailable):
                    await device.register()
            known = trusting(authority, certificate=certificate, key=key)
            async with DeviceClient(hub.address, "device", options=known) as device:
                await device.register()

    run(story())


def test_a_certificate_that_is_none(tmp_path: Path) -> None:
    async def story() -> None:
        (tmp_path / "x").write_text("nonsense")
        with pytest.raises(ConfigurationError, match=r"tls\.certificate: cannot be used"):
            await Hub(config(tls={"certificate": str(tmp_path / "x"), "key": str(tmp_path / "x")})).start()

    run(story())
