"""``hubauth oracle``: ask the reference step by step, in JSON lines."""

import argparse
import asyncio
import os
import signal
import sys

import msgspec

from hubauth.cli.problems import CommandError
from hubauth.oracle.process import Lines, Session, answers
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


def run(chosen: argparse.Namespace) -> int:
    """``hubauth oracle``."""
    if chosen.listen is None:
        return converse()
    try:
        address = parse_address(chosen.listen)
    except ValueError as problem:
        raise CommandError(f"--listen: {problem}", "for example --listen 127.0.0.1:7090") from None
    return asyncio.run(serve(address))


def converse() -> int:
    """One conversation, until standard input ends."""
    session, lines = Session(), Lines()
    while data := os.read(sys.stdin.fileno(), _CHUNK):
        _write(b"".join(answers(session, lines.feed(data))))
    _write(b"".join(answers(session, lines.end())))
    return 0


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


async def serve(address: Address) -> int:
    """A conversation per connection, until told to stop. Says first where it listens, as a line of JSON."""
    open_now: set[asyncio.StreamWriter] = set()

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        open_now.add(writer)
        try:
            if len(open_now) > MAX_SESSIONS:
                writer.write(msgspec.json.encode({"did": "error", "error": "too many conversations"}) + b"\n")
            else:
                await _attend(reader, writer)
        except ConnectionError:
            pass
        finally:
            open_now.discard(writer)
            writer.close()

    try:
        server = await asyncio.start_server(attend, address.host, address.port, limit=_CHUNK)
    except OSError as problem:
        raise CommandError(f"cannot listen on {address}: {problem.strerror or problem}") from None
    host, port = server.sockets[0].getsockname()[:2]
    _write(msgspec.json.encode({"listening": str(Address(host, port))}) + b"\n")
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    await stopping.wait()
    server.close()
    for writer in open_now:
        writer.transport.abort()
    return 0


async def _attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    session, lines = Session(), Lines()
    while data := await reader.read(_CHUNK):
        for answer in answers(session, lines.feed(data)):
            writer.write(answer)
            await writer.drain()
    for answer in answers(session, lines.end()):
        writer.write(answer)
    await writer.drain()
