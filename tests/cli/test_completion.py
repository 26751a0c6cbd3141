"""Completion scripts: what a shell offers at a place is what the parser takes there."""

import shutil
import subprocess
from pathlib import Path

import pytest

from hubauth.cli import main
from hubauth.cli.grammar import commands
from hubauth.cli.main import parser


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_knows_every_command_and_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = script(shell, capsys)
    for command in commands(parser()):
        assert command.path[-1] in text
        for action in command.parser._actions:
            assert all(name.lstrip("-") in text for name in action.option_strings[-1:])


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("hubauth de", "device demo"),
        ("hubauth device re", "register revoke"),
        ("hubauth hub --dia", "--dialect"),
        ("hubauth device auth --dialect l", "login"),
        ("hubauth completion ", "bash fish zsh --help"),
        ("hubauth hub --config ", ""),
    ],
)
def test_what_bash_offers(words: str, offered: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "completion.bash"
    path.write_text(script("bash", capsys))
    typed = words.split(" ")
    ask = f"""
        source {path}
        COMP_WORDS=({" ".join(f"'{word}'" for word in typed)}); COMP_CWORD={len(typed) - 1}
        _hubauth; echo "${{COMPREPLY[*]}}"
    """
    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == (offered, "")


@pytest.mark.parametrize(("shell", "check"), [("bash", "-n"), ("zsh", "-n"), ("fish", "--no-execute")])
def test_a_script_can_be_read_by_its_shell(
    shell: str, check: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "completion"
    path.write_text(script(shell, capsys))
    subprocess.run([shell, check, str(path)], check=True, timeout=60)
