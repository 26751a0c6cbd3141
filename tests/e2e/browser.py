"""A headless chromium that is told what to do over two pipes: no driver and no other package is needed."""

import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")


class Browser:
    """One page of a running browser."""

    def __init__(self, told: int, says: int) -> None:
        self._told, self._says = told, os.fdopen(says, "rb", buffering=0)
        self._buffer = b""
        self._number = 0
        self._session = ""
        self.requests: list[str] = []
        """Every address that a page has asked for."""
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self._ask(f"{domain}.enable")

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._told, json.dumps(message).encode() + b"\0")
        while True:
            said = self._next()
            if said.get("id") == self._number:
                assert "error" not in said, said
                answer: dict[str, Any] = said["result"]
                return answer

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            data = self._says.read(65536)
            assert data, "the browser has ended"
            self._buffer += data
        first, _, self._buffer = self._buffer.partition(b"\0")
        said: dict[str, Any] = json.loads(first)
        if said.get("method") == "Network.requestWillBeSent":
            self.requests.append(said["params"]["request"]["url"])
        return said

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self._ask("Page.navigate", url=path.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """What an expression comes to on the page."""
        return self._ask("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def click(self, selector: str) -> None:
        """Click on the middle of an element, with the mouse."""
        find = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{find}.scrollIntoView({{block: 'center'}})")
        box = self.value(f"{find}.getBoundingClientRect().toJSON()")
        middle = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **middle)

    def resize(self, width: int, height: int = 900) -> None:
        """Be a screen of this size."""
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def close(self) -> None:
        self._says.close()


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser that is ended in any case. Fails with what to install if there is none."""
    program = next(filter(None, map(shutil.which, _NAMES)), None)
    if program is None:
        pytest.fail("no chromium on this machine; on Debian: apt install chromium")
    read_end, told = os.pipe()
    says, write_end = os.pipe()
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (read_end, write_end)]
    process = subprocess.Popen(
        [program, *flags, f"--user-data-dir={profile}"],
        pass_fds=(3, 4),
        preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)),  # where the browser looks for them
        stderr=subprocess.DEVNULL,
    )
    for end in (read_end, write_end, *ends):
        os.close(end)
    page = None
    try:
        page = Browser(told, says)
        yield page
    finally:
        process.kill()
        process.wait(30)
        os.close(told)
        if page is not None:
            page.close()
        else:
            os.close(says)
