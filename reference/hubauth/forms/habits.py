"""What a hub is declared to do otherwise than the rules say: known, and no news in a verdict."""

from typing import Annotated

from msgspec import Meta, Struct


class Habits(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Every deviation that can be declared. The defaults are the rules."""

    perms: bool = False
    """Roles and permissions travel in the dialect ``login``, in the form they have in ``auth``."""
    extra_fields: bool = False
    """Refusals hold fields that the rules do not list."""
    refusals_as_ok: bool = False
    """Refusals travel with the Major of successes."""
    same_credential: bool = False
    """A device that registers again while it is bound may be given the credential that it has."""
    serves: tuple[Annotated[int, Meta(ge=0, le=63)], ...] = ()
    """Other sub-protocols that the hub itself speaks: what it sends there in its own name is not looked at."""
    answers_without_msg_id: bool = False
    """Answers have MsgID 0."""
    burst: Annotated[int, Meta(ge=0)] = 0
    """Of more than so many frames on one link within a second the rest may be dropped; 0: none is."""
    offline_unbinds: bool = False
    """A device that says it leaves loses its credential, and has to register again."""
    strangers_hear_broadcasts: bool = False
    """Broadcasts of other sub-protocols also go to links that nobody has entered on."""


AS_THE_RULES_SAY = Habits()
