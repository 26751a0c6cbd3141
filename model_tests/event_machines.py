"""State machines over the events of ``world`` (networks) and ``among_liars`` (one hub that anything is said to).

One rule per event, so that Hypothesis can leave whole kinds of events out of an example; every choice is drawn, so
that it can shrink them. In the steered machines ``target()`` leads the search, at the end of each example, towards
rare rules and many requests pending at once. That goes deeper and not wider: of 150 examples of networks 59 differed
in the rules they reached when steered and 116 when not, so most examples are not.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis import target
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from hubauth.core.policy import Dialect
from model_tests import among_liars, races, world
from model_tests.among_liars import Liars
from model_tests.exercised import Tally
from model_tests.steering import Walk, rarity
from model_tests.trees import SHAPES, Pick, T
from model_tests.walk import walk, walk_among_liars
from model_tests.world import World


class DrawnPick:
    """Choices drawn by Hypothesis."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def __call__(self, options: Sequence[T]) -> T:
        return options[self._data.draw(st.integers(0, len(options) - 1))] if len(options) > 1 else options[0]


class EventMachine(RuleBasedStateMachine):
    """What the machines of this file share."""

    TALLY: ClassVar[Tally]
    WALK: ClassVar[Walk]
    """The walk over the same events, which says how rare a rule is."""
    STEERED: ClassVar[bool] = False
    subject: Any = None

    def __init__(self) -> None:
        super().__init__()
        self.TALLY.examples += 1

    def happens(self, event: Callable[[Any, Pick], None], data: st.DataObject) -> None:
        event(self.subject, DrawnPick(data))

    def fired(self) -> set[str]:
        raise NotImplementedError

    def teardown(self) -> None:
        """Everything comes to rest, and nothing is left waiting."""
        if self.subject is not None:
            self.subject.finish()
        if self.subject is not None and self.STEERED:
            target(rarity(type(self).WALK, self.fired()), label="rare rules")
            target(float(self.subject.most_pending), label="pending at once")


def _add_rules(machine: type[EventMachine], events: dict[str, Any], often: dict[str, int]) -> None:
    for event_name, event in events.items():
        for copy in range(often.get(event_name, 1)):
            name = f"do_{event_name}_{copy}"
            setattr(machine, name, rule(data=st.data())(_caller(name, event)))


def _caller(name: str, event: Any) -> Any:
    def happens(self: EventMachine, data: st.DataObject) -> None:
        self.happens(event, data)

    happens.__name__ = happens.__qualname__ = name
    return happens


class NetworkMachine(EventMachine):
    """A tree of hubs in a dialect that has presence."""

    TALLY = Tally()
    WALK = walk
    DIALECTS: ClassVar[tuple[Dialect, ...]] = (Dialect.AUTH, Dialect.AUTH, Dialect.LOGIN)

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        pick = DrawnPick(data)
        self.subject = World(pick(SHAPES), pick(self.DIALECTS), pick, self.TALLY)

    def happens(self, event: Callable[[Any, Pick], None], data: st.DataObject) -> None:
        super().happens(event, data)
        pick = DrawnPick(data)
        if pick((True, False)):
            self.subject.deliver(pick)

    def fired(self) -> set[str]:
        return set(self.subject.rules)


class FlatNetworkMachine(NetworkMachine):
    """The same trees without presence: only the invariants that hold always."""

    TALLY = Tally()
    DIALECTS = (Dialect.FLAT,)


class LiarsMachine(EventMachine):
    """One hub among liars."""

    TALLY = Tally()
    WALK = walk_among_liars

    @initialize(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.subject = Liars(DrawnPick(data), self.TALLY)

    def happens(self, event: Callable[[Any, Pick], None], data: st.DataObject) -> None:
        super().happens(event, data)
        self.subject.after()

    def fired(self) -> set[str]:
        return set(self.subject.hub.rules)


_add_rules(NetworkMachine, races.EVENTS, {"roam": 3, "register": 2, "authenticate": 2, "revoke": 2, "ask_perms": 2})
_add_rules(LiarsMachine, among_liars.EVENTS, {"speak": 4, "answer": 4, "enter": 3})
for _name in races.EVENTS:
    if _name not in world.FLAT_EVENTS:
        for _copy in range(3):
            setattr(FlatNetworkMachine, f"do_{_name}_{_copy}", None)


class SteeredNetworkMachine(NetworkMachine):
    """Trees of hubs, in search of what is rare there."""

    TALLY = Tally()
    STEERED = True


class SteeredLiarsMachine(LiarsMachine):
    """One hub among liars, in search of what is rare there."""

    TALLY = Tally()
    STEERED = True
