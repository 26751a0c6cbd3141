"""A bar on a terminal while Spark works; nothing anywhere else."""

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from pyspark import SparkContext

_WIDTH = 30
_SECONDS = 0.25


class Progress:
    """Says which phase of a job is under way, and how many of its tasks are done."""

    def __init__(self, context: SparkContext, stream: TextIO) -> None:
        self._context = context
        self._stream = stream
        self._shows = stream.isatty()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Draw until the block ends; then leave a line that says how long it took."""
        if not self._shows:
            yield
            return
        begun, done = time.monotonic(), threading.Event()
        drawing = threading.Thread(target=self._draw, args=(name, begun, done), daemon=True)
        drawing.start()
        try:
            yield
        finally:
            done.set()
            drawing.join()
            self._line(f"{name:<12} {time.monotonic() - begun:6.1f} s", end="\n")

    def _draw(self, name: str, begun: float, done: threading.Event) -> None:
        while not done.wait(_SECONDS):
            finished, total = self._tasks()
            filled = _WIDTH * finished // total if total else 0
            bar = "#" * filled + "." * (_WIDTH - filled)
            self._line(f"{name:<12} {time.monotonic() - begun:6.1f} s  [{bar}] {finished}/{total} tasks")

    def _tasks(self) -> tuple[int, int]:
        tracker = self._context.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        known = [stage for stage in stages if stage is not None]
        return sum(stage.numCompletedTasks for stage in known), sum(stage.numTasks for stage in known)

    def _line(self, text: str, end: str = "") -> None:
        width = shutil.get_terminal_size().columns - 1
        self._stream.write(f"\r{text[:width]:<{width}}{end}")
        self._stream.flush()
