"""Counters for Prometheus, read when somebody looks: keeping them costs the hub nothing but additions.

Served by the hub's own event loop: whoever looks gets a few seconds and one of a few places, so that an endpoint that
is reachable by strangers takes neither threads nor descriptors from the hub.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator

from attrs import frozen

from hubauth.shell.addresses import Address
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.hub import Hub
from hubauth.shell.observe import say
from hubauth.shell.status import count_pending

_LOOKERS = 8
_SECONDS = 5.0
_REQUEST_BYTES = 8192


@frozen
class Endpoint:
    """Where the counters are served, and how to end that."""

    address: Address
    stop: Callable[[], None]


async def serve_metrics(address: Address, hub: Hub) -> Endpoint:
    """Serve a hub's counters. Raises ConfigurationError."""
    try:
        from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
        from prometheus_client.registry import Collector
    except ImportError:
        raise ConfigurationError(
            "metrics", "prometheus-client is not installed", "pip install prometheus-client"
        ) from None

    class HubCollector(Collector):
        """Turns the hub's own counters into metrics."""

        def collect(self) -> Iterator[Metric]:
            families: dict[str, CounterMetricFamily] = {}
            for (name, label), count in list(hub.observer.counters.items()):
                if name not in families:
                    families[name] = CounterMetricFamily(f"hubauth_{name}", f"{name} since start", labels=["kind"])
                families[name].add_metric([label], count)
            yield from families.values()
            rules = CounterMetricFamily("hubauth_rules", "decisions by rule", labels=["rule"])
            for rule, count in list(hub.observer.rules.items()):
                rules.add_metric([rule], count)
            yield rules
            state = hub.engine.state
            gauges = {
                "connections": hub.connections,
                "sessions": len(state.index.link_of_node),
                "devices": len(state.whitelist),
                "registrations": len(state.registry),
                "pending": count_pending(state),
                "parent_present": int(state.parent_present),
                "owed": len(state.owed),
                "announcing": int(state.announcing is not None),
                "journal_records": hub.engine.records,
                "waiting_connections": hub.commons.turns.waiting,
                "unauthenticated_bytes": hub.commons.strangers.held,
                "device_bytes": hub.commons.devices.held,
            }
            for name, value in gauges.items():
                yield GaugeMetricFamily(f"hubauth_{name}", f"{name} now", value=value)

    registry = CollectorRegistry()
    registry.register(HubCollector())
    hub.observer.counts_rules = True
    lookers: set[asyncio.StreamWriter] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(lookers) >= _LOOKERS:
            writer.transport.abort()
            return
        lookers.add(writer)
        try:
            async with asyncio.timeout(_SECONDS):
                request = await reader.readuntil(b"\r\n\r\n")
                if request.startswith(b"GET "):
                    body = generate_latest(registry)
                    head = f"200 OK\r\nContent-Type: {CONTENT_TYPE_LATEST}\r\nContent-Length: {len(body)}"
                else:
                    body, head = b"", "405 Method Not Allowed\r\nContent-Length: 0"
                writer.write(f"HTTP/1.0 {head}\r\n\r\n".encode() + body)
                writer.close()
                await writer.wait_closed()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            writer.transport.abort()
        finally:
            lookers.discard(writer)

    try:
        server = await asyncio.start_server(answer, address.host, address.port, limit=_REQUEST_BYTES)
    except OSError as problem:
        reason = f"cannot listen on {address}: {problem.strerror}"
        raise ConfigurationError("metrics.address", reason) from None

    def stop() -> None:
        server.close()
        for writer in lookers:
            writer.transport.abort()

    served = Address(address.host, server.sockets[0].getsockname()[1])
    say(logging.INFO, "metrics", address=str(served))
    return Endpoint(served, stop)
