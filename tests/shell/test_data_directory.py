"""A hub takes a directory of its own, and touches nobody else's."""

import stat
from pathlib import Path

import pytest

from hubauth.core.indexes import initial_state
from hubauth.core.policy import Policy
from hubauth.shell.blocks import StorageError
from hubauth.shell.journal import Journal
from hubauth.shell.snapshot import Snapshot


def test_a_directory_with_other_things_in_it(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "precious.new").write_text("mine")
    with pytest.raises(StorageError, match=r"holds other files, such as precious\.new"):
        Journal.open(tmp_path, "os")
    assert (tmp_path / "precious.new").read_text() == "mine"
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert [path.name for path in tmp_path.iterdir()] == ["precious.new"]


def test_only_its_own_unfinished_files_are_removed(tmp_path: Path) -> None:
    journal, _ = Journal.open(tmp_path, "os")
    journal.begin(Snapshot(Policy(), initial_state(Policy())))
    journal.close()
    (tmp_path / "snapshot-7.new").write_text("left over")
    journal, _ = Journal.open(tmp_path, "os")
    journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-0", "lock"]
