"""What a hub says about itself: the rule behind every decision, and never a credential."""

import asyncio
import io
import json
import logging
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Reason, Revoke
from hubauth.core.policy import Dialect
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient
from hubauth.shell.metrics import serve_metrics
from hubauth.shell.observe import LOGGER, Observer, say, set_up_logging
from hubauth.shell.rationing import LINES_PER_HOST, LINES_PER_PEER, LINES_PER_SECOND, WINDOW_SECONDS
from hubauth.shell.settings import LogTable
from tests.shell.harness import ADMIN, config, hub_credential, refusal, run, running, three_levels, until
from tests.shell.raw import peer


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, as JSON lines."""
    stream = io.StringIO()
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    set_up_logging(LogTable(level="debug", format="json"), stream)
    yield stream
    LOGGER.handlers[:], LOGGER.propagate = before[0], before[2]
    LOGGER.setLevel(before[1])


def lines(log: io.StringIO, event: str) -> list[dict[str, Any]]:
    said = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in said if line["event"] == event]


@pytest.mark.parametrize("dialect", [Dialect.AUTH, Dialect.LOGIN])
def test_no_credential_is_ever_logged(log: io.StringIO, dialect: Dialect) -> None:
    secrets = [hub_credential(node_id) for node_id in (2, 3, 4)] + [str(ADMIN["credential"]), "guess" * 8]

    async def story() -> None:
        async with three_levels(dialect) as tree:
            device = await tree.device("sensor", "A")
            await device.register()
            secrets.append(device.credential)
            await until(lambda: tree.online("root", 10), "the root knows the way")
            await device.close()  # superseded, it would come back by itself and take the session from where it is next
            moved = await tree.device("sensor", "B", credential=device.credential)
            await moved.authenticate()
            guesser = await tree.device("sensor", "mid", credential="guess" * 8)
            assert await refusal(guesser.authenticate()) is Reason.NOT_ADMITTED
            await moved.register()
            secrets.append(moved.credential)
            admin = await tree.device("admin", "root", credential=ADMIN["credential"])
            await admin.authenticate()
            await admin.revoke(Revoke("sensor", 0, moved.credential), wait=5)
            tree.hubs["root"].engine.feed(OperatorRevoke(Revoke("sensor", 0, moved.credential)))
            async with peer(tree.hubs["A"].address) as hostile:
                word = "auth" if dialect is Dialect.AUTH else "login"
                wrong_data = {"device_id": 5, "credential": moved.credential}
                for action in (moved.credential, f"{word} {moved.credential}", word):
                    payload = json.dumps({"action": action, "data": wrong_data}).encode()
                    await hostile.send(b"\x0b" + bytes(17) + len(payload).to_bytes(4, "big") + bytes(2) + payload)
                await hostile.frames(1)

    run(story())
    assert len(lines(log, "decided")) > 50
    assert [line["detail"] for line in lines(log, "dropped") if "action" in line["detail"]]
    # Not even a piece of one: what is cut off still helps to guess the rest.
    assert not [secret for secret in secrets if secret[:16] in log.getvalue()]


def test_lines_name_the_rules_that_decided(log: io.StringIO) -> None:
    async def story() -> None:
        async with running(config()) as hub, DeviceClient(hub.address, "sensor") as device:
            await device.register()
            await device.send(9, b"x", target=4711)
            await until(lambda: lines(log, "dropped"))

    run(story())
    (decided,) = [line for line in lines(log, "decided") if line.get("body") == "Register"]
    assert decided["device_id"] == "sensor" and decided["answered"] == "ok" and "REG-1" in decided["rules"]
    (dropped,) = lines(log, "dropped")
    assert dropped["rule"] == "FRAME-5" and dropped["peer"].startswith("127.0.0.1:")


def test_text_lines_cannot_be_forged() -> None:
    stream = io.StringIO()
    before = LOGGER.handlers[:], LOGGER.level, LOGGER.propagate
    set_up_logging(LogTable(), stream)
    say(logging.INFO, "dropped", detail='x\n2026 info stopped a="b"', rule="X-1")
    LOGGER.handlers[:], LOGGER.propagate = before[0], before[2]
    LOGGER.setLevel(before[1])
    (line,) = stream.getvalue().splitlines()
    assert line.endswith('info dropped detail="x\\n2026 info stopped a=\\"b\\"" rule=X-1')


def test_lines_are_rationed(log: io.StringIO) -> None:
    observer = Observer()
    for number in range(LINES_PER_SECOND + 10):
        observer.event("dropped", number=number)
    assert len(lines(log, "dropped")) == LINES_PER_SECOND
    observer.replenish()
    assert (lines(log, "suppressed")[0]["lines"], lines(log, "suppressed")[0]["events"]) == (10, "dropped")
    observer.event("dropped")
    assert len(lines(log, "dropped")) == LINES_PER_SECOND + 1


def test_lines_are_rationed_per_peer_and_event(log: io.StringIO) -> None:
    observer = Observer()

    def noise(event: str, level: int) -> None:
        for number in range(1000):
            observer.event(event, level, peer=f"10.0.0.1:{number % 100}")

    noise("dropped", logging.INFO)
    noise("slow_reader", logging.WARNING)
    assert len(lines(log, "slow_reader")) == LINES_PER_HOST
    for number in range(2 * LINES_PER_PEER):
        observer.event("slow_reader", logging.WARNING, peer="10.0.0.2:1", number=number)
    assert len(lines(log, "slow_reader")) == LINES_PER_HOST + LINES_PER_PEER
    observer.event("limited", logging.WARNING, peer="10.0.0.1:1")
    assert len(lines(log, "limited")) == 1, "another event of a noisy peer"
    for _ in range(WINDOW_SECONDS):
        observer.replenish()
    observer.event("slow_reader", logging.WARNING, peer="10.0.0.2:1")
    assert len(lines(log, "slow_reader")) == LINES_PER_HOST + LINES_PER_PEER + 1


def test_peers_beyond_counting_share_a_ration(log: io.StringIO) -> None:
    observer = Observer()
    for number in range(100_000):
        observer.event("limited", logging.WARNING, peer=f"host-{number}:1")
    assert len(observer._rations._written) <= 20_001
    assert len(lines(log, "limited")) < 11_000


def test_counters_for_prometheus() -> None:
    async def story() -> None:
        async with running(config()) as hub:
            endpoint = await serve_metrics(Address("127.0.0.1", 0), hub)
            async with DeviceClient(hub.address, "sensor") as device, peer(hub.address) as hostile:
                await device.register()
                await hostile.send(b"\xff" * 24)
                await hostile.closed()
                text = await asyncio.get_running_loop().run_in_executor(None, fetch, endpoint.address)
            endpoint.stop()
            for expected in (
                'hubauth_rules_total{rule="REG-1"} 1.0',
                'hubauth_refused_total{kind="WIRE-6"} 1.0',
                "hubauth_sessions 1.0",
                "hubauth_registrations 1.0",
                "hubauth_parent_present 0.0",
                "hubauth_unauthenticated_bytes 0.0",
                "hubauth_owed 0.0",
                "hubauth_announcing 0.0",
            ):
                assert expected in text

    def fetch(address: Address) -> str:
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=10) as answer:
            body: bytes = answer.read()
        return body.decode()

    run(story())
