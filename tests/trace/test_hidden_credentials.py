"""Wherever a peer puts a credential, no trace holds it; and the trace still says what the hub did."""

import json
from pathlib import Path
from typing import Any

import pytest

from hubauth.core.messages import Frame, Major
from hubauth.core.policy import Policy, Provisioned
from hubauth.judge.verdicts import Outcome
from hubauth.oracle.conform.wire import write_frame
from hubauth.shell.client import DeviceClient
from hubauth.shell.hub import Hub
from hubauth.trace.judge import judge
from hubauth.trace.redact import Redactor
from hubauth.trace.rows import Recording
from hubauth.wire.header import Version
from tests.report.hostile import DRAWN, LONG, hidings
from tests.shell.harness import ADMIN, child_config, config, hub_credential, joined, run, verified
from tests.shell.raw import peer

KEY = b"k" * 32
CHOSEN = "correct horse, battery"
"""What an operator may have made up."""


@pytest.mark.parametrize("payload", hidings(DRAWN))
def test_a_drawn_credential_is_replaced_wherever_it_stands(payload: str) -> None:
    redacted = Redactor(KEY).payload(2, 0, payload.encode())
    assert DRAWN.encode() not in redacted and DRAWN not in said(redacted)
    assert json.loads(redacted)


@pytest.mark.parametrize("payload", hidings(CHOSEN))
def test_a_known_credential_is_replaced_wherever_it_stands(payload: str) -> None:
    redactor = Redactor(KEY)
    redactor.policy(Policy(provisioned=(Provisioned("hub-2", 2, CHOSEN, "hub"),)))
    redacted = redactor.payload(2, 0, payload.encode())
    assert CHOSEN.encode() not in redacted and CHOSEN not in said(redacted)


@pytest.mark.parametrize("name", ["credential", "Credential", "CREDENTIALS", "pAssword", "secret", "Token"])
@pytest.mark.parametrize("note", ["plain", "it's", 'a "quoted" word'])
def test_a_field_that_is_called_like_one_holds_one(name: str, note: str) -> None:
    """Though nobody who must know has named it, and it has not the form of a drawn one."""
    payload = json.dumps({"action": "auth", "data": {"device_id": "cam", name: "swordfish", "note": note}}).encode()
    redacted = Redactor(KEY).payload(2, 0, payload)
    assert b"swordfish" not in redacted and set(json.loads(redacted)["data"]) == {"device_id", name, "note"}


def said(payload: bytes) -> str:
    """What a payload says to somebody who undoes every quoting."""
    text = payload.decode()
    for _ in range(5):
        text = text.replace("\\\\", "\\").encode().decode("unicode_escape", errors="replace")
    return text


def test_what_a_hub_has_issued_is_known_whatever_it_looks_like() -> None:
    issued = json.dumps({"action": "register_resp", "data": {"code": 1, "credential": "short/one"}}).encode()
    later = json.dumps({"action": "auth", "data": {"device_id": "short/one", "note": "is short/one"}}).encode()
    redactor = Redactor(KEY)
    assert redactor.payload(2, 0, issued) != issued and redactor.payload(2, 0, later) == later
    redactor.payload(2, 0, issued, tells=True)
    assert b"short/one" not in redactor.payload(2, 0, later)


def test_what_was_only_presented_renames_nobody() -> None:
    """Else a stranger could have a device change its name in the middle of a trace."""
    presented = json.dumps({"action": "auth", "data": {"device_id": "x", "credential": "camera-in-the-hall"}}).encode()
    named = json.dumps({"action": "auth", "data": {"device_id": "camera-in-the-hall"}}).encode()
    redactor = Redactor(KEY)
    assert b"camera" not in redactor.payload(2, 0, presented)
    assert redactor.payload(2, 0, named) == named


def test_names_stay_readable() -> None:
    name = "living_room_temperature_sensor_north_wall_number_01"
    payload = json.dumps({"action": "auth", "data": {"device_id": name, "x": "0" * 64, "y": 10**60}}).encode()
    assert Redactor(KEY).payload(2, 0, payload) == payload


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubauth.trace.redact._REMEMBERED", 10)
    redactor = Redactor(KEY)
    for number in range(100):
        redactor.know(f"password-{number}")
        redactor.token(f"password-{number}")
    assert len(redactor._known) == 10 and len(redactor._tokens) <= 10
    assert redactor.text("password-99") != "password-99"


@pytest.mark.parametrize("payload", LONG)
def test_a_long_payload_costs_no_more_than_its_length(payload: bytes) -> None:
    redactor = Redactor(KEY)
    redactor.know("something else")
    assert len(redactor.payload(2, 0, payload)) == len(payload)


# Real hubs


def request(payload: str, msg_id: int) -> bytes:
    return write_frame(Version.V1, Frame(b"", Major.CMD, msg_id), payload.encode())


async def hide_everywhere(hub: Hub, secret: str) -> None:
    """A stranger per hiding place; each is answered or passed over before the next thing is asked."""
    for number, payload in enumerate(hidings(secret), 1):
        async with peer(hub.address) as stranger:
            await stranger.send(request(payload, number))
            await stranger.send(request('{"action":"auth","data":{"device_id":"nobody","credential":"x"}}', 1000))
            while (await stranger.frames(1))[0].msg_id != 1000:
                pass


def test_hubs_with_credentials_in_strange_places_leave_none_and_conform(tmp_path: Path) -> None:
    storage = {"data_dir": str(tmp_path / "data"), "durability": "os"}
    how: dict[str, Any] = {"key_file": tmp_path / "key", "checkpoint_events": 20}
    secrets = {str(ADMIN["credential"]), hub_credential(2)}

    async def story() -> None:
        top = Hub(config(provisioned=[verified(2), ADMIN]), Recording(tmp_path / "t", **how))
        await top.start()
        try:
            for _ in range(2):
                await below(top)
        finally:
            await top.stop()

    async def below(top: Hub) -> None:
        hub = Hub(child_config(2, top.address, storage=storage, provisioned=[ADMIN]), Recording(tmp_path / "t", **how))
        await hub.start()
        try:
            await joined(hub)
            async with DeviceClient(hub.address, "victim") as device:
                await device.register()
                secrets.add(device.credential)
                for secret in (device.credential, str(ADMIN["credential"])):
                    await hide_everywhere(hub, secret)
        finally:
            await hub.stop()

    run(story())
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst
    files = [path for path in (tmp_path / "t").rglob("*") if path.is_file()]
    assert any(path.parent.name == "checkpoints" and path.stat().st_size for path in files)
    found = [(path.name, secret) for path in files for secret in secrets if secret.encode() in path.read_bytes()]
    assert not found
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
