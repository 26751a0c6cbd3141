"""What ``import hubauth`` promises: few names, there when asked for, and typed."""

import subprocess
import sys
import typing
from pathlib import Path

import pytest

import hubauth
from tools.catalogue import ROOT

PROGRAM = """\
import hubauth
from hubauth import messages

policy = hubauth.Policy()
state: hubauth.State = hubauth.initial_state(policy)
state = hubauth.step(policy, state, hubauth.inputs.LinkUp(1)).state
asked = hubauth.inputs.Received(1, messages.Frame(messages.Register("sensor"), msg_id=7), fresh="A" * 43)
done: hubauth.Step = hubauth.step(policy, state, asked)
sends = [output for output in done.outputs if isinstance(output, hubauth.outputs.Send)]
codec = hubauth.codecs.CODECS[policy.dialect]
replaying: hubauth.replay.Replay = hubauth.replay.Replay(policy)
"""


def test_every_promised_name_is_there() -> None:
    for name in hubauth.__all__:
        assert getattr(hubauth, name) is not None
    assert sorted(hubauth.__all__) == hubauth.__all__
    assert set(hubauth.__all__) <= set(dir(hubauth))
    with pytest.raises(AttributeError, match="no attribute 'unheard_of'"):
        hubauth.unheard_of  # noqa: B018


def test_what_the_type_checker_sees_is_what_there_is() -> None:
    """The imports for the type checker and the table for the interpreter name the same things."""
    source = (ROOT / "reference" / "hubauth" / "__init__.py").read_text(encoding="utf-8")
    seen: dict[str, object] = {}
    exec(source.replace("if TYPE_CHECKING:", "if True:"), seen)
    assert set(hubauth._HOMES) == set(hubauth.__all__)
    for name in hubauth.__all__:
        assert seen[name] is getattr(hubauth, name), name


def test_the_api_does_what_it_says() -> None:
    names: dict[str, typing.Any] = {}
    exec(PROGRAM, names)
    assert "REG-1" in names["done"].rules
    assert names["sends"][0].frame.body.node_id == 2


def test_the_api_is_typed(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM + "hubauth.step(policy, state, 7)\nhubauth.Policy(first_node_id='x')\n")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.stdout.count("error:") == 2, done.stdout + done.stderr
    assert 'Argument 3 to "step"' in done.stdout and 'Argument "first_node_id" to "Policy"' in done.stdout
