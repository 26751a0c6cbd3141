"""``hubauth vectors``: list them, run the reference against them, pack them for others."""

import argparse
import hashlib
import os
from pathlib import Path

import msgspec

from hubauth.cli.problems import REFUSED, CommandError
from hubauth.cli.terminal import tell
from hubauth.oracle.vectors import AnyCase, Case, Mismatch, decisions, dialects_of, run_case
from hubauth.oracle.vectors_files import FOLDER, VectorError, archive_of, folder_files, load_cases
from hubauth.specification import rules

_EXAMPLES = """\
examples:
  hubauth vectors list --rule REG-9
  hubauth vectors run
  hubauth vectors export vectors.zip
"""
_LIST_EXAMPLES = """\
examples:
  hubauth vectors list
  hubauth vectors list --rule REG-9 --dialect flat
  hubauth vectors list --from vectors.zip --json
"""
_RUN_EXAMPLES = """\
examples:
  hubauth vectors run
  hubauth vectors run --rule EXT-10 --dialect login
  hubauth vectors run --from vectors.zip --case auth/register/
"""
_EXPORT_EXAMPLES = """\
examples:
  hubauth vectors export vectors.zip
"""
_SHOWN = 500


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "What a hub does, step by step, for the tests of other implementations."
    vectors = commands.add_parser("vectors", help="vectors for other hubs", description=about, epilog=_EXAMPLES)
    inner = vectors.add_subparsers(title="commands", metavar="COMMAND", required=True)
    about = "Name the cases, one per line."
    chosen = inner.add_parser("list", help="name the cases", description=about, epilog=_LIST_EXAMPLES)
    chosen.set_defaults(run=list_cases)
    _add_choice(chosen)
    about = "Run the reference against the vectors; exit code 1 if it does something else."
    ran = inner.add_parser("run", help="run the reference against them", description=about, epilog=_RUN_EXAMPLES)
    ran.set_defaults(run=run_cases)
    _add_choice(ran)
    about = "Write a ZIP archive of all vectors, with a manifest of SHA-256 sums."
    export = inner.add_parser("export", help="pack them into an archive", description=about, epilog=_EXPORT_EXAMPLES)
    export.set_defaults(run=export_cases)
    export.add_argument("file", type=Path, help="the archive to write; never over an existing file")
    export.add_argument("--json", action="store_true", help="say what was written as JSON")


def _add_choice(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--from", dest="source", type=Path, default=FOLDER, metavar="PATH", help="a folder or archive")
    parser.add_argument("--rule", metavar="ID", help="only cases in which this rule decides something")
    parser.add_argument("--dialect", choices=["auth", "login", "flat"], help="only cases about this dialect")
    parser.add_argument("--case", metavar="TEXT", help="only cases whose id holds this text")
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def _chosen_cases(chosen: argparse.Namespace) -> list[AnyCase]:
    if chosen.rule is not None and chosen.rule not in rules():
        raise CommandError(f"there is no rule {chosen.rule!a}", "spec/rules.toml names them all")
    try:
        cases = load_cases(chosen.source)
    except VectorError as problem:
        raise CommandError(str(problem)) from None
    cases = [
        case
        for case in cases
        if (chosen.dialect is None or chosen.dialect in dialects_of(case))
        and (chosen.case is None or chosen.case in case.id)
        and (chosen.rule is None or any(rule == chosen.rule for rule, _ in decisions(case)))
    ]
    if not cases:
        raise CommandError("no vector is about that", "hubauth vectors list shows all of them")
    return cases


def list_cases(chosen: argparse.Namespace) -> int:
    """``hubauth vectors list``."""
    cases = _chosen_cases(chosen)
    if chosen.json:
        tell(msgspec.json.encode([_described(case) for case in cases]).decode())
    else:
        for case in cases:
            tell(case.id)
    return 0


def _described(case: AnyCase) -> dict[str, object]:
    decided = dict.fromkeys(rule for rule, _ in decisions(case))
    return {"id": case.id, "steps": len(case.steps) if isinstance(case, Case) else 1, "rules": list(decided)}


def run_cases(chosen: argparse.Namespace) -> int:
    """``hubauth vectors run``."""
    cases = _chosen_cases(chosen)
    found = [mismatch for case in cases if (mismatch := run_case(case)) is not None]
    steps = sum(len(case.steps) for case in cases if isinstance(case, Case))
    if chosen.json:
        plain = [
            {name: getattr(one, name) for name in ("case", "at", "what", "rules", "expected", "seen")} for one in found
        ]
        tell(msgspec.json.encode({"cases": len(cases), "steps": steps, "mismatches": plain}).decode())
    else:
        for mismatch in found:
            _show(mismatch)
        tell(f"{len(cases)} cases, {steps} steps, {len(found)} mismatches")
    return REFUSED if found else 0


def _show(mismatch: Mismatch) -> None:
    tell(f"{mismatch.case}, step {mismatch.at}: {mismatch.what} differ")
    for rule in mismatch.rules:
        known = rules().get(rule)
        tell(f"  {rule}: {known.text if known is not None else 'not in the catalogue'}")
    tell(f"  expected: {_short(mismatch.expected)}")
    tell(f"  seen:     {_short(mismatch.seen)}")


def _short(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."


def export_cases(chosen: argparse.Namespace) -> int:
    """``hubauth vectors export``."""
    try:
        files = folder_files()
        content = archive_of(files)
    except VectorError as problem:
        raise CommandError(str(problem)) from None
    try:
        with os.fdopen(os.open(chosen.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644), "wb") as file:
            file.write(content)
    except FileExistsError:
        raise CommandError(f"{chosen.file} exists already", "name another file, or remove it first") from None
    except OSError as problem:
        raise CommandError(f"cannot write {chosen.file}: {problem.strerror}") from None
    digest = hashlib.sha256(content).hexdigest()
    if chosen.json:
        tell(msgspec.json.encode({"file": str(chosen.file), "files": len(files), "sha256": digest}).decode())
    else:
        tell(f"wrote {chosen.file}: {len(files)} files, {len(content)} bytes", f"sha256 {digest}")
    return 0
