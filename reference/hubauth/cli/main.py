"""The command line: its grammar, and how every command ends."""

import argparse
import json
import sys
from collections.abc import Sequence

from hubauth import __version__
from hubauth.cli import (
    completion,
    conform,
    demo,
    device,
    fuzz,
    hub,
    oracle,
    profile,
    provision,
    trace,
    validate,
    vectors,
)
from hubauth.cli.grammar import Parser
from hubauth.cli.problems import CommandError
from hubauth.cli.terminal import tell
from hubauth.compiled import running
from hubauth.shell.blocks import Damaged, StorageError
from hubauth.shell.configuration import ConfigurationError

_EXAMPLES = """\
examples:
  hubauth hub init && hubauth hub --config hub.toml
  hubauth device register --device-id sensor --identity sensor.json
  hubauth COMMAND --help
"""


def parser() -> argparse.ArgumentParser:
    """The grammar of the whole command."""
    about = "The hub authentication protocol (SubProto 2)."
    top: argparse.ArgumentParser = Parser(prog="hubauth", description=about, epilog=_EXAMPLES)
    top.add_argument("--version", action="version", version=f"hubauth {__version__} ({running()})")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    hub.add_to(commands)
    provision.add_to(commands)
    device.add_to(commands)
    demo.add_to(commands)
    trace.add_to(commands)
    validate.add_to(commands)
    oracle.add_to(commands)
    vectors.add_to(commands)
    conform.add_to(commands)
    fuzz.add_to(commands)
    profile.add_to(commands)
    completion.add_to(commands, top)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Says what is wrong in one line, never by a traceback."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    as_json, usage = "--json" in given, "hubauth --help"
    if not _is_text(given):
        return _complain(as_json, "the arguments are not UTF-8", usage)
    try:
        chosen = parser().parse_args(given)
        usage = f"{chosen.command} --help"
        code: int = chosen.run(chosen)
    except SystemExit as done:
        # --help and --version: argparse has said what there is to say
        return done.code if isinstance(done.code, int) else 2
    except CommandError as problem:
        return _complain(as_json, str(problem), problem.hint or usage, problem.code)
    except ConfigurationError as problem:
        return _complain(as_json, f"configuration: {problem}", problem.hint or usage)
    except Damaged as problem:
        hint = "nothing was changed; restore the directory from a backup, or begin anew with another one"
        return _complain(as_json, str(problem), hint)
    except StorageError as problem:
        return _complain(as_json, str(problem), problem.hint or usage)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    except OSError as problem:
        return _complain(as_json, str(problem), usage)
    return code


def _is_text(arguments: Sequence[str]) -> bool:
    """Whether all of it can be written again: bytes that are no UTF-8 reach a program as half a character."""
    try:
        "".join(arguments).encode()
    except UnicodeEncodeError:
        return False
    return True


def _complain(as_json: bool, message: str, hint: str, code: int = 2) -> int:
    if as_json:
        tell(json.dumps({"error": message, "hint": hint}), to=sys.stderr)
    else:
        tell(f"hubauth: {message}", f"  hint: {hint}", to=sys.stderr)
    return code
