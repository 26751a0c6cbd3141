"""Every command, walked with arguments that cannot be right: exit code 2, one line and a hint, never a traceback.

The commands and what can be got wrong about their options come from the parser, so none can be forgotten; what only the
command itself can find wrong is in a table that must have a line for each.
"""

import argparse
import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from hubauth.cli.grammar import Command, commands
from hubauth.cli.main import main, parser

LEAVES = [command for command in commands(parser()) if command.parser.get_default("run") is not None]

BAD_SENSE: dict[str, list[tuple[str, int]]] = {
    "hubauth hub": [
        ("--config missing.toml", 2),
        ("--config garbage", 2),
        ("--listen nowhere --data-dir data", 2),
        ("--listen 127.0.0.1:0", 2),
        ("--listen 127.0.0.1:0 --data-dir garbage", 2),
        ("--listen 127.0.0.1:0 --data-dir data --keep-credentials", 2),
        ("fly", 2),
    ],
    "hubauth hub init": [("garbage", 2), ("missing/hub.toml", 2)],
    "hubauth hub ctl revoke": [
        ("thief", 2),
        ("'' --data-dir missing", 2),
        (f"{'x' * 129} --data-dir missing", 2),
        ("thief --data-dir missing --node many", 2),
        ("thief --data-dir missing --wait 4000", 2),
        ("thief --data-dir missing --wait never", 2),
        ("thief --data-dir missing --credential-file missing", 2),
        ("thief --data-dir missing --credential-file garbage", 2),
        ("thief --data-dir missing", 2),
    ],
    "hubauth hub ctl invalidate": [("", 2), ("many --data-dir missing", 2), ("0 --data-dir missing", 2)],
    "hubauth hub ctl status": [
        ("", 2),
        ("--data-dir missing --config hub.toml", 2),
        ("--data-dir missing", 2),
        ("--data-dir garbage", 2),
        ("--config missing.toml", 2),
        ("--config garbage", 2),
    ],
    "hubauth hub ctl reload": [("--data-dir missing", 2), ("--config /dev/null", 2)],
    "hubauth provision": [
        ("hub-2 1", 2),
        ("hub-2 many", 2),
        ("hub-2 4294967296", 2),
        ("'' 2", 2),
        ("hub-2 2 --plain-address here", 2),
    ],
    "hubauth demo": [("--out garbage", 2)],
    "hubauth trace lint": [("missing", 4)],
    "hubauth trace replay": [("missing", 4), ("missing --policy missing.toml", 2)],
    "hubauth trace explain": [("missing", 4), ("missing --rows 1", 2), ("missing --rows 1:2", 2)],
    "hubauth trace shrink": [("missing --out small.jsonl", 4)],
    "hubauth trace convert": [("missing out --to jsonl", 4)],
    "hubauth trace tap": [("nowhere 127.0.0.1:1 --out t", 2), ("127.0.0.1:0 nowhere --out t", 2)],
    "hubauth trace import-pcap": [
        ("missing.pcap --listens nowhere --out t", 2),
        ("missing.pcap --listens 127.0.0.1:1 --out t", 4),
        ("garbage --listens 127.0.0.1:1 --out t", 4),
    ],
    "hubauth trace generate": [("--hubs 0 --out t", 2), ("--checkpoints -1 --out t", 2), ("--fault x --out t", 2)],
    "hubauth validate": [("missing --conf nothing", 2)],
    "hubauth oracle": [("--listen nowhere", 2)],
    "hubauth vectors list": [("--rule REG-0", 2), ("--case nothing-is-called-so", 2), ("--from missing", 2)],
    "hubauth fuzz": [("--adapter ''", 2), ("--adapter x --sequences 0", 2), ("--adapter ./missing", 3)],
    "hubauth profile check": [("nowhere garbage", 2), ("127.0.0.1:1 missing", 4), ("127.0.0.1:1 garbage", 4)],
    "hubauth profile learn": [("nowhere", 2), ("garbage", 4), ("127.0.0.1:1", 3), ("127.0.0.1:1 --timeout never", 2)],
    "hubauth vectors run": [("--rule REG-0", 2), ("--from garbage", 2)],
    "hubauth vectors export": [("garbage", 2), ("missing/vectors.zip", 2)],
    "hubauth conform": [
        ("", 2),
        ("nowhere", 2),
        ("127.0.0.1:1 --only REG-0", 2),
        ("127.0.0.1:1 --profile missing.toml", 4),
        ("127.0.0.1:1 --known-failing missing.txt", 4),
        ("127.0.0.1:1", 3),
    ],
    "hubauth completion": [("csh", 2)],
}
"""Command -> arguments that only the command can find wrong, and the exit code."""

for verb in ("register", "auth", "revoke", "offline", "get-perms", "list-roles", "perms-invalidate"):
    target = "thief " if verb == "revoke" else ""
    BAD_SENSE[f"hubauth device {verb}"] = [
        (f"{target}--device-id ''", 2),
        (f"{target}--device-id {'x' * 129} --credential c", 2),
        (f"{target}--device-id x --credential c --hub nowhere", 2),
        (f"{target}--device-id x --credential c --hub 127.0.0.1:1 --timeout 0.1", 2),
        (f"{target}--identity missing.json", 2),
        (f"{target}--identity garbage", 2),
        (f"{target}--device-id x --credential c --tls --ca missing.pem", 2),
    ]


def takes_value(action: argparse.Action) -> bool:
    return bool(action.option_strings) and action.nargs != 0


def bad_syntax(command: Command) -> Iterator[list[str]]:
    """What the parser alone can find wrong: unknown and incomplete options, values of the wrong kind, too few words."""
    words = list(command.path[1:])
    needed = [
        action
        for action in command.parser._actions
        if not action.option_strings
        and action.nargs in (None, "+")
        and not isinstance(action, argparse._SubParsersAction)
    ]
    given = [str(next(iter(action.choices))) if action.choices else "1" for action in needed]
    if needed:
        yield words
    yield [*words, *given, "--no-such-option"]
    for action in command.parser._actions:
        if takes_value(action):
            yield [*words, *given, action.option_strings[-1]]
        if takes_value(action) and (action.choices or action.type in (int, float)):
            yield [*words, *given, action.option_strings[-1], "neither-nor"]
        if takes_value(action) and action.option_strings[-1].startswith("--"):
            yield [*words, *given, action.option_strings[-1][:-1], "abbreviated"]


def before_its_name(command: Command) -> Iterator[list[str]]:
    """Every option of a command that has commands below it, in front of one of those."""
    below = [action for action in command.parser._actions if isinstance(action, argparse._SubParsersAction)]
    for name in (name for action in below for name in action.choices):
        for action in command.parser._actions:
            if action.option_strings and action.dest not in ("help", "version"):
                choices = [str(choice) for choice in action.choices or ("1",) if choice != action.default]
                yield [*command.path[1:], action.option_strings[-1], *choices[: takes_value(action)], name]


MISPLACED = [arguments for command in commands(parser()) for arguments in before_its_name(command)]
SYNTAX = [arguments for command in commands(parser()) for arguments in bad_syntax(command)]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with nothing but a file that is no file of ours."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HUBAUTH_CREDENTIAL", raising=False)
    Path("garbage").write_bytes(b"\x00\xffgarbage {")


def expect_complaint(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> str:
    """Run it; what it said."""
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 2, said.err
    assert lines[0].startswith("hubauth: ") and lines[1].startswith("  hint: ")
    return said.err


def test_there_is_something_to_walk() -> None:
    assert len(LEAVES) >= 11 and len(SYNTAX) > 150 and len(MISPLACED) >= 15


@pytest.mark.parametrize("arguments", SYNTAX, ids=" ".join)
def test_what_the_parser_finds(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "--help" in expect_complaint(arguments, 2, capsys)


@pytest.mark.parametrize("arguments", MISPLACED, ids=" ".join)
def test_an_option_before_the_command_it_is_meant_for(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    said = expect_complaint(arguments, 2, capsys)
    assert f"{arguments[1]} stands before {arguments[-1]}" in said and f"{arguments[-1]} --help" in said
    assert [path.name for path in Path().iterdir()] == ["garbage"]


def test_every_command_has_a_line_in_the_table() -> None:
    assert sorted(BAD_SENSE) == sorted(" ".join(command.path) for command in LEAVES)
    assert all(BAD_SENSE.values())


SENSE = [(f"{name} {rest}", code) for name, cases in BAD_SENSE.items() for rest, code in cases]


@pytest.mark.parametrize(("line", "code"), SENSE, ids=[line for line, _ in SENSE])
def test_what_only_the_command_finds(line: str, code: int, capsys: pytest.CaptureFixture[str]) -> None:
    expect_complaint(shlex.split(line)[1:], code, capsys)


FOR_MACHINES = [
    command for command in LEAVES if any("--json" in action.option_strings for action in command.parser._actions)
]


@pytest.mark.parametrize("command", FOR_MACHINES, ids=lambda command: " ".join(command.path))
def test_a_machine_gets_one_object(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.path[1:], "--json", "--no-such-option"]) == 2
    said = json.loads(capsys.readouterr().err)
    assert said["error"] and said["hint"]


@pytest.mark.parametrize("command", list(commands(parser())), ids=lambda command: " ".join(command.path))
def test_help_explains_every_word(command: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.about, "no description"
    assert command.parser.epilog is not None and command.parser.epilog.startswith("examples:\n")
    for action in command.parser._actions:
        assert action.help or isinstance(action, argparse._SubParsersAction), f"{action.dest}: no help"
    assert main([*command.path[1:], "--help"]) == 0
    assert "examples:" in capsys.readouterr().out


SAME_EVERYWHERE: dict[str, tuple[str | None, ...]] = {
    "--json": (None,),
    "--dialect": (None,),
    "--listen": ("HOST:PORT",),
    "--hub": ("HOST:PORT", "NAME"),
    "--config": ("FILE",),
    "--out": ("DIR", "FILE"),
    "--report": ("DIR",),
    "--policy": ("FILE",),
    "--profile": ("FILE",),
    "--trace-key": ("FILE",),
    "--seed": ("N",),
    "--timeout": ("SECONDS",),
}
"""Option -> how its value may be called. A live hub has an address, one in a trace a name."""


def test_an_option_means_the_same_everywhere() -> None:
    for command in commands(parser()):
        for action in command.parser._actions:
            for name in set(action.option_strings) & set(SAME_EVERYWHERE):
                assert action.metavar in SAME_EVERYWHERE[name], f"{' '.join(command.path)} {name}"
            if "--dialect" in action.option_strings:
                assert list(action.choices or ()) == ["auth", "login", "flat"]
