"""What the drivers of the machines need to know in order to judge a step."""

from hubauth.core.model import Route, State


def sessions_not_online(state: State) -> list[str]:
    """Sessions whose device the directory does not show as online at this very hub."""
    return [
        f"SessionsOnlineHere: node {session.node_id} on link {link}"
        for link, session in state.links.items()
        if session is not None
        and state.directory.get(session.node_id) != Route(session.device_id, session.node_id, online=True)
    ]
