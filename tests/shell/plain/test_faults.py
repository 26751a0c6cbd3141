"""Our hub and a plain one under random faults, with devices on both sides; judged when all is quiet again.

``HUBAUTH_PLAIN_FAULTS`` and ``HUBAUTH_PLAIN_SEED`` make it longer, or another one. Random pauses place the faults; what
is right does not depend on where they fall.
"""

import asyncio
import os
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hubauth.shell.doorway import NoAnswer
from tests.shell.harness import run
from tests.shell.plain.device import Device, Refused
from tests.shell.plain.harness import ALL, DIALECTS, MSG_IDS, Pair, between

FAULTS = int(os.environ.get("HUBAUTH_PLAIN_FAULTS", "40"))
SEED = int(os.environ.get("HUBAUTH_PLAIN_SEED", "1"))
DEVICES = 12
BUSY = 5
"""Devices that do something while a fault happens."""
ROUNDS_PER_REVOKE = 5
HUBS = ("ours", "plain")
SECONDS = 300.0 + 8 * FAULTS
SIDES = ["above", "below"]
PLACES = [
    (side, dialect, msg_id)
    for row, side in enumerate(SIDES)
    for column, dialect in enumerate(DIALECTS)
    for number, msg_id in enumerate(MSG_IDS)
    if ALL or (row + column) % 3 == number
]
"""Each dialect on both sides, each time with another way to number answers; or with every way."""


@dataclass
class Owner:
    """A device across its connections: what it was given, where it was admitted last, and what became of it."""

    name: str
    node_id: int = 0
    credential: str = ""
    home: str = ""
    uncertain: bool = False
    """Whether a credential counts is not known: a registration or a revoke was not seen through."""
    connection: Device | None = None
    """Stays open until the next one has been used: who has a session is not who has none."""
    history: list[str] = field(default_factory=list)

    @property
    def relies(self) -> bool:
        """Whether it must be admitted where it was admitted last."""
        return bool(self.home) and not self.uncertain


class Story:
    """What happens to the devices of two hubs."""

    def __init__(self, pair: Pair, choice: random.Random) -> None:
        self._pair, self._choice = pair, choice
        self.owners = [Owner(f"device-{at}") for at in range(DEVICES)]
        self.wrong: list[str] = []
        self.dead: list[tuple[Owner, str]] = []
        """Credentials that were revoked while the connection between the hubs was there, and the revoke was read."""

    async def ask(self, owner: Owner, where: str, action: str, credential: str | None = None) -> int:
        """One request over a new connection; the code of its answer, 0 if there was none."""
        try:
            device = await self._pair.device(owner.name, where)
        except OSError:
            return 0  # no hub has heard of it
        device.node_id, device.credential = owner.node_id, owner.credential
        try:
            if action == "register":
                owner.uncertain = True
                answer = await device.register()
            else:
                answer = await device.authenticate(credential)
        except (Refused, OSError):
            owner.history.append(f"{action} at {where}: no answer")
            return 0
        finally:
            if owner.connection is not None:
                owner.connection.close()
            owner.connection = device
        owner.history.append(f"{action} at {where}: {answer['code']}")
        if answer["code"] == 1:
            if owner.node_id not in (0, answer["node_id"]):
                self.wrong.append(f"{owner.name} was node {owner.node_id} and is {answer['node_id']}")
            owner.node_id = answer["node_id"]
            if credential is None:
                owner.home = where
            if action == "register":
                owner.credential, owner.uncertain = device.credential, False
        return int(answer["code"])

    async def _act(self, owner: Owner) -> None:
        await asyncio.sleep(self._choice.uniform(0.0, 0.03))
        where = self._choice.choice(HUBS)
        await self.ask(owner, where, "auth" if owner.relies and self._choice.random() < 0.7 else "register")

    async def round(self, at: int) -> None:
        """Some devices act while something fails, and perhaps another one is revoked; then the hubs meet again."""
        *busy, another = self._choice.sample(self.owners, BUSY + 1)
        revokes = self._pair.has_revoke and self._choice.random() < 0.3
        await asyncio.gather(
            self._fail(), *map(self._act, busy), *([self._revoke_amid_faults(another)] if revokes else [])
        )
        await self._pair.join()
        await self._pair.settle()
        if self._pair.has_revoke and at % ROUNDS_PER_REVOKE == 0:
            await self._revoke(*HUBS[:: 1 if at // ROUNDS_PER_REVOKE % 2 else -1])

    async def _fail(self) -> None:
        pair, what = self._pair, self._choice.choice(["drop", "up", "down", "cut", "kill", "end"])
        for owner in self.owners:
            owner.history.append(f"({what})")
        if what in ("up", "down"):
            await pair.lose(what)
        await asyncio.sleep(self._choice.uniform(0.0, 0.03))
        if what in ("kill", "end"):
            await pair.ours.end(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            await pair.ours.start()
        elif what == "cut" and pair.upper == "ours":
            pair.ours.gate.cut()
        else:
            await pair.drop()
        await pair.plain.tell("lose nothing")

    async def _revoke_amid_faults(self, owner: Owner) -> None:
        """The operator of one hub revokes; who has heard of it nobody can tell."""
        await asyncio.sleep(self._choice.uniform(0.0, 0.03))
        by, named = self._choice.choice(HUBS), self._choice.choice(["", owner.credential])
        owner.uncertain = True
        owner.history.append(f"revoked by {by} amid faults")
        try:
            await self._pair.revoke(by, owner.name, credential=named)
        except (OSError, NoAnswer):
            owner.history.append("(our hub was not there)")

    async def _revoke(self, by: str, home: str) -> None:
        """The operator of one hub revokes somebody who relies on a credential at the other, and both have read it."""
        owner = self._choice.choice(self.owners)
        is_there = owner.relies and owner.home == home
        if not is_there and await self.ask(owner, home, "register") != 1:
            self.wrong.append(f"{owner.name} cannot register: {'; '.join(owner.history[-12:])}")
            return
        await self._pair.settle()
        await self._pair.plain.tell(f"number {self._choice.randrange(1, 1000)}")
        await self._pair.revoke(by, owner.name, credential=self._choice.choice(["", owner.credential]))
        await self._pair.settle()
        owner.history.append(f"revoked by {by}")
        self.dead.append((owner, owner.credential))
        await self._stays_out(*self.dead[-1])
        owner.credential, owner.home = "", ""

    async def judge(self) -> list[str]:
        """What is not as promised, now that all is quiet."""
        for owner in self.owners:
            if not owner.relies:
                if await self.ask(owner, self._choice.choice(HUBS), "register") != 1:
                    self.wrong.append(f"{owner.name} cannot register")
                await self._pair.settle()
        for owner in self.owners:
            if await self.ask(owner, owner.home, "auth") != 1:
                self.wrong.append(f"{owner.name} is locked out: {'; '.join(owner.history[-12:])}")
        nodes = [owner.node_id for owner in self.owners]
        if len(set(nodes)) != len(nodes):
            self.wrong.append(f"a node id was given twice: {nodes}")
        for owner, credential in self.dead:
            await self._stays_out(owner, credential)
        return self.wrong

    async def _stays_out(self, owner: Owner, credential: str) -> None:
        for where in HUBS:
            if await self.ask(owner, where, "auth", credential) == 1:
                self.wrong.append(f"{owner.name} is admitted at {where} with a revoked credential")


@pytest.mark.slow
@pytest.mark.parametrize(("side", "dialect", "msg_id"), PLACES)
def test_nothing_that_is_promised_breaks(tmp_path: Path, side: str, dialect: str, msg_id: str) -> None:
    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
            story = Story(pair, random.Random(f"{SEED} {side} {dialect} {msg_id}"))
            for at in range(FAULTS):
                await story.round(at)
            wrong = await story.judge()
            assert not wrong, "\n".join(wrong)
            assert len(story.dead) >= FAULTS // ROUNDS_PER_REVOKE or not pair.has_revoke, "too little was revoked"
            await pair.ours.end(signal.SIGTERM)
            await pair.ours.conforms()

    run(scenario(), SECONDS)
