"""``host:port`` as people write it; ``[::1]:7080`` for IPv6."""

from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple


class Address(NamedTuple):
    """Where to listen or to connect. Port 0 means: any free one (listening only)."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str) -> Address:
    """Read ``host:port``; anything else is a ValueError that says what is wrong."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host:
        raise ValueError(f"not host:port: {text!a}")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        raise ValueError(f"an IPv6 address needs brackets: {text!a}")
    try:
        host.encode("idna")
    except UnicodeError:
        raise ValueError(f"not a host: {host!a}") from None
    if not (port.isascii() and port.isdigit()) or int(port) > 65535:
        raise ValueError(f"not a port: {port!a}")
    return Address(host, int(port))


def host_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a socket names its peer by; None if that is no address."""
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
