"""What a connection needs to know of its socket."""

import socket
from contextlib import suppress


def address_of(name: object) -> str:
    """A socket's name as ``host:port``."""
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "")


def keep_alive(sock: socket.socket | None, seconds: float) -> None:
    """Let TCP find out when a silent peer has vanished."""
    if sock is None or not seconds or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    idle = max(int(seconds), 1)
    # The peer may be gone already; that is no reason not to notice.
    with suppress(OSError):
        _set_keep_alive(sock, idle)


def _set_keep_alive(sock: socket.socket, idle: int) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", idle), ("TCP_KEEPINTVL", max(idle // 4, 1)), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, idle * 2000)
