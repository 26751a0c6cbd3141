"""Where hubs connect from that never authenticate: by address, or by the certificate they show."""

import re
from collections.abc import Iterable
from hashlib import sha256
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import NamedTuple, TypeAlias

from hubauth.shell.addresses import host_address
from hubauth.shell.settings import PlainHubTable

Network: TypeAlias = IPv4Network | IPv6Network
_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")


class PlainOrigin(NamedTuple):
    """Which plain hubs a connection may name itself as, and what makes it the same as another one of theirs."""

    hubs: tuple[int, ...] = ()
    peer: str = ""


def read_origin(address: str, certificate: str) -> Network | str:
    """What a connection is compared with. Raises ValueError."""
    if address:
        return ip_network(address)
    fingerprint = certificate.lower()
    if not _FINGERPRINT.fullmatch(fingerprint):
        raise ValueError("is no fingerprint of a certificate")
    return fingerprint


class Origins:
    """What the configuration says of plain hubs."""

    def __init__(self, hubs: Iterable[PlainHubTable]) -> None:
        self.learn(hubs)

    def learn(self, hubs: Iterable[PlainHubTable]) -> None:
        """Take over another configuration, for connections to come."""
        self._known = [(hub.node_id, read_origin(hub.address, hub.certificate)) for hub in hubs]

    def of(self, host: str, certificate: bytes | None) -> PlainOrigin:
        """Who a connection from this host, with this certificate (DER), may be."""
        if not self._known:
            return PlainOrigin()
        fingerprint = f"sha256:{sha256(certificate).hexdigest()}" if certificate else ""
        shown = {node_id for node_id, known in self._known if known == fingerprint}
        address = host_address(host)
        near = {
            node_id
            for node_id, known in self._known
            if address is not None and not isinstance(known, str) and address in known
        }
        if not shown and not near:
            return PlainOrigin()
        return PlainOrigin(tuple(sorted(shown | near)), fingerprint if shown else str(address))
