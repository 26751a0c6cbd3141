"""A packet capture as the rows of one hub. dpkt reads the packets; segments are put in order by their numbers."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import dpkt
from attrs import define, field

from hubauth.forms.events import TraceError
from hubauth.trace.watching import End, Watch, show

_WRAP = 1 << 32
_HELD = 4096
"""Segments of one direction that may wait for an earlier one."""


class Segment(NamedTuple):
    time: int
    source: End
    target: End
    number: int
    data: bytes
    opens: bool
    closes: bool
    resets: bool


def segments(path: Path) -> Iterator[Segment]:
    """The TCP segments of a capture, as captured. Raises TraceError."""
    try:
        with path.open("rb") as file:
            for time, frame, link_type in _packets(file):
                segment = _segment(time, frame, link_type)
                if segment is not None:
                    yield segment
    except OSError as problem:
        raise TraceError(f"cannot read {path}: {problem.strerror}") from problem
    except (ValueError, dpkt.Error) as problem:
        raise TraceError(f"{path} is no packet capture: {problem}") from problem


def _packets(file: BinaryIO) -> Iterator[tuple[float, bytes, int]]:
    reader: Any = dpkt.pcap.UniversalReader(file)
    link_type = reader.datalink()
    for time, frame in reader:
        yield float(time), frame, link_type


def _segment(time: float, frame: bytes, link_type: int) -> Segment | None:
    try:
        packet = _network_layer(frame, link_type)
    except dpkt.Error:
        return None
    if not isinstance(packet, dpkt.ip.IP | dpkt.ip6.IP6) or not isinstance(packet.data, dpkt.tcp.TCP):
        return None
    family = socket.AF_INET if isinstance(packet, dpkt.ip.IP) else socket.AF_INET6
    tcp = packet.data
    source = (socket.inet_ntop(family, packet.src), tcp.sport)
    target = (socket.inet_ntop(family, packet.dst), tcp.dport)
    opens, ends, resets = (bool(tcp.flags & flag) for flag in (dpkt.tcp.TH_SYN, dpkt.tcp.TH_FIN, dpkt.tcp.TH_RST))
    return Segment(int(time * 1_000_000), source, target, tcp.seq, bytes(tcp.data), opens, ends or resets, resets)


def _network_layer(frame: bytes, link_type: int) -> Any:
    if link_type == dpkt.pcap.DLT_EN10MB:
        return dpkt.ethernet.Ethernet(frame).data
    if link_type == dpkt.pcap.DLT_LINUX_SLL:
        return dpkt.sll.SLL(frame).data
    if link_type in (dpkt.pcap.DLT_NULL, dpkt.pcap.DLT_LOOP):
        return dpkt.loopback.Loopback(frame).data
    return dpkt.ip6.IP6(frame) if frame[:1] and frame[0] >> 4 == 6 else dpkt.ip.IP(frame)


@define
class Stream:
    """One direction of a connection, put in order."""

    expected: int | None = None
    held: dict[int, bytes] = field(factory=dict)

    def add(self, segment: Segment) -> bytes:
        """What can be read after this segment, each byte once."""
        if segment.opens:
            self.expected = (segment.number + 1) % _WRAP
            return b""
        if self.expected is None:
            self.expected = segment.number
        if segment.data and len(self.held) < _HELD:
            known = self.held.get(segment.number, b"")
            self.held[segment.number] = max(known, segment.data, key=len)
        ready = b""
        while (piece := self._next()) is not None:
            ready += piece
        return ready

    def _next(self) -> bytes | None:
        """The next bytes in line, if they are there; what was seen before is thrown away."""
        assert self.expected is not None
        for number in list(self.held):
            ahead = (self.expected - number) % _WRAP
            if ahead >= _WRAP // 2:
                continue
            data = self.held.pop(number)
            if ahead < len(data):
                self.expected = (self.expected + len(data) - ahead) % _WRAP
                return data[ahead:]
        return None


def import_capture(path: Path, watched: Callable[[int], Watch], hub: End, parent: End | None = None) -> int:
    """Record what a capture shows of the hub that listens at ``hub``; how many connections it had.

    ``watched`` begins the recording, at the time of the first packet.

    Connections from anywhere to ``hub`` are its links; those to ``parent`` are its own to its parent.
    Raises TraceError.
    """
    watch: Watch | None = None
    streams: dict[tuple[End, End], Stream] = {}
    closing: dict[tuple[End, End], set[End]] = {}
    """Open connections, and which of their ends have said that they say nothing more."""
    connections = time = 0
    for segment in segments(path):
        time = segment.time
        ends = (segment.source, segment.target)
        server = next((end for end in ends if end == hub or (parent is not None and end == parent)), None)
        if server is None:
            continue
        watch = watch or watched(time)
        client = ends[0] if ends[1] == server else ends[1]
        key, is_parent = (client, server), server == parent
        if key not in closing and not segment.closes:
            closing[key] = set()
            connections += 1
            watch.opened(
                key, f"{show(client)}-{show(server)}", show(server if is_parent else client), time, is_parent=is_parent
            )
        to_hub = (segment.target == server) != is_parent
        if key not in closing:
            continue
        data = streams.setdefault(ends, Stream()).add(segment)
        if data:
            watch.passed(key, data, time, to_hub=to_hub)
        if segment.closes and key in closing:
            watch.closed(key, time, by_hub=not to_hub)
            closing[key].add(segment.source)
            if segment.resets or len(closing[key]) == 2:
                watch.gone(key)
                del closing[key]
                for way in (key, (server, client)):
                    streams.pop(way, None)
    if watch is None:
        raise TraceError(f"{path} holds no connection to {show(hub)}")
    watch.end(time)
    return connections
