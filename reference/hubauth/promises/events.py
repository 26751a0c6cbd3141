"""What can be seen of hubs from outside, in plain values: an event names a hub, and a link by its number."""

from attrs import field, frozen

from hubauth.core.messages import Frame, HubDismiss, HubFence, HubOnline, Malformed, Offline, PermsInvalidate, Revoke

PARENT = 0
UNANSWERED = (HubOnline, HubDismiss, HubFence, Offline, PermsInvalidate, Revoke, Malformed)
"""Requests that leave a hub the choice to answer them."""


@frozen
class Setting:
    """What an operator has written down about a hub."""

    device_id: str = ""  # the name under which the hub joins its parent
    bindings: frozenset[tuple[str, int, str]] = frozenset()  # device, node, and the credential that this hub verifies
    hubs: frozenset[str] = frozenset()  # the devices that are hubs here
    reserved: frozenset[int] = frozenset()  # at the authority: nodes that mean somebody, whom no binding names
    replaces: bool = True  # whether registering again revokes what was issued before
    extended: bool = True  # whether every hub of the tree speaks the extension
    searches: bool = False  # whether the hub admits the devices of its whole tree
    plain: bool = False  # whether the hub itself speaks the documents alone
    parent: str = ""  # the hub above; needed only in a tree with plain hubs


@frozen
class Event:
    """A hub is "configured", has a link "up" ("hub" is its place if the device named is a hub), "down" or "closed" by
    itself, is "restarted", has "received" or "sent" a frame, is "commanded" (takes a revoke for its own) or "late" (has
    waited in vain), or "waits" for its parent, being plain; something "rests" in a place ("kept" to admit by, "barred",
    "owed", "memory" or "binding"; some key), or nothing does, if no device is named; all is "quiet" (every hub is at
    its parent, nothing on its way) or "idle" (nor does anybody wait). A hub that is watched alone has "handled" all
    that came; a credential is "vouched" for by it, or by "", a neighbour."""

    kind: str
    hub: str = ""
    link: int = PARENT
    frame: Frame = field(default=Frame(b""))
    place: tuple[str, object] = ("", "")
    device_id: str = ""
    node_id: int = 0
    credential: str = ""
    setting: Setting = field(default=Setting())
    at: int = 0  # when, as the monitor counts
