"""Real hubs over TCP, recorded: their traces conform and hold no credential."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hubauth.core.inputs import OperatorInvalidate, OperatorRevoke
from hubauth.core.messages import AssistRegister, Frame, ListRoles, PermsInvalidate, Revoke
from hubauth.core.policy import Dialect
from hubauth.forms.events import Event, Kind, TraceError, decode_opening
from hubauth.judge.verdicts import Outcome
from hubauth.shell.client import DeviceClient, Options
from hubauth.shell.configuration import ConfigurationError, HubConfig
from hubauth.shell.hub import Hub
from hubauth.shell.journal import Journal
from hubauth.trace import parquet, recorder
from hubauth.trace.ends import Ends
from hubauth.trace.judge import judge
from hubauth.trace.lint import lint
from hubauth.trace.redact import Redactor
from hubauth.trace.rows import Recording
from hubauth.trace.storage import checkpoint_files, events_files, read_events
from hubauth.wire.header import Version
from tests.shell.harness import (
    ADMIN,
    child_config,
    config,
    hub_credential,
    joined,
    listed,
    refusal,
    run,
    until,
    verified,
)
from tests.shell.raw import peer, register, written

ADMIN_CREDENTIAL = "a" * 43


@asynccontextmanager
async def recorded(config: HubConfig, directory: Path, **how: Any) -> AsyncIterator[Hub]:
    hub = Hub(config, Recording(directory, checkpoint_events=20, **how))
    await hub.start()
    try:
        yield hub
    finally:
        await hub.stop()


def named(dialect: Dialect, name: str) -> dict[str, Any]:
    return {"dialect": dialect.value, "device_id": name}


async def busy_tree(dialect: Dialect, directory: Path, secrets: set[str], **how: Any) -> None:
    """root - mid - leaf, devices that register, roam, leave, are revoked and come back."""
    top = [verified(2), listed(3), ADMIN]
    root_config = config(hub={"first_node_id": 10, **named(dialect, "root")}, provisioned=top)
    async with recorded(root_config, directory, **how) as root:
        mid_config = child_config(2, root.address, hub={"dialect": dialect.value}, provisioned=[verified(3)])
        async with recorded(mid_config, directory, **how) as mid:
            await joined(mid)
            leaf_config = child_config(3, mid.address, hub={"dialect": dialect.value}, parent={"header": 2})
            async with recorded(leaf_config, directory, **how) as leaf:
                await joined(leaf)
                await _devices(dialect, (root, mid, leaf), secrets)


async def _devices(dialect: Dialect, hubs: tuple[Hub, Hub, Hub], secrets: set[str]) -> None:
    root, mid, leaf = hubs
    options = Options(dialect, version=Version.V2, retry_first=0.02)
    async with (
        DeviceClient(leaf.address, "sensor", options=options) as sensor,
        DeviceClient(root.address, "other", options=Options(dialect)) as other,
    ):
        first = await sensor.register()
        await other.register()
        secrets |= {sensor.credential, other.credential}
        async with DeviceClient(mid.address, "sensor", options=options, credential=sensor.credential) as moved:
            await moved.authenticate()
        async with DeviceClient(leaf.address, "stranger", options=options, credential="w" * 43) as stranger:
            await refusal(stranger.authenticate())
            secrets.add("w" * 43)
        if dialect is Dialect.FLAT:
            return
        await other.register()
        secrets.add(other.credential)
        async with DeviceClient(root.address, "admin", options=options, credential=ADMIN_CREDENTIAL) as admin:
            await admin.authenticate()
            await admin.revoke(Revoke("sensor", 0, sensor.credential), wait=10)
            if dialect is Dialect.AUTH:
                await admin.list_roles(ListRoles())
                await admin.get_perms(first.node_id)
        await other.send(7, b"secret of another protocol", target=first.node_id)
        root.engine.feed(OperatorRevoke(Revoke("other", 0, other.credential)))
        mid.engine.feed(OperatorInvalidate(PermsInvalidate()))
        await until(lambda: "other" not in root.engine.state.whitelist)


def content(directory: Path) -> bytes:
    files = [*events_files(directory), *checkpoint_files(directory)]
    assert files
    return b"".join(file.read_bytes() for file in files)


@pytest.mark.parametrize("dialect", list(Dialect))
def test_three_levels_conform_and_keep_their_secrets(dialect: Dialect, tmp_path: Path) -> None:
    secrets: set[str] = {hub_credential(2), hub_credential(3), ADMIN_CREDENTIAL}
    run(busy_tree(dialect, tmp_path / "t", secrets, key_file=tmp_path / "key"))
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst
    assert len(judgement.verdicts) == 3 and sum(verdict.events for verdict in judgement.verdicts) > 50
    assert [finding for finding in lint(tmp_path / "t") if finding.is_error] == []
    recorded = content(tmp_path / "t")
    for secret in secrets - {""}:
        assert secret.encode() not in recorded
    assert b"secret of another protocol" not in recorded
    assert (tmp_path / "key").read_text().strip().encode() not in recorded
    if dialect is not Dialect.FLAT:
        assert len(checkpoint_files(tmp_path / "t")) == 3 and b'"digest"' in recorded


def test_credentials_stay_if_asked_for(tmp_path: Path) -> None:
    secrets: set[str] = set()
    run(busy_tree(Dialect.AUTH, tmp_path / "t", secrets, keep_credentials=True))
    assert judge([tmp_path / "t"]).outcome is Outcome.CONFORMS
    assert all(secret.encode() in content(tmp_path / "t") for secret in secrets)


def test_a_connection_has_one_name_at_both_ends(tmp_path: Path) -> None:
    run(busy_tree(Dialect.AUTH, tmp_path / "t", set(), key_file=tmp_path / "key"))
    rows = [event for file in events_files(tmp_path / "t") for event in read_events(file)]
    ups = {(event.hub, event.link == 0): event.connection for event in rows if event.kind is Kind.LINK_UP}
    names = [event.connection for event in rows if event.kind is Kind.LINK_UP]
    assert names.count(ups["hub-2", True]) == names.count(ups["hub-3", True]) == 2


def test_a_restart_continues_the_trace(tmp_path: Path) -> None:
    storage = {"data_dir": str(tmp_path / "data"), "durability": "os"}

    async def once() -> None:
        async with (
            recorded(config(storage=storage), tmp_path / "t", key_file=tmp_path / "key") as hub,
            DeviceClient(hub.address, "sensor") as device,
        ):
            await device.register()

    for _ in range(3):
        run(once())
    rows = [event for file in events_files(tmp_path / "t") for event in read_events(file)]
    assert [event.sequence for event in rows] == list(range(len(rows)))
    starts = [decode_opening(event.payload) for event in rows if event.kind is Kind.START]
    assert [bool(opening.state) for opening in starts] == [False, True, True]
    assert judge([tmp_path / "t"]).outcome is Outcome.CONFORMS


def test_a_restart_answers_nobody_and_still_conforms(tmp_path: Path) -> None:
    """What waited for the parent is gone with the process, as is whoever asked."""
    storage = {"data_dir": str(tmp_path / "data"), "durability": "fsync"}

    async def story() -> None:
        async with recorded(config(provisioned=[verified(2)]), tmp_path / "root") as root:
            child = child_config(2, root.address, storage=storage)
            async with recorded(child, tmp_path / "t", key_file=tmp_path / "key") as hub:
                await joined(hub)
                root.engine.receive = lambda *_: None  # type: ignore[method-assign]
                async with peer(hub.address) as device:
                    await device.send(register("sensor"))
                    await until(lambda: hub.engine.state.pending)
                    await hub.stop()
            async with recorded(child, tmp_path / "t", key_file=tmp_path / "key") as hub:
                assert not hub.engine.state.pending and hub.observer.counters["unsent", ""] == 0

    run(story())
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst


def test_an_attempt_to_start_that_is_refused_leaves_no_rows(tmp_path: Path) -> None:
    async def story() -> None:
        storage = {"durability": "fsync", "data_dir": str(tmp_path / "data")}
        async with recorded(config(storage=storage), trace, keep_credentials=True) as hub:
            device = DeviceClient(hub.address, "device")
            await device.__aenter__()
            await device.register()
        await device.__aexit__(None, None, None)
        with pytest.raises(ConfigurationError):
            await Hub(config(storage=storage, hub={"node_id": 77}), Recording(trace, keep_credentials=True)).start()
        async with recorded(config(storage=storage), trace, keep_credentials=True) as hub:
            assert hub.engine.state.whitelist

    trace = tmp_path / "trace"
    run(story())
    assert judge([trace]).outcome is Outcome.CONFORMS
    assert not any(finding.is_error for finding in lint(trace))


@pytest.mark.parametrize("fails", ["append", "sync"])
def test_what_a_lost_journal_does_not_hold_is_not_in_the_trace(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object) -> None:
        raise OSError(28, "no space left")

    async def story() -> None:
        storage = {"durability": "fsync", "data_dir": str(tmp_path / "data")}
        async with (
            recorded(config(storage=storage), trace, keep_credentials=True) as hub,
            peer(hub.address) as device,
        ):
            await device.send(register("device"))
            assert len(await device.frames(1)) == 1
            with monkeypatch.context() as patched:
                patched.setattr(Journal, fails, lost)
                await device.send(register("other"))
                await until(hub.failed.is_set)
        async with recorded(config(storage=storage), trace, keep_credentials=True):
            pass

    trace = tmp_path / "trace"
    run(story())
    assert judge([trace]).outcome is Outcome.CONFORMS
    assert sum(event.kind is Kind.END for file in events_files(trace) for event in read_events(file)) == 1


def test_a_hub_that_forgets_across_a_restart_is_found(tmp_path: Path) -> None:
    async def once() -> None:
        async with (
            recorded(config(), tmp_path / "t", key_file=tmp_path / "key") as hub,
            DeviceClient(hub.address, "sensor") as device,
        ):
            await device.register()

    for _ in range(2):
        run(once())
    verdict = judge([tmp_path / "t"]).worst
    assert verdict is not None and (verdict.outcome, verdict.rule) == (Outcome.VIOLATES, "TRACE-3")


@pytest.mark.parametrize("one_keeps", [False, True])
def test_hubs_that_record_under_different_keys_are_not_told_to_have_garbled_frames(
    one_keeps: bool, tmp_path: Path
) -> None:
    """Each hub of the tree has a key of its own, or keeps what it sees: payloads differ, and nobody is wrong."""
    made: list[Path] = []

    def key_of_its_own(recording: Recording) -> Redactor | None:
        made.append(recording.directory)
        return None if one_keeps and len(made) == 2 else Redactor(bytes([len(made)]) * 32)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Recording, "redactor", key_of_its_own)
        run(busy_tree(Dialect.AUTH, tmp_path / "t", set()))
    assert len(made) == 3
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS, judgement.worst


def test_under_different_keys_a_frame_that_was_never_sent_is_still_found(tmp_path: Path) -> None:
    run(busy_tree(Dialect.AUTH, tmp_path / "t", set()))
    rows = [event for file in events_files(tmp_path / "t") for event in read_events(file)]
    ends = Ends()
    sent = next(row for row in rows if row.kind is Kind.FRAME_OUT and row.hub == "hub-3" and row.link == 0)
    for row in rows:
        ends.feed(replace(row, msg_id=row.msg_id + 1) if row is sent else row)
    assert [verdict.rule for verdict in ends.verdicts()] == ["TRACE-4"]


def test_tokens_of_another_key_make_another_trace(tmp_path: Path) -> None:
    storage = {"data_dir": str(tmp_path / "data"), "durability": "os"}

    async def once() -> None:
        async with (
            recorded(config(storage=storage), tmp_path / "t") as hub,
            DeviceClient(hub.address, "sensor") as device,
        ):
            await device.register()

    for _ in range(3):
        run(once())
    judgement = judge([tmp_path / "t"])
    assert [verdict.trace for verdict in judgement.verdicts] == ["t", "t+1", "t+2"]
    assert judgement.outcome is Outcome.CONFORMS
    for file in checkpoint_files(tmp_path / "t"):
        file.write_bytes(b"")
    verdict = judge([tmp_path / "t"]).worst
    assert verdict is not None and verdict.outcome is Outcome.CANNOT_TELL
    assert verdict.main.missing == "the checkpoint of row 0: the hub begins with a state that no row leads to"


def test_the_hub_goes_on_when_its_trace_cannot(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def once() -> None:
        async with recorded(config(), tmp_path / "t") as hub:
            assert hub._recorder is not None
            hub._recorder._rows._events.close()
            hub._recorder._rows._events = open("/dev/full", "wb", buffering=0)  # noqa: SIM115, PTH123
            async with DeviceClient(hub.address, "sensor") as device:
                assert (await device.register()).node_id == 10

    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    run(once())
    assert "the trace ends here" in caplog.text


def test_where_nothing_can_be_written_nothing_starts(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    async def once() -> None:
        async with recorded(config(), tmp_path / "file"):
            raise AssertionError("must not start")

    with pytest.raises(TraceError, match="cannot record"):
        run(once())


@pytest.mark.parametrize("text", ["", "abc", "g" * 64, "\u00fc" * 64])
def test_a_key_file_must_hold_a_key(text: str, tmp_path: Path) -> None:
    (tmp_path / "key").write_text(text, encoding="utf-8")
    with pytest.raises(TraceError, match="key"):
        Recording(tmp_path / "t", key_file=tmp_path / "key").redactor()


def test_what_one_hub_says_is_judged_alone(tmp_path: Path) -> None:
    run(busy_tree(Dialect.AUTH, tmp_path / "t", set(), key_file=tmp_path / "key"))
    victim = events_files(tmp_path / "t")[0]
    lines = victim.read_bytes().splitlines(keepends=True)
    victim.write_bytes(b"".join(lines[:10]) + b"{broken\n" + b"".join(lines[10:]))
    judgement = judge([tmp_path / "t"])
    outcomes = sorted(verdict.outcome.value for verdict in judgement.verdicts)
    assert outcomes == ["cannot_tell", "conforms", "conforms"] and judgement.exit_code == 4
    assert len(judgement.unreadable) == 1 and ":11:" in judgement.unreadable[0]
    shutil.rmtree(tmp_path / "t" / "checkpoints")
    victim.write_bytes(b"".join(lines))
    assert judge([tmp_path / "t"]).outcome is Outcome.CANNOT_TELL


@pytest.mark.parametrize("now", [-1, -(2**70), 2**32 * 10**9, 2**80])
def test_a_clock_that_is_wrong_costs_the_time_of_a_row_and_nothing_else(
    now: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "clock", lambda: now)
    run(busy_tree(Dialect.AUTH, tmp_path / "t", set(), key_file=tmp_path / "key"))
    judgement = judge([tmp_path / "t"])
    assert judgement.outcome is Outcome.CONFORMS and not judgement.unreadable
    rows = [event for file in events_files(tmp_path / "t") for event in read_events(file)]
    assert {event.time for event in rows} == {min(max(now // 1000, 0), 2**63 - 1)}
    writer = parquet.EventWriter(tmp_path / "rows.parquet")
    writer.write(rows)
    writer.close()
    assert list(read_events(tmp_path / "rows.parquet")) == rows


def test_rows_know_their_time_and_order(tmp_path: Path) -> None:
    run(busy_tree(Dialect.LOGIN, tmp_path / "t", set()))
    for file in events_files(tmp_path / "t"):
        rows: list[Event] = list(read_events(file))
        assert rows[0].kind is Kind.START and rows[-1].kind is Kind.END
        assert [row.time for row in rows] == sorted(row.time for row in rows)


def test_where_a_plain_hub_connects_from_is_recorded(tmp_path: Path) -> None:
    async def story() -> None:
        known = config(plain_hub=[{"node_id": 12, "address": "127.0.0.1"}])
        async with recorded(known, tmp_path / "t") as hub, peer(hub.address) as there:
            await there.send(written(Frame(AssistRegister("device"), msg_id=1, source=12)))
            await there.frames(1)

    run(story())
    [file] = events_files(tmp_path / "t")
    [up] = [event for event in read_events(file) if event.kind is Kind.LINK_UP]
    assert up.payload == b'{"hubs":[12],"peer":"127.0.0.1"}'
    assert judge([tmp_path / "t"]).outcome is Outcome.CONFORMS
