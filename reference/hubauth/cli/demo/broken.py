"""``hubauth hub`` with one decision wrong: it answers a revoke and passes it on, but does not obey it itself.

Run instead of ``hubauth.cli`` for one hub of the demonstration, to show that its trace gives it away.
"""

import sys

from attrs import evolve

from hubauth.cli.main import main
from hubauth.core.inputs import Input, Received
from hubauth.core.messages import Revoke
from hubauth.core.model import State
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.core.transition import Step
from hubauth.shell import engine


def forgetful(policy: Policy, state: State, happened: Input) -> Step:
    """The right outputs, but the hub stays as it was."""
    done = step(policy, state, happened)
    if isinstance(happened, Received) and isinstance(happened.frame.body, Revoke):
        return evolve(done, state=state)
    return done


if __name__ == "__main__":
    vars(engine)["step"] = forgetful
    sys.exit(main())
