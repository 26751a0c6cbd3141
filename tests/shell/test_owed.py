"""A child hub that was away while very much was revoked: it is served at its return, and hears of everything."""

from hubauth.core.inputs import OperatorRevoke
from hubauth.core.messages import Revoke
from hubauth.shell.client import DeviceClient
from hubauth.shell.hub import Hub
from tests.shell.harness import child_config, config, joined, run, running, until, verified

OWED = 4_000
LONG = "\1"
"""A character that takes six bytes in JSON: all that is owed is ten megabytes, more than a socket takes at once."""
ROOM = {"hub_write_buffer": 256 * 1024, "revoke_batch": 16}


async def drained(hub: Hub) -> None:
    """Wait as long as anything is acknowledged."""
    while hub.engine.state.owed:
        before = hub.engine.state.owed
        await until(lambda before=before: hub.engine.state.owed is not before, "something is acknowledged")  # type: ignore[misc]


def test_a_hub_that_is_owed_more_than_its_link_can_hold_is_served_and_hears_of_all() -> None:
    async def story() -> None:
        async with running(config(provisioned=[verified(2)], limits=ROOM)) as root:
            async with running(child_config(2, root.address)) as child:
                await joined(child)
            await until(lambda: not root.engine.state.index.link_of_node, "the child is away")
            for number in range(OWED):
                root.engine.feed(OperatorRevoke(Revoke(f"{number:{LONG}>128}", 0, LONG * 256)))
            async with running(child_config(2, root.address)) as child:
                await joined(child)
                link = root.engine.state.index.link_of_node[2]
                async with DeviceClient(child.address, "meanwhile") as device:
                    assert (await device.register()).node_id == 10
                    assert root.engine.state.owed, "served while much is still owed"
                    await drained(root)
                assert root.engine.state.index.link_of_node[2] == link, "over one connection"
                assert child.engine.state.neighbours[0].handled == OWED

    run(story(), 600)
