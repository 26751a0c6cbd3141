"""Mutation run over the core: ``python -m tools.mutants --all``.

Every mutant gets a forked process, in which the tests that execute the changed line are run until one fails. What
survives is listed and, if it is of the core, must have an explanation in model_tests/survivors.toml of why it is no
different; an explanation of what does not survive, or does not exist, must go. Either makes the run fail.
"""

import argparse
import gc
import json
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from attrs import frozen

from model_tests.killing import ROOT, MeasuredTest, cases, failure_of, measured, quiet_hypothesis
from model_tests.mutation import AROUND, MODULES, Mutant, install, mutants_of

PATIENCE_SECONDS = 3.0
"""Processor time that any test may take; beyond that, ten times what it took without a mutant."""
MEMORY_BYTES = 2 * 1024**3
"""More than a process has mapped already, for a mutant that does not stop taking."""
REQUIRED_SCORE = 0.90
CI_SAMPLE, CI_SEED, CI_BUDGET_SECONDS = 300, 20, 120.0
REPORT = ROOT / "spec" / "mutants.md"
RESULTS = ROOT / "build" / "mutants.json"
EXPLANATIONS = ROOT / "model_tests" / "survivors.toml"

SURVIVED, KILLED, BROKEN = 0, 1, 2


@frozen
class MutantVerdict:
    """What became of a mutant: a test has noticed it, or its worker ``died`` and said nothing, or it survived."""

    mutant: Mutant
    killer: str = ""
    died: str = ""

    @property
    def survived(self) -> bool:
        return not self.killer and not self.died


@frozen
class Explanation:
    """Why a survivor is equivalent to the core."""

    file: str
    function: str
    operator: str
    source: str
    because: str

    @property
    def name(self) -> str:
        return f"{self.file} {self.function} [{self.operator}] {self.source}"

    def explains(self, mutant: Mutant) -> bool:
        changed = (mutant.file, mutant.qualname, mutant.operator, mutant.source)
        return (self.file, self.function, self.operator, self.source) == changed


# Running


def judge(mutant: Mutant, suite: list[MeasuredTest], writer: int) -> int:
    """In a process of its own: run the mutant until something fails; the exit code."""
    most = _mapped() + MEMORY_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    install(mutant)
    for case in suite:
        if not case.touches(mutant):
            continue
        signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_SECONDS + 10 * case.seconds)
        if failure_of(case):
            os.write(writer, case.name.encode())
            return KILLED
    return SURVIVED


def _mapped() -> int:
    """Bytes that this process had mapped before: a test run that has used Spark or Arrow has mapped much."""
    sizes = Path("/proc/self/statm")
    return int(sizes.read_text().split()[0]) * resource.getpagesize() if sizes.exists() else 0


def run(mutants: list[Mutant], suite: list[MeasuredTest], jobs: int, budget: float | None) -> list[MutantVerdict]:
    """Judge all mutants, ``jobs`` at a time, starting none after the budget is spent."""
    started = time.monotonic()
    running: dict[int, tuple[Mutant, int]] = {}
    verdicts: list[MutantVerdict] = []
    todo = list(reversed(mutants))
    while todo or running:
        if budget is not None and time.monotonic() - started > budget:
            todo.clear()
        while todo and len(running) < jobs:
            mutant = todo.pop()
            reader, writer = os.pipe()
            child = os.fork()
            if child == 0:
                code = BROKEN
                try:
                    code = judge(mutant, suite, writer)
                finally:
                    os._exit(code)
            os.close(writer)
            running[child] = (mutant, reader)
        if running:
            child, status = os.wait()
            mutant, reader = running.pop(child)
            verdicts.append(_verdict(mutant, status, reader))
            _progress(verdicts, len(mutants), time.monotonic() - started)
    print(file=sys.stderr)
    return sorted(verdicts, key=lambda verdict: (verdict.mutant.file, verdict.mutant.line, verdict.mutant.number))


def _verdict(mutant: Mutant, status: int, reader: int) -> MutantVerdict:
    with os.fdopen(reader) as stream:
        killer = stream.read()
    if os.WIFSIGNALED(status):
        late = os.WTERMSIG(status) == signal.SIGVTALRM
        return MutantVerdict(mutant, died="took too long" if late else f"signal {os.WTERMSIG(status)}")
    if os.WEXITSTATUS(status) == BROKEN:
        raise SystemExit(f"a mutant could not be put in place: {mutant.name}")
    return MutantVerdict(mutant, killer)


def _progress(verdicts: list[MutantVerdict], total: int, seconds: float) -> None:
    killed = len([verdict for verdict in verdicts if verdict.killer])
    survived = len([verdict for verdict in verdicts if verdict.survived])
    line = f"\r{len(verdicts)}/{total} mutants, {killed} killed, {survived} survived, {seconds:.0f} s"
    print(line, end="", file=sys.stderr, flush=True)


def baseline(ignore_failing: bool) -> list[MeasuredTest]:
    """Every test on the core as it is, cheapest first within its kind."""
    started = time.monotonic()
    suite = [measured(case) for case in cases()]
    failing = [case for case in suite if case.failure]
    for case in failing:
        print(f"fails without any mutant: {case.name}: {case.failure}", file=sys.stderr)
    if failing and not ignore_failing:
        raise SystemExit(2)
    suite = sorted((case for case in suite if not case.failure), key=lambda case: case.seconds)
    print(f"{len(suite)} tests measured in {time.monotonic() - started:.0f} s", file=sys.stderr)
    return suite


# Reporting


def explanations() -> list[Explanation]:
    if not EXPLANATIONS.exists():
        return []
    with EXPLANATIONS.open("rb") as file:
        return [Explanation(**entry) for entry in tomllib.load(file).get("survivor", [])]


def score(verdicts: Iterable[MutantVerdict]) -> float:
    counted = list(verdicts)
    return len([verdict for verdict in counted if verdict.killer]) / len(counted) if counted else 0.0


def table(verdicts: list[MutantVerdict]) -> list[str]:
    lines = ["| file | mutants | killed | survived | no verdict | score |", "|---|---:|---:|---:|---:|---:|"]
    files = [f"{module}.py" for module in (*MODULES, *AROUND)]
    for name in [*files, "all"]:
        own = [verdict for verdict in verdicts if name in (verdict.mutant.file, "all")]
        if own:
            killed = len([verdict for verdict in own if verdict.killer])
            survived = len([verdict for verdict in own if verdict.survived])
            lines.append(
                f"| {name} | {len(own)} | {killed} | {survived} | {len(own) - killed - survived} | {score(own):.1%} |"
            )
    return lines


def report(verdicts: list[MutantVerdict], known: list[Explanation]) -> str:
    """The full report as Markdown."""
    lines = [
        "# Mutants of the core",
        "",
        "<!-- Generated by `python -m tools.mutants --all`; do not edit. Reasons: model_tests/survivors.toml -->",
        "",
        "Each mutant is one small change of the decision code: a condition negated, a comparison swapped, a call left",
        "out, a branch never taken, a constant changed, an early return. It is killed if some test fails. If its",
        "process took too long or died, that is no verdict and no kill.",
        "",
        *table(verdicts),
        "",
        "## Survivors",
        "",
    ]
    survivors = [verdict.mutant for verdict in verdicts if verdict.survived]
    explained = [(mutant, _because(mutant, known)) for mutant in survivors]
    for mutant, because in sorted(explained, key=lambda pair: not pair[1]):
        reason = because or "**not explained**"
        lines += [f"- `{mutant.file}:{mutant.line}` in `{mutant.qualname}`, {mutant.operator}:"]
        lines += [f"  `{mutant.source}`", f"  {reason}"]
    return "\n".join(lines if survivors else [*lines, "None."]) + "\n"


def problems(verdicts: list[MutantVerdict], known: list[Explanation], existing: list[Mutant]) -> list[str]:
    """What makes a run fail, besides a low score; ``existing`` are all mutants, whether they were run or not."""
    survivors = [verdict.mutant for verdict in verdicts if verdict.survived]
    killed = [verdict.mutant for verdict in verdicts if verdict.killer]
    decisions = [mutant for mutant in survivors if "/" not in mutant.file]
    found = [f"survived, not explained: {mutant.name}" for mutant in decisions if not _because(mutant, known)]
    for explanation in known:
        if not any(map(explanation.explains, existing)):
            found.append(f"explained, does not exist: {explanation.name}")
        found += [f"explained, but killed: {mutant.name}" for mutant in killed if explanation.explains(mutant)]
    return found


def _because(mutant: Mutant, known: list[Explanation]) -> str:
    return next((explanation.because for explanation in known if explanation.explains(mutant)), "")


def _select(options: argparse.Namespace, existing: list[Mutant]) -> list[Mutant]:
    if options.only:
        return [mutant for mutant in existing if mutant.file == options.only.removesuffix(".py") + ".py"]
    if options.all:
        return existing
    return random.Random(options.seed).sample(existing, min(options.sample, len(existing)))


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every mutant, and write spec/mutants.md")
    parser.add_argument("--only", metavar="FILE", help="every mutant of one file")
    parser.add_argument("--sample", type=int, default=CI_SAMPLE, help="otherwise: this many, chosen by the seed")
    parser.add_argument("--seed", type=int, default=CI_SEED)
    parser.add_argument("--budget", type=float, default=CI_BUDGET_SECONDS, help="seconds for a sample")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--ignore-failing", action="store_true", help="leave out tests that fail without a mutant")
    options = parser.parse_args(arguments)
    if options.all and options.only:
        parser.error("--all and --only exclude each other")
    existing = [mutant for module in (*MODULES, *AROUND) for mutant in mutants_of(module)]
    chosen = _select(options, existing)
    if not chosen:
        parser.error("no mutants selected")

    quiet_hypothesis()
    suite = baseline(options.ignore_failing)
    gc.collect()
    gc.freeze()
    sampled = not options.all and not options.only
    verdicts = run(chosen, suite, options.jobs, options.budget if sampled else None)

    known = explanations()
    print("\n".join(table(verdicts)))
    for verdict in verdicts:
        if verdict.survived and _because(verdict.mutant, known):
            print(f"survived, explained: {verdict.mutant.name}")
        elif verdict.survived and "/" in verdict.mutant.file:
            print(f"survived, around the core: {verdict.mutant.name}")
        if verdict.died:
            print(f"no verdict: {verdict.mutant.name}: {verdict.died}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([_row(verdict) for verdict in verdicts], indent=1) + "\n")
    if options.all:
        REPORT.write_text(report(verdicts, known))
    killers = Counter(verdict.killer.split("[")[0].split(" ")[0].rsplit(".", 1)[0] for verdict in verdicts)
    print("killed by: " + ", ".join(f"{name or 'nothing'} {count}" for name, count in killers.most_common(8)))
    print(f"score {score(verdicts):.1%} of {len(verdicts)} mutants")
    found = problems(verdicts, known, existing)
    # In a small file one survivor, though explained, is a large part.
    of_core = [verdict for verdict in verdicts if "/" not in verdict.mutant.file]
    if score(of_core) < REQUIRED_SCORE and not options.only:
        found.append(f"the score is below {REQUIRED_SCORE:.0%}")
    print("".join(f"{problem}\n" for problem in found), end="")
    return 1 if found else 0


def _row(verdict: MutantVerdict) -> dict[str, object]:
    mutant = verdict.mutant
    return {
        "file": mutant.file,
        "line": mutant.line,
        "function": mutant.qualname,
        "operator": mutant.operator,
        "source": mutant.source,
        "killer": verdict.killer,
        "died": verdict.died,
    }


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(main())
