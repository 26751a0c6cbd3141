"""Makes the data directory of a hub that knows many devices: ``python -m tests.bench.prepare DIRECTORY COUNT``."""

import sys
from pathlib import Path

from hubauth.shell.configuration import configure
from hubauth.shell.journal import Journal
from hubauth.shell.snapshot import Snapshot
from tests.bench.core import populate


def prepare(directory: Path, count: int) -> None:
    """A data directory that holds ``count`` devices."""
    policy = configure({"storage": {"durability": "none"}}).policy
    hub = Snapshot(policy, populate(count).state)
    journal, _ = Journal.open(directory, "os")
    journal.begin(hub)
    journal.begin(hub)
    for _ in journal.write_snapshot(hub):
        pass
    journal.finish_snapshot()
    journal.close()


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), int(sys.argv[2]))
