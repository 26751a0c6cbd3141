"""What all connections of a hub share, and what their peers are to it."""

from enum import Enum

from attrs import field, frozen

from hubauth.shell.allowance import Rate, Room
from hubauth.shell.engine import Engine
from hubauth.shell.neighbourhood import Neighbourhood
from hubauth.shell.observe import Observer
from hubauth.shell.origins import Origins
from hubauth.shell.outlet import Outlet
from hubauth.shell.settings import LimitsTable
from hubauth.shell.turn import Turns

_SPARED = 4096
"""A connection that holds no more than this is never closed because all together hold too much."""
_READ = 32 * 1024
_OPAQUE_BURST = 4.0
"""Seconds: what a device may send in other sub-protocols in that time, it may send at once."""


class Standing(Enum):
    """What a peer is to this hub."""

    STRANGER = "stranger"
    """It has no session."""
    DEVICE = "device"
    HUB = "hub"


@frozen(eq=False)
class Commons:
    """What all connections of a hub share."""

    engine: Engine
    limits: LimitsTable
    observer: Observer
    turns: Turns
    outlet: Outlet
    neighbourhood: Neighbourhood
    origins: Origins
    strangers: Room
    """Held by connections without a session."""
    devices: Room
    opaque: Rate
    buffer: memoryview = field(factory=lambda: memoryview(bytearray(_READ)))
    """What is read at once. Taken out before the next connection reads, so one is enough."""

    @classmethod
    def of(
        cls, engine: Engine, limits: LimitsTable, observer: Observer, neighbourhood: Neighbourhood, origins: Origins
    ) -> "Commons":
        turns = Turns(limits.turn_seconds, limits.turn_bytes, lambda: engine.overloaded, engine.end_turn)
        strangers = Room(limits.unauthenticated_bytes, _SPARED)
        devices = Room(limits.device_bytes, max(limits.payload, _SPARED))
        opaque = Rate(limits.opaque_bytes_per_second * _OPAQUE_BURST, _OPAQUE_BURST)
        outlet = Outlet(lambda: turns.waiting > 0)
        return cls(engine, limits, observer, turns, outlet, neighbourhood, origins, strangers, devices, opaque)

    def room_of(self, standing: Standing) -> Room | None:
        """Where what a peer's connection holds is counted; None: nowhere."""
        if standing is Standing.STRANGER:
            return self.strangers
        return self.devices if standing is Standing.DEVICE else None
