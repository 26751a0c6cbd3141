"""The command: what it prints, what it writes, and every way it can end."""

import argparse
import json
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TypeAlias
from xml.etree import ElementTree

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from attrs import evolve

from hubauth.cli import conform
from hubauth.cli.problems import CommandError
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.world import World
from hubauth.oracle.vectors import VectorFile, run_case
from hubauth.shell import engine
from hubauth.shell.addresses import Address
from tests.oracle.conform.broken import BROKEN
from tests.oracle.conform.hubs import HUB_CREDENTIAL, as_process, describe, free_port, in_thread, kill, profile_toml

Printed: TypeAlias = pytest.CaptureFixture[str]
DESCRIBED = describe("root")


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.toml"
    path.write_text(profile_toml(DESCRIBED.profile), encoding="utf-8")
    return path


@pytest.fixture
def reference() -> Iterator[Address]:
    with in_thread(DESCRIBED) as address:
        yield address


def run(*arguments: object) -> int:
    """One command; its exit code."""
    top = argparse.ArgumentParser()
    conform.add_to(top.add_subparsers())
    try:
        chosen = top.parse_args(["conform", *map(str, arguments)])
        code: int = chosen.run(chosen)
    except CommandError as problem:
        print(f"{problem} | {problem.hint}")
        return problem.code
    return code


def test_a_hub_that_conforms(reference: Address, profile: Path, capsys: Printed) -> None:
    assert run(reference, "--profile", profile, "--only", "REG-13", "--only", "REG-9", "--only", "FRAME-8") == 0
    said = capsys.readouterr().out
    assert "REG-13           MUST    pass" in said and "REG-9/elsewhere  MUST    pass" in said
    assert "MUST    3 pass, 1 skipped" in said and "skipped: 1 needs header_2" in said


def test_all_the_reports(
    reference: Address,
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Printed,
) -> None:
    monkeypatch.setattr(engine, "step", BROKEN["accepts any credential"].decide())
    only = ("--only", "AUTH-1", "--only", "AUTH-2", "--only", "REG-5", "--only", "PERM-1")
    assert run(reference, "--profile", profile, *only, "--json", "--report", tmp_path / "out") == 1
    printed = json.loads(capsys.readouterr().out)
    summary = json.loads((tmp_path / "out" / "summary.json").read_text(encoding="utf-8"))
    assert printed == summary
    schema = json.loads((tmp_path / "out" / summary["$schema"]).read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(summary, schema)
    assert (summary["outcome"], summary["exit_code"], summary["fence"]) == ("violates", 1, "invalid")
    assert summary["counts"]["MUST"] == {"fail": 2, "pass": 2, "skipped": 1}
    failed = next(result for result in summary["results"] if result["verdict"] == "fail")
    assert failed["id"] == "AUTH-2" and failed["command"].endswith("--header 1 --only AUTH-2")
    assert any(arrow["wrong"] for arrow in failed["exchange"])
    assert [result["id"] for result in summary["results"][4:]] == ["promise/AdmittedByCredential"]

    suite = ElementTree.parse(tmp_path / "out" / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("5", "2", "1")
    failure = suite.find("testcase[@name='AUTH-2']/failure")
    assert failure is not None and failure.get("type") == "AUTH-2" and "expected" in (failure.text or "")

    html = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<svg" in html and "violates the rules" in html and escape(failed["text"]) in html
    assert "src=" not in html and "href=" not in html and "@import" not in html
    for secret in (known.credential for known in DESCRIBED.profile.bindings):
        assert secret not in html and secret not in json.dumps(summary)
    assert HUB_CREDENTIAL not in html


def test_a_random_sequence_is_saved_as_a_vector(
    reference: Address,
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Printed,
) -> None:
    monkeypatch.setattr(engine, "step", BROKEN["believes late reports"].decide())
    words = ("--only", "REG-13", "--examples", 60, "--seed", 1, "--report", tmp_path)
    assert run(reference, "--profile", profile, *words) == 1
    said = capsys.readouterr().out
    assert "OFF-7/random" in said and "--seed 1 --examples 60" in said
    file = msgspec.json.decode((tmp_path / "OFF-7-random-v1.json").read_bytes(), type=VectorFile)
    assert [run_case(case) for case in file.cases] == [None]
    assert len(file.cases[0].steps) < 10  # type: ignore[union-attr]
    assert "OFF-7" in file.cases[0].steps[-1].rules  # type: ignore[union-attr]


def test_known_failures(
    reference: Address,
    profile: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Printed,
) -> None:
    known = tmp_path / "known.txt"
    known.write_text("# not done yet\nAUTH-2   # soon\n\nREG-13\n", encoding="utf-8")
    words = ("--profile", profile, "--only", "AUTH-2", "--known-failing", known)
    assert run(reference, *words, "--only", "REG-13") == 1
    assert "REG-13 [MUST, header 1] fixed" in capsys.readouterr().out
    known.write_text("AUTH-2\n", encoding="utf-8")
    assert run(reference, *words) == 1
    known.write_text("AUTH-2\npromise/AdmittedByCredential\n", encoding="utf-8")
    monkeypatch.setattr(engine, "step", BROKEN["accepts any credential"].decide())
    assert run(reference, *words) == 0
    printed = capsys.readouterr().out.splitlines()
    known_lines = [line.split()[:3] for line in printed if line.split()[2:3] == ["known"] and line[0] != "M"]
    assert known_lines == [["AUTH-2", "MUST", "known"], ["promise/AdmittedByCredential", "MUST", "known"]]


def test_list(profile: Path, capsys: Printed) -> None:
    assert run("--list") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(CASES)
    assert any("[needs child_hub]" in line for line in lines)
    assert run("--list", "--profile", profile, "--only", "REV-2", "--dialect", "flat") == 0
    assert "[not in the dialect flat]" in capsys.readouterr().out


def test_a_hub_that_is_not_there(capsys: Printed) -> None:
    assert run(f"127.0.0.1:{free_port()}") == 3
    assert "this says nothing about any rule" in capsys.readouterr().out


def test_a_hub_that_dies(profile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed) -> None:
    """What comes after its death is no verdict, and neither is the run."""
    with as_process(DESCRIBED, tmp_path) as address:

        def die(world: World) -> None:
            kill(address)
            world.device().register()

        monkeypatch.setitem(CASES, "REG-1", evolve(CASES["REG-1"], play=die))
        assert run(address, "--profile", profile, "--only", "REG-13", "--only", "REG-1", "--only", "REG-9") == 3
    said = capsys.readouterr().out
    assert "REG-13           MUST    pass" in said
    assert "REG-1            MUST    error" in said
    assert "REG-9            MUST    blocked" in said and "reason    cannot connect to" in said


def test_nothing_to_check_is_not_conforming(reference: Address, profile: Path, capsys: Printed) -> None:
    assert run(reference, "--profile", profile, "--only", "REG-5") == 3
    assert "no case was run" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "HOST:PORT is missing"),
        (("nonsense",), 2, "not host:port"),
        (("127.0.0.1:1", "--only", "REG-99"), 2, "no such rule or case"),
        (("127.0.0.1:1", "--examples", "-1"), 2, "--examples"),
        (("127.0.0.1:1", "--profile", "no such file"), 4, "cannot read no such file"),
        (("127.0.0.1:1", "--known-failing", "no such file"), 4, "cannot read no such file"),
    ],
)
def test_bad_usage(arguments: tuple[str, ...], code: int, said: str, capsys: Printed) -> None:
    assert run(*arguments) == code
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("dialect = 'klingon'", "Invalid enum value"),
        ("= 1", "is not TOML"),
        ("colour = 'red'", "unknown field `colour`"),
        ("header = [3]", "Invalid enum value 3"),
        ("[parent]\nlisten = '127.0.0.1:0'", "hub.node_id and hub.credential"),
        ("[[child_hub]]\ndevice_id='a'\nnode_id=7\n[[child_hub]]\ndevice_id='b'\nnode_id=7", "the same node_id"),
    ],
)
def test_a_bad_profile(text: str, said: str, tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "profile.toml").write_text(text, encoding="utf-8")
    assert run("127.0.0.1:1", "--profile", tmp_path / "profile.toml") == 4
    assert said in capsys.readouterr().out


def test_a_known_failing_file_that_names_nothing(tmp_path: Path, capsys: Printed) -> None:
    (tmp_path / "known.txt").write_text("REG-13\nREG-99\n", encoding="utf-8")
    assert run("127.0.0.1:1", "--known-failing", tmp_path / "known.txt") == 4
    assert "known.txt:2: no such case: REG-99" in capsys.readouterr().out
