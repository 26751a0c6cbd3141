"""How every command reads its arguments: one parser class, and a walk over all commands that it has."""

import argparse
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from attrs import frozen

from hubauth.cli.problems import CommandError
from hubauth.core.messages import MAX_NODE_ID
from hubauth.specification import BASES


class Parser(argparse.ArgumentParser):
    """Complains like every other part of the command; takes no abbreviations; shows examples as they were written."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)
        self.set_defaults(command=self.prog)

    def error(self, message: str) -> NoReturn:
        raise CommandError(message, f"{self.prog} --help")


def add_basis(parser: argparse.ArgumentParser) -> None:
    """The option that says by which rules a hub is judged."""
    words = "judge by all rules (default), or by what the documents alone say and list apart what a decision forbids"
    parser.add_argument("--basis", choices=BASES, default="all", help=words)


def add_command(
    inner: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    run: Callable[[argparse.Namespace], int],
    short: str,
    example: str,
) -> argparse.ArgumentParser:
    """A command that its function's docstring describes, and one example: what follows the name there."""
    parser = inner.add_parser(name, help=short, description=run.__doc__)
    parser.epilog = f"examples:\n  {parser.prog} {example}\n"
    parser.set_defaults(run=run)
    return parser


def node_id(text: str) -> int:
    """A node id, or 0 for none."""
    if not text.isascii() or not text.isdigit() or int(text) > MAX_NODE_ID:
        raise argparse.ArgumentTypeError(f"not a node id: {text!a}")
    return int(text)


def seconds(text: str) -> float:
    """A time to wait."""
    try:
        said = float(text)
    except ValueError:
        said = 0.0
    if not 0 < said <= 1e9:
        raise argparse.ArgumentTypeError(f"not a number of seconds: {text!a}")
    return said


@frozen
class Command:
    """One command: the words that name it, its one-line help, its parser."""

    path: tuple[str, ...]
    about: str
    parser: argparse.ArgumentParser


def commands(parser: argparse.ArgumentParser, about: str = "") -> Iterator[Command]:
    """A parser's command and, in order, every command below it."""
    yield Command(tuple(parser.prog.split()), parser.description or about, parser)
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, below in action.choices.items():
                yield from commands(below, helps.get(name, ""))
