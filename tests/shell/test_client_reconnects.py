"""A device whose connection goes again while it is being restored does not wait for an answer that cannot come."""

import asyncio

from hubauth.core.messages import Answer, Authenticate, Frame, Major, Reason, Register
from hubauth.shell.addresses import Address
from hubauth.shell.client import DeviceClient, Options
from hubauth.wire.header import Version
from tests.shell.harness import config, run, running, until
from tests.shell.raw import Peer, written


def test_a_hub_that_goes_while_the_session_is_restored() -> None:
    async def story() -> None:
        asked: list[type] = []

        async def hub(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            device = Peer(reader, writer, Version.V1)
            (frame,) = await device.frames(1)
            asked.append(type(frame.body))
            if len(asked) != 2:
                assert isinstance(frame.body, Register | Authenticate)
                answer = Answer(frame.body.action, Reason.OK, "device", 5, "c" * 43)
                await device.send(written(Frame(answer, Major.OK_RESP, frame.msg_id, 1)))
            if len(asked) == 3:
                await device.closed()
            writer.close()

        server = await asyncio.start_server(hub, "127.0.0.1", 0)
        address = Address(*server.sockets[0].getsockname())
        async with DeviceClient(address, "device", options=Options(timeout=60.0, retry_first=0.02)) as device:
            await device.register()

            async def restored() -> None:
                while device.sessions < 2:
                    await asyncio.sleep(0.005)

            await asyncio.wait_for(restored(), 20)
        assert asked == [Register, Authenticate, Authenticate]
        server.close()
        await server.wait_closed()

    run(story())


def test_hanging_up_just_when_an_answer_comes() -> None:
    async def story() -> None:
        async with running(config()) as hub:
            client = DeviceClient(hub.address, "sensor", credential="x" * 43)
            client._admitted = True
            client._received = lambda _: None  # type: ignore[method-assign, assignment]
            await client.__aenter__()
            await until(lambda: client._waiting)
            (future,) = client._waiting.values()
            future.set_result(Answer(Authenticate.action, Reason.NOT_ADMITTED))
            await asyncio.wait_for(client.close(), 20)

    run(story())
