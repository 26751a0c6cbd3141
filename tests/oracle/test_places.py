"""An oracle on a socket: who is silent makes room for who asks, and a signal ends it in order."""

import json
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hubauth.cli.oracle import MAX_SESSIONS
from tests.oracle.asking import Peer

REFUSED = {"did": "error", "error": "too many conversations"}
ENDED = {"did": "error", "error": "silent for too long, and somebody else asks"}


@contextmanager
def oracle(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], list[Peer]]]:
    """An oracle all of whose places are taken, in the order of the list."""
    command = [sys.executable, "-m", "hubauth.cli", "oracle", "--listen", "127.0.0.1:0", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        peers: list[Peer] = []
        try:
            assert process.stdout is not None
            host, _, port = json.loads(process.stdout.readline())["listening"].rpartition(":")
            for _ in range(MAX_SESSIONS):
                peers.append(Peer((host, int(port))))
                assert peers[-1].ask(do="init")["did"] == "init"
            yield process, peers
        finally:
            process.kill()
            for peer in peers:
                peer.close()


def late(peers: list[Peer]) -> Peer:
    peers.append(Peer(peers[0].socket.getpeername()[:2]))
    return peers[-1]


def is_served(peer: Peer) -> bool:
    try:
        return peer.ask(do="state") != ENDED
    except ConnectionError:
        return False


def test_who_has_been_silent_for_longest_makes_room() -> None:
    with oracle("--idle-seconds", "0") as (_, peers):
        assert peers[0].ask(do="state")["did"] == "state"
        assert late(peers).ask(do="init")["did"] == "init"
        assert peers[1].answer() == ENDED and peers[1].file.read() == b""
        assert peers[0].ask(do="state")["did"] == "state"
        assert all(peer.ask(do="state")["did"] == "state" for peer in peers[2:])


def test_a_line_that_never_ends_is_silence() -> None:
    with oracle("--idle-seconds", "0") as (_, peers):
        for peer in peers[1:]:
            assert peer.ask(do="state")["did"] == "state"
        peers[0].socket.sendall(b'{"do":')
        assert late(peers).ask(do="init")["did"] == "init"
        assert peers[0].answer() == ENDED


def test_who_does_not_read_makes_room_too() -> None:
    with oracle("--idle-seconds", "0") as (_, peers):
        stuck, others = peers[0], peers[1:]
        stuck.socket.setblocking(False)
        with pytest.raises(BlockingIOError):
            while True:
                stuck.socket.send(b'{"do":"state"}\n' * 1000)
        watched = select.poll()
        watched.register(stuck.socket, select.POLLHUP | select.POLLERR)
        for _ in range(MAX_SESSIONS - 2):
            # Until the oracle has come as far as it can, somebody else may have been silent for longer.
            others = [peer for peer in others if is_served(peer)]
            assert late(peers).ask(do="init")["did"] == "init"
            if watched.poll(0):
                return
        pytest.fail("who does not read has kept its place")


def test_who_asks_now_and_then_keeps_the_place() -> None:
    with oracle() as (_, peers):
        assert late(peers).answer() == REFUSED
        assert all(peer.ask(do="state")["did"] == "state" for peer in peers[:-1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_without_a_word(number: signal.Signals) -> None:
    with oracle() as (process, peers):
        peers[0].socket.sendall(b'{"do":')
        process.send_signal(number)
        assert process.wait(30) == 0
        assert process.stderr is not None and process.stderr.read() == b""
        assert all(peer.file.read() == b"" for peer in peers)
