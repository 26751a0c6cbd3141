"""``hubauth oracle``: ask the reference step by step, in JSON lines."""

import argparse
import asyncio
import os
import signal
import sys
from contextlib import suppress

import msgspec

from hubauth.cli.problems import CommandError
from hubauth.oracle.process import Lines, Session, answers
from hubauth.report.escape import visible_lines
from hubauth.shell.addresses import Address, parse_address

MAX_SESSIONS = 64
_CHUNK = 64 * 1024

_EXAMPLES = """\
examples:
  hubauth oracle                               a conversation on standard input and output
  hubauth oracle --listen 127.0.0.1:7090       one conversation per connection
  echo '{"do":"init"}' | hubauth oracle
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "Answer what a hub does, and judge what another hub did: one JSON object per line, in and out."
    oracle = commands.add_parser("oracle", help="ask the reference step by step", description=about, epilog=_EXAMPLES)
    oracle.set_defaults(run=run)
    oracle.add_argument("--listen", metavar="HOST:PORT", help="serve a socket instead; port 0: any free one")
    oracle.add_argument(
        "--idle-seconds",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help=f"who has asked nothing for so long makes room when all {MAX_SESSIONS} places are taken (default: 60)",
    )


def run(chosen: argparse.Namespace) -> int:
    """``hubauth oracle``."""
    if chosen.listen is None:
        return converse()
    try:
        address = parse_address(chosen.listen)
    except ValueError as problem:
        raise CommandError(f"--listen: {problem}", "for example --listen 127.0.0.1:7090") from None
    if not chosen.idle_seconds >= 0:
        raise CommandError("--idle-seconds: a number of at least 0 is needed")
    return asyncio.run(serve(address, chosen.idle_seconds))


def converse() -> int:
    """One conversation, until standard input ends."""
    session, lines = Session(), Lines()
    while data := os.read(sys.stdin.fileno(), _CHUNK):
        _write(b"".join(answers(session, lines.feed(data))))
    _write(b"".join(answers(session, lines.end())))
    return 0


def _write(data: bytes) -> None:
    """JSON means the same when what cannot be seen is written out, and somebody may be looking."""
    sys.stdout.buffer.write(data if data.isascii() else visible_lines(data.decode()).encode())
    sys.stdout.buffer.flush()


class _Conversation:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.heard = asyncio.get_running_loop().time()
        """When it last asked something; a line that is not complete asks nothing."""

    async def attend(self) -> None:
        """Answer until nothing more is asked."""
        session, lines = Session(), Lines()
        while data := await self._reader.read(_CHUNK):
            for answer in answers(session, lines.feed(data)):
                self.heard = asyncio.get_running_loop().time()
                self._writer.write(answer)
                await self._writer.drain()
        for answer in answers(session, lines.end()):
            self._writer.write(answer)
        await self._writer.drain()

    def end(self, why: str) -> None:
        """Say why, if there is somebody who reads, and close."""
        if self._writer.transport.get_write_buffer_size():
            self._writer.transport.abort()
            return
        self._writer.write(msgspec.json.encode({"did": "error", "error": why}) + b"\n")
        self._writer.close()


class _Places:
    """The conversations of a server. When all places are taken, who has been silent for long makes room."""

    def __init__(self, idle_seconds: float) -> None:
        self._idle_seconds = idle_seconds
        self._open: set[_Conversation] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Attend to a connection from its beginning to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        conversation = _Conversation(reader, writer)
        # A task that ends as cancelled would be reported as a failure.
        with suppress(ConnectionError, asyncio.CancelledError):
            if self._make_room():
                self._open.add(conversation)
                await conversation.attend()
            else:
                conversation.end("too many conversations")
        self._open.discard(conversation)
        self._tasks.discard(task)
        writer.close()

    def _make_room(self) -> bool:
        if len(self._open) < MAX_SESSIONS:
            return True
        silent = min(self._open, key=lambda conversation: conversation.heard)
        if asyncio.get_running_loop().time() - silent.heard < self._idle_seconds:
            return False
        self._open.discard(silent)
        silent.end("silent for too long, and somebody else asks")
        return True

    async def close(self) -> None:
        """End every conversation, wherever it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks)


async def serve(address: Address, idle_seconds: float) -> int:
    """A conversation per connection, until told to stop. Says first where it listens, as a line of JSON."""
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    places = _Places(idle_seconds)
    try:
        server = await asyncio.start_server(places.welcome, address.host, address.port, limit=_CHUNK)
    except OSError as problem:
        raise CommandError(f"cannot listen on {address}: {problem.strerror or problem}") from None
    host, port = server.sockets[0].getsockname()[:2]
    _write(msgspec.json.encode({"listening": str(Address(host, port))}) + b"\n")
    await stopping.wait()
    server.close()
    await places.close()
    return 0
