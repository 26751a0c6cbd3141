"""One hub under test. Every step it takes is checked against everything that must hold after any step."""

from collections.abc import Iterable
from typing import Any

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import Input, Link, Received
from hubauth.core.messages import Body, Frame
from hubauth.core.model import State
from hubauth.core.policy import Policy, Trust
from hubauth.core.transition import Step
from hubauth.lab.history import HubHistory, follow
from hubauth.lab.hub import OWN_JOURNAL
from hubauth.lab.observed import observe, setting_of
from hubauth.lab.stepping import SteppedHub
from hubauth.promises.events import Event
from hubauth.promises.monitor import Monitor
from hubauth.seen import tell
from model_tests import outcomes
from model_tests.exercised import Tally
from model_tests.judging import sessions_not_online

TRUSTING = ("OneToOneBinding", "UniqueNodeIds")
"""What a hub cannot promise if it takes strangers for hubs."""
AMONG_LIARS = ("NoAnswerWithoutRequest", "PendingEventuallyAnswered")
"""What a hub promises whatever its neighbours say."""


def fresh(number: int) -> str:
    """The credential that comes with the n-th input."""
    return f"c{number:042d}"


class OneHub(SteppedHub):
    """A hub of a state machine: also its history, the promises and the statements of each step are looked at."""

    decoded_every = 8

    def __init__(self, policy: Policy, tally: Tally, among_liars: bool = False) -> None:
        super().__init__(policy, initial_state(policy, OWN_JOURNAL))
        self.tally = tally
        self.rules: set[str] = set()
        self.history = HubHistory()
        self.among_liars = among_liars
        setting = setting_of({"hub": policy}, "hub", self.state)
        self.monitor = Monitor().watch([Event("configured", "hub", setting=setting)])

    def wrong_with_step(self, before: State, happened: Input, done: Step) -> list[str]:
        self.tally.add(done.rules)
        self.rules.update(done.rules)
        self.history = follow(self.history, self.taken, self.policy, before, happened, done)
        found = super().wrong_with_step(before, happened, done) + list(self.history.wrong)
        found += outcomes.check(self.policy, before, happened, done)
        return found + self.see(observe({"hub": self.policy}, "hub", before, happened, done))

    def wrong_with_state(self) -> list[str]:
        unpromised = TRUSTING if self.policy.trust is Trust.OPEN else ()
        found = [line for line in super().wrong_with_state() if line.partition(":")[0] not in unpromised]
        return found + sessions_not_online(self.state)

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
