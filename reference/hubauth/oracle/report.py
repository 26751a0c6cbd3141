"""The result of a conformance run as a table for the terminal."""

from collections import Counter
from collections.abc import Iterator, Sequence

from hubauth.oracle.conform.causes import causes_of
from hubauth.oracle.conform.results import LEVELS, VIOLATIONS, Result
from hubauth.oracle.conform.run import Judgement
from hubauth.report.escape import visible

_NEEDS_WORDS = ("fail", "fixed", "error", "info", "apart")


def table(judgement: Judgement, *, verbose: bool = False) -> str:
    """One line per case, then what failed and how, then the sums."""
    results = judgement.results
    lines = [*_rows(results, verbose), *_details(results), "", *_sums(results), *_causes(results)]
    if judgement.sequences:
        lines.append(f"random: {judgement.sequences} sequences, {judgement.steps} steps")
    if judgement.trouble:
        lines.append(f"random: broken off: {judgement.trouble}")
    return "\n".join(map(visible, lines))


def _rows(results: Sequence[Result], verbose: bool) -> Iterator[str]:
    headers = sorted({result.header for result in results})
    by_case: dict[str, dict[int, Result]] = {}
    for result in results:
        by_case.setdefault(result.id, {})[result.header] = result
    shown = {
        identity: by_header
        for identity, by_header in by_case.items()
        if verbose or any(result.verdict != "skipped" for result in by_header.values())
    }
    width = max([len(identity) for identity in shown] + [4])
    titles = " ".join(f"{f'v{header}':8}" for header in headers)
    yield f"{'case':{width}}  {'level':6}  {titles}  about"
    for identity, by_header in shown.items():
        first = next(iter(by_header.values()))
        verdicts = " ".join(f"{by_header[h].verdict if h in by_header else '-':8}" for h in headers)
        yield f"{identity:{width}}  {first.level:6}  {verdicts}  {first.title}"


def _details(results: Sequence[Result]) -> Iterator[str]:
    first = {(cause.case, cause.header): cause for cause in causes_of(results)}
    for result in results:
        if result.verdict not in _NEEDS_WORDS or not (result.findings or result.reason):
            continue
        cause = first.get((result.id, result.header))
        if result.verdict in VIOLATIONS and result.findings and cause is None:
            continue  # told under the case that explains it
        yield ""
        yield f"{result.id} [{result.level}, header {result.header}] {result.verdict}: {result.title}"
        yield f"  rule      {result.text}"
        yield f"  basis     {result.basis}"
        if result.reason:
            yield f"  reason    {result.reason}"
        for finding in result.findings:
            where = f" (in {finding.case})" if finding.case else ""
            yield f"  {finding.what}{where}"
            yield f"    expected  {finding.expected}"
            yield f"    seen      {finding.seen}"
        if cause is not None and cause.count > 1:
            others = [case for case in cause.cases if case != result.id]
            where = f", also under {', '.join(others)}" if others else ""
            yield f"  the same  {cause.count} times{where}"
        if result.command and result.verdict != "info":
            yield f"  again     {result.command}"


def _causes(results: Sequence[Result]) -> Iterator[str]:
    causes = causes_of(results)
    if causes:
        failed = sum(cause.count for cause in causes)
        yield f"{failed} failed for {len(causes)} different reason{'s' if len(causes) > 1 else ''}:"
        yield from (f"  {cause.rule}: {cause.differs} ({cause.count} times)" for cause in causes)


def _sums(results: Sequence[Result]) -> Iterator[str]:
    for level in LEVELS:
        counted = Counter(result.verdict for result in results if result.level == level)
        if counted:
            yield f"{level:6}  " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counted.items()))
    reasons = Counter(result.reason for result in results if result.verdict == "skipped")
    if reasons:
        yield "skipped: " + "; ".join(f"{count} {reason}" for reason, count in reasons.most_common())
