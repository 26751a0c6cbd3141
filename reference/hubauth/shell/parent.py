"""Keeping the connection to the parent: again and again, with longer and longer pauses."""

import asyncio
import logging
import random
import ssl

from hubauth.shell.addresses import Address
from hubauth.shell.commons import Commons
from hubauth.shell.observe import say
from hubauth.shell.peers import ParentConnection
from hubauth.shell.settings import ParentTable
from hubauth.wire.header import Version


class ParentLine:
    """Connects, waits until the connection is gone, and tries again."""

    def __init__(self, commons: Commons, address: Address, table: ParentTable, context: ssl.SSLContext | None) -> None:
        self._commons = commons
        self._address, self._table, self._context = address, table, context
        self.connection: ParentConnection | None = None
        self._given_up: list[ParentConnection] = []
        """Connections that were made too late."""

    async def run(self) -> None:
        """Until cancelled."""
        pause = self._table.retry_first
        while True:
            connection = await self._connect()
            if connection is not None:
                self.connection = connection
                await connection.gone.wait()
                self.connection = None
                say(logging.WARNING, "parent_gone", address=str(self._address))
                if connection.was_present:
                    pause = self._table.retry_first
            # Not all children of a restarted parent at the same moment.
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))
            pause = min(pause * 2, self._table.retry_most)

    async def _connect(self) -> ParentConnection | None:
        table, address = self._table, self._address
        name = None if self._context is None else table.server_name or address.host
        for late in self._given_up:
            await late.gone.wait()
        self._given_up.clear()

        def protocol() -> ParentConnection:
            self._given_up.append(ParentConnection(self._commons, Version(table.header)))
            return self._given_up[-1]

        opening = asyncio.get_running_loop().create_connection(
            protocol, address.host, address.port, ssl=self._context, server_hostname=name
        )
        try:
            # Not wait_for: in Python 3.11 it forgets a cancellation that comes just when the connection is refused.
            async with asyncio.timeout(table.connect_seconds):
                _, connection = await opening
            self._given_up.remove(connection)
        except (OSError, TimeoutError) as problem:
            # ssl errors are OSErrors.
            self._commons.observer.count("parent_failures")
            say(logging.WARNING, "parent_unreachable", address=str(address), detail=str(problem) or "timed out")
            return None
        finally:
            # It may be a link already, and uvloop closes it without telling it.
            for late in self._given_up:
                late.connection_lost(None)
        say(logging.INFO, "parent_connected", address=str(address))
        return connection
