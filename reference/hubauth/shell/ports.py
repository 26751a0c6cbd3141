"""What the engine sees of connections, and of listeners that tell an operator what the hub does."""

from typing import Protocol

from hubauth.core.outputs import Tell, Unconfirmed
from hubauth.wire.header import Version


class Batched(Protocol):
    """Something that is made safe and released batch by batch."""

    def seal(self) -> None:
        """What was put so far belongs to the batch that is being made safe."""

    def release(self) -> None:
        """Let out what was sealed."""


class Port(Batched, Protocol):
    """The engine's end of a connection."""

    peer: str
    connection: str
    """A name that both ends know it by."""

    @property
    def version(self) -> Version: ...
    @property
    def congested(self) -> bool:
        """Whether much is still unsent."""

    @property
    def crowded(self) -> bool:
        """Whether what is left of its room is for the hubs' own messages."""

    @property
    def is_hub(self) -> bool:
        """Whether a hub is at the other end."""

    def may_register(self) -> bool:
        """Whether its address has registrations left."""

    def has_failed(self) -> None:
        """An authentication on it was refused."""

    def left_waiting(self, requests: int) -> None:
        """It is a link no longer, and other hubs are still at work on so many of its requests."""

    def put(self, data: bytes, *, can_wait: bool) -> bool:
        """Keep a frame until the batch is safe, or longer if it can wait; whether it is the first of this batch."""

    def put_close(self) -> bool:
        """Close after what was put before; whether it is the first of this batch."""

    def drop(self, why: str) -> None:
        """End the connection after what was put before."""


class Listener(Batched, Protocol):
    """An object that is told what the hub tells its operator."""

    def tell(self, told: Tell) -> None:
        """A hub has answered a revoke."""

    def unconfirmed(self, told: Unconfirmed) -> None:
        """A plain hub has not confirmed a revoke."""
