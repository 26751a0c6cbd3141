"""What ``hub init`` and ``provision`` write is read again as it was meant, or not written."""

import json
import tomllib
from pathlib import Path

import pytest

from hubauth.cli import main

ODD = 'a"b\\c\x7fd\te=é#'


def test_init_quotes(tmp_path: Path) -> None:
    path = tmp_path / "hub.toml"
    assert main(["hub", "init", str(path), "--device-id", ODD, "--data-dir", "C:\\hub"]) == 0
    tables = tomllib.loads(path.read_text())
    assert tables["hub"]["device_id"] == ODD and tables["storage"]["data_dir"] == "C:\\hub"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--listen", "garbage"], "listen.address: not host:port"),
        (["--parent", "garbage"], "parent.address: not host:port"),
        (["--device-id", ""], "hub.device_id: "),
        (["--data-dir", ""], "storage.data_dir: is missing"),
    ],
)
def test_init_writes_nothing_wrong(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["hub", "init", str(tmp_path / "hub.toml"), *arguments]) == 2
    assert said in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_provision_quotes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["provision", ODD, "2", "--parent", "127.0.0.1:7080"]) == 0
    for part in capsys.readouterr().out.split("# In the configuration of ")[1:]:
        tables = tomllib.loads(part.partition("\n")[2])
        binding = tables["hub"] if "hub" in tables else tables["provisioned"][0]
        assert binding["device_id"] == ODD


def test_provision_keeps_its_comments_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["provision", "hub-2", "2", "--role", "a\nb = 1"]) == 0
    assert tomllib.loads(capsys.readouterr().out.split("# In the configuration of the authority")[0])


@pytest.mark.parametrize("arguments", [["--role", "a:b"], ["--role", "a;b"], ["--role", ""], ["--parent", "x"]])
def test_provision_prints_nothing_wrong(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["provision", "hub-2", "2", *arguments]) == 2
    assert not capsys.readouterr().out


@pytest.mark.parametrize("origin", [("--plain-address", "10.0.0.0/24"), ("--plain-certificate", f"sha256:{64 * 'a'}")])
def test_provision_writes_where_a_plain_hub_connects_from(
    origin: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["provision", "warehouse", "12", *origin]) == 0
    tables = tomllib.loads(capsys.readouterr().out)
    assert tables == {
        "plain_hub": [{"node_id": 12, origin[0].removeprefix("--plain-"): origin[1]}],
        "provisioned": [{"device_id": "warehouse", "node_id": 12}],
    }
    assert main(["provision", "warehouse", "12", *origin, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parent"] == tables["plain_hub"][0]
