"""What the pages tell a reader to type does what they show."""

import re
import shutil
import socket
from pathlib import Path

import pytest

from tests.docs.sessions import Shell, Shown, fits, sessions
from tools.catalogue import ROOT

DOCS = ROOT / "docs"
PORTS = re.compile(r"\b70(?:80|81|90|91)\b")


def free_ports(count: int) -> list[int]:
    with_all = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [server.getsockname()[1] for server in with_all]
    for server in with_all:
        server.close()
    return ports


def moved(shown: Shown, ports: dict[str, str]) -> Shown:
    """The same on ports that nobody uses."""

    def move(text: str) -> str:
        text = PORTS.sub(lambda found: ports[found[0]], text)
        uses_default = re.match(r"hubauth device (?!.*--hub)", text)
        return f"{text} --hub 127.0.0.1:{ports['7080']}" if uses_default else text

    return Shown(move(shown.command), [PORTS.sub(lambda found: ports[found[0]], line) for line in shown.output])


@pytest.mark.slow
@pytest.mark.parametrize("page", ["tutorial.md", "howto/operate-a-hub.md", "howto/record-a-trace.md"])
def test_a_page_does_what_it_shows(page: str, tmp_path: Path) -> None:
    shutil.copytree(DOCS / "examples", tmp_path / "docs" / "examples")
    ports = dict(zip(("7080", "7081", "7090", "7091"), map(str, free_ports(4)), strict=True))
    told = [moved(shown, ports) for shown in sessions(DOCS / page)]
    assert len(told) > 5
    shell = Shell(tmp_path)
    try:
        for shown in told:
            came = shell.run(shown)
            assert fits(shown.output, came), "\n".join([f"$ {shown.command}", *came, "-- shown:", *shown.output])
    finally:
        shell.close()


def test_what_does_not_fit_is_noticed() -> None:
    assert fits(["a", "...", "b ... d"], ["a", "x", "y", "b c d"])
    assert fits(["..."], []) and fits([], [])
    assert not fits(["a"], ["a", "b"]) and not fits([], ["a"]) and not fits(["...", "b"], ["a"])
