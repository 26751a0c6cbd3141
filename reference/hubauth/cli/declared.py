"""What a user knows of a hub whose traces are recorded or judged: its configuration, or its profile."""

import argparse
from pathlib import Path

from attrs import frozen
from msgspec.structs import replace

from hubauth.bounded import read
from hubauth.cli.problems import UNREADABLE, CommandError
from hubauth.core.policy import Policy
from hubauth.forms.events import Event, Kind, Opening, decode_opening, encode_opening
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.forms.policies import decode_policy, form_of
from hubauth.oracle.conform.profile import ProfileError, load_profile
from hubauth.shell.configuration import load

NOT_NAMED = "where a trace names none"


@frozen
class Declared:
    """The hub's policy and habits, and the rules that it is known to break."""

    policy: Policy | None = None
    habits: Habits = AS_THE_RULES_SAY
    failing: frozenset[str] = frozenset()

    def policy_of(self, _hub: str) -> Policy | None:
        """Of every hub of a trace that names none."""
        return self.policy

    def in_rows(self, rows: list[Event]) -> list[Event]:
        """The rows, their start rows saying what is declared as far as they did not say it."""
        return [self._told(row) if row.kind is Kind.START else row for row in rows]

    def _told(self, start: Event) -> Event:
        opening = decode_opening(start.payload)
        policy = opening.policy or (form_of(self.policy) if self.policy is not None else None)
        habits = opening.habits or (self.habits if self.habits != AS_THE_RULES_SAY else None)
        told = Opening(opening.order, policy, opening.state, opening.journal, opening.tokens, habits)
        return replace(start, payload=encode_opening(told))


def add_declared(parser: argparse.ArgumentParser, when: str = "") -> None:
    """The options that say what is known of the hub."""
    where = f", {when}" if when else ""
    known = parser.add_mutually_exclusive_group()
    known.add_argument("--policy", type=Path, metavar="FILE", help=f"its hub.toml, or its policy as JSON{where}")
    known.add_argument("--profile", type=Path, metavar="FILE", help=f"its profile, as conform reads it{where}")


def declared_in(chosen: argparse.Namespace) -> Declared:
    """What these options say. Raises CommandError."""
    if chosen.policy is not None:
        return Declared(_policy_in(chosen.policy))
    return Declared() if chosen.profile is None else _of_profile(chosen.profile)


def _of_profile(path: Path) -> Declared:
    try:
        profile = load_profile(path)
    except ProfileError as problem:
        raise CommandError(str(problem), code=UNREADABLE) from None
    if not profile.hub.node_id:
        hint = "a trace does not say which node the hub is"
        raise CommandError(f"{path}: hub.node_id is needed", hint, UNREADABLE)
    return Declared(profile.policy(profile.hub.node_id), profile.declared, frozenset(profile.known_failing))


def _policy_in(path: Path) -> Policy:
    """The policy that a hub's configuration, or a JSON file, describes."""
    if path.suffix == ".toml":
        return load(path).policy
    try:
        return decode_policy(read(path))
    except OSError as problem:
        raise CommandError(f"cannot read {path}: {problem.strerror}") from None
    except ValueError as problem:
        raise CommandError(f"{path}: {problem}", "or name a hub.toml") from None
