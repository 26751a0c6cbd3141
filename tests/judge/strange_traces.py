"""Twenty-four recordings of the strange hub: different habits, declared as a user would, and mistakes behind them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
from attrs import evolve, field, frozen

from hubauth.core.policy import Policy
from hubauth.forms.events import Event, Kind, Opening, Order, encode_opening
from hubauth.forms.habits import Habits
from hubauth.forms.policies import encode_policy, form_of
from hubauth.oracle.conform.profile import Profile, load_profile
from tests.judge.strange_hub import ADMIN, CMD, MSG, Manner, StrangeHub
from tests.trace.harness import numbered, seen_from_outside

ROLES = {"admin": ["*"], "node": ["ping"]}
DELAY = 3_000
"""Microseconds by which a tap sees things early or late."""
QUIET = 12_000
"""Between things whose order matters, somebody waits for the one before."""


@frozen
class Planted:
    """A mistake, how it must be told, and the rows of the step in which it was made first."""

    fault: str
    rows: tuple[str, ...]


@frozen
class Recipe:
    """One of the recordings."""

    name: str
    manner: Manner
    faults: tuple[str, ...]
    profile: str = field(repr=False)


class Recording:
    """What the peers of one hub do, and the rows about that."""

    def __init__(self, recipe: Recipe, policy: Policy, *, faulty: bool) -> None:
        self.recipe, self.policy = recipe, policy
        self.hub = StrangeHub(recipe.manner, {name: list(perms) for name, perms in ROLES.items()})
        self.rows: list[Event] = []
        self.planted: list[Planted] = []
        self.after_offline: set[str] = set()
        """The rows of what was asked by whoever had said that it leaves."""
        self.random = Random(recipe.name)
        self._left = set(recipe.faults) if faulty else set[str]()
        self._clock, self._link, self._msg_id, self._people = 1_000_000, 0, 0, 0
        self.secrets: dict[str, str] = {}

    # Rows

    def _row(self, kind: Kind, link: int | None, **more: Any) -> str:
        name = f"row {len(self.rows) + 1}"
        self.rows.append(Event(self.recipe.name, "hub", 0, kind, self._clock, link, peer=name, **more))
        return name

    def wait(self, time: int = QUIET) -> None:
        self._clock += time

    def up(self) -> int:
        self._link += 1
        self._clock += 1_000
        self.hub.connected(self._link)
        self._row(Kind.LINK_UP, self._link)
        return self._link

    def down(self, link: int) -> None:
        self.wait()
        self.hub.gone(link)
        self._row(Kind.LINK_DOWN, link)
        self.wait()

    def is_open(self, link: int) -> bool:
        return link in self.hub.links

    def send(self, link: int, frame: dict[str, Any], fault: str = "", gap: int = 1_000) -> list[dict[str, Any]]:
        """Hand the hub one frame; what it sends back on that link."""
        self._clock += gap
        plants = fault in self._left
        self.hub.fault = fault if plants else ""
        self._left.discard(fault)
        rows = [self._row(Kind.FRAME_IN, link, **_columns(frame))]
        back = []
        for where, said in self.hub.got(link, frame, self._clock):
            if said is None:
                rows.append(self._row(Kind.CLOSE, where))
            else:
                rows.append(self._row(Kind.FRAME_OUT, where, **_columns(said)))
                back += [said] if where == link else []
        if plants:
            self.planted.append(Planted(fault, tuple(rows)))
        return back

    def ask(self, link: int, action: str, fault: str = "", gap: int = 1_000, **data: Any) -> dict[str, Any]:
        """Ask something; what is answered, or nothing."""
        self._msg_id += 1
        if action == "auth" and self.recipe.manner.dialect != "auth":
            action = "login"
        is_flat = self.recipe.manner.dialect == "flat"
        body = {"action": action, **data} if is_flat else {"action": action, "data": data}
        header = {"major": CMD, "msg_id": self._msg_id, "source": 0, "target": 0, "sub_proto": 2, "header": 1}
        back = self.send(link, {**header, "body": msgspec.json.encode(body)}, fault, gap)
        answers = [msgspec.json.decode(said["body"]) for said in back if said["sub_proto"] == 2]
        return (answers[0] if is_flat else answers[0]["data"]) if answers else {}

    def tell(self, link: int, source: int, target: int, sub_proto: int, fault: str = "") -> None:
        """Send a frame of another sub-protocol."""
        header = {"major": MSG, "msg_id": 5, "source": source, "target": target, "sub_proto": sub_proto}
        self.send(link, {**header, "header": 2, "hop_limit": 9, "body": b"hello"}, fault)

    # People

    def person(self, fault: str = "") -> tuple[str, int, int]:
        """A new device that registers on a new link: its name, link and node."""
        self._people += 1
        name, link = f"dev{self._people}", self.up()
        said = self.ask(link, "register", fault, device_id=name)
        self.secrets[name] = said.get("credential", "")
        return name, link, self.hub.book[name]["node"]

    def enter(self, link: int, name: str, fault: str = "", credential: str | None = None) -> dict[str, Any]:
        shown = self.secrets.get(name, "") if credential is None else credential
        proof: dict[str, Any] = {} if self.recipe.manner.dialect == "flat" else {"credential": shown}
        return self.ask(link, "auth", fault, device_id=name, **proof)

    def configure(self) -> None:
        """The operator changes what everybody may do."""
        self.hub.roles["node"] = [*self.hub.roles["node"], f"more{len(self.rows)}"]
        roles = {name: tuple(perms) for name, perms in self.hub.roles.items()}
        self.policy = evolve(self.policy, role_perms=roles)
        self.wait()
        self._row(Kind.POLICY, None, payload=encode_policy(self.policy))
        self.wait()

    # As it was written down

    def seen(self, order: Order, habits: Habits, policy: Policy) -> list[Event]:
        start = encode_opening(Opening(order, form_of(policy), habits=habits))
        name = self.recipe.name
        first = Event(name, "hub", 0, Kind.START, 1, payload=start)
        last = Event(name, "hub", 0, Kind.END, self._clock + 5_000_000)
        rows = [first, *self.rows, last]
        if order is Order.HANDLED:
            return numbered(rows)
        outside = seen_from_outside(rows, DELAY, seed=len(self.rows))
        return [first, *outside[1:]]


def _columns(frame: dict[str, Any]) -> dict[str, Any]:
    return {("payload" if name == "body" else name): value for name, value in frame.items()}


# What happens: each scene has people of its own


def entering(r: Recording) -> None:
    """Somebody comes, goes, and comes again; somebody unknown does not get in."""
    name, link, _ = r.person()
    r.down(link)
    link = r.up()
    r.enter(link, name, "wrong_node")
    r.enter(r.up(), "nobody", "wrong_code")
    if r.recipe.manner.dialect == "flat":
        r.enter(r.up(), "stranger", "stranger_admitted")
    else:
        other, link, _ = r.person()
        r.down(link)
        r.enter(r.up(), other, "prefix", credential=r.secrets[other][:20])
    r.person()
    r.person("node_twice")


def asking(r: Recording) -> None:
    """People ask what they may do, many at a time; or, where that cannot be asked, enter again."""
    people = [r.person() for _ in range(4)]
    for at, (name, link, node) in enumerate(people):
        fault = ("", "silent", "twice", "")[at]
        if not r.recipe.manner.perms:
            r.enter(link, name, fault)
            continue
        r.ask(link, "get_perms", fault, node_id=node)
        r.ask(link, "get_perms", node_id=77_777)
        r.ask(link, "list_roles", "total_unfiltered" if at == 3 else "", role="admin")
        r.ask(link, "perms_invalidate", node_ids=[node])
    if r.recipe.manner.perms:
        r.configure()
        for _, link, node in people:
            r.ask(link, "get_perms", "stale_perms", node_id=node)


def leaving(r: Recording) -> None:
    """Somebody says that it leaves, and still wants something; it comes again."""
    name, link, node = r.person()
    r.ask(link, "offline", device_id=name, node_id=node)
    r.wait()
    r.ask(link, "get_perms", node_id=node) if r.recipe.manner.perms else r.ask(link, "offline", device_id=name)
    r.enter(link, name)
    other, link, node = r.person()
    r.ask(link, "offline", "offline_ignored", device_id=other, node_id=node)
    r.wait()
    first = len(r.rows) + 1
    if r.recipe.manner.perms:
        r.ask(link, "get_perms", node_id=node)
    else:
        r.ask(link, "offline", device_id=other, node_id=node)
    r.after_offline = {f"row {row}" for row in range(first, len(r.rows) + 1)}


def revoking(r: Recording) -> None:
    """The operator's device revokes; who was revoked tries again."""
    admin = r.up()
    r.secrets["admin"] = str(ADMIN["secret"])
    r.enter(admin, "admin")
    for fault in ("", "session_kept"):
        name, link, node = r.person()
        r.wait()
        r.ask(admin, "revoke", fault, device_id=name)
        r.wait()
        if r.is_open(link) and r.recipe.manner.perms:
            r.ask(link, "get_perms", node_id=node)
    away, link, _ = r.person()
    r.down(link)
    r.ask(admin, "revoke", device_id=away)
    r.wait()
    link = r.up()
    r.enter(link, away, "revoked_admitted")
    name, link, _ = r.person()
    r.ask(link, "revoke", device_id="admin")
    r.down(admin)


def again(r: Recording) -> None:
    """Somebody registers again where it is, and comes in with what it was given then."""
    name, link, _ = r.person()
    said = r.ask(link, "register", device_id=name)
    r.secrets[name] = said.get("credential", "")
    r.down(link)
    r.enter(r.up(), name)


def talking(r: Recording) -> None:
    """Frames of other sub-protocols: to one, to all, to the hub itself; a stranger listens."""
    (_, one, first), (_, _, second) = r.person(), r.person()
    stranger = r.up()
    r.wait()
    r.tell(one, first, second, 9)
    r.tell(one, first, second, 9, "hops_kept")
    r.wait()
    r.tell(one, first, 0, 9)
    r.tell(one, first, 1, r.recipe.manner.echo or 8)
    r.down(stranger)


def hurrying(r: Recording) -> None:
    """Somebody asks faster than the hub likes."""
    name, link, _ = r.person()
    for _ in range(12):
        r.enter(link, name)


Scene = Callable[[Recording], None]


def scenes_of(manner: Manner) -> Iterator[Scene]:
    yield from (entering, asking, again, talking, hurrying)
    if manner.dialect != "flat":
        yield from (leaving, revoking)


def record(recipe: Recipe, profile: Profile, *, faulty: bool) -> Recording:
    """Everything that happens, in an order of the recording's own."""
    recording = Recording(recipe, profile.policy(1), faulty=faulty)
    scenes = list(scenes_of(recipe.manner))
    recording.random.shuffle(scenes)
    for scene in scenes:
        recording.wait()
        scene(recording)
        recording.wait(1_500_000)
    planted = {one.fault for one in recording.planted}
    assert not faulty or planted == set(recipe.faults), set(recipe.faults) - planted
    return recording


def profile_of(recipe: Recipe, directory: Path) -> Profile:
    """What a user would have written."""
    file = directory / f"{recipe.name}.toml"
    file.write_text(recipe.profile)
    return load_profile(file)
