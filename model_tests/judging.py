"""What the drivers of the machines need to know in order to judge a step."""

from hubauth.core.model import TIMELESS, Route, State


def timers_of(state: State) -> set[int]:
    """The timers that must be running."""
    running = {msg_id for msg_id, pending in state.pending.items() if pending.purpose not in TIMELESS}
    return running | ({state.announce_timer} if state.announcing is not None else set())


def sessions_not_online(state: State) -> list[str]:
    """Whoever has a session at a hub is online there, and directly."""
    return [
        f"SessionsOnlineHere: node {session.node_id} on link {link}"
        for link, session in state.links.items()
        if session is not None
        and state.directory.get(session.node_id) != Route(session.device_id, session.node_id, online=True)
    ]
