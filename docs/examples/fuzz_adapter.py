"""An adapter for ``hubauth fuzz``, around the reference's own ``step``: put your state machine in its place."""

import sys

import msgspec

from hubauth.core.canonical import digest_of
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import TimerFired
from hubauth.core.step import step
from hubauth.oracle.compare import timer_names
from hubauth.oracle.forms import TimerForm, Unsayable, output_form, read_input, read_policy, state_form
from hubauth.oracle.process import Init, Request, Take


class Machine:
    """The state machine of a hub: what your own hub has in some form."""

    def begin(self, init: Init) -> dict[str, object]:
        self.policy = read_policy(init.policy)
        self.state = initial_state(self.policy, init.journal or "")
        return {"did": "init", "digest": digest_of(self.state).hex()}

    def take(self, form: Take) -> dict[str, object]:
        happened = self.timer(form.input) or read_input(form.input, self.policy.dialect)
        done = step(self.policy, self.state, happened)
        outputs = [output_form(one, self.policy.dialect) for one in done.outputs]
        self.policy, self.state = done.policy, done.state
        return {"did": "input", "outputs": outputs, "digest": digest_of(self.state).hex()}

    def timer(self, form: object) -> TimerFired | None:
        """A timer is called by the request that it belongs to; the hub knows its number."""
        if not isinstance(form, TimerForm):
            return None
        return TimerFired(next(number for number, name in timer_names(self.state) if name == form))

    def answer(self, request: Request) -> dict[str, object]:
        if isinstance(request, Init):
            return self.begin(request)
        if isinstance(request, Take):
            return self.take(request)
        return {"did": "state", "state": state_form(self.state)}


def converse(machine: Machine) -> None:
    """One JSON object per line in, one per line out."""
    for line in sys.stdin.buffer:
        try:
            said = machine.answer(msgspec.json.decode(line, type=Request))
        except Unsayable as problem:  # what your hub does not have: the fuzzer leaves it out, and counts it
            said = {"did": "error", "error": str(problem)}
        sys.stdout.buffer.write(msgspec.json.encode(said) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    converse(Machine())
