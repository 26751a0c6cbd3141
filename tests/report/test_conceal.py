"""Credentials are taken out of text for people; the rest of it stays."""

import json

import pytest

from hubauth.report.conceal import HIDDEN, conceal, secrets_in
from tests.report.hostile import CHOSEN, DRAWN, LONG, hidings


@pytest.mark.parametrize("payload", hidings(DRAWN))
def test_a_drawn_credential_shows_nowhere(payload: str) -> None:
    assert DRAWN not in conceal(payload) and HIDDEN in conceal(payload)


@pytest.mark.parametrize("payload", hidings(CHOSEN))
def test_a_known_credential_shows_nowhere(payload: str) -> None:
    assert CHOSEN not in conceal(payload, {CHOSEN}) and HIDDEN in conceal(payload, {CHOSEN})


@pytest.mark.parametrize("name", ["credential", "Credential", "TOKEN", "password", "secret"])
def test_what_is_called_a_credential_is_one(name: str) -> None:
    said = json.dumps({name: CHOSEN, "x": json.dumps({name: CHOSEN, "y": json.dumps({name: CHOSEN})}), "z": 1})
    assert CHOSEN not in conceal(said) and json.loads(conceal(said))["z"] == 1
    assert secrets_in(said) == {CHOSEN}
    assert json.loads(conceal(json.dumps({name: 123456}))) == {name: 0}


def test_the_rest_stays() -> None:
    for text in (
        '{"device_id":"cam","credential":""}',
        "a" * 64,
        "living_room_temperature_sensor_north_wall_number_01",
    ):
        assert conceal(text) == text


@pytest.mark.parametrize("text", [*(payload.decode() for payload in LONG), "\\" * 60000, '"token":' * 9000])
def test_long_text_costs_no_more_than_its_length(text: str) -> None:
    conceal(text)
