"""A trace that can no longer be written does not keep its hub from stopping in order."""

from pathlib import Path

from hubauth.shell.hub import Hub
from hubauth.trace.rows import Recording
from tests.shell.harness import config, run
from tests.shell.raw import peer, register


def test_a_hub_stops_in_order_although_its_trace_ended_before(tmp_path: Path) -> None:
    async def story() -> None:
        hub = Hub(config(), Recording(tmp_path / "trace"))
        await hub.start()
        assert hub._recorder is not None
        rows = hub._recorder._rows
        rows._events.close()
        rows._events = Path("/dev/full").open("wb")  # noqa: SIM115 - buffered, as the trace is
        async with peer(hub.address) as device:
            await device.send(register("device"))
            assert len(await device.frames(1)) == 1, "it goes on without a trace"
        await hub.stop()

    run(story())
