"""What the site says about command line, configuration and rules, taken from where they are decided.

A page holds a line ``<!-- generated: NAME -->``. The site has the text in its place; a code host shows what stands
around it.
"""

import argparse
import os
import re
from collections.abc import Iterator

from hubauth.cli.grammar import Command, commands
from hubauth.cli.main import parser
from hubauth.cli.template import template
from hubauth.specification import DECISION, Rule, rules

_MARK = re.compile(r"^<!-- generated: (\w+) -->$", re.MULTILINE)


def fill(text: str) -> str:
    """Put the generated text where a page asks for it."""
    return _MARK.sub(lambda found: _GENERATORS[found[1]](), text)


def command_line() -> str:
    """Every command: usage, what it is for, its arguments, examples."""
    os.environ["COLUMNS"] = "90"  # the width that argparse breaks lines at, whatever terminal builds the site
    return "\n".join(part for command in commands(parser()) for part in _command(command))


def _command(command: Command) -> Iterator[str]:
    name = " ".join(command.path)
    yield f"## {name}\n"
    if command.about:
        yield f"{_sentence(command.about)}\n"
    usage = command.parser.format_usage().removeprefix("usage: ").rstrip().replace("\n" + " " * 7, "\n")
    yield f"```text\n{usage}\n```\n"
    rows = [_row(action) for action in command.parser._actions if _is_shown(action)]
    if rows:
        yield "| argument | |\n|---|---|"
        yield "\n".join(rows) + "\n"
    if command.parser.epilog:
        yield f"```text\n{command.parser.epilog.rstrip()}\n```\n"


def _is_shown(action: argparse.Action) -> bool:
    kinds = (argparse._HelpAction, argparse._SubParsersAction)
    return not isinstance(action, kinds) and action.help is not argparse.SUPPRESS


def _row(action: argparse.Action) -> str:
    called = ", ".join(action.option_strings)
    if action.nargs != 0:
        value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else action.dest)
        shown = value if isinstance(value, str) else " ".join(value)
        called = f"{called} {shown if action.metavar or action.choices else shown.upper()}".strip()
    said = [_escape(action.help % {**vars(action), "prog": "hubauth"})] if action.help else []
    plain = action.default not in (None, "", False, argparse.SUPPRESS) and not isinstance(action.default, list)
    if plain and "default" not in (action.help or ""):
        said.append(f"default: `{action.default}`")
    return f"| `{_escape(called)}` | {'; '.join(said)} |"


def _escape(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _sentence(text: str) -> str:
    text = _escape(text)
    return text[0].upper() + text[1:] + ("" if text.endswith(".") else ".")


def rule_list() -> str:
    """Every rule under its family, each with an anchor of its own."""
    families: dict[str, list[Rule]] = {}
    for rule in rules().values():
        families.setdefault(rule.id.partition("-")[0], []).append(rule)
    parts: list[str] = [f"{len(rules())} rules.\n"]
    for family, members in families.items():
        parts.append(f"## {family}\n")
        parts.extend(_rule(rule) for rule in members)
    return "\n".join(parts)


def _rule(rule: Rule) -> str:
    sources = ", ".join(f"decision: {rule.decision}" if source == DECISION else source for source in rule.source)
    dialects = "all dialects" if len(rule.dialects) == 3 else ", ".join(rule.dialects)
    return (
        f"**{rule.id}** {rule.level} · {dialects} · {sources}<br>\n{_escape(rule.text)}\n{{ #{rule.id} .one-rule }}\n"
    )


def hub_toml() -> str:
    """The configuration that ``hubauth hub init`` writes for a hub with a parent."""
    return f"```toml\n{template('hub', 'auth', '127.0.0.1:7080', '10.0.0.1:7080', 'hub-data')}```"


_GENERATORS = {"cli": command_line, "hub_toml": hub_toml, "rules": rule_list}
