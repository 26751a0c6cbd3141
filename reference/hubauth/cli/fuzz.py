"""``hubauth fuzz``: random inputs for somebody's own state machine, compared with the reference."""

import argparse
import shlex
from pathlib import Path

import msgspec

from hubauth import private
from hubauth.cli.grammar import seconds
from hubauth.cli.problems import REFUSED, CommandError
from hubauth.cli.terminal import draw_over, tell
from hubauth.core.policy import Dialect
from hubauth.oracle.forms import InputForm, policy_form
from hubauth.oracle.fuzz.adapter import Adapter, AdapterFailed
from hubauth.oracle.fuzz.run import AGAIN, Finding, Fuzzed, Plan, fuzz
from hubauth.specification import rules

FAILED = 3
_PLAN = Plan()
_OF_A_RULE = ("outputs", "digest")
_EXAMPLES = """\
examples:
  hubauth fuzz --adapter ./my-adapter
  hubauth fuzz --adapter 'python docs/examples/fuzz_adapter.py' --seed 7 --sequences 200
  hubauth fuzz --adapter ./my-adapter --dialect login --save build/fuzz

exit codes:
  0 no difference, 1 differences, 2 usage, 3 the adapter failed: it could not be started, died, was silent, wrote what
  is no answer, or refused everything
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "Drive your own state machine with random inputs and compare every step with the reference."
    parser = commands.add_parser("fuzz", help="random inputs for your own hub", description=about, epilog=_EXAMPLES)
    parser.set_defaults(run=run)
    parser.add_argument("--adapter", required=True, metavar="CMD", help="the program that answers the oracle's lines")
    parser.add_argument("--seed", type=int, default=_PLAN.seed, metavar="N", help="draw other sequences (default: 0)")
    parser.add_argument("--sequences", type=_positive, default=_PLAN.sequences, metavar="N", help="default: 500")
    parser.add_argument("--steps", type=_positive, default=_PLAN.steps, metavar="N", help="of a sequence; default: 60")
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=_PLAN.seconds,
        metavar="SECONDS",
        help="begin none after that; default: 300",
    )
    parser.add_argument(
        "--findings", type=_positive, default=_PLAN.findings, metavar="N", help="stop after so many; default: 3"
    )
    parser.add_argument("--dialect", choices=["auth", "login", "flat"], help="only this one; default: all")
    parser.add_argument(
        "--timeout", type=seconds, default=10.0, metavar="SECONDS", help="for one answer of the adapter; default: 10"
    )
    parser.add_argument("--save", type=Path, metavar="DIR", help="write what was found there, as vectors")
    parser.add_argument("--json", action="store_true", help="the result as JSON")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= 10**9:
        raise argparse.ArgumentTypeError(f"a number of at least 1 is needed, not {text!a}")
    return int(text)


def run(chosen: argparse.Namespace) -> int:
    """``hubauth fuzz``."""
    plan = Plan(
        seed=chosen.seed,
        sequences=chosen.sequences,
        steps=chosen.steps,
        seconds=chosen.seconds,
        findings=chosen.findings,
        dialects=tuple(Dialect) if chosen.dialect is None else (Dialect(chosen.dialect),),
    )
    try:
        words = shlex.split(chosen.adapter)
    except ValueError as problem:
        raise CommandError(f"--adapter: {problem}", "quote it as a shell would have it") from None
    if not words:
        raise CommandError("--adapter: a command is needed", "--adapter ./my-adapter")
    with Adapter(words, chosen.timeout) as adapter:
        try:
            done = fuzz(adapter, plan, _progress)
        except AdapterFailed as problem:
            raise CommandError(str(problem), "--adapter 'PROGRAM ARGUMENT ...'", FAILED) from None
    draw_over("")
    files = _save(chosen.save, done.findings) if chosen.save is not None else []
    if not done.steps and not done.findings:
        why = next(iter((done.refused_policies + done.refused_inputs).most_common(1)), ("", 0))[0]
        raise CommandError(f"the adapter refused everything: {why}", "nothing was compared", FAILED)
    code = _code(done)
    if chosen.json:
        tell(msgspec.json.encode(_summary(done, plan, files, code)).decode())
    else:
        for number, finding in enumerate(done.findings, 1):
            _show(number, finding, files[number - 1] if files else "")
        _show_counts(done, plan)
    return code


def _code(done: Fuzzed) -> int:
    if any(finding.found.what not in _OF_A_RULE for finding in done.findings):
        return FAILED
    return REFUSED if done.findings else 0


def _progress(done: Fuzzed) -> None:
    draw_over(f"{done.sequences} sequences, {done.steps} steps, {len(done.findings)} findings, {done.seconds:.0f} s")


def _save(directory: Path, findings: list[Finding]) -> list[str]:
    names = [f"fuzz-{number}" for number in range(1, len(findings) + 1)]
    try:
        private.make_directory(directory)
        for name, finding in zip(names, findings, strict=True):
            private.write(directory / f"{name}.json", finding.vector(name), over=True)
    except OSError as problem:
        raise CommandError(f"cannot write to {directory}: {problem.strerror}", "--save names a directory") from None
    return [str(directory / f"{name}.json") for name in names]


# For people


def _show(number: int, finding: Finding, file: str) -> None:
    found, shown = finding.found, finding.shown
    what = {"outputs": "does something else", "digest": "has another state"}.get(found.what, "failed")
    met = f"in {finding.times} of the sequences, first in {finding.sequence}, after {finding.step} steps"
    tell(f"{number}. The adapter {what}: {met}.")
    if found.rules:
        rule = rules()[found.rules[0]]
        tell(f"   {rule.id} ({rule.level}): {rule.text}")
    if found.what in _OF_A_RULE:
        tell(f"   expected {found.expected}", f"   seen     {found.seen}")
    else:
        tell(f"   {found.seen}", *(f"   stderr: {line}" for line in found.stderr))
    if finding.again < (1 if found.what == "silent" else AGAIN):
        tell(f"   Given the same inputs, the adapter started anew did it again {finding.again} times only.")
    tell(f"   policy {msgspec.json.encode(policy_form(shown.beginning.policy)).decode()}")
    for at, form in enumerate(shown.inputs, 1):
        tell(f"   {at:3} {_input(form)}")
    if file:
        tell(f"   saved as {file}")


def _input(form: InputForm) -> str:
    return msgspec.json.encode(form).decode()


def _show_counts(done: Fuzzed, plan: Plan) -> None:
    tell(
        f"{done.sequences} sequences, {done.steps} steps, {_decided(done)} rules decided something, "
        f"{len(done.findings)} findings (seed {plan.seed}, {done.seconds:.1f} s)"
    )
    for what, refused in (("policies", done.refused_policies), ("inputs", done.refused_inputs)):
        if refused:
            why, times = refused.most_common(1)[0]
            tell(f"the adapter refused {refused.total()} {what}, {times} of them with {why!a}")


def _decided(done: Fuzzed) -> int:
    return sum(1 for rule in done.rules if rule in rules())


# For machines


def _summary(done: Fuzzed, plan: Plan, files: list[str], code: int) -> dict[str, object]:
    return {
        "exit_code": code,
        "seed": plan.seed,
        "sequences": done.sequences,
        "steps": done.steps,
        "seconds": round(done.seconds, 3),
        "rules": dict(sorted(done.rules.items())),
        "refused_policies": done.refused_policies,
        "refused_inputs": done.refused_inputs,
        "findings": [
            {
                "what": one.found.what,
                "rules": one.found.rules,
                "expected": one.found.expected,
                "seen": one.found.seen,
                "stderr": one.found.stderr,
                "times": one.times,
                "again": one.again,
                "sequence": one.sequence,
                "step": one.step,
                "policy": policy_form(one.shown.beginning.policy),
                "version": int(one.shown.beginning.version),
                "inputs": one.shown.inputs,
                "file": files[at] if files else None,
            }
            for at, one in enumerate(done.findings)
        ],
    }
