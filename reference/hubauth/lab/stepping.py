"""A hub that is moved by ``step`` alone, and what must be true of every step it takes, whoever drives it."""

from hubauth.core.canonical import Digest, advance, decode_state, digest_of, encode_state
from hubauth.core.inputs import Input, Link, TimerFired
from hubauth.core.invariants import check_state, check_step
from hubauth.core.model import TIMELESS, State
from hubauth.core.outputs import CancelTimer, Close, Note, Send, StartTimer
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step


class SteppedHub:
    """A policy and a state. A driver adds what else it wants to be true of a step or of the state after it."""

    decoded_every = 1
    """After so many steps the state is written and read again, which is the dearest check by far."""

    def __init__(self, policy: Policy, state: State) -> None:
        self.policy = policy
        self.before = self.state = state
        self.digest: Digest = digest_of(state)
        self.taken = 0
        self.inputs = 0
        self.timers: set[int] = timers_of(state)

    def happens(self, happened: Input) -> Step:
        """Take one step and check all that must be true of it."""
        before = self.before = self.state
        done = step(self.policy, before, happened)
        self.taken += 1
        found = self.wrong_with_step(before, happened, done)
        self.policy, self.state = done.policy, done.state
        found += self.wrong_with_state()
        assert not found, "\n".join(found)
        self.digest = advance(self.digest, done)
        assert self.digest == digest_of(done.state)
        if self.taken % self.decoded_every == 0:
            assert decode_state(self.policy, encode_state(done.state)) == done.state
        self._check_outputs(happened, done)
        return done

    def wrong_with_step(self, before: State, happened: Input, done: Step) -> list[str]:
        """What is wrong with a step. The hub still has the policy and the state from before it."""
        return list(check_step(self.policy, before, happened, done))

    def wrong_with_state(self) -> list[str]:
        """What is wrong with the state that the step has left."""
        return list(check_state(self.policy, self.state))

    def secrets(self, happened: Input) -> set[str]:
        """What no note may hold."""
        return {getattr(happened, "fresh", ""), *(entry.credential for entry in self.state.whitelist.values())}

    def _check_outputs(self, happened: Input, done: Step) -> None:
        if isinstance(happened, TimerFired):
            self.timers.discard(happened.timer)
        secrets = self.secrets(happened) - {""}
        closed: set[Link] = set()
        for output in done.outputs:
            match output:
                case Send(link, _):
                    assert link not in closed, f"link {link} is written to after it was closed"
                    assert link in self.before.links or link in self.state.links, f"link {link} is not up"
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


def timers_of(state: State) -> set[int]:
    """The timers that must be running."""
    running = {msg_id for msg_id, pending in state.pending.items() if pending.purpose not in TIMELESS}
    return running | ({state.announce_timer} if state.announcing is not None else set())
