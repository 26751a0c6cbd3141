"""``hubauth fuzz``: a right adapter is left alone, a wrong one is found out, one that fails is told so."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hubauth.oracle.fuzz.adapter import Adapter
from hubauth.oracle.fuzz.run import Fuzzed, Plan, fuzz, happenings
from hubauth.oracle.fuzz.shrink import leave_out
from hubauth.oracle.vectors import Case, run_case
from hubauth.oracle.vectors_files import load_cases
from tests.oracle.fuzz.planted_adapter import EXAMPLE
from tests.oracle.twelve import TWELVE

PLANTED = [sys.executable, "-m", "tests.oracle.fuzz.planted_adapter"]


def fuzzed(command: list[str], **plan: Any) -> Fuzzed:
    with Adapter(command, 30.0) as adapter:
        return fuzz(adapter, Plan(**plan))


def hubauth(*arguments: str) -> tuple[int, str, str]:
    command = [sys.executable, "-m", "hubauth.cli", "fuzz", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert "Traceback" not in done.stderr + done.stdout, done.stderr
    return done.returncode, done.stdout, done.stderr


def program(folder: Path, text: str) -> str:
    """An adapter that is this Python program, as an argument."""
    path = folder / "adapter.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


# Adapters that are right


@pytest.mark.parametrize(
    "command",
    [
        [sys.executable, str(EXAMPLE)],
        [sys.executable, "-m", "hubauth.cli", "oracle"],
        [*PLANTED, "", "bare"],
    ],
    ids=["the documentation's", "the oracle", "with names of its own and no digest"],
)
def test_a_right_adapter_is_left_alone(command: list[str]) -> None:
    done = fuzzed(command, seed=11, sequences=15, seconds=600)
    assert [finding.found for finding in done.findings] == []
    assert done.sequences == 15 and done.steps > 700 and not done.refused_inputs
    assert len(done.rules) > 140, "the sequences are about less than they were"


def test_the_adapter_of_the_documentation_is_short() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 60


def test_sequences_are_about_nearly_everything() -> None:
    beginnings = [happenings(Plan(), number)[0] for number in range(60)]
    for name in ("dialect", "has_parent", "assist", "trust", "reregister", "extension", "plain_hubs", "authority"):
        assert len({getattr(one.policy, name) for one in beginnings}) > 1, name
    assert len({one.version for one in beginnings}) == 2


# Adapters that are wrong


@pytest.mark.parametrize("name", TWELVE)
def test_a_planted_mistake_is_found(name: str, tmp_path: Path, record_property: Any) -> None:
    done = fuzzed([*PLANTED, name, "bare"], sequences=200, findings=1, seconds=600)
    assert done.findings, f"not in {done.sequences} sequences, {done.steps} steps"
    finding = done.findings[0]
    assert finding.found.what == "outputs" and finding.found.expected != finding.found.seen
    if name == "one answer in fifty is late":  # whether it does depends on how much was played before
        assert finding.again == 0
    else:
        assert len(finding.shown.inputs) <= 15 and finding.again == 3
    (tmp_path / "fuzz.json").write_bytes(finding.vector("fuzz"))
    (case,) = load_cases(tmp_path)
    assert isinstance(case, Case) and run_case(case) is None and len(case.steps) == len(finding.shown.inputs)
    record_property("steps", finding.step)
    print(f"{name}: {finding.step} steps, {len(finding.shown.inputs)} inputs left, {finding.found.rules[0]}")


def test_a_mistake_that_shows_in_the_state_alone_is_found_by_the_digest() -> None:
    done = fuzzed([*PLANTED, "caches upstream"], sequences=60, findings=1, seconds=600)
    (finding,) = done.findings
    assert finding.found.what == "digest" and "whitelist" in finding.found.seen and finding.again == 3


def test_the_same_seed_draws_and_finds_the_same(tmp_path: Path) -> None:
    said = []
    for folder in ("a", "b"):
        command = " ".join(PLANTED) + " 'forgets MsgID'"
        options = ("--seed", "5", "--findings", "1", "--json", "--save", str(tmp_path / folder))
        code, out, _ = hubauth("--adapter", command, *options)
        assert code == 1
        found = json.loads(out)
        said.append((found["findings"][0]["inputs"], found["steps"], (tmp_path / folder / "fuzz-1.json").read_bytes()))
    assert said[0] == said[1]


def test_what_was_found_is_said_to_people(tmp_path: Path) -> None:
    command = " ".join(PLANTED) + " 'credentials are compared by prefix'"
    code, out, _ = hubauth("--adapter", command, "--findings", "1", "--save", str(tmp_path / "found"))
    assert code == 1
    assert "AUTH-2 (MUST)" in out and "expected" in out and f"saved as {tmp_path / 'found' / 'fuzz-1.json'}" in out
    done = subprocess.run(
        [sys.executable, "-m", "hubauth.cli", "vectors", "run", "--from", str(tmp_path / "found")], capture_output=True
    )
    assert done.returncode == 0 and b"1 cases" in done.stdout


# Adapters that fail

_READ = """\
import json, os, sys, time
def say(**words): print(json.dumps(words), flush=True)
for line in sys.stdin:
    asked = json.loads(line)["do"]
"""
_BEGIN = f"""{_READ}
    if asked == "init":
        say(did="init")
        continue
    """
FAILING = {
    "dies": (_BEGIN + "sys.exit('out of luck')", "ended with exit code 1 before it answered"),
    "is killed": (_BEGIN + "os.kill(os.getpid(), 9)", "ended by SIGKILL"),
    "hangs": (_BEGIN + "print('out of luck', file=sys.stderr, flush=True); time.sleep(100)", "for 1 seconds"),
    "writes no JSON": (_BEGIN + "print('hello', flush=True)", "wrote what is no answer: 'hello'"),
    "writes other JSON": (_BEGIN + "say(did='input')", "missing required field `outputs`"),
    "says too much": (_READ + """    os.write(1, b'{"did":"init"}\\n' * 2)""", "nobody had asked for"),
    "does not listen": ("import time; time.sleep(100)", "has not answered for 1 seconds"),
    "does not start": ("raise SystemExit('out of luck')", "ended with exit code 1"),
}


@pytest.mark.parametrize("name", FAILING)
def test_an_adapter_that_fails_is_told_so(name: str, tmp_path: Path) -> None:
    text, words = FAILING[name]
    code, out, err = hubauth("--adapter", program(tmp_path, text), "--timeout", "1", "--sequences", "3")
    assert code == 3 and words in out + err, out + err
    if "out of luck" in text:
        assert "stderr: out of luck" in out


def test_a_crash_is_made_as_short_as_a_difference(tmp_path: Path) -> None:
    crash = _BEGIN + """say(did="error", error="") if '"kind":"revoke"' not in line else sys.exit('no revokes')"""
    code, out, _ = hubauth("--adapter", program(tmp_path, crash), "--json", "--findings", "1")
    found = json.loads(out)["findings"][0]
    assert code == 3 and [one["kind"] for one in found["inputs"]] == ["revoke"] and found["stderr"] == ["no revokes"]


def test_an_adapter_that_refuses_everything_has_passed_nothing(tmp_path: Path) -> None:
    refusing = _READ + "    say(did='error', error='not mine')"
    code, _, err = hubauth("--adapter", program(tmp_path, refusing), "--sequences", "3")
    assert code == 3 and "refused everything: not mine" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--adapter"),
        (("--adapter", ""), "a command is needed"),
        (("--adapter", "'"), "No closing quotation"),
        (("--adapter", "x", "--sequences", "0"), "at least 1"),
        (("--adapter", "x", "--seconds", "soon"), "seconds"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], words: str) -> None:
    code, _, err = hubauth(*arguments)
    assert code == 2 and words in err


def test_a_program_that_is_not_there() -> None:
    code, _, err = hubauth("--adapter", "/no/such/program")
    assert code == 3 and "cannot start the adapter /no/such/program: No such file or directory" in err


def test_leaving_out_keeps_what_is_needed() -> None:
    tried: list[list[int]] = []

    def still(items: Any) -> bool:
        tried.append(list(items))
        return {3, 17} <= set(items)

    assert leave_out(range(40), still) == [3, 17]
    assert len(tried) < 60
