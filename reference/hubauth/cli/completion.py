"""``hubauth completion``: a script by which a shell completes commands, options and their choices."""

import argparse
from collections.abc import Iterator
from shlex import quote

from hubauth.cli.grammar import Command, commands
from hubauth.cli.terminal import tell

_EXAMPLES = """\
examples:
  hubauth completion bash > ~/.local/share/bash-completion/completions/hubauth
  hubauth completion zsh > ~/.zfunc/_hubauth          # a directory in $fpath
  hubauth completion fish > ~/.config/fish/completions/hubauth.fish
"""


def add_to(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]", top: argparse.ArgumentParser) -> None:
    """The grammar of this command, which must know all others: add it last."""
    completion = subparsers.add_parser(
        "completion",
        help="print a completion script for a shell",
        description="Print a script by which a shell completes commands, options and their choices.",
        epilog=_EXAMPLES,
    )
    completion.set_defaults(run=run, top=top)
    completion.add_argument("shell", choices=sorted(_SCRIPTS), help="which shell")


def run(chosen: argparse.Namespace) -> int:
    known = list(commands(chosen.top))
    tell(*_SCRIPTS[chosen.shell](known))
    return 0


def _options(command: Command) -> Iterator[argparse.Action]:
    for action in command.parser._actions:
        if action.option_strings and action.help is not argparse.SUPPRESS:
            yield action


def _choices(action: argparse.Action) -> list[str]:
    return [str(choice) for choice in action.choices or ()]


def _listed(action: argparse.Action) -> str:
    """The choices as one word of the shell."""
    return quote(" ".join(_choices(action)))


def _words(command: Command) -> list[str]:
    """What may stand next: commands or choices, then options."""
    positional = [action for action in command.parser._actions if not action.option_strings]
    names = [choice for action in positional for choice in _choices(action)]
    return names + [action.option_strings[-1] for action in _options(command)]


def _cases(known: list[Command], offer: str) -> Iterator[str]:
    """The two questions of bash and zsh: which values has the option before, which words has the command."""
    places: dict[str, list[str]] = {}
    for command in known:
        for action in _options(command):
            if action.nargs != 0:
                here = [quote(" ".join((*command.path, option))) for option in action.option_strings]
                places.setdefault(" ".join(map(quote, _choices(action))), []).extend(here)
    yield '  case "$at $before" in'
    for choices, where in places.items():
        yield f"    {'|'.join(where)}) {offer.format(choices) if choices else _FILES[offer]}; return;;"
    yield "  esac"
    yield '  case "$at" in'
    for command in known:
        yield f"    {quote(' '.join(command.path))}) {offer.format(' '.join(map(quote, _words(command))))};;"
    yield "  esac"


_BASH_OFFER = 'COMPREPLY=($(compgen -W "{}" -- "$now"))'
_ZSH_OFFER = "compadd -- {}"
_FILES = {_BASH_OFFER: "COMPREPLY=()", _ZSH_OFFER: "_files"}


def _way(known: list[Command]) -> Iterator[str]:
    """Follow the words so far to the command they name."""
    below = [quote(" ".join(command.path)) for command in known if len(command.path) > 1]
    yield f'    case "$at $word" in {"|".join(below)}) at="$at $word";; esac'
    yield "  done"


def _bash(known: list[Command]) -> Iterator[str]:
    yield "_hubauth() {"
    yield '  local word at=hubauth now="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"'
    yield '  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do'
    yield from _way(known)
    yield from _cases(known, _BASH_OFFER)
    yield "}"
    yield "complete -o default -F _hubauth hubauth"


def _zsh(known: list[Command]) -> Iterator[str]:
    yield "#compdef hubauth"
    yield "_hubauth() {"
    yield '  local word at=hubauth before="${words[CURRENT-1]}"'
    yield '  for word in "${(@)words[2,CURRENT-1]}"; do'
    yield from _way(known)
    yield from _cases(known, _ZSH_OFFER)
    yield "  _files"
    yield "}"
    yield 'if [ "$funcstack[1]" = "_hubauth" ]; then _hubauth "$@"; else compdef _hubauth hubauth; fi'


def _fish(known: list[Command]) -> Iterator[str]:
    """One line per word: where it may stand, and what it means."""
    for command in known:
        below = [other for other in known if other.path[:-1] == command.path]
        here = [f"__fish_seen_subcommand_from {word}" for word in command.path[1:]]
        if below:
            here.append(f"not __fish_seen_subcommand_from {' '.join(other.path[-1] for other in below)}")
        place = f"complete -c hubauth -n {quote('; and '.join(here))}"
        for other in below:
            yield f"{place} -f -a {other.path[-1]} -d {quote(other.about)}"
        for action in command.parser._actions:
            if not action.option_strings and not below and action.choices:
                yield f"{place} -f -a {_listed(action)}"
        for action in _options(command):
            value = "" if action.nargs == 0 else f" -x -a {_listed(action)}" if action.choices else " -r"
            about = " ".join((action.help or "").split())
            yield f"{place} -l {action.option_strings[-1].lstrip('-')}{value} -d {quote(about)}"


_SCRIPTS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
