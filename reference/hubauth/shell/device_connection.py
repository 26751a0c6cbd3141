"""A device's connection: frames out, frames in."""

import asyncio
import ssl
from collections.abc import Callable
from typing import Protocol, Self, cast

from hubauth.core.messages import Frame
from hubauth.core.policy import Dialect
from hubauth.shell.addresses import Address
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import FrameDecoder, encode_frame, read_frame
from hubauth.wire.header import Refused, Version


class DeviceConnectionOptions(Protocol):
    """What a connection depends on."""

    @property
    def dialect(self) -> Dialect: ...
    @property
    def version(self) -> Version: ...
    @property
    def tls(self) -> ssl.SSLContext | None: ...
    @property
    def server_name(self) -> str: ...
    @property
    def timeout(self) -> float: ...


class DeviceConnection(asyncio.Protocol):
    """One open connection. ``lost`` is set when it is gone."""

    def __init__(
        self, options: DeviceConnectionOptions, on_frame: Callable[[Frame], None], on_lost: Callable[[], None]
    ) -> None:
        self._codec = CODECS[options.dialect]
        self._version = options.version
        self._decoder = FrameDecoder(options.version)
        self._on_frame = on_frame
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self.lost = asyncio.Event()

    @classmethod
    async def connect(
        cls,
        address: Address,
        options: DeviceConnectionOptions,
        on_frame: Callable[[Frame], None],
        on_lost: Callable[[], None],
    ) -> Self:
        """Raises OSError (also for TLS) or TimeoutError."""
        name = None if options.tls is None else options.server_name or address.host
        opening = asyncio.get_running_loop().create_connection(
            lambda: cls(options, on_frame, on_lost), address.host, address.port, ssl=options.tls, server_hostname=name
        )
        # Not wait_for: in Python 3.11 it forgets a cancellation that comes just when the connection is refused.
        async with asyncio.timeout(options.timeout):
            _, wire = await opening
        return wire

    def send(self, frame: Frame) -> None:
        """Write a frame; on a lost connection it goes nowhere, and ``lost`` says so."""
        if self._transport is not None:
            self._transport.write(encode_frame(self._version, self._codec, frame))

    async def close(self) -> None:
        """Hang up and wait until the connection is gone."""
        if self._transport is not None:
            self._transport.close()
            try:
                async with asyncio.timeout(1.0):
                    await self.lost.wait()
            except TimeoutError:
                self.abort()

    def abort(self) -> None:
        """Hang up without a word."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for raw in self._decoder.feed(data):
            if isinstance(raw, Refused):
                self.abort()
            else:
                self._on_frame(read_frame(self._codec, raw).frame)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - how it was lost makes no difference
        self._transport = None
        self.lost.set()
        self._on_lost()
