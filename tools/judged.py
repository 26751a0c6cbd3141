"""Which random or exhaustive check turns red when a rule is decided wrongly: ``python -m tools.judged [--stale]``.

A citation says that a rule took part, not that anybody would notice if it were broken. So, for every rule, mistakes are
made where it is cited: the branch is not taken, the condition turned round, a call of it left out. Each is run, in a
process of its own, against random walks, state machines and exhaustive checks alone; the first that one of them finds
is kept in ``model_tests/judged.json`` with its finder and a digest of the function that it changes. Rules that nothing
judges are kept with the reason. When such a function changes its rules are stale: ``--stale`` measures those anew.
"""

import argparse
import ast
import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from attrs import frozen
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from hubauth.specification import load_rules
from model_tests import below_machine, root_machine, test_exhaustive
from model_tests.killing import MeasuredTest, quiet_hypothesis
from model_tests.mixed_walk import walk_mixed
from model_tests.mutation import AROUND, MODULES, Mutant, _functions, _text, mutants_of
from model_tests.walk import walk, walk_among_liars
from tools.catalogue import ROOT
from tools.evidence import RULE_ID, code_places
from tools.mutants import run

RESULTS = ROOT / "model_tests" / "judged.json"
WALKS = 40
"""Of each kind."""
QUICK_WALKS = 8
TRIES = 6
"""Mistakes made for one rule before it is said that nothing judges it."""
TOGETHER = 16
"""Rules that are measured before what was found is put down."""


@frozen
class Site:
    """A place where a rule is cited: the lines of the innermost block around it, and of its condition."""

    module: str
    function: str
    first: int
    last: int
    header: int
    """The line of the condition; 0: the block is the function's own."""


def sites() -> dict[str, list[Site]]:
    """Every rule that a mutated module cites, and where."""
    found: dict[str, list[Site]] = {}
    for module in (*MODULES, *AROUND):
        for qualname, function, _ in _functions(ast.parse(_text(f"{module}.py"))):
            for rule, site in _sites_in(module, qualname, function.body, 0):
                found.setdefault(rule, []).append(site)
    return found


def _sites_in(module: str, name: str, block: list[ast.stmt], header: int) -> Iterator[tuple[str, Site]]:
    last = block[-1].end_lineno or block[-1].lineno
    for statement in block:
        inner = [
            getattr(part, field)
            for part in (statement, *getattr(statement, "cases", ()))
            for field in ("body", "orelse")
            if isinstance(getattr(part, field, None), list) and getattr(part, field)
        ]
        if inner:
            for body in inner:
                yield from _sites_in(module, name, body, statement.lineno)
            heads = [node for node in ast.iter_child_nodes(statement) if not isinstance(node, ast.stmt)]
        else:
            heads = [statement]
        for node in (node for head in heads for node in ast.walk(head)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and RULE_ID.fullmatch(node.value):
                yield node.value, Site(module, name, block[0].lineno, last, header)


def mistakes_at(places: list[Site]) -> list[Mutant]:
    """Mutants that make a mistake where a rule is cited, the most telling first."""
    ranked: list[tuple[int, int, Mutant]] = []
    for site in places:
        for mutant in mutants_of(site.module):
            if mutant.qualname != site.function:
                continue
            at_header = mutant.line == site.header
            inside = site.first <= mutant.line <= site.last
            if at_header or inside:
                rank = 0 if at_header and mutant.operator == "never" else 1 if at_header else 2
                ranked.append((rank, len(ranked), mutant))
    return list(dict.fromkeys(mutant for _, _, mutant in sorted(ranked, key=lambda each: each[:2])))


@cache
def digest_of(module: str, qualname: str) -> str:
    """Of a function, whatever its comments and the lines it stands on."""
    for name, function, _ in _functions(ast.parse(_text(f"{module}.py"))):
        if name == qualname:
            return hashlib.sha256(ast.dump(function).encode()).hexdigest()[:12]
    return ""


@frozen
class Judge(MeasuredTest):
    """A check that is run on every mistake: finding out whether it comes by the place costs as much as running it."""

    def touches(self, mutant: Mutant) -> bool:  # noqa: ARG002
        return True


def judges(quick: bool) -> list[MeasuredTest]:
    """The random walks, state machines and exhaustive checks, the cheap ones first."""
    exhaustive = [name for name in vars(test_exhaustive) if name.startswith("test_") and "mistake" not in name]
    walks = [f"{kind} {seed}" for seed in range(QUICK_WALKS if quick else WALKS) for kind in _WALKS]
    cheap = [f"exhaustive {name}" for name in exhaustive if "asked" not in name and "pages" not in name]
    if quick:
        return [judge_named(name) for name in (*walks[:6], *cheap, *walks[6:])]
    return [judge_named(name) for name in (*walks, *(f"exhaustive {name}" for name in exhaustive), *_MACHINES)]


_MACHINES = {"RootMachine": root_machine.RootMachine, "BelowMachine": below_machine.BelowMachine}
_WALKS: dict[str, Any] = {"walk": walk, "walk_among_liars": walk_among_liars, "walk_mixed": walk_mixed}


def judge_named(name: str) -> MeasuredTest:
    """A judge by its name."""
    kind, _, which = name.partition(" ")
    if kind in _WALKS:
        return Judge(name, partial(_WALKS[kind], int(which)))
    if kind == "exhaustive":
        return Judge(name, getattr(test_exhaustive, which))
    return Judge(name, lambda: run_state_machine_as_test(_MACHINES[name], settings=settings()), seconds=5.0)


def measure(rules: Sequence[str], jobs: int, *, quick: bool) -> dict[str, dict[str, str]]:
    """For each of these rules the first mistake that a judge finds; or why there is none, if that was no quick look."""
    known_sites, decided = sites(), code_places()
    suite = judges(quick)
    tries = 1 if quick else TRIES
    waiting = {rule: mistakes_at(known_sites[rule])[:tries] for rule in rules if rule in known_sites}
    results = {rule: {"reason": _why_not(rule, decided)} for rule in rules if rule not in waiting}
    while waiting:
        batch = {rule: left.pop(0) for rule, left in waiting.items() if left}
        for rule in [rule for rule in waiting if rule not in batch]:
            if not quick:
                results[rule] = {"reason": "no mistake here is noticed by chance", "code": _code(known_sites.pop(rule))}
            del waiting[rule]
        verdicts = {verdict.mutant: verdict for verdict in run(list(dict.fromkeys(batch.values())), suite, jobs, None)}
        for rule, mutant in batch.items():
            if killer := verdicts[mutant].killer:
                module = mutant.file.removesuffix(".py")
                results[rule] = {
                    "mistake": f"{mutant.file} {mutant.qualname} [{mutant.operator}] {mutant.source}",
                    "number": str(mutant.number),
                    "found by": killer,
                    "code": f"{module}:{mutant.qualname}:{digest_of(module, mutant.qualname)}",
                }
                del waiting[rule]
    return results


def _code(places: list[Site]) -> str:
    first = places[0]
    return f"{first.module}:{first.function}:{digest_of(first.module, first.function)}"


def _why_not(rule: str, decided: dict[str, list[str]]) -> str:
    folders = {place.strip("`").partition("/")[0] for place in decided.get(rule, [])}
    if not folders:
        return "cited by no code: what it says is the shape of something else"
    return f"decided in {', '.join(sorted(folders))}, where no walk goes"


def results() -> dict[str, dict[str, str]]:
    """What is known, by rule."""
    kept: dict[str, dict[str, str]] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    return kept


def stale(known: dict[str, dict[str, str]]) -> list[str]:
    """The rules that must be measured anew: nothing is known of them, or the code that decides them has changed."""
    found = []
    cited = sites()
    for rule in (rule.id for rule in load_rules().rule):
        entry = known.get(rule)
        if entry is None or ("code" in entry) != (rule in cited):
            found.append(rule)
        elif "code" in entry:
            module, function, digest = entry["code"].split(":")
            if f"{module}" not in (*MODULES, *AROUND) or digest_of(module, function) != digest:
                found.append(rule)
    return found


def mutant_of(entry: dict[str, str]) -> Mutant:
    """The mistake of an entry. Raises StopIteration if it is no longer there."""
    module, function, _ = entry["code"].split(":")
    own = (mutant for mutant in mutants_of(module) if mutant.qualname == function)
    return next(mutant for mutant in own if str(mutant.number) == entry["number"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stale", action="store_true", help="only the rules whose code has changed since")
    parser.add_argument("--only", action="append", metavar="RULE", help="only this rule; may be repeated")
    parser.add_argument("--quick", action="store_true", help="few walks and one mistake per rule; what they miss stays")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    rules, known = [rule.id for rule in load_rules().rule], results()
    chosen = options.only or (stale(known) if options.stale else rules)
    started = time.monotonic()
    quiet_hypothesis()
    gc.collect()
    gc.freeze()
    for at in range(0, len(chosen), TOGETHER):
        known = {**known, **measure(chosen[at : at + TOGETHER], options.jobs, quick=options.quick)}
        kept = {rule: known[rule] for rule in sorted(known) if rule in rules}
        RESULTS.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
        judged = [rule for rule, entry in kept.items() if "found by" in entry]
        print(f"{len(judged)} of {len(kept)} rules judged, {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(main())
