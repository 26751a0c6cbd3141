"""Trees of plain hubs and their devices in one process: every connection is in order, nothing else is."""

from collections import deque
from itertools import count
from typing import Any

from hubauth.lab.plain import CMD, PARENT, PlainFrame, PlainHub


class Device:
    """The far end of a child link that no hub is on."""

    def __init__(self, tree: "Tree", hub: str, link: int) -> None:
        self._tree, self._hub, self._link = tree, hub, link
        self.heard: list[PlainFrame] = []

    def say(self, action: str, source: int = 0, msg_id: int = 7, **data: Any) -> None:
        """Send a request; nothing is delivered yet."""
        flat = self._tree.hubs[self._hub].dialect == "flat"
        body = {"action": action, **data} if flat else {"action": action, "data": data}
        self.send(PlainFrame(body, source, 0, msg_id))

    def send(self, frame: PlainFrame) -> None:
        self._tree.put(self._hub, self._link, frame)

    def ask(self, action: str, source: int = 0, **data: Any) -> dict[str, Any]:
        """Send a request, let the tree come to rest, and take the one answer."""
        self.say(action, source, **data)
        self._tree.settle()
        [answer] = self.taken()
        return answer

    def taken(self) -> list[dict[str, Any]]:
        """The fields of every answer since the last time."""
        heard, self.heard = self.heard, []
        return [frame.body.get("data", frame.body) for frame in heard]

    def leave(self) -> None:
        self._tree.emit(self._hub, self._tree.hubs[self._hub].link_down(self._link))
        self._tree.settle()


class Tree:
    """Hubs by name, and who is at the other end of each of their links."""

    def __init__(self, dialect: str = "auth", **common: Any) -> None:
        self._common = {"dialect": dialect, **common}
        self.hubs: dict[str, PlainHub] = {}
        self._ends: dict[tuple[str, int], tuple[str, int] | Device] = {}
        self._queues: dict[tuple[str, int], deque[PlainFrame]] = {}
        self._numbers, self._credentials = count(1), count()

    def hub(self, name: str, parent: str = "", **options: Any) -> PlainHub:
        """Another hub, connected to its parent if it has one."""
        own = {"device_id": name, "has_parent": bool(parent), **self._common, **options}
        self.hubs[name] = PlainHub(lambda: f"credential-{next(self._credentials):032d}", **own)
        if parent:
            self.connect(name, parent)
        return self.hubs[name]

    def connect(self, name: str, parent: str) -> None:
        link = next(self._numbers)
        self._ends[name, PARENT], self._ends[parent, link] = (parent, link), (name, PARENT)
        for end, number in ((parent, link), (name, PARENT)):
            self._queues[end, number] = deque()
            self.emit(end, self.hubs[end].link_up(number))
        self.settle()

    def cut(self, name: str) -> None:
        """Drop the connection of a hub to its parent, with whatever is on its way on it."""
        end = self._ends.pop((name, PARENT))
        assert isinstance(end, tuple)
        parent, link = end
        del self._ends[parent, link]
        for gone in ((name, PARENT), (parent, link)):
            self._queues.pop(gone)
        self.emit(name, self.hubs[name].link_down(PARENT))
        self.emit(parent, self.hubs[parent].link_down(link))
        self.settle()

    def device(self, hub: str) -> Device:
        link = next(self._numbers)
        device = Device(self, hub, link)
        self._ends[hub, link], self._queues[hub, link] = device, deque()
        self.emit(hub, self.hubs[hub].link_up(link))
        return device

    def put(self, hub: str, link: int, frame: PlainFrame) -> None:
        self._queues[hub, link].append(frame)

    def emit(self, hub: str, sent: list[tuple[int, PlainFrame]]) -> None:
        """Put what a hub sends on its way."""
        for link, frame in sent:
            end = self._ends.get((hub, link))
            if isinstance(end, Device):
                end.heard.append(frame)
            elif end is not None:
                self._queues[end].append(frame)

    def step(self, hub: str) -> None:
        """Let a hub take everything that waits for it now."""
        for (name, link), queue in list(self._queues.items()):
            while name == hub and queue:
                self.emit(hub, self.hubs[hub].receive(link, queue.popleft()))

    def settle(self) -> None:
        """Until nothing is on its way and no hub holds anything back."""
        for _ in range(1000):
            for name in self.hubs:
                self.step(name)
            if not any(self._queues.values()):
                for name, hub in self.hubs.items():
                    self.emit(name, hub.flush())
                if not any(self._queues.values()):
                    return
        raise AssertionError("never comes to rest")

    def operate(self, hub: str, action: str, **data: Any) -> list[dict[str, Any]]:
        """An operator's command, and the answers that come back to the operator."""
        self.emit(hub, self.hubs[hub].operate(action, **data))
        self.settle()
        heard, self.hubs[hub].heard = self.hubs[hub].heard, []
        return heard


def opaque(source: int, target: int, body: bytes = b"x") -> PlainFrame:
    return PlainFrame(body, source, target, 1, CMD, 5)
