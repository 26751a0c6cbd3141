"""A tap changes nothing, and what it records can be judged; likewise a packet capture."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import dpkt
import pytest

from hubauth.core.messages import Revoke
from hubauth.core.policy import Dialect, Policy
from hubauth.forms.events import Event, Kind, TraceError, decode_opening
from hubauth.forms.habits import Habits
from hubauth.judge.verdicts import Outcome
from hubauth.shell.client import DeviceClient, Options
from hubauth.trace.judge import judge
from hubauth.trace.lint import lint
from hubauth.trace.pcap import Segment, Stream, import_capture, segments
from hubauth.trace.rows import Recording
from hubauth.trace.storage import events_files, read_events
from hubauth.trace.tap import Crossing, Tap
from hubauth.trace.watching import End, Watch
from hubauth.wire.header import Version
from tests.shell.harness import ADMIN, child_config, config, joined, refusal, run, running, until, verified

ANYWHERE = ("127.0.0.1", 0)


@asynccontextmanager
async def tapped(directory: Path, policy: Policy, target: End, parent: End | None = None) -> AsyncIterator[list[End]]:
    crossings = [Crossing(ANYWHERE, target)]
    if parent is not None:
        crossings.append(Crossing(ANYWHERE, parent, is_parent=True))
    tap = Tap(Watch(Recording(directory), "tapped", policy, 1), crossings)
    try:
        yield await tap.start()
    finally:
        await tap.stop()


def rows_in(directory: Path) -> list[Event]:
    return [event for file in events_files(directory) for event in read_events(file)]


def test_not_a_byte_is_changed(tmp_path: Path) -> None:
    async def story() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(1000):
                writer.write(data[::-1])
            writer.write(b"the end")
            writer.close()

        server = await asyncio.start_server(echo, *ANYWHERE)
        async with tapped(tmp_path / "t", Policy(), server.sockets[0].getsockname()[:2]) as (near,):
            reader, writer = await asyncio.open_connection(*near)
            sent = bytes(range(256)) * 4
            writer.write(sent[:1000])
            assert await reader.readexactly(1000) == sent[:1000][::-1]
            writer.write_eof()
            assert await reader.read() == b"the end"
            writer.close()
        server.close()

    run(story())
    assert rows_in(tmp_path / "t")[-1].kind is Kind.END


def test_nobody_behind_the_tap(tmp_path: Path) -> None:
    async def story() -> None:
        with socket.create_server(ANYWHERE) as unused:
            target = unused.getsockname()
        async with tapped(tmp_path / "t", Policy(), target) as (near,):
            reader, writer = await asyncio.open_connection(*near)
            assert await reader.read() == b""
            writer.close()
            await writer.wait_closed()

    run(story())


@pytest.mark.parametrize("dialect", list(Dialect))
def test_a_hub_behind_a_tap_conforms(dialect: Dialect, tmp_path: Path) -> None:
    async def story() -> None:
        setup = config(hub={"dialect": dialect.value}, provisioned=[ADMIN])
        async with (
            running(setup) as hub,
            tapped(tmp_path / "t", setup.policy, hub.address) as (near,),
            DeviceClient(hub.address._replace(port=near[1]), "sensor", options=Options(dialect)) as device,
            DeviceClient(hub.address._replace(port=near[1]), "other", options=Options(dialect, Version.V2)) as other,
        ):
            await device.register()
            await other.register()
            if dialect is Dialect.AUTH:
                await refusal(other.get_perms(4711))

    run(story())
    assert [finding for finding in lint(tmp_path / "t") if finding.is_error] == []
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst
    rows = rows_in(tmp_path / "t")
    assert {1, 2} <= {event.header for event in rows}


def test_a_hub_between_two_taps_conforms_and_keeps_its_secrets(tmp_path: Path) -> None:
    secrets: set[str] = set()

    async def story() -> None:
        async with running(config(provisioned=[verified(2), ADMIN])) as root:
            with socket.create_server(ANYWHERE) as unused:
                listens = unused.getsockname()
            setup = child_config(2, root.address)
            async with tapped(tmp_path / "t", setup.policy, listens, root.address) as (near, far):
                setup = child_config(
                    2,
                    root.address._replace(port=far[1]),
                    listen={"address": f"127.0.0.1:{listens[1]}"},
                )
                async with running(setup) as mid:
                    await joined(mid)
                    address = root.address._replace(port=near[1])
                    async with (
                        DeviceClient(address, "sensor") as device,
                        DeviceClient(root.address, "admin", credential="a" * 43) as admin,
                    ):
                        await device.register()
                        await device.get_perms(9)
                        secrets.add(device.credential)
                        await admin.authenticate()
                        await until(lambda: device.node_id in root.engine.state.directory)
                        assert await admin.revoke(Revoke("sensor"), wait=10) is not None

    run(story())
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst
    assert judgement.rules["REG-5"] and judgement.rules["EXT-8"] and judgement.rules["REV-5"]
    written = b"".join(file.read_bytes() for file in events_files(tmp_path / "t"))
    assert secrets and not any(secret.encode() in written for secret in secrets)


def test_without_a_policy_nothing_can_be_told(tmp_path: Path) -> None:
    watch = Watch(Recording(tmp_path / "t"), "hub", None, 1)
    watch.opened("a", "c", "p", 2)
    watch.end(3)
    verdict = judge([tmp_path / "t"]).worst
    assert verdict is not None and verdict.main.missing == "the policy of the hub"
    given = judge([tmp_path / "t"], lambda _: Policy())
    assert given.outcome is Outcome.CONFORMS


# Packet captures


class Wire:
    """Packets of one TCP connection, as a capture holds them."""

    def __init__(self, port: int, server: End = ("10.0.0.1", 7080)) -> None:
        self.packets: list[bytes] = []
        self.ends = {"up": (("10.0.0.9", port), server), "down": (server, ("10.0.0.9", port))}
        self.numbers = {"up": 2**32 - 10, "down": 500}

    def send(self, way: str, data: bytes = b"", flags: int = dpkt.tcp.TH_ACK, back: int = 0) -> None:
        (host, port), (to_host, to_port) = self.ends[way]
        tcp = dpkt.tcp.TCP(sport=port, dport=to_port, seq=(self.numbers[way] - back) % 2**32, flags=flags, data=data)
        ip = dpkt.ip.IP(src=socket.inet_aton(host), dst=socket.inet_aton(to_host), p=dpkt.ip.IP_PROTO_TCP, data=tcp)
        ip.len = len(ip)
        self.packets.append(bytes(dpkt.ethernet.Ethernet(data=ip)))
        opens = flags & (dpkt.tcp.TH_SYN | dpkt.tcp.TH_FIN)
        self.numbers[way] = (self.numbers[way] + len(data) - back + bool(opens)) % 2**32


def capture(path: Path, packets: list[bytes]) -> Path:
    with path.open("wb") as file:
        writer = dpkt.pcap.Writer(file)
        for at, packet in enumerate(packets):
            writer.writepkt(packet, 1_700_000_000 + at / 1000)
    return path


def taped_exchange() -> tuple[list[tuple[str, bytes]], Policy]:
    """What a device and a real hub said to each other."""
    said: list[tuple[str, bytes]] = []
    setup = config()

    async def story() -> None:
        async with running(setup) as hub:
            reader, writer = await asyncio.open_connection(*hub.address)
            for payload in (
                b'{"action":"register","data":{"device_id":"d"}}',
                b'{"action":"get_perms","data":{"node_id":10}}',
            ):
                header = bytes([0x0B, 0, 0, 0, 0, 7]) + (10 if said else 0).to_bytes(4, "big") + bytes(8)
                request = header + len(payload).to_bytes(4, "big") + bytes(2) + payload
                writer.write(request)
                said.append(("up", request))
                answer = await reader.readexactly(24)
                answer += await reader.readexactly(int.from_bytes(answer[18:22], "big"))
                said.append(("down", answer))
            writer.close()

    run(story())
    return said, setup.policy


def test_a_capture_becomes_a_trace(tmp_path: Path) -> None:
    said, policy = taped_exchange()
    wire = Wire(4000)
    wire.send("up", flags=dpkt.tcp.TH_SYN)
    wire.send("down", flags=dpkt.tcp.TH_SYN | dpkt.tcp.TH_ACK)
    for way, data in said:
        middle = len(data) // 2
        wire.send(way, data[:middle])
        wire.send(way, data[middle:])
        wire.send(way, data[middle:], back=len(data) - middle)  # once more
    # Two segments of a request overtake each other.
    wire.packets[2], wire.packets[3] = wire.packets[3], wire.packets[2]
    wire.send("up", flags=dpkt.tcp.TH_FIN)
    wire.send("down", flags=dpkt.tcp.TH_FIN)
    other = Wire(4001, ("10.0.0.2", 80))
    other.send("up", b"nothing to do with it")
    file = capture(tmp_path / "x.pcap", [*other.packets, *wire.packets])
    recording = Recording(tmp_path / "t", keep_credentials=True)
    habits = Habits(serves=(1,))
    assert import_capture(file, partial(Watch, recording, "hub", policy, habits=habits), ("10.0.0.1", 7080)) == 1
    rows = rows_in(tmp_path / "t")
    assert decode_opening(rows[0].payload).habits == habits
    kinds = [event.kind.value for event in rows]
    assert kinds == ["start", "link_up", "frame_in", "frame_out", "frame_in", "frame_out", "link_down", "end"]
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 3, 2), (0, 0, 1, 1, 3, 2, 2)])
def test_segments_are_put_in_order(order: tuple[int, ...]) -> None:
    pieces = [b"abc", b"defg", b"h", b"ij"]
    first = 2**32 - 6
    numbers = [first, first + 3, (first + 7) % 2**32, (first + 8) % 2**32]
    stream = Stream(first)
    got = b""
    for at in order:
        got += stream.add(Segment(0, ("a", 1), ("b", 2), numbers[at], pieces[at], False, False, False))
    assert got == b"abcdefghij"


def test_what_overlaps_counts_once() -> None:
    stream = Stream(100)
    end = ("a", 1)
    assert stream.add(Segment(0, end, end, 100, b"abcd", False, False, False)) == b"abcd"
    assert stream.add(Segment(0, end, end, 102, b"cdef", False, False, False)) == b"ef"
    assert stream.add(Segment(0, end, end, 90, b"old", False, False, False)) == b""


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"not a capture at all, but long enough for a header")
    with pytest.raises(TraceError, match="no packet capture"):
        list(segments(tmp_path / "x"))
    with pytest.raises(TraceError, match="cannot read"):
        list(segments(tmp_path / "missing"))
    empty = capture(tmp_path / "empty.pcap", [b"", b"\x00" * 60])
    with pytest.raises(TraceError, match="holds no connection to"):
        import_capture(empty, partial(Watch, Recording(tmp_path / "t"), "hub", None), ("10.0.0.1", 7080))
