"""Running cases against a hub under test, one after the other, and turning what was seen into verdicts."""

import shlex
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from attrs import field, frozen
from msgspec.structs import replace

from hubauth.oracle.conform.compare import Difference
from hubauth.oracle.conform.declare import Case
from hubauth.oracle.conform.problems import Deviated, TooSlow, Violated
from hubauth.oracle.conform.profile import Profile
from hubauth.oracle.conform.results import Arrow, Finding, Result, Verdict
from hubauth.oracle.conform.sequence import vector_of
from hubauth.oracle.conform.session import AGAIN, Failure, explore
from hubauth.oracle.conform.subject import Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.oracle.conform.world import World
from hubauth.report.conceal import conceal, secrets_in
from hubauth.seen import promised
from hubauth.specification import rules
from hubauth.wire.header import Version

_TRIES = 3
"""Of a case in which something took too long to say anything."""
_FINDINGS = 5
"""Shown of one broken promise."""
_NOT_PASSED: tuple[Verdict, ...] = ("fail", "known", "error", "blocked")


@frozen
class Played:
    """What happened in one case."""

    verdict: Verdict
    differences: tuple[Difference, ...] = ()
    aside: tuple[Difference, ...] = ()
    exchange: tuple[Arrow, ...] = ()
    rules: tuple[str, ...] = ()
    reason: str = ""
    too_slow: bool = False


def play(subject: Subject, case: Case) -> Played:
    """Play one case. Whatever goes wrong in this tool or on the way is an ``error``, not a verdict about the rule."""
    for _ in range(_TRIES - 1):
        played = _play(subject, case)
        if not played.too_slow:
            return played
    return _play(subject, case)


def _play(subject: Subject, case: Case) -> Played:
    verdict: Verdict = "info" if case.informational else "pass"
    differences: tuple[Difference, ...] = ()
    reason, too_slow = "", False
    world = None
    try:
        world = World(subject, case.rule.id)
        case.play(world)
        if case.rule.level == "MUST" and case.rule.id not in world.mirror.rules:
            # Others are choices: a hub that chose otherwise is held to that.
            verdict, reason = "error", f"the case never came to {case.rule.id}"
    except Violated as violated:
        verdict, differences = "info" if case.informational else "fail", violated.differences
    except Deviated as deviated:
        verdict, reason = "blocked", str(deviated)
    except (Unreachable, TooSlow) as problem:
        verdict, reason, too_slow = "error", str(problem), isinstance(problem, TooSlow)
    except Exception as problem:
        verdict, reason = "error", f"{type(problem).__name__}: {problem}"
    if world is None:
        return Played(verdict, reason=reason)
    try:
        world.close()
    except Unreachable as problem:
        if verdict != "fail":
            verdict, reason = "error", str(problem)
    cited = tuple(sorted(world.mirror.rules))
    return Played(verdict, differences, tuple(world.aside), arrows(world), cited, reason, too_slow)


def arrows(world: World) -> tuple[Arrow, ...]:
    """The exchange of a world."""
    return tuple(Arrow(one.sender, one.receiver, one.label, one.detail, one.wrong) for one in world.record.events)


def prepare(subject: Subject, version: Version) -> None:
    """Get to know the hub under test through this header version. Raises Unreachable or NotServing."""
    subject.version = version
    subject.probe()
    World(subject).close()


def why_skipped(case: Case, profile: Profile, version: Version) -> str:
    """Why this hub is not asked about this case; empty if it is."""
    if not case.in_dialect(profile.spoken):
        return f"not in the dialect {profile.dialect.value}"
    present = profile.available | {f"header_{int(version)}"}
    missing = [need for need in case.needs if need not in present]
    return f"needs {', '.join(missing)}" if missing else ""


@frozen
class Judgement:
    """What a run has found."""

    results: list[Result]
    sequences: int = 0
    steps: int = 0
    vectors: dict[str, bytes] = field(factory=dict)
    """File name -> a random sequence that failed, as a vector."""
    trouble: str = ""
    """Why the random sequences were broken off, if they were: no verdict about a rule."""


@frozen
class Run:
    """One run over the chosen cases. ``command`` repeats it; ``on_result`` hears of every case as it ends."""

    subject: Subject
    cases: Sequence[Case]
    known_failing: frozenset[str] = frozenset()
    command: tuple[str, ...] = ()
    sequences: int = 0
    """Random ones, after the cases if these found nothing."""
    seed: int = 0
    on_result: Callable[[Result], None] = field(default=lambda _: None)

    def judge(self) -> Judgement:
        """Play every chosen case, then random sequences, with every header version that the profile declares."""
        results: list[Result] = []
        sequences = steps = 0
        vectors: dict[str, bytes] = {}
        trouble = ""
        for version in map(Version, self.subject.profile.header):
            prepare(self.subject, version)
            found = self._of_version(version)
            if self.sequences and not any(result.verdict in _NOT_PASSED for result in found):
                explored = explore(self.subject, number=self.seed, examples=self.sequences)
                trouble = trouble or explored.trouble
                sequences, steps = sequences + explored.sequences, steps + explored.steps
                if explored.failure is not None:
                    found.append(redact(self._of_failure(explored.failure, version), self.subject.profile))
                    vectors |= self._vector(explored.failure, found[-1])
                found += self._of_promises([(None, one) for one in self.subject.witness.take()], version)
            results += found
        return Judgement(results, sequences, steps, vectors, trouble)

    def _of_failure(self, failure: Failure, version: Version) -> Result:
        """A random sequence that failed, as a result under the rule that is to blame."""
        differences = failure.violated.differences
        rule = rules()[differences[0].rule]
        title = "A random sequence: " + ", ".join(what for what, _, _ in failure.moves) + "."
        again = () if not self.command else (*self.command, "--seed", str(self.seed), "--examples", str(self.sequences))
        return replace(
            self._blank(rule.id, rule.level, title, version),
            id=f"{rule.id}/random",
            verdict="fail",
            reason="" if failure.again == AGAIN else _how_often(failure, self.sequences),
            findings=tuple(_finding(one, rule.id) for one in differences),
            exchange=arrows(failure.world),
            rules=tuple(sorted(failure.world.mirror.rules)),
            command=shlex.join((*again, "--header", str(int(version)))) if again else "",
        )

    def _vector(self, failure: Failure, result: Result) -> dict[str, bytes]:
        name = f"{result.rule}-random-v{result.header}"
        said = conceal(str(failure.violated), self.subject.profile.secrets)
        comment = f"After the last step {self.subject.host}:{self.subject.port} did something else: {said}"
        vector = vector_of(failure.world.mirror, name, comment)
        return {} if vector is None else {f"{name}.json": vector}

    def _of_version(self, version: Version) -> list[Result]:
        results: dict[str, Result] = {}
        aside: list[tuple[Result, Difference]] = []
        broken: list[tuple[Result | None, Finding]] = []
        gone = ""
        for case in self.cases:
            result, differences = self._of_case(case, version, results, gone)
            results[case.id] = result
            aside += [(result, one) for one in differences]
            broken += [(result, one) for one in self.subject.witness.take()]
            if result.verdict == "error" and not gone:
                gone = self._why_gone()
            self.on_result(result)
        self._take_aside(results, aside, version)
        found = [redact(self._held_to_known(result), self.subject.profile) for result in results.values()]
        return found + self._of_promises(broken, version)

    def _of_case(
        self, case: Case, version: Version, before: dict[str, Result], gone: str
    ) -> tuple[Result, tuple[Difference, ...]]:
        blank = self._blank(case.id, case.level, case.title, version)
        skipped = why_skipped(case, self.subject.profile, version)
        if skipped:
            return replace(blank, verdict="skipped", reason=skipped), ()
        if gone:
            return replace(blank, verdict="blocked", reason=gone), ()
        broken = [name for name in case.depends_on if name in before and before[name].verdict in _NOT_PASSED]
        if broken:
            return replace(blank, verdict="blocked", reason=f"{', '.join(broken)} did not pass"), ()
        started = time.monotonic()
        played = play(self.subject, case)
        result = replace(
            blank,
            verdict=played.verdict,
            reason=played.reason,
            findings=tuple(_finding(one, case.rule.id) for one in played.differences),
            exchange=played.exchange,
            rules=played.rules,
            seconds=round(time.monotonic() - started, 3),
        )
        return result, played.aside

    def _blank(self, identity: str, level: str, title: str, version: Version) -> Result:
        rule = rules()[identity.partition("/")[0]]
        command = shlex.join((*self.command, "--header", str(int(version)), "--only", identity)) if self.command else ""
        return Result(
            identity, rule.id, level, title, rule.text, int(version), "skipped", command=command, basis=rule.basis
        )

    def _why_gone(self) -> str:
        try:
            self.subject.check_alive()
        except Unreachable as problem:
            return str(problem)
        return ""

    def _take_aside(
        self, results: dict[str, Result], aside: Iterable[tuple[Result, Difference]], version: Version
    ) -> None:
        """Give what was seen in one case to the rule it belongs to."""
        for where, one in aside:
            finding = replace(_finding(one, one.rule), case=where.id)
            identity = f"{one.rule}/noted" if one.informational else one.rule
            known = results.get(identity)
            if known is None or known.verdict in ("skipped", "blocked"):
                level = "INFO" if one.informational else rules()[one.rule].level
                title = "Seen in cases that are about other rules."
                known = replace(self._blank(one.rule, level, title, version), id=identity, command=where.command)
            if any((old.what, old.expected, old.seen) == (one.what, one.expected, one.seen) for old in known.findings):
                continue
            verdict: Verdict = "info" if one.informational else "fail"
            if known.verdict != "fail":  # its own case passed, or was not played: only the other one shows it
                known = replace(known, exchange=where.exchange, command=where.command)
            results[identity] = replace(known, verdict=verdict, findings=(*known.findings, finding))

    def _of_promises(self, broken: Iterable[tuple[Result | None, Finding]], version: Version) -> list[Result]:
        """A result for every promise that was broken, with the first of the cases in which that was seen."""
        results: dict[str, Result] = {}
        for where, finding in broken:
            name = finding.rule
            if name not in results:
                text = promised()[name]
                exchange, command = (where.exchange, where.command) if where is not None else ((), "")
                blank = Result(
                    f"promise/{name}", name, "MUST", "A promise, whatever the rules say.", text, int(version), "fail"
                )
                results[name] = replace(blank, exchange=exchange, command=command, basis="what every hub promises")
            findings = (*results[name].findings, replace(finding, case=where.id if where is not None else "random"))
            results[name] = replace(results[name], findings=findings[:_FINDINGS])
        return [redact(self._held_to_known(result), self.subject.profile) for result in results.values()]

    def _held_to_known(self, result: Result) -> Result:
        if result.verdict == "fail" and result.rule in self.subject.profile.known_failing:
            return replace(result, verdict="known")
        if result.id not in self.known_failing:
            return result
        if result.verdict == "fail":
            return replace(result, verdict="known")
        if result.verdict == "pass":
            return replace(result, verdict="fixed", reason="passes, but is listed as known to fail")
        return result


def _how_often(failure: Failure, sequences: int) -> str:
    return (
        f"seen once in up to {sequences} sequences; the same sequence, played {AGAIN} times more, "
        f"showed it {failure.again} times"
    )


def redact(result: Result, profile: Profile) -> Result:
    """Without credentials, given by the profile or issued by the hub: a report may travel further than either."""
    plain = msgspec.to_builtins(result)
    secrets = profile.secrets.union(*map(secrets_in, _texts(plain)))
    return msgspec.convert(_without(plain, secrets), Result)


def _texts(plain: Any) -> Iterator[str]:
    if isinstance(plain, str):
        yield plain
    elif isinstance(plain, dict | list | tuple):
        for value in plain.values() if isinstance(plain, dict) else plain:
            yield from _texts(value)


def _without(plain: Any, secrets: Collection[str]) -> Any:
    if isinstance(plain, str):
        return conceal(plain, secrets)
    if isinstance(plain, dict):
        return {name: _without(value, secrets) for name, value in plain.items()}
    return [_without(value, secrets) for value in plain] if isinstance(plain, list | tuple) else plain


def _finding(one: Difference, rule: str) -> Finding:
    return Finding(one.what, one.expected, one.seen, one.rule or rule, one.informational, behind=one.behind)


def choose(cases: Iterable[Case], only: Sequence[str]) -> list[Case]:
    """The cases of these rules, or with these ids; all if none is named. Raises LookupError for what names nothing."""
    cases = list(cases)
    for name in only:
        if not any(name in (case.id, case.rule.id) for case in cases):
            raise LookupError(name)
    return [case for case in cases if not only or any(name in (case.id, case.rule.id) for name in only)]
