"""``hubauth trace``: look at what hubs did, and judge it."""

import argparse
import json
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from hubauth import private
from hubauth.cli import trace_making
from hubauth.cli.declared import NOT_NAMED, add_declared, declared_in
from hubauth.cli.grammar import add_basis, add_command
from hubauth.cli.problems import REFUSED, UNREADABLE, CommandError
from hubauth.cli.terminal import draw_over, tell, tell_text
from hubauth.forms.events import Event, TraceError
from hubauth.forms.lines import encode_event
from hubauth.judge.across import Breach, rows_of
from hubauth.judge.search import EFFORT
from hubauth.judge.verdicts import Outcome, Verdict
from hubauth.trace.drawing import Diagram, to_svg, to_text
from hubauth.trace.explain import AROUND, breach_in_words, diagram_of, diagram_of_rows, in_words, parts_of, to_html
from hubauth.trace.judge import CANNOT_TELL, Judgement, judge
from hubauth.trace.lint import lint
from hubauth.trace.shrink import replayed, shrink
from hubauth.trace.storage import (
    TraceWriter,
    checkpoint_files,
    events_files,
    read_checkpoints,
    read_events,
)

_EXAMPLES = """\
examples:
  hubauth hub --config hub.toml --trace traces/today
  hubauth trace lint traces/today
  hubauth trace replay traces/today
  hubauth trace explain traces/today --html why.html
  hubauth trace shrink traces/today --out small.jsonl
  hubauth trace tap 127.0.0.1:7081 127.0.0.1:7080 --policy hub.toml --out traces/tapped

exit codes:
  0 conforms, 1 violates, 2 wrong use, 3 the command itself failed, 4 unreadable or nothing to judge, 5 cannot tell
"""
_DRAWN = 60
"""Rows in a picture, unless told otherwise."""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "Look at what hubs did, and judge it by the rules."
    trace = commands.add_parser("trace", help="record, replay, explain traces", description=about, epilog=_EXAMPLES)
    inner = trace.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_judging(inner)
    _add_looking(inner)
    trace_making.add_to(inner)


def _add_judging(inner: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    linting = add_command(inner, "lint", run_lint, "say what is missing in a trace", "traces/today")
    _add_trace(linting)
    linting.add_argument("--json", action="store_true", help="the findings as JSON, one per line")
    replaying = add_command(inner, "replay", run_replay, "judge traces on this machine", "traces/today --rules")
    replaying.add_argument("paths", type=Path, nargs="+", metavar="PATH", help="trace directories or files of rows")
    add_declared(replaying, NOT_NAMED)
    _add_effort(replaying)
    add_basis(replaying)
    replaying.add_argument("--rules", action="store_true", help="also how often each rule decided something")
    replaying.add_argument("--json", action="store_true", help="the verdicts as JSON")


def _add_looking(inner: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explaining = add_command(inner, "explain", run_explain, "draw what happened", "traces/today --html why.html")
    _add_one_hub(explaining)
    explaining.add_argument("--rows", metavar="FIRST:LAST", help="these rows instead of those that led to the verdict")
    explaining.add_argument("--svg", type=Path, metavar="FILE", help="write the picture there")
    explaining.add_argument("--html", type=Path, metavar="FILE", help="write picture and verdict there")
    shrinking = add_command(inner, "shrink", run_shrink, "make a failing trace small", "traces/today --out small.jsonl")
    _add_one_hub(shrinking)
    shrinking.add_argument("--out", type=Path, required=True, metavar="FILE", help="where to write it, as JSON Lines")
    shrinking.add_argument("--json", action="store_true", help="say what was written as JSON")
    converting = add_command(
        inner, "convert", run_convert, "between JSON Lines and Parquet", "traces/today traces/columns --to parquet"
    )
    _add_trace(converting)
    converting.add_argument("out", type=Path, metavar="DIR", help="the directory to write")
    converting.add_argument("--to", choices=["jsonl", "parquet"], required=True, help="the format to write")
    converting.add_argument("--json", action="store_true", help="say what was written as JSON")


def _add_trace(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("path", type=Path, metavar="PATH", help="a trace directory, or one file of rows")


def _add_effort(parser: argparse.ArgumentParser) -> None:
    words = f"steps to try for one row whose place in the order of handling is not known (default: {EFFORT})"
    parser.add_argument("--effort", type=_positive, default=EFFORT, metavar="N", help=words)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"not a number of at least 1: {text}")
    return int(text)


def _add_one_hub(parser: argparse.ArgumentParser) -> None:
    _add_trace(parser)
    _add_effort(parser)
    add_basis(parser)
    parser.add_argument("--hub", metavar="NAME", help="this hub (default: the one with the worst verdict)")
    add_declared(parser, NOT_NAMED)


def _guarded(run: Callable[[argparse.Namespace], int]) -> Callable[[argparse.Namespace], int]:
    """What cannot be read ends the command with exit code 4."""

    @wraps(run)
    def guarded(chosen: argparse.Namespace) -> int:
        try:
            return run(chosen)
        except TraceError as problem:
            raise CommandError(str(problem), "hubauth trace lint says more", UNREADABLE) from None

    return guarded


# Judging


@_guarded
def run_lint(chosen: argparse.Namespace) -> int:
    """Say what is missing in a trace, row by row. Exit code 1 if something has to be put right."""
    errors = warnings = 0
    for finding in lint(chosen.path):
        errors += finding.is_error
        warnings += not finding.is_error
        if chosen.json:
            tell(json.dumps({"where": finding.where, "message": finding.message, "error": finding.is_error}))
        else:
            tell(f"{finding.where}: {'' if finding.is_error else 'note: '}{finding.message}")
    if not chosen.json:
        tell(f"{errors} to put right, {warnings} notes")
    return REFUSED if errors else 0


@_guarded
def run_replay(chosen: argparse.Namespace) -> int:
    """Replay every hub of the traces and judge what it did."""
    judgement = _judge(chosen.paths, chosen, _progress(chosen.json))
    if chosen.json:
        said = {
            "outcome": judgement.outcome.value,
            "verdicts": [verdict.plain() for verdict in judgement.verdicts],
            "breaches": [breach.plain() for breach in judgement.breaches],
            "unreadable": list(judgement.unreadable),
            "rules": dict(sorted(judgement.rules.items())),
        }
        tell(json.dumps(said))
        return judgement.exit_code
    for verdict in judgement.verdicts:
        tell_text(in_words(verdict))
    for breach in judgement.breaches:
        tell_text(breach_in_words(breach))
    for problem in judgement.unreadable:
        tell(f"unreadable: {problem}")
    if chosen.rules:
        for rule, times in sorted(judgement.rules.items()):
            tell(f"{times:>10}  {rule}")
    tell(_in_short(judgement))
    return judgement.exit_code


def _in_short(judgement: Judgement) -> str:
    rows = sum(verdict.events for verdict in judgement.verdicts)
    outcome = judgement.outcome.value.replace("_", " ")
    return f"{outcome}: {len(judgement.verdicts)} hubs, {rows} rows, {len(judgement.rules)} rules exercised"


def _judge(
    paths: list[Path], chosen: argparse.Namespace, progress: Callable[[int], None] = lambda _rows: None
) -> Judgement:
    known = declared_in(chosen)
    options: dict[str, Any] = {"basis": chosen.basis, "effort": chosen.effort}
    return judge(paths, known.policy_of, progress, habits=known.habits, failing=known.failing, **options)


def _progress(quiet: bool) -> Callable[[int], None]:
    return lambda rows: None if quiet else draw_over(f"{rows} rows")


# Looking


@_guarded
def run_explain(chosen: argparse.Namespace) -> int:
    """Draw what led to a verdict, or any rows of one hub, as a sequence diagram."""
    if chosen.rows is not None:
        verdict, breach, diagram = None, None, diagram_of(_rows_between(chosen))
        if chosen.html is not None:
            raise CommandError("--html shows a verdict: leave --rows out, or take --svg")
    else:
        judgement = _judge([chosen.path], chosen)
        verdict = _worst_of(judgement, chosen)
        breach = next((one for one in judgement.breaches if chosen.hub in (None, one.broken.hub)), None)
        rows = verdict.main.leads or tuple(_rows_of(chosen.path, verdict.hub))[:_DRAWN]
        diagram = _diagram_of(breach, chosen.path) if breach is not None else diagram_of(rows, verdict.main)
    tell_text(to_text(diagram))
    broken = [(breach_in_words(breach), diagram)] if breach is not None else []
    for text in [*(words for words, _ in broken), *([in_words(verdict)] if verdict else [])]:
        tell_text(text)
    if chosen.svg is not None:
        _write(chosen.svg, to_svg(diagram).encode())
    if chosen.html is not None and verdict is not None:
        _write(chosen.html, to_html(verdict, [*broken, *parts_of(verdict, diagram)]).encode())
    return _code_of(verdict)


def _diagram_of(breach: Breach, path: Path) -> Diagram:
    """What breaks a promise, with the rows around it, at every hub that took part."""
    wanted = rows_of(breach.broken)
    windows: list[list[Event]] = [[] for _ in wanted]
    for file in events_files(path):
        for event in read_events(file):
            for (hub, row), window in zip(wanted, windows, strict=True):
                if event.hub == hub and event.trace == breach.trace and abs(event.sequence - row) <= AROUND:
                    window.append(event)
    given = ((row, tuple(window)) for (_, row), window in zip(wanted, windows, strict=True))
    return diagram_of_rows(given, breach.broken.promise)


def _code_of(verdict: Verdict | None) -> int:
    """What could not be told is told by the exit code, too."""
    return CANNOT_TELL if verdict is not None and verdict.outcome is Outcome.CANNOT_TELL else 0


def _worst_of(judgement: Judgement, chosen: argparse.Namespace) -> Verdict:
    verdicts = [verdict for verdict in judgement.verdicts if chosen.hub in (None, verdict.hub)]
    if not verdicts:
        raise CommandError(f"no hub {chosen.hub} in {chosen.path}", _hubs_in(judgement), UNREADABLE)
    rank = {Outcome.VIOLATES: 0, Outcome.CANNOT_TELL: 1, Outcome.CONFORMS: 2}
    return min(verdicts, key=lambda verdict: rank[verdict.outcome])


def _hubs_in(judgement: Judgement) -> str:
    return "there are " + ", ".join(sorted({verdict.hub for verdict in judgement.verdicts}))


def _rows_between(chosen: argparse.Namespace) -> tuple[Event, ...]:
    first, colon, last = chosen.rows.partition(":")
    if not colon or not first.isdecimal() or not last.isdecimal() or int(last) < int(first):
        raise CommandError(f"--rows: not FIRST:LAST: {chosen.rows}")
    if chosen.hub is None:
        raise CommandError("--rows needs --hub")
    rows = tuple(e for e in _rows_of(chosen.path, chosen.hub) if int(first) <= e.sequence <= int(last))
    if not rows:
        raise CommandError(f"{chosen.hub} has no such rows", code=UNREADABLE)
    return rows


def _rows_of(path: Path, hub: str) -> Iterator[Event]:
    return (event for file in events_files(path) for event in read_events(file) if event.hub == hub)


@_guarded
def run_shrink(chosen: argparse.Namespace) -> int:
    """Leave out of a failing trace what it does not need to fail in the same way."""
    hub = chosen.hub or _worst_of(_judge([chosen.path], chosen), chosen).hub
    rows = list(_rows_of(chosen.path, hub))
    if not rows:
        raise CommandError(f"no hub {hub} in {chosen.path}", code=UNREADABLE)
    try:
        small = shrink(declared_in(chosen).in_rows(rows), effort=chosen.effort)
    except ValueError as problem:
        raise CommandError(str(problem), "only what does not conform can be made smaller", REFUSED) from None
    _write(chosen.out, b"".join(map(encode_event, small)))
    verdict = replayed(small, chosen.effort)
    if chosen.json:
        tell(json.dumps({"rows": len(small), "of": len(rows), "file": str(chosen.out), "rule": verdict.rule}))
    else:
        tell(f"{len(rows)} rows made {len(small)}: {chosen.out}")
        tell_text(in_words(verdict))
    return _code_of(verdict)


@_guarded
def run_convert(chosen: argparse.Namespace) -> int:
    """Write a trace in the other format; nothing is lost."""
    files = events_files(chosen.path)
    rows = checkpoints = 0
    try:
        writer = TraceWriter(chosen.out, chosen.to)
    except TraceError as problem:
        raise CommandError(str(problem), "name a directory that does not exist yet") from None
    with writer:
        for file in files:
            for event in read_events(file):
                writer.event(event)
                rows += 1
        for file in checkpoint_files(chosen.path):
            for checkpoint in read_checkpoints(file):
                writer.checkpoint(checkpoint)
                checkpoints += 1
    if not rows:
        raise CommandError(f"no rows in {chosen.path}", code=UNREADABLE)
    said = {"rows": rows, "checkpoints": checkpoints, "directory": str(chosen.out)}
    tell(json.dumps(said) if chosen.json else f"{rows} rows and {checkpoints} checkpoints: {chosen.out}")
    return 0


def _write(path: Path, content: bytes) -> None:
    try:
        private.write(path, content, over=True)
    except OSError as problem:
        raise CommandError(f"cannot write {path}: {problem.strerror}") from None
