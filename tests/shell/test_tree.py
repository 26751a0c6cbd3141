"""A tree of real hubs on loopback, in all three dialects."""

import pytest
from attrs import evolve

from hubauth.core.inputs import OperatorRevoke, PolicyChanged
from hubauth.core.messages import ListRoles, PermsInvalidate, Reason, Revoke
from hubauth.core.policy import Dialect
from hubauth.shell.client import DeviceClient, Options
from hubauth.wire.header import Version
from tests.shell.harness import ADMIN, child_config, config, refusal, run, running, three_levels, until, verified

WITH_PRESENCE = [Dialect.AUTH, Dialect.LOGIN]


@pytest.mark.parametrize("dialect", list(Dialect))
def test_register_at_the_leaf_and_authenticate_elsewhere(dialect: Dialect) -> None:
    async def story() -> None:
        async with three_levels(dialect) as tree:
            device = await tree.device("sensor", "A")
            first = await device.register()
            assert first.node_id == 10
            assert (len(device.credential) == 43) == (dialect is not Dialect.FLAT)
            await until(lambda: tree.online("root", 10), "the root knows the way")
            moved = await tree.device("sensor", "B", credential=device.credential)
            assert (await moved.authenticate()).node_id == 10
            if dialect is Dialect.AUTH:
                assert first.grant.role == "node"
            await until(lambda: "sensor" in tree.hubs["B"].engine.state.whitelist)

    run(story())


@pytest.mark.parametrize("dialect", list(Dialect))
def test_node_ids_are_unique_across_the_tree(dialect: Dialect) -> None:
    async def story() -> None:
        async with three_levels(dialect) as tree:
            devices = [await tree.device(f"d{number}", ["root", "mid", "A", "B"][number % 4]) for number in range(12)]
            nodes = [(await device.register()).node_id for device in devices]
            assert sorted(nodes) == list(range(10, 22))

    run(story())


@pytest.mark.parametrize("dialect", list(Dialect))
def test_what_is_not_known_is_refused(dialect: Dialect) -> None:
    async def story() -> None:
        async with three_levels(dialect) as tree:
            stranger = await tree.device("stranger", "A", credential="x" * 43)
            assert await refusal(stranger.authenticate()) is Reason.NOT_ADMITTED

    run(story())


@pytest.mark.parametrize("dialect", WITH_PRESENCE)
def test_revoke_from_the_root_reaches_the_leaf_and_comes_back(dialect: Dialect) -> None:
    async def story() -> None:
        async with three_levels(dialect) as tree:
            device = await tree.device("sensor", "A")
            await device.register()
            await until(lambda: tree.online("root", 10))
            tree.hubs["root"].engine.feed(OperatorRevoke(Revoke("sensor")))
            await until(lambda: "sensor" not in tree.hubs["A"].engine.state.whitelist, "revoked at the leaf")
            await until(lambda: not tree.online("root", 10), "offline at the root")
            again = await tree.device("sensor", "A", credential=device.credential)
            assert await refusal(again.authenticate()) is Reason.NOT_ADMITTED

    run(story())


def test_a_device_with_permission_revokes_another() -> None:
    async def story() -> None:
        async with three_levels() as tree:
            device = await tree.device("sensor", "A")
            admitted = await device.register()
            admin = await tree.device("admin", "root", credential=ADMIN["credential"])
            assert (await admin.authenticate()).grant.role == "admin"
            await until(lambda: tree.online("root", admitted.node_id))
            answer = await admin.revoke(Revoke("sensor"), wait=10)
            assert answer is not None and (answer.device_id, answer.node_id) == ("sensor", admitted.node_id)
            other = await tree.device("other", "B")
            await other.register()
            assert await refusal(other.revoke(Revoke("admin"), wait=10)) is Reason.FORBIDDEN

    run(story())


def test_permissions_travel() -> None:
    async def story() -> None:
        async with three_levels() as tree:
            device = await tree.device("sensor", "A")
            await device.register()
            assert (await device.get_perms(9)).grant.perms == ("auth.revoke", "auth.perms_invalidate")
            assert await refusal(device.get_perms(4711)) is Reason.UNKNOWN_NODE
            admin = await tree.device("admin", "root", credential=ADMIN["credential"])
            await admin.authenticate()
            page = await admin.list_roles(ListRoles(role="hub"))
            assert [row.node_id for row in page.roles] == [2, 3, 4] and page.total == 3
            assert 9 in tree.hubs["A"].engine.state.perms
            await admin.perms_invalidate(PermsInvalidate((9,)))
            await until(lambda: 9 not in tree.hubs["A"].engine.state.perms, "forgotten at the leaf")
            assert await refusal_of_invalidate(device) is Reason.FORBIDDEN

    async def refusal_of_invalidate(device: DeviceClient) -> Reason:
        async def ask() -> None:
            await device.perms_invalidate(PermsInvalidate())

        return await refusal(ask())

    run(story())


def test_offline_is_reported_up_and_the_session_ends() -> None:
    async def story() -> None:
        async with three_levels() as tree:
            device = await tree.device("sensor", "A")
            admitted = await device.register()
            await until(lambda: tree.online("root", admitted.node_id))
            assert (await device.offline("done")).reason is Reason.OK
            await until(lambda: not tree.online("root", admitted.node_id))
            assert await refusal(device.get_perms()) is Reason.FORBIDDEN

    run(story())


def test_frames_of_other_protocols_find_their_way() -> None:
    async def story() -> None:
        async with three_levels() as tree:
            heard: list[object] = []
            device = await tree.device("sensor", "A", on_frame=lambda frame: heard.append(frame.body))
            admitted = await device.register()
            sender = await tree.device("sender", "B")
            await sender.register()
            await until(lambda: tree.online("root", admitted.node_id) and tree.online("root", sender.node_id))
            await sender.send(7, b"\x00anything", target=admitted.node_id)
            await until(lambda: heard == [b"\x00anything"], "the frame has arrived")

    run(story())


@pytest.mark.parametrize("version", list(Version))
def test_both_headers_on_one_port(version: Version) -> None:
    async def story() -> None:
        async with (
            running(config(provisioned=[verified(2)])) as root,
            running(child_config(2, root.address, parent={"header": version.value})) as child,
            DeviceClient(child.address, "sensor", options=Options(version=Version(3 - version))) as device,
        ):
            await until(lambda: child.engine.state.parent_present)
            assert (await device.register()).node_id == 10

    run(story())


def test_a_hub_that_knows_nothing_registers_at_its_parent_once() -> None:
    async def story() -> None:
        async with (
            running(config()) as root,
            running(child_config(0, root.address, hub={"node_id": 0, "credential": ""})) as child,
        ):
            await until(lambda: child.engine.state.node_id == 10)
            assert len(child.engine.state.credential) == 43 and not child.engine.state.parent_present
            # To its parent it is a device, until the operator there says that node 10 is a hub.
            root.engine.change_policy(PolicyChanged(evolve(root.engine.policy, node_roles={10: "hub"})))
            await until(lambda: child.engine.state.parent_extended)
            assert child.engine.state.node_id == 10

    run(story())
