"""The command line: its grammar, and how every command ends."""

import argparse
import json
import sys
from collections.abc import Sequence

from hubauth import __version__
from hubauth.cli import device, hub, provision
from hubauth.cli.problems import CommandError
from hubauth.shell.blocks import Damaged
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.journal import StorageError


def parser() -> argparse.ArgumentParser:
    """The grammar of the whole command."""
    top = argparse.ArgumentParser(prog="hubauth", description="The hub authentication protocol (SubProto 2).")
    top.add_argument("--version", action="version", version=f"hubauth {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    hub.add_to(commands)
    provision.add_to(commands)
    device.add_to(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Says what is wrong in one line, never by a traceback."""
    try:
        chosen = parser().parse_args(arguments)
    except SystemExit as done:
        # argparse has said what there is to say
        return done.code if isinstance(done.code, int) else 2
    try:
        code: int = chosen.run(chosen)
    except CommandError as problem:
        return _complain(chosen, str(problem), problem.hint, problem.code)
    except ConfigurationError as problem:
        return _complain(chosen, f"configuration: {problem}", problem.hint)
    except Damaged as problem:
        hint = "nothing was changed; restore the directory from a backup, or begin anew with another one"
        return _complain(chosen, str(problem), hint)
    except StorageError as problem:
        return _complain(chosen, str(problem))
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        return 0
    return code


def _complain(chosen: argparse.Namespace, message: str, hint: str = "", code: int = 2) -> int:
    if getattr(chosen, "json", False):
        print(json.dumps({"error": message, "hint": hint}), file=sys.stderr)
    else:
        print(f"hubauth: {message}", file=sys.stderr)
        if hint:
            print(f"  hint: {hint}", file=sys.stderr)
    return code
