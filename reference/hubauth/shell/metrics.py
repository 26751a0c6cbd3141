"""Counters for Prometheus, read when somebody looks: keeping them costs the hub nothing but additions."""

import logging
from collections.abc import Callable, Iterator

from attrs import frozen

from hubauth.shell.addresses import Address
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.hub import Hub
from hubauth.shell.observe import say


@frozen
class Endpoint:
    """Where the counters are served, and how to end that."""

    address: Address
    stop: Callable[[], None]


def serve_metrics(address: Address, hub: Hub) -> Endpoint:
    """Serve a hub's counters, from a thread of its own. Raises ConfigurationError."""
    try:
        from prometheus_client import CollectorRegistry, start_http_server
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
                "pending": len(state.pending),
                "parent_present": int(state.parent_present),
                "journal_records": hub.engine.records,
            }
            for name, value in gauges.items():
                yield GaugeMetricFamily(f"hubauth_{name}", f"{name} now", value=value)

    registry = CollectorRegistry()
    registry.register(HubCollector())
    hub.observer.counts_rules = True
    try:
        server, thread = start_http_server(address.port, address.host, registry)
    except OSError as problem:
        reason = f"cannot listen on {address}: {problem.strerror}"
        raise ConfigurationError("metrics.address", reason) from None

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    served = Address(address.host, server.server_port)
    say(logging.INFO, "metrics", address=str(served))
    return Endpoint(served, stop)
