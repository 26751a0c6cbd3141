"""``hubauth conform``: judge a running hub by the rules, from outside."""

import argparse
import sys
from pathlib import Path

import msgspec
from attrs import evolve

from hubauth import private
from hubauth.bounded import read_text
from hubauth.cli.grammar import add_basis
from hubauth.cli.problems import CommandError
from hubauth.cli.terminal import draw_over, tell, tell_text
from hubauth.core.policy import Dialect
from hubauth.oracle import report
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.declare import Case
from hubauth.oracle.conform.profile import Profile, ProfileError, load_profile
from hubauth.oracle.conform.results import FAILED, UNREADABLE, Result, by_documents
from hubauth.oracle.conform.run import Judgement, Run, choose, why_skipped
from hubauth.oracle.conform.subject import NotServing, Subject
from hubauth.oracle.conform.unasked import UNASKED
from hubauth.oracle.conform.wire import Unreachable
from hubauth.oracle.report_html import page
from hubauth.oracle.report_summary import SCHEMA_NAME, Summary, junit, summarize, summary_json, summary_schema
from hubauth.seen import promised
from hubauth.shell.addresses import Address, parse_address
from hubauth.wire.header import Version

_EXAMPLES_PLAYED = 25
_EXAMPLES = """\
examples:
  hubauth conform 127.0.0.1:7080
  hubauth conform 127.0.0.1:7080 --profile hub.profile.toml --report build/conform
  hubauth conform 127.0.0.1:7080 --only REG-9 --only REV-5
  hubauth conform --list --dialect flat

exit codes:
  0 conforms, 1 violates, 2 usage, 3 the run itself failed (no verdict about a rule), 4 unreadable file
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "Play everything around a running hub and judge what it does by the rules."
    parser = commands.add_parser(
        "conform", help="judge a running hub by the rules, from outside", description=about, epilog=_EXAMPLES
    )
    parser.set_defaults(run=run)
    parser.add_argument("hub", nargs="?", metavar="HOST:PORT", help="the hub under test")
    parser.add_argument("--profile", type=Path, metavar="FILE", help="what the hub has and which way it chose")
    parser.add_argument("--dialect", choices=["auth", "login", "flat"], help="over the profile's")
    parser.add_argument("--header", type=int, choices=[1, 2], help="only this version; default: all of the profile")
    parser.add_argument("--only", action="append", default=[], metavar="RULE", help="a rule or a case; may be repeated")
    parser.add_argument("--known-failing", type=Path, metavar="FILE", help="one case per line; passing is a failure")
    parser.add_argument("--list", action="store_true", help="show the cases, and which of them would run")
    parser.add_argument("--examples", type=int, metavar="N", help="random sequences after the cases; default: 25")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random sequences")
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help="write report.html, summary.json and junit.xml there"
    )
    add_basis(parser)
    parser.add_argument("--json", action="store_true", help="the summary instead of the table")
    parser.add_argument("--verbose", action="store_true", help="skipped cases too; with --list, rules without a case")


def run(chosen: argparse.Namespace) -> int:
    """Play the cases, report, and end with the verdict as exit code."""
    profile = _profile(chosen)
    cases = _cases(chosen)
    if chosen.basis == "documents":
        # What only a decision forbids: here it would be told apart, and the profile would be wrong from then on.
        cases = [case for case in cases if not case.spoils]
    if chosen.list:
        return _list(cases, profile, verbose=chosen.verbose)
    if chosen.hub is None:
        raise CommandError("which hub? HOST:PORT is missing", "hubauth conform 127.0.0.1:7080 --profile hub.toml")
    if chosen.examples is not None and chosen.examples < 0:
        raise CommandError("--examples: a number of at least 0 is needed", "--examples 0 plays no random sequence")
    address = _address("HOST:PORT", chosen.hub)
    if chosen.profile is not None and profile.secrets:
        shared = private.why_not_private(chosen.profile)
        if shared:
            tell(f"warning: {shared}", to=sys.stderr)
    known = _known_failing(chosen.known_failing)
    with Subject(address.host, address.port, profile, Version(profile.header[0])) as subject:
        try:
            judgement = _judge(subject, cases, known, chosen)
        except (Unreachable, NotServing) as problem:
            hint = "this says nothing about any rule; hubauth profile check tells what in a profile does not fit"
            raise CommandError(str(problem), hint, FAILED) from None
        if chosen.basis == "documents":
            judgement = evolve(judgement, results=list(map(by_documents, judgement.results)))
        found = summarize(judgement, subject, chosen.seed)
    if chosen.report is not None:
        _write(chosen.report, found, judgement.vectors)
    tell_text(summary_json(found).decode() if chosen.json else report.table(judgement, verbose=chosen.verbose))
    if found.exit_code == FAILED and not found.trouble and not _erred(found):
        raise CommandError("no case was run", "the profile declares nothing that the chosen cases need", FAILED)
    return found.exit_code


def _erred(found: Summary) -> bool:
    return any(result.verdict == "error" for result in found.results)


def _judge(subject: Subject, cases: list[Case], known: frozenset[str], chosen: argparse.Namespace) -> Judgement:
    if subject.profile.parent is not None:
        above = _address("parent.listen", subject.profile.parent.listen)
        try:
            subject.listen(above.host, above.port)
        except OSError as problem:
            raise CommandError(f"cannot listen on {above}: {problem.strerror}", "see parent.listen") from None
        subject.join()
    examples = chosen.examples if chosen.examples is not None else 0 if chosen.only else _EXAMPLES_PLAYED
    return Run(subject, cases, known, _command(chosen), examples, chosen.seed, _progress).judge()


def _progress(result: Result) -> None:
    """Say which case has ended, for somebody who watches."""
    draw_over(f"{result.id} {result.verdict}")


def _write(directory: Path, found: Summary, vectors: dict[str, bytes]) -> None:
    files = {
        "report.html": page(found).encode(),
        "summary.json": summary_json(found),
        SCHEMA_NAME: summary_schema(),
        "junit.xml": junit(found.results, found.hub),
        **vectors,
    }
    try:
        private.make_directory(directory)
        for name, content in files.items():
            private.write(directory / name, content, over=True)
    except OSError as problem:
        raise CommandError(f"cannot write to {directory}: {problem.strerror}", "--report names a directory") from None


def _command(chosen: argparse.Namespace) -> tuple[str, ...]:
    words = ["hubauth", "conform", chosen.hub]
    if chosen.profile is not None:
        words += ["--profile", str(chosen.profile)]
    if chosen.dialect is not None:
        words += ["--dialect", chosen.dialect]
    return tuple(words)


def _profile(chosen: argparse.Namespace) -> Profile:
    try:
        profile = Profile() if chosen.profile is None else load_profile(chosen.profile)
    except ProfileError as problem:
        raise CommandError(str(problem), code=UNREADABLE) from None
    if chosen.dialect is not None:
        profile = msgspec.structs.replace(profile, dialect=Dialect(chosen.dialect))
    if chosen.header is not None:
        profile = msgspec.structs.replace(profile, header=(chosen.header,))
    return profile


def _cases(chosen: argparse.Namespace) -> list[Case]:
    try:
        return choose(CASES.values(), chosen.only)
    except LookupError as problem:
        raise CommandError(f"--only {problem.args[0]}: no such rule or case", "--list shows them") from None


def _known_failing(path: Path | None) -> frozenset[str]:
    if path is None:
        return frozenset()
    try:
        lines = read_text(path).splitlines()
    except (OSError, ValueError) as problem:
        raise CommandError(f"cannot read {path}: {problem}", code=UNREADABLE) from None
    names = [line.partition("#")[0].strip() for line in lines]
    for number, name in enumerate(names, 1):
        if name and name not in CASES and name.removeprefix("promise/") not in promised():
            raise CommandError(f"{path}:{number}: no such case: {name}", "--list shows them", UNREADABLE)
    return frozenset(name for name in names if name)


def _list(cases: list[Case], profile: Profile, *, verbose: bool) -> int:
    width = max(len(case.id) for case in cases)
    for case in cases:
        reasons = {why_skipped(case, profile, Version(version)) for version in profile.header}
        state = "runs" if "" in reasons else "; ".join(sorted(reasons))
        tell(f"{case.id:{width}}  {case.level:6}  {case.title}  [{state}]")
    for rule, reason in UNASKED.items() if verbose else ():
        tell(f"{rule:{width}}  {'-':6}  no case: {reason}")
    return 0


def _address(what: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as problem:
        raise CommandError(f"{what}: {problem}") from None
