"""Whole traces on one machine: every hub replayed, both ends of every connection compared, promises judged."""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from attrs import field, frozen

from hubauth.core.policy import Policy
from hubauth.forms.events import Checkpoint, Event, Kind, TraceError
from hubauth.forms.habits import AS_THE_RULES_SAY, Habits
from hubauth.judge.across import Breach
from hubauth.judge.facts import Fact, FactKind
from hubauth.judge.replay import Replay, Seal, seal_of
from hubauth.judge.search import EFFORT
from hubauth.judge.verdicts import Finding, Outcome, Verdict, worst
from hubauth.specification import Basis, counts_under
from hubauth.trace.connections import Connections
from hubauth.trace.gathering import Gathering
from hubauth.trace.storage import checkpoint_files, events_files, read_checkpoints, read_events

CANNOT_TELL = 5
"""The exit code where nothing is wrong, and not everything is known."""

TOGETHER = 10_000
"""Rows after which progress is told, and what is known is put aside."""
Hub = tuple[str, str]
"""Trace and hub."""


@frozen
class Judgement:
    """What is to be said of some traces."""

    verdicts: tuple[Verdict, ...]
    unreadable: tuple[str, ...]
    """What could not be read, and why; the hubs concerned have a verdict as far as they are known."""
    rules: Counter[str] = field(factory=Counter, eq=False)
    breaches: tuple[Breach, ...] = ()
    """Promises that the hubs of a trace have broken, maybe only together."""

    @property
    def outcome(self) -> Outcome:
        """Of all together; without any hub nothing can be told."""
        if not self.verdicts:
            return worst(())
        outcome = worst([verdict.outcome for verdict in self.verdicts] + [breach.outcome for breach in self.breaches])
        return Outcome.CANNOT_TELL if self.unreadable and outcome is Outcome.CONFORMS else outcome

    @property
    def exit_code(self) -> int:
        """0 conforms; 1 violates; 4 something cannot be read, or there is nothing to judge; 5 cannot tell."""
        if self.outcome is Outcome.VIOLATES:
            return 1
        if self.unreadable or not self.verdicts:
            return 4
        return 0 if self.outcome is Outcome.CONFORMS else CANNOT_TELL

    @property
    def worst(self) -> Verdict | None:
        """The verdict to look at first."""
        rank = {Outcome.VIOLATES: 0, Outcome.CANNOT_TELL: 1, Outcome.CONFORMS: 2}
        return min(self.verdicts, key=lambda verdict: rank[verdict.outcome], default=None)


def judge(
    paths: Iterable[Path],
    policies: Callable[[str], Policy | None] = lambda _hub: None,
    progress: Callable[[int], None] = lambda _rows: None,
    *,
    basis: Basis = "all",
    effort: int = EFFORT,
    habits: Habits = AS_THE_RULES_SAY,
    failing: frozenset[str] = frozenset(),
) -> Judgement:
    """Replay everything in ``paths``. ``policies`` knows the policy of hubs whose traces do not name it.

    ``basis`` says by which rules; ``effort`` bounds the search for an order where rows do not say it. ``habits`` are
    those of hubs whose traces declare none. Rules and promises that are ``failing`` are told and do not count.

    Raises TraceError if there is nothing to read at all.
    """
    verdicts: list[Verdict] = []
    unreadable: list[str] = []
    rules: Counter[str] = Counter()
    with Gathering() as facts:
        doubts = _Doubts()
        for path in paths:
            reading = _Reading(path, policies, effort, habits, facts)
            with _uncollected():
                reading.run(progress)
            read = reading.verdicts()
            verdicts += [verdict.by(basis, failing) for verdict in read]
            unreadable += reading.unreadable
            for verdict in read:
                replay = reading.replays[verdict.trace, verdict.hub]
                rules.update(replay.rules)
                doubts.hear(verdict, reading.know(replay, verdict))
            doubts.hear_between(reading)
        breaches = sorted(doubts.breaches(facts), key=_place)
    counted = tuple(
        breach
        for breach in breaches
        if counts_under(basis, breach.broken.rule) and failing.isdisjoint((breach.broken.rule, breach.broken.promise))
    )
    return Judgement(tuple(verdicts), tuple(unreadable), rules, counted)


def _place(breach: Breach) -> tuple[str, str, int, str]:
    broken = breach.broken
    return breach.trace, broken.hub, broken.sequence, broken.promise


@contextmanager
def _uncollected() -> Iterator[None]:
    """Judging makes values by the million, and no circles of them: looking for some costs a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


class _Doubts:
    """Of whom nothing is taken for true, and why what holds once all is settled cannot be told of a trace."""

    def __init__(self) -> None:
        self._damaged: set[Hub] = set()
        self._keys: dict[str, set[str]] = {}
        """Trace -> the keys under which its hubs replaced credentials."""
        self._under_way: dict[str, str] = {}

    def hear(self, verdict: Verdict, last: list[Fact]) -> None:
        """A hub was judged, and its last state says this."""
        if verdict.outcome is Outcome.CANNOT_TELL:
            self._damaged.add((verdict.trace, verdict.hub))
        if any(fact.kind is FactKind.SETTLED and not fact.number for fact in last):
            self._under_way[verdict.trace] = f"the rows after {verdict.hub} had done all it had to"

    def hear_between(self, reading: "_Reading") -> None:
        for trace, key in reading.between.each_key():
            self._keys.setdefault(trace, set()).add(key)
        for trace, connection in reading.flying:
            self._under_way[trace] = f"what was on its way over {connection}"

    def breaches(self, facts: Gathering) -> Iterator[Breach]:
        for trace, broken in facts.broken(without=self._damaged):
            mixed = len(self._keys.get(trace, ())) > 1
            doubt = "credentials that were replaced under one key" if mixed else self._under_way.get(trace, "")
            yield Breach(trace, broken, doubt if broken.once_settled else "")


class _Reading:
    """One path."""

    def __init__(
        self,
        path: Path,
        policies: Callable[[str], Policy | None],
        effort: int,
        habits: Habits,
        facts: Gathering,
    ) -> None:
        self._path, self._policies, self._effort, self._habits, self._facts = path, policies, effort, habits, facts
        self._files = events_files(path)
        self.unreadable: list[str] = []
        self._begins: dict[Hub, Checkpoint] = {}
        """The first checkpoint of each hub: a trace may begin in the middle of a hub's life."""
        self._seals: dict[Hub, dict[int, Seal]] | None = None if path.is_file() else self._read_seals()
        self.between = Connections(self._files)
        self.flying: list[tuple[str, str]] = []
        """Connections over which something was on its way at the end."""
        self.replays: dict[Hub, Replay] = {}
        self._cut: dict[Hub, str] = {}

    def _read_seals(self) -> dict[Hub, dict[int, Seal]]:
        seals: dict[Hub, dict[int, Seal]] = {}
        for file in checkpoint_files(self._path):
            try:
                for checkpoint in read_checkpoints(file):
                    hub = (checkpoint.trace, checkpoint.hub)
                    seals.setdefault(hub, {})[checkpoint.sequence] = seal_of(checkpoint)
                    if checkpoint.sequence == 0:
                        self._begins[hub] = checkpoint
            except TraceError as problem:
                self.unreadable.append(str(problem))
        return seals

    def run(self, progress: Callable[[int], None]) -> None:
        rows = 0
        for file in self._files:
            hub: Hub | None = None
            feeds: dict[Hub, tuple[Callable[[Event], None], Callable[[Event], None]]] = {}
            try:
                for event in read_events(file):
                    hub = (event.trace, event.hub)
                    if hub not in feeds:
                        feeds[hub] = (self._replay(hub).feed, self.between.of(*hub).feed)
                    replay, compare = feeds[hub]
                    replay(event)
                    compare(event)
                    if event.kind is Kind.START:
                        self.between.opens(event)
                    rows += 1
                    if not rows % TOGETHER:
                        self._put_aside(feeds)
                        progress(rows)
            except TraceError as problem:
                self.unreadable.append(str(problem))
                if hub is not None:
                    self._cut[hub] = str(problem)
            self._put_aside(feeds)
        progress(rows)

    def _put_aside(self, hubs: Iterable[Hub]) -> None:
        for hub in hubs:
            self._facts.add(*hub, self.replays[hub].take_facts())

    def know(self, replay: Replay, verdict: Verdict) -> list[Fact]:
        """What a hub's last state says, if that is certain."""
        last = replay.take_last_facts() if verdict.outcome is Outcome.CONFORMS else []
        self._facts.add(verdict.trace, verdict.hub, [*replay.take_facts(), *last])
        return last

    def _replay(self, hub: Hub) -> Replay:
        replay = self.replays.get(hub)
        if replay is None:
            seals = None if self._seals is None else self._seals.get(hub, {})
            begins, policy = self._begins.get(hub), self._policies(hub[1])
            replay = self.replays[hub] = Replay(policy, seals, begins, self._effort, self._habits)
        return replay

    def verdicts(self) -> list[Verdict]:
        replayed = {hub: replay.finish() for hub, replay in self.replays.items()}
        damaged = {name for (_, name), verdict in replayed.items() if verdict.rule in ("TRACE-1", "TRACE-2", "TRACE-5")}
        damaged |= {name for _, name in self._cut}
        self.flying, wrong = self.between.finish(damaged)
        found = {(verdict.trace, verdict.hub): verdict for verdict in wrong}
        verdicts = []
        for hub, verdict in replayed.items():
            if hub in found:
                verdict = verdict.with_findings(found[hub].findings)
            if hub in self._cut:
                cut = Finding(outcome=Outcome.CANNOT_TELL, rule="TRACE-5", missing=self._cut[hub])
                verdict = verdict.with_findings([cut])
            verdicts.append(verdict)
        return verdicts
