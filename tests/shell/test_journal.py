"""The journal alone: what it keeps, how it recovers, and what it refuses to believe."""

import os
import stat
from pathlib import Path

import pytest
from attrs import evolve
from immutables import Map

from hubauth.core.canonical import digest_of, encode_state
from hubauth.core.indexes import initial_state
from hubauth.core.inputs import (
    Input,
    LinkDown,
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
    PolicyChanged,
    Received,
    TimerFired,
)
from hubauth.core.messages import Authenticate, Frame, PermsInvalidate, Register, Revoke
from hubauth.core.policy import Policy
from hubauth.core.step import step
from hubauth.network.tree import credential
from hubauth.shell.blocks import Damaged, frame_block, read_blocks
from hubauth.shell.journal import KIND, Journal, StorageError
from hubauth.shell.records import decode_inputs, encode_input, encode_received
from hubauth.shell.snapshot import Snapshot, snapshot_payloads
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.framing import FrameDecoder, RawFrame, encode_frame
from hubauth.wire.header import Version

POLICY = Policy(node_roles={1: "admin"}, role_perms={"admin": ("*",)})


def blank() -> Snapshot:
    return Snapshot(POLICY, initial_state(POLICY), 1)


def raw(frame: Frame, version: Version = Version.V1) -> RawFrame:
    (cut,) = FrameDecoder(version).feed(encode_frame(version, AUTH, frame))
    assert isinstance(cut, RawFrame)
    return cut


def registration(number: int) -> list[bytes]:
    frame = raw(Frame(Register(f"device-{number}"), msg_id=number))
    return [encode_input(LinkUp(number)), encode_received(number, frame, credential(number))]


def filled(directory: Path, count: int = 5) -> Snapshot:
    """A directory with ``count`` batches, and the hub they lead to."""
    journal, recovered = Journal.open(directory, "os")
    assert recovered.hub is None
    journal.begin(blank())
    for number in range(1, count + 1):
        journal.append(b"".join(registration(number)))
    journal.close()
    return recover(directory)


def recover(directory: Path) -> Snapshot:
    journal, recovered = Journal.open(directory, "os")
    journal.close()
    assert recovered.hub is not None
    return recovered.hub


def test_every_input_survives_the_way_through_bytes() -> None:
    frame = Frame(
        Authenticate("d", "c"), msg_id=2**32 - 1, source=5, target=6, trace_id=7, hop_limit=8, flags=1, timestamp=9
    )
    inputs: list[Input] = [
        LinkUp(2**40),
        LinkDown(0),
        TimerFired(2**32 - 1),
        OperatorRevoke(Revoke("d", 3, "c"), 4),
        OperatorInvalidate(PermsInvalidate((1, 2), "why", True)),
        PolicyChanged(POLICY),
    ]
    data = b"".join(map(encode_input, inputs)) + encode_received(3, raw(frame, Version.V2), "fresh")
    assert list(decode_inputs(data, AUTH)) == [*inputs, Received(3, frame, "fresh")]


def test_recovery_is_replay(tmp_path: Path) -> None:
    hub = filled(tmp_path / "data")
    state = initial_state(POLICY)
    for number in range(1, 6):
        for happened in decode_inputs(b"".join(registration(number)), AUTH):
            state = step(POLICY, state, happened).state
    assert encode_state(hub.state) == encode_state(state) and hub.state == state
    assert hub.next_link == 6 and hub.state.next_node_id == 7


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
    path.write_bytes(whole + frame_block(4, b"".join(registration(4)))[:keep])
    journal, recovered = Journal.open(tmp_path, "os")
    assert recovered.hub is not None and len(recovered.hub.state.registry) == 3
    assert len(recovered.notes) == 1 and f"cut off {keep} bytes" in recovered.notes[0]
    assert path.read_bytes() == whole
    journal.append(b"".join(registration(4)))
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
    last = len(whole) - len(frame_block(3, b"".join(registration(3))))
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
    journal.append(b"".join(registration(6)))
    journal.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["journal-1", "lock", "snapshot-1"]
    again = recover(tmp_path)
    assert len(again.state.registry) == 6 and again.next_link == 7


def test_a_crash_during_a_rotation(tmp_path: Path) -> None:
    hub = filled(tmp_path, 5)
    journal, _ = Journal.open(tmp_path, "os")
    journal.begin(hub)
    journal.append(b"".join(registration(6)))
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
    hub = Snapshot(POLICY, evolve(state, beaten=Map({"x": "y"}), announcing=(1, 2)), 41)
    assert len(list(snapshot_payloads(hub, rows=7))) > 10
    journal, _ = Journal.open(tmp_path, "os")
    rotate(journal, hub)
    journal.close()
    again = recover(tmp_path)
    assert again.state == hub.state and digest_of(again.state) == digest_of(hub.state)
    assert again.policy == hub.policy and again.next_link == 41


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
