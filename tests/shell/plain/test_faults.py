"""Our hub and a plain one under random faults, with devices on both sides; judged when all is quiet again.

``HUBAUTH_PLAIN_FAULTS`` and ``HUBAUTH_PLAIN_SEED`` make it longer, or another one.
"""

import asyncio
import os
import random
import signal
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.shell.harness import run
from tests.shell.plain.harness import Device, Pair, Refused, between

FAULTS = int(os.environ.get("HUBAUTH_PLAIN_FAULTS", "40"))
SEED = int(os.environ.get("HUBAUTH_PLAIN_SEED", "1"))
DEVICES = 12
BUSY = 5
"""Devices that do something while a fault happens."""
HUBS = ("ours", "plain")
SECONDS = 300.0 + 6 * FAULTS


@dataclass
class Owner:
    """A device across its connections: what it was given, where it was admitted last, and what became of it."""

    name: str
    node_id: int = 0
    credential: str = ""
    home: str = ""
    uncertain: bool = False
    """A registration got no answer, or none that says whether it took place: what it replaced is not relied on."""
    connection: Device | None = None
    """Stays open until the next one has been used: who has a session is not who has none."""
    history: list[str] = field(default_factory=list)


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
        like = Device.__new__(Device)
        like.node_id, like.credential = owner.node_id, owner.credential
        try:
            device = await self._pair.device(owner.name, where, like)
        except OSError:
            return 0  # no hub has heard of it
        try:
            if action == "register":
                owner.uncertain = True
                answer = await device.register()
                if answer["code"] == 1:
                    owner.credential, owner.uncertain = device.credential, False
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
        return int(answer["code"])

    async def _act(self, owner: Owner) -> None:
        await asyncio.sleep(self._choice.uniform(0.0, 0.03))
        where = self._choice.choice(HUBS)
        known = owner.credential and not owner.uncertain
        await self.ask(owner, where, "auth" if known and self._choice.random() < 0.7 else "register")

    async def round(self) -> None:
        """Some devices act while something fails; then the hubs meet again."""
        await asyncio.gather(self._fail(), *map(self._act, self._choice.sample(self.owners, BUSY)))
        await self._pair.join()
        await self._pair.settle()
        if self._choice.random() < 0.2:
            await self._revoke(self._choice.choice(self.owners))

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

    async def _revoke(self, owner: Owner) -> None:
        """The operator of one hub revokes, and both have read it."""
        by = self._choice.choice(HUBS)
        await self._pair.plain.tell(f"number {self._choice.randrange(1, 1000)}")
        await self._pair.revoke(by, owner.name)
        await self._pair.settle()
        owner.history.append(f"revoked by {by}")
        if owner.credential and not owner.uncertain:
            self.dead.append((owner, owner.credential))
            await self._stays_out(*self.dead[-1])
        owner.credential, owner.home = "", ""

    async def judge(self) -> list[str]:
        """What is not as promised, now that all is quiet."""
        for owner in self.owners:
            if owner.uncertain or not owner.credential:
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
@pytest.mark.parametrize(
    ("side", "dialect", "msg_id", "faults"),
    [
        ("above", "auth", "echo", FAULTS),
        ("above", "login", "zero", FAULTS),
        ("above", "auth", "reordered", FAULTS),
        ("below", "login", "echo", FAULTS),
        ("below", "auth", "zero", FAULTS),
        ("below", "login", "reordered", FAULTS),
    ],
)
def test_nothing_that_is_promised_breaks(tmp_path: Path, side: str, dialect: str, msg_id: str, faults: int) -> None:
    async def scenario() -> None:
        async with between(side, tmp_path, dialect=dialect, msg_id=msg_id) as pair:
            story = Story(pair, random.Random(f"{SEED} {side} {dialect} {msg_id}"))
            for _ in range(faults):
                await story.round()
            wrong = await story.judge()
            assert not wrong, "\n".join(wrong)
            assert story.dead or FAULTS < 100, "nothing was revoked: longer, or another seed"

    run(scenario(), SECONDS)
