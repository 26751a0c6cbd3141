"""Hubs that never authenticate are known by where they connect from."""

import hashlib
import ssl
from pathlib import Path
from typing import Any

import pytest

from hubauth.core.messages import Answer, AssistRegister, Frame, Reason
from hubauth.shell.addresses import Address
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.hub import Hub
from hubauth.shell.origins import Origins, PlainOrigin
from hubauth.shell.settings import PlainHubTable
from hubauth.shell.tls import client_context
from tests.shell.certificates import Authority
from tests.shell.harness import config, run, running
from tests.shell.raw import Peer, peer, written

PLAIN = 12
FINGERPRINT = "sha256:" + 64 * "a"


def asking(device_id: str, source: int = PLAIN) -> bytes:
    return written(Frame(AssistRegister(device_id), msg_id=1, source=source))


async def told(there: Peer, device_id: str, source: int = PLAIN) -> Reason:
    """What a connection hears that says it is a hub."""
    await there.send(asking(device_id, source))
    [frame] = await there.frames(1)
    assert isinstance(frame.body, Answer)
    return frame.body.reason


def knowing(**table: Any) -> dict[str, Any]:
    return {"plain_hub": [{"node_id": PLAIN, **table}]}


def test_a_hub_is_known_by_its_address() -> None:
    async def story() -> None:
        for address, reason in (("127.0.0.1", Reason.OK), ("127.0.0.0/8", Reason.OK), ("10.0.0.5", Reason.FORBIDDEN)):
            async with running(config(**knowing(address=address))) as hub, peer(hub.address) as there:
                assert await told(there, "device") is reason
                assert (PLAIN in hub.engine.state.index.link_of_node) is (reason is Reason.OK)

    run(story())


def test_it_is_the_hub_it_is_known_as_and_no_other() -> None:
    async def story() -> None:
        async with running(config(**knowing(address="127.0.0.1"))) as hub, peer(hub.address) as there:
            assert await told(there, "device", 13) is Reason.FORBIDDEN
            assert await told(there, "device") is Reason.OK

    run(story())


def test_a_hub_is_known_by_its_certificate(tmp_path: Path) -> None:
    async def story() -> None:
        authority = Authority(tmp_path)
        certificate, key = authority.issue("root")
        tls = {"certificate": certificate, "key": key, "client_ca": str(authority.path)}
        mine, others = authority.issue("plain"), authority.issue("other")
        shown = ssl.PEM_cert_to_DER_cert(Path(mine[0]).read_text())
        fingerprint = f"sha256:{hashlib.sha256(shown).hexdigest().upper()}"
        async with running(config(tls=tls, **knowing(certificate=fingerprint))) as hub:
            for files, reason in ((others, Reason.FORBIDDEN), (mine, Reason.OK)):
                context = client_context(str(authority.path), *files)
                async with peer(hub.address, tls=context) as there:
                    assert await told(there, "device") is reason

    run(story())


def test_another_configuration_counts_for_connections_to_come() -> None:
    async def story() -> None:
        def read_again() -> Any:
            return config(listen={"address": str(address)}, **knowing(address="127.0.0.1"))

        hub = Hub(config(), read_again=read_again)
        await hub.start()
        address = Address(*hub.address)
        try:
            hub.reload()
            async with peer(address) as there:
                assert await told(there, "device") is Reason.OK
        finally:
            await hub.stop()

    run(story())


def test_it_may_be_silent_before_it_has_named_itself() -> None:
    async def story() -> None:
        limits = {"unauthenticated_seconds": 0.001}
        async with running(config(limits=limits, **knowing(address="127.0.0.1"))) as hub, peer(hub.address) as there:
            assert await told(there, "device", 13) is Reason.FORBIDDEN
            [connection] = hub._connections
            connection.check(connection.unbound_since + 3600)
            assert connection.closing_since is None

    run(story())


def origins(**table: str) -> Origins:
    return Origins([PlainHubTable(node_id=PLAIN, **table)])


def test_where_a_connection_comes_from() -> None:
    assert Origins([]).of("10.0.0.5", None) == PlainOrigin()
    assert origins(address="10.0.0.5").of("10.0.0.5", b"any") == PlainOrigin((PLAIN,), "10.0.0.5")
    assert origins(address="10.0.0.0/24").of("::ffff:10.0.0.7", None) == PlainOrigin((PLAIN,), "10.0.0.7")
    assert origins(address="fe80::/10").of("fe80::1%eth0", None) == PlainOrigin((PLAIN,), "fe80::1")
    for host in ("10.0.1.5", "fe80::1", "", "/a/socket"):
        assert origins(address="10.0.0.0/24").of(host, None) == PlainOrigin()
    shown = "sha256:" + hashlib.sha256(b"certificate").hexdigest()
    assert origins(certificate=shown).of("10.0.0.5", b"certificate") == PlainOrigin((PLAIN,), shown)
    assert origins(certificate=shown).of("10.0.0.5", b"another") == PlainOrigin()
    assert origins(certificate=shown).of("10.0.0.5", None) == PlainOrigin()


@pytest.mark.parametrize(
    ("table", "key"),
    [
        ({}, "plain_hub[0]"),
        ({"address": "10.0.0.5", "certificate": FINGERPRINT}, "plain_hub[0]"),
        ({"address": "somewhere"}, "plain_hub[0].address"),
        ({"address": "10.0.0.5/24"}, "plain_hub[0].address"),
        ({"certificate": "sha256:abc"}, "plain_hub[0].certificate"),
        ({"certificate": FINGERPRINT}, "plain_hub[0].certificate"),
        ({"node_id": 0, "address": "10.0.0.5"}, "plain_hub[0].node_id"),
        ({"node_id": 1, "address": "10.0.0.5"}, "plain_hub"),
        ({"adress": "10.0.0.5"}, "plain_hub[0].adress"),
    ],
)
def test_what_cannot_be_meant_is_refused(table: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigurationError) as problem:
        config(**knowing(**table))
    assert problem.value.key == key
