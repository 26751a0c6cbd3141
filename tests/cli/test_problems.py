"""Every way to use the command wrongly ends with a message and exit code 2, never with a traceback."""

from pathlib import Path

import pytest

from hubauth.cli import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "required"),
        (["fly"], "invalid choice"),
        (["hub", "--config", "missing.toml"], "cannot read missing.toml"),
        (["hub"], "storage.data_dir: is missing"),
        (["hub", "--listen", "nowhere"], "listen.address: not host:port"),
        (["device", "auth", "--device-id", "x"], "no credential"),
        (["device", "register"], "a device_id of 1 to 128 bytes is needed"),
        (["device", "register", "--device-id", "x" * 129], "a device_id of 1 to 128 bytes is needed"),
        (["device", "register", "--device-id", "x", "--hub", "x"], "--hub: not host:port"),
        (["device", "auth", "--identity", "missing.json"], "cannot read missing.json"),
        (["provision", "x", "1"], "not a node id for a child hub"),
        (["provision", "x", "many"], "invalid int value"),
    ],
)
def test_wrong_use(
    arguments: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUBAUTH_CREDENTIAL", raising=False)
    assert main(arguments) == 2
    captured = capsys.readouterr()
    assert said in captured.err and "Traceback" not in captured.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hubauth ")
