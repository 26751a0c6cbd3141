"""One hub under test. Every step it takes is checked against everything that must hold after any step."""

from collections.abc import Iterable
from typing import Any

from hubauth.core.canonical import advance, decode_state, digest_of, encode_state
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import Input, Link, Received, TimerFired
from hubauth.core.invariants import STATE_INVARIANTS, STEP_INVARIANTS
from hubauth.core.messages import Body, Frame
from hubauth.core.model import State
from hubauth.core.outputs import CancelTimer, Close, Note, Send, StartTimer
from hubauth.core.policy import Policy, Trust
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.network.history import HubHistory, follow
from hubauth.network.observed import observe, setting_of
from hubauth.promises.events import Event
from hubauth.promises.monitor import Monitor
from hubauth.seen import tell
from model_tests import outcomes
from model_tests.exercised import Tally
from model_tests.judging import sessions_not_online, timers_of

TRUSTING = ("OneToOneBinding", "UniqueNodeIds")
"""What a hub cannot promise if it takes strangers for hubs."""
AMONG_LIARS = ("NoAnswerWithoutRequest", "PendingEventuallyAnswered")
"""What a hub promises whatever its neighbours say."""


OWN_JOURNAL = "journal of this hub"


def fresh(number: int) -> str:
    """The credential that comes with the n-th input."""
    return f"c{number:042d}"


class OneHub:
    """A policy and a state, moved by ``step`` alone."""

    def __init__(self, policy: Policy, tally: Tally, among_liars: bool = False) -> None:
        self.policy = policy
        self.state = initial_state(policy, OWN_JOURNAL)
        self.tally = tally
        self.rules: set[str] = set()
        self.digest = digest_of(self.state)
        self.inputs = 0
        self.steps = 0
        self.timers: set[int] = set()
        self.history = HubHistory()
        self.among_liars = among_liars
        setting = setting_of({"hub": policy}, "hub", self.state)
        self.monitor = Monitor().watch([Event("configured", "hub", setting=setting)])

    def happens(self, happened: Input) -> Step:
        """Take one step and check all that must be true of it."""
        before = self.state
        done = step(self.policy, before, happened)
        self.tally.add(done.rules)
        self.rules.update(done.rules)
        self.steps += 1
        self.history = follow(self.history, self.steps, self.policy, before, happened, done)
        found = self._check_step(before, happened, done) + list(self.history.wrong)
        found += outcomes.check(self.policy, before, happened, done)
        found += self.see(observe({"hub": self.policy}, "hub", before, happened, done))
        self.policy, self.state = done.policy, done.state
        found += self._check_state()
        assert not found, "\n".join(found)
        self.digest = advance(self.digest, done)
        assert self.digest == digest_of(done.state)
        if self.steps % 8 == 0:  # the dearest check by far
            assert decode_state(self.policy, encode_state(done.state)) == done.state
        self._check_outputs(before, happened, done)
        return done

    def see(self, events: Iterable[Event]) -> list[str]:
        """Show this to the monitor; what it finds, as far as the hub can promise it."""
        known = len(self.monitor.broken)
        self.monitor = self.monitor.watch(events)
        found = self.monitor.broken[known:]
        return [tell(*broken) for broken in found if not self.among_liars or broken[0] in AMONG_LIARS]

    def is_idle(self) -> None:
        """Nothing is on its way, and the hub waits for nothing."""
        found = self.see([Event("idle")])
        assert not found, "\n".join(found)

    def receive(self, link: Link, body: Body, *, credential: str | None = None, **header: Any) -> Step:
        """A frame arrives; with it a fresh credential, unless another is given."""
        self.inputs += 1
        header.setdefault("sub_proto", 6 if isinstance(body, bytes) else 2)
        return self.happens(
            Received(link, Frame(body, **header), fresh(self.inputs) if credential is None else credential)
        )

    def _check_step(self, before: State, happened: Input, done: Step) -> list[str]:
        return [
            f"{name}: {line}"
            for name, invariant in STEP_INVARIANTS.items()
            for line in invariant(self.policy, before, happened, done)
        ]

    def _check_state(self) -> list[str]:
        return [
            f"{name}: {line}"
            for name, invariant in STATE_INVARIANTS.items()
            if not (self.policy.trust is Trust.OPEN and name in TRUSTING)
            for line in invariant(self.policy, self.state)
        ] + sessions_not_online(self.state)

    def _check_outputs(self, before: State, happened: Input, done: Step) -> None:
        if isinstance(happened, TimerFired):
            self.timers.discard(happened.timer)
        secrets = {entry.credential for entry in self.state.whitelist.values()} - {""}
        closed: set[Link] = set()
        for output in done.outputs:
            match output:
                case Send(link, _):
                    assert link not in closed, f"link {link} is written to after it was closed"
                    assert link in before.links or link in self.state.links, f"link {link} is not up"
                case Close(link):
                    assert link not in self.state.links, f"link {link} was closed but is remembered"
                    closed.add(link)
                case StartTimer(timer, _):
                    assert timer not in self.timers, f"timer {timer} was started twice"
                    self.timers.add(timer)
                case CancelTimer(timer):
                    assert timer in self.timers, f"timer {timer} does not run"
                    self.timers.discard(timer)
                case Note(_, rule, detail, _):
                    assert rule in done.rules, f"a note cites {rule}, the step does not"
                    assert not any(secret in detail for secret in secrets), "a note holds a credential"
        assert self.timers == timers_of(self.state), "the timers that run are not those that are needed"
