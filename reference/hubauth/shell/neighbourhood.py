"""What one address may do, whoever is behind it: connections, failed authentications, registrations.

A site behind one address shares its allowances, so they are generous, and an operator can list addresses and networks
for which they do not hold. Hubs are not counted: what they ask for, their devices do.
"""

from collections import Counter
from ipaddress import IPv6Address, ip_network

from hubauth.shell.addresses import host_address
from hubauth.shell.allowance import Rate
from hubauth.shell.settings import PerAddressTable

_REMEMBERED = 50_000
"""Allowances in use that are remembered; beyond, the oldest are forgotten."""
_SITE_BITS = 64
"""One site has so many bits of an IPv6 address to itself."""


class Neighbourhood:
    """The allowances of all addresses."""

    def __init__(self, table: PerAddressTable) -> None:
        self._exempt = tuple(ip_network(network) for network in table.exempt)
        self._most_connections = table.connections
        self._rates = {
            "connects": Rate(table.connects_per_minute, 60.0),
            "failures": Rate(table.failures_per_minute, 60.0),
            "registrations": Rate(table.registrations_per_hour, 3600.0),
        }
        self._connections: Counter[str] = Counter()
        self._used_until: dict[tuple[str, str], float] = {}

    def site_of(self, host: str) -> str:
        """Whom to count a host under; empty: not at all."""
        address = host_address(host)
        if address is None or any(address in network for network in self._exempt):
            return ""
        if isinstance(address, IPv6Address):
            return str(ip_network((address, _SITE_BITS), strict=False))
        return str(address)

    def admits(self, site: str, now: float) -> str:
        """Whether one more connection is let in: empty, or what there are too many of."""
        if not site:
            return ""
        if self._most_connections and self._connections[site] >= self._most_connections:
            return "connections"
        if not self.takes("connects", site, now):
            return "connects"
        self._connections[site] += 1
        return ""

    def left(self, site: str) -> None:
        """A connection that was let in is gone."""
        if site:
            self._connections[site] -= 1
            if not self._connections[site]:
                del self._connections[site]

    def takes(self, what: str, site: str, now: float) -> bool:
        """Use up one of an allowance; whether there was one left."""
        rate = self._rates[what]
        if not site or not rate.at_once:
            return True
        before = self._used_until.pop((what, site), 0.0)
        after = rate.spend(before, now)
        is_left = not rate.wait(after, now)
        # What is refused uses up nothing.
        self._used_until[what, site] = after if is_left else before
        if len(self._used_until) > _REMEMBERED:
            self._forget(now)
        return is_left

    def uses(self, what: str, site: str, now: float, amount: int) -> None:
        """Use up so much of an allowance, whether it was left or not."""
        rate = self._rates[what]
        if site and rate.at_once and amount:
            before = self._used_until.pop((what, site), 0.0)
            self._used_until[what, site] = rate.spend(before, now, amount)

    def _forget(self, now: float) -> None:
        """Forget what is not in use; if all are, those that were used least recently."""
        in_use = [(key, until) for key, until in self._used_until.items() if until > now]
        self._used_until = dict(in_use[-_REMEMBERED // 2 :])
