"""What must be said of each mistake of the strange hub, and what is said of a recording of it."""

from pathlib import Path

import msgspec
from attrs import frozen

from hubauth.core.messages import SUB_PROTO
from hubauth.forms.events import Event, Kind, Order
from hubauth.oracle.conform.profile import Profile
from tests.judge.strange_traces import Planted, Recipe, Recording, profile_of, record

Told = tuple[str, str, bool]
"""Rule, what differed, and whether the row is one of the step in which the mistake was made or first seen."""

_TELLS = {
    "revoked_admitted": ("AUTH-9", "decision"),
    "wrong_code": ("AUTH-3", "code"),
    "prefix": ("AUTH-2", "decision"),
    "node_twice": ("REG-2", "node_id"),
    "silent": ("PERM-1", "silence: answer to get_perms"),
    "twice": ("PERM-1", "not due: answer to get_perms"),
    "total_unfiltered": ("PERM-9", "total"),
    "stale_perms": ("PERM-1", "role or perms"),
    "hops_kept": ("FRAME-8", "HopLimit"),
    "session_kept": ("REV-7", "silence: close"),
    "wrong_node": ("AUTH-1", "node_id"),
    "offline_ignored": ("FRAME-23", "decision"),
    "stranger_admitted": ("AUTH-9", "decision"),
}
_WITHOUT_PERMS = {
    "silent": ("AUTH-1", "silence: answer to auth"),
    "twice": ("AUTH-1", "not due: answer to auth"),
    "offline_ignored": ("OFF-10", "decision"),
}
_FLAT = {
    "wrong_code": ("AUTH-9", "code"),
    "silent": ("AUTH-15", "silence: answer to auth"),
    "twice": ("BIND-1", "not due: answer to something"),
    "wrong_node": ("AUTH-15", "node_id"),
}


def node_in(row: Event) -> int:
    """The node that an answer names, in whatever dialect."""
    said = msgspec.json.decode(row.payload)
    return int(said.get("data", said).get("node_id", 0))


@frozen
class Taken:
    """A recording as it was written down, and what is to be found in it."""

    rows: list[Event]
    profile: Profile
    recording: Recording

    def expected(self) -> list[Told]:
        return sorted((*self._telling(fault), True) for fault in self.recording.recipe.faults)

    def _telling(self, fault: str) -> tuple[str, str]:
        manner = self.recording.recipe.manner
        special = _FLAT if manner.dialect == "flat" else {} if manner.perms else _WITHOUT_PERMS
        return special.get(fault, _TELLS[fault])

    def _twice(self) -> list[Planted]:
        return [one for one in self.recording.planted if one.fault == "node_twice"]

    def _of_its_twin(self, one: Planted) -> set[str]:
        """The rows in which the node of this mistake was given out, as long as both were under way together."""
        answers = {row.peer: row for row in self.rows if row.kind is Kind.FRAME_OUT and row.sub_proto == SUB_PROTO}
        given = answers[one.rows[-1]]
        node = node_in(given)
        near = (row for row in answers.values() if abs(row.sequence - given.sequence) == 1)
        return {row.peer for row in near if node_in(row) == node}

    def told(self, findings: list[tuple[str, str, int | None]]) -> list[Told]:
        """What was found, beside the rows at which it must be."""
        peers = {event.sequence: event.peer for event in self.rows}
        # From outside nobody can say which of two devices was given their node first.
        twins = {(*self._telling(one.fault), row) for one in self._twice() for row in self._of_its_twin(one)}
        right = twins | {(*self._telling(one.fault), row) for one in self.recording.planted for row in one.rows}
        # An offline that is only confirmed shows as soon as the device asks for something.
        right |= {(*self._telling("offline_ignored"), row) for row in self.recording.after_offline}
        return sorted((rule, what, (rule, what, peers.get(row or 0, "")) in right) for rule, what, row in findings)


def taken(recipe: Recipe, order: Order, directory: Path, *, faulty: bool) -> Taken:
    profile = profile_of(recipe, directory)
    recording = record(recipe, profile, faulty=faulty)
    return Taken(recording.seen(order, profile.declared, profile.policy(1)), profile, recording)
