"""What the drivers of the machines need to know in order to judge a step."""

from hubauth.core.model import Route, State


def sessions_not_online(state: State) -> list[str]:
    """Whoever has a session at a hub is online there, and directly."""
    return [
        f"SessionsOnlineHere: node {session.node_id} on link {link}"
        for link, session in state.links.items()
        if session is not None
        and state.directory.get(session.node_id) != Route(session.device_id, session.node_id, online=True)
    ]
