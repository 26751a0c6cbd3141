"""The journal alone: what it keeps, how it recovers, and what it refuses to believe."""

import os
import shutil
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from immutables import Map

from hubauth.core.indexes import initial_state
from hubauth.core.inputs import LinkUp, OperatorRevoke, Received
from hubauth.core.messages import Frame, Register, Revoke
from hubauth.core.model import FIRST_PLACE, Entry, Neighbour, Owed, Registration, Route, State
from hubauth.core.policy import Policy
from hubauth.core.recovery import LASTING_TABLES, Lasting, after_restart, indexed, lasting_changes
from hubauth.core.step import step
from hubauth.lab.tree import credential
from hubauth.shell import journal as journal_module
from hubauth.shell.blocks import Damaged, StorageError, frame_block, read_blocks
from hubauth.shell.journal import KIND, Journal
from hubauth.shell.records import FORMS, decode_records, encode_records, policy_row, record_of
from hubauth.shell.snapshot import Snapshot, snapshot_payloads

POLICY = Policy(node_roles={1: "admin"}, role_perms={"admin": ("*",)})


def blank() -> Snapshot:
    return Snapshot(POLICY, initial_state(POLICY))


def live(count: int) -> tuple[State, list[bytes]]:
    """A hub after ``count`` registrations, each on a link of its own, and a batch for each."""
    state, batches = initial_state(POLICY), []
    for number in range(1, count + 1):
        state = step(POLICY, state, LinkUp(number)).state
        frame = Frame(Register(f"device-{number}"), msg_id=number)
        done = step(POLICY, state, Received(number, frame, credential(number)))
        state = done.state
        batches.append(encode_records([record_of(lasting_changes(done.changes))]))
    return state, batches


def registration(number: int) -> bytes:
    return live(number)[1][-1]


def filled(directory: Path, count: int = 5) -> Snapshot:
    """A directory with ``count`` batches, and the hub they lead to."""
    journal, recovered = Journal.open(directory, "os")
    assert recovered.hub is None
    journal.begin(blank())
    for number in range(1, count + 1):
        journal.append(registration(number))
    journal.close()
    return recover(directory)


def recover(directory: Path) -> Snapshot:
    journal, recovered = Journal.open(directory, "os")
    journal.close()
    assert recovered.hub is not None
    return recovered.hub


def test_every_change_survives_the_way_through_bytes() -> None:
    changes: list[Lasting] = [
        ("hub", "node_id", 2**32 - 1),
        ("hub", "credential", "c"),
        ("registry", "d", Registration(5, True)),
        ("whitelist", "d", Entry(5, "c", True)),
        ("directory", 5, Route("d", 6, False)),
        ("neighbours", 0, Neighbour(3, 4)),
        ("owed", (0, Revoke("d", 3, "c")), Owed(7, 1)),
        ("beaten", "d", "c"),
        *((table, key, None) for table, key in (("whitelist", "d"), ("directory", 5), ("beaten", "d"))),
    ]
    records = [record_of(changes), [policy_row(POLICY)], record_of(changes[:1])]
    assert list(decode_records(encode_records(records))) == [changes, [POLICY], changes[:1]]


def test_every_table_that_lasts_has_a_form() -> None:
    assert set(FORMS) == set(LASTING_TABLES)


def test_recovery_is_what_outlives_the_process(tmp_path: Path) -> None:
    hub = filled(tmp_path / "data")
    state, _ = live(5)
    assert hub.state == after_restart(POLICY, state) and hub.state.next_node_id == 7
    assert state.links and not hub.state.links and not any(route.online for route in hub.state.directory.values())


@pytest.mark.parametrize(("kind", "name"), [(b"journal", "journal-0"), (b"snapshot", "snapshot-1")])
def test_a_file_of_another_format_is_refused_by_its_number(kind: bytes, name: str, tmp_path: Path) -> None:
    hub = filled(tmp_path, 3)
    if kind == b"snapshot":
        journal, _ = Journal.open(tmp_path, "os")
        rotate(journal, hub)
        journal.close()
    path = tmp_path / name
    first, rest = path.read_bytes().split(b"\n", 1)
    path.write_bytes(b"hubauth " + kind + b" 1\n" + rest)
    with pytest.raises(
        StorageError, match=rf"{name} is of another format \(hubauth {kind.decode()} 1\).* reads format 3"
    ) as refused:
        Journal.open(tmp_path, "os")
    assert "the version that wrote it" in refused.value.hint and first.endswith(b" 3")
    path.write_bytes(b"hubauth " + kind + b" one\n" + rest)
    with pytest.raises(Damaged, match="is no hubauth"):
        Journal.open(tmp_path, "os")


@pytest.mark.parametrize("batch", [b"", b"\x91", b"\xc1", encode_records([[(99, "d")]]), encode_records([[(2, "d")]])])
def test_what_is_no_record_is_damage(batch: bytes, tmp_path: Path) -> None:
    filled(tmp_path, 3)
    journal, _ = Journal.open(tmp_path, "os")
    journal.append(batch)
    journal.close()
    with pytest.raises(Damaged, match="block 4"):
        Journal.open(tmp_path, "os")


def test_a_file_that_is_not_there_any_more_is_noticed(tmp_path: Path) -> None:
    filled(tmp_path / "data", 3)
    journal, _ = Journal.open(tmp_path / "data", "os")
    journal.confirm()
    (tmp_path / "data").rename(tmp_path / "elsewhere")
    with pytest.raises(FileNotFoundError):
        journal.confirm()
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "data")
    with pytest.raises(OSError, match="is not the file that this hub writes to"):
        journal.confirm()
    shutil.rmtree(tmp_path / "data")
    (tmp_path / "elsewhere").rename(tmp_path / "data")
    journal.confirm()
    journal.close()


def test_files_are_for_their_owner_only(tmp_path: Path) -> None:
    filled(tmp_path / "data")
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "data").iterdir()} == {0o600}


def test_one_hub_per_directory(tmp_path: Path) -> None:
    journal, _ = Journal.open(tmp_path, "os")
    with pytest.raises(StorageError, match="in use by another hub"):
        Journal.open(tmp_path, "os")
    journal.close()
    Journal.open(tmp_path, "os")[0].close()


@pytest.mark.parametrize("keep", range(1, 60))
def test_a_torn_last_record_is_cut_off_wherever_it_tore(tmp_path: Path, keep: int) -> None:
    filled(tmp_path, 3)
    path = tmp_path / "journal-0"
    whole = path.read_bytes()
    path.write_bytes(whole + frame_block(4, registration(4))[:keep])
    journal, recovered = Journal.open(tmp_path, "os")
    assert recovered.hub is not None and len(recovered.hub.state.registry) == 3
    assert len(recovered.notes) == 1 and f"cut off {keep} bytes" in recovered.notes[0]
    assert path.read_bytes() == whole
    journal.append(registration(4))
    journal.close()
    assert len(recover(tmp_path).state.registry) == 4


def test_room_that_was_made_but_never_filled_is_cut_off(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    with (tmp_path / "journal-0").open("ab") as file:
        file.write(bytes(4096))
    assert len(recover(tmp_path).state.registry) == 3


def test_every_damaged_byte_of_an_earlier_record_is_found_and_nothing_is_overwritten(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    path = tmp_path / "journal-0"
    whole = path.read_bytes()
    last = len(whole) - len(frame_block(3, registration(3)))
    for at in range(0, last, 7):
        damaged = bytearray(whole)
        damaged[at] ^= 0x41
        path.write_bytes(damaged)
        with pytest.raises(Damaged):
            Journal.open(tmp_path, "os")
        assert path.read_bytes() == damaged


def test_a_missing_record_is_found(tmp_path: Path) -> None:
    filled(tmp_path, 3)
    path = tmp_path / "journal-0"
    blocks = read_blocks(path, KIND).blocks
    path.write_bytes(KIND + frame_block(0, blocks[0]) + frame_block(2, blocks[2]))
    with pytest.raises(Damaged, match="block 1 is missing"):
        Journal.open(tmp_path, "os")


def rotate(journal: Journal, hub: Snapshot) -> None:
    journal.begin(hub)
    for _ in journal.write_snapshot(hub):
        pass
    journal.finish_snapshot()


def test_a_snapshot_replaces_what_came_before(tmp_path: Path) -> None:
    hub = filled(tmp_path, 5)
    journal, _ = Journal.open(tmp_path, "os")
    rotate(journal, hub)
    journal.append(registration(6))
    journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-1", "lock", "snapshot-1"]
    again = recover(tmp_path)
    assert again.state == after_restart(POLICY, live(6)[0])


def test_a_crash_during_a_rotation(tmp_path: Path) -> None:
    hub = filled(tmp_path, 5)
    journal, _ = Journal.open(tmp_path, "os")
    journal.begin(hub)
    journal.append(registration(6))
    writing = journal.write_snapshot(hub)
    next(writing)
    next(writing)
    writing.close()
    journal.close()
    assert len(recover(tmp_path).state.registry) == 6
    assert not list(tmp_path.glob("*.new"))
    journal, recovered = Journal.open(tmp_path, "os")
    assert recovered.hub is not None
    rotate(journal, recovered.hub)
    (tmp_path / "journal-0").write_bytes(b"left over by a crash during removal")
    journal.close()
    assert len(recover(tmp_path).state.registry) == 6


class _Killed(BaseException):
    """The process ends here."""


def _rotates_until(moment: int, directory: Path, hub: Snapshot) -> bool:
    """Kill a rotation before the n-th thing that it does to the directory; whether it was through before that."""
    left = moment
    journal, _ = Journal.open(directory, "os")

    def mortal(doing: Callable[..., Any]) -> Callable[..., Any]:
        def do(*arguments: Any, **named: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise _Killed
            return doing(*arguments, **named)

        return do

    with pytest.MonkeyPatch.context() as patched:
        for name in ("begin_file", "create_file", "write_all", "sync_directory"):
            patched.setattr(journal_module, name, mortal(getattr(journal_module, name)))
        for name in ("rename", "unlink"):
            patched.setattr(Path, name, mortal(getattr(Path, name)))
        with suppress(_Killed):
            rotate(journal, hub)
    journal.close()
    return left >= 0


def test_killed_at_any_moment_of_a_rotation(tmp_path: Path) -> None:
    before = tmp_path / "before"
    hub = filled(before, 5)
    journal, _ = Journal.open(before, "os")
    rotate(journal, hub)
    journal.close()
    for moment in range(100):
        directory = shutil.copytree(before, tmp_path / str(moment))
        is_through = _rotates_until(moment, directory, hub)
        assert recover(directory).state == hub.state, moment
        if is_through:
            assert moment > 5
            return
    raise AssertionError("a rotation is never through")


def test_a_damaged_or_missing_file_is_an_error(tmp_path: Path) -> None:
    hub = filled(tmp_path, 5)
    journal, _ = Journal.open(tmp_path, "os")
    rotate(journal, hub)
    journal.close()
    snapshot = tmp_path / "snapshot-1"
    whole = snapshot.read_bytes()
    for at in range(0, len(whole), 11):
        snapshot.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(Damaged):
            Journal.open(tmp_path, "os")
    snapshot.write_bytes(whole[:-30])
    with pytest.raises(Damaged):
        Journal.open(tmp_path, "os")
    snapshot.write_bytes(whole)
    (tmp_path / "journal-1").unlink()
    with pytest.raises(StorageError):
        Journal.open(tmp_path, "os")


def test_a_snapshot_is_the_state(tmp_path: Path) -> None:
    hub = filled(tmp_path, 40)
    state = hub.state
    for number in range(1, 20):
        state = step(POLICY, state, OperatorRevoke(Revoke(f"device-{number}"))).state
    state = evolve(state, beaten=Map({"x": "y"}), neighbours=Map({3: Neighbour(2, 1)}))
    state = evolve(state, owed=Map({(3, Revoke("x", 1, "c")): Owed(2, 1), (3, Revoke("y")): Owed(FIRST_PLACE, 4)}))
    hub = Snapshot(POLICY, indexed(POLICY, state))
    assert len(list(snapshot_payloads(hub, rows=7))) > 10
    journal, _ = Journal.open(tmp_path, "os")
    rotate(journal, hub)
    journal.close()
    again = recover(tmp_path)
    assert again.state == hub.state and again.policy == hub.policy


def test_a_directory_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot use"):
        Journal.open(tmp_path / "file", "os")


def test_a_full_disk_is_noticed(tmp_path: Path) -> None:
    journal, _ = Journal.open(tmp_path, "os")
    journal.begin(blank())
    full = os.open("/dev/full", os.O_WRONLY)
    journal._file, kept = full, journal._file
    with pytest.raises(OSError, match="No space left"):
        journal.append(b"x")
    journal._file = kept
    os.close(full)
    journal.close()
