"""One mistake is told once: failing cases that show the same difference, under the one that explains it best."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from hubauth.oracle.conform.results import VIOLATIONS, Finding, Result

Signature: TypeAlias = tuple[str, ...]
_VOLATILE = ("action", "device_id", "node_id", "credential", "journal", "peer", "handled", "seq", "msg")
"""Fields whose values differ from case to case."""
_NUMBERS = re.compile(r"[0-9]+")


class Cause(Struct, frozen=True):
    """What went wrong in the same way in several cases."""

    case: str
    """The one to look at first."""
    rule: str
    header: int
    differs: str
    """The difference in a few words."""
    count: int
    """In how many cases, header versions counted apart."""
    cases: tuple[str, ...]
    """All of them, the first one included."""


def causes_of(results: Iterable[Result]) -> list[Cause]:
    """The failing results by what differs, those first that were met first."""
    groups: dict[frozenset[Signature], list[Result]] = {}
    for result in results:
        if result.verdict in VIOLATIONS and result.findings:
            signature = frozenset(signature_of(finding) for finding in result.findings if not finding.informational)
            groups.setdefault(signature, []).append(result)
    return [_cause(signature, members) for signature, members in groups.items()]


def _cause(signature: frozenset[Signature], members: Sequence[Result]) -> Cause:
    first = _best(signature, members)
    cases = tuple(dict.fromkeys([first.id, *(member.id for member in members)]))
    words = "; ".join(sorted(" ".join(one) for one in signature))
    return Cause(first.id, first.rule, first.header, words, len(members), cases)


def _best(signature: frozenset[Signature], members: Sequence[Result]) -> Result:
    """The case whose rule speaks of what differs, be it a code or the end of a connection; else the first one."""
    words = {part.partition(" ")[0] for one in signature for part in one[1:] if one[0].endswith("code")}
    words |= {"closed" for one in signature if one[0].startswith("connection")}
    named = [member for member in members if any(re.search(rf"\b{word}\b", member.text) for word in words)]
    return (named or members)[0]


def signature_of(finding: Finding) -> Signature:
    """What a finding has in common with others of the same mistake: no names, no numbers of the case.

    That of a broken promise is called like the promise.
    """
    if finding.what == finding.rule:
        return finding.what, "is broken"
    expected, seen = _payload(finding.expected), _payload(finding.seen)
    if expected is not None and seen is not None:
        unequal = sorted(_unequal(expected, seen))
        decisive = [one for one in unequal if one[0].endswith("code")]
        if unequal:
            return (decisive or unequal)[0]
    what = _NUMBERS.sub("", finding.what).strip()
    return what, f"{_short(finding.expected)} -> {_short(finding.seen)}"


def _payload(text: str) -> dict[str, Any] | None:
    """The JSON object that a description begins with, if it does."""
    try:
        said, _ = json.JSONDecoder().raw_decode(text)
    except ValueError:
        return None
    return said if isinstance(said, dict) else None


def _unequal(expected: dict[str, Any], seen: dict[str, Any], path: str = "") -> Iterator[Signature]:
    for name in {*expected, *seen}:
        due, done = expected.get(name), seen.get(name)
        if isinstance(due, dict) and isinstance(done, dict):
            yield from _unequal(due, done, f"{path}{name}.")
        elif name not in expected:
            yield f"{path}{name}", "is too many"
        elif name not in seen:
            yield f"{path}{name}", "is missing"
        elif due != done:
            yield f"{path}{name}", "differs" if name in _VOLATILE else f"{json.dumps(due)} -> {json.dumps(done)}"


def _short(text: str) -> str:
    """A description without what belongs to the case: of a payload the action and the code."""
    said = _payload(text)
    if said is None:
        return _NUMBERS.sub("", text)[:60].strip()
    fields = said.get("data", said)
    code = fields.get("code") if isinstance(fields, dict) else None
    return " ".join(str(part) for part in (said.get("action", "answer"), code) if part is not None)
