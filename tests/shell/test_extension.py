"""Hubs that speak the extension, hubs that do not, and the name by which a hub's data directory is known."""

from pathlib import Path

import pytest

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Revoke
from hubauth.shell.client import DeviceClient
from hubauth.shell.configuration import ConfigurationError
from hubauth.shell.entropy import draw_journal
from hubauth.shell.status import Presence, standings, status_of
from tests.shell.harness import child_config, config, joined, run, running, until, verified


def kept(directory: Path, **tables: object) -> dict[str, object]:
    return {"storage": {"durability": "os", "data_dir": str(directory), "snapshot_records": 2}, **tables}


def test_a_data_directory_keeps_its_name_over_restarts_and_snapshots(tmp_path: Path) -> None:
    async def story() -> None:
        names = set()
        for number in range(3):
            async with running(config(**kept(tmp_path / "data"))) as hub:
                names.add(hub.engine.state.journal)
                for count in range(3):
                    async with DeviceClient(hub.address, f"d{number}{count}") as device:
                        await device.register()
        assert len(names) == 1 and len(names.pop()) == 22

    run(story())


def test_no_two_directories_have_one_name() -> None:
    assert len({draw_journal() for _ in range(100)}) == 100


def test_a_child_whose_directory_was_lost_hears_of_later_revokes(tmp_path: Path) -> None:
    """Its new directory has another name, and numbers begin anew: nothing counts as handled before."""

    async def story() -> None:
        async with running(config(provisioned=[verified(2)])) as root:
            for name in ("first", "second"):
                async with running(child_config(2, root.address, **kept(tmp_path / name))) as child:
                    await joined(child)
                    async with DeviceClient(child.address, "sensor") as device:
                        await device.register()
                        root.engine.feed(OperatorRevoke(Revoke("sensor")))
                        await until(lambda child=child: "sensor" not in child.engine.state.whitelist)  # type: ignore[misc]
                    await until(lambda: not root.engine.state.owed, "acknowledged")
                await until(lambda: not root.engine.state.index.link_of_node, "the child is away")

    run(story())


@pytest.mark.parametrize(("above", "below"), [(True, False), (False, True), (False, False)])
def test_where_one_end_does_not_speak_it_the_link_is_plain_and_revokes_go_once(above: bool, below: bool) -> None:
    async def story() -> None:
        async with (
            running(config(provisioned=[verified(2)], hub={"first_node_id": 10, "extension": above})) as root,
            running(child_config(2, root.address, hub={"extension": below})) as child,
        ):
            await joined(child)
            assert not child.engine.state.parent_extended
            async with DeviceClient(child.address, "sensor") as device:
                assert (await device.register()).node_id == 10
                root.engine.feed(OperatorRevoke(Revoke("sensor")))
                await until(lambda: "sensor" not in child.engine.state.whitelist)
            state = root.engine.state
            assert not state.owed
            (neighbour,) = status_of(root.engine.policy, state, Presence(), "", (0, 0)).neighbours
            assert neighbour.present and not neighbour.extended
            told = [
                standings(state, [2], Revoke("sensor"), silent)[0].standing for silent in ({}, {2: True}, {2: False})
            ]
            assert told == ["acknowledged", "unconfirmed", "unsent"]

    run(story())


def test_operators_see_who_speaks_it() -> None:
    async def story() -> None:
        async with (
            running(config(provisioned=[verified(2)])) as root,
            running(child_config(2, root.address)) as child,
        ):
            await until(lambda: child.engine.state.parent_extended)
            for hub in (root, child):
                (neighbour,) = status_of(hub.engine.policy, hub.engine.state, Presence(), "", (0, 0)).neighbours
                assert neighbour.present and neighbour.extended
            assert [one.standing for one in standings(root.engine.state, [2], Revoke("x"))] == ["acknowledged"]

    run(story())


def test_the_key_is_yes_or_no() -> None:
    with pytest.raises(ConfigurationError, match="extension"):
        config(hub={"extension": "yes"})
