"""A small root hub of other people: dictionaries and JSON, no code of the reference, habits and mistakes of its own.

It takes one frame after the other, and says what it sends and closes. It knows nothing of traces or of any judge.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

OK, ERR, MSG, CMD = range(4)
ADMIN = {"device": "admin", "node": 900, "secret": "A" * 43}
Said = dict[str, Any]
"""A frame: header fields, and ``body``."""
Done = tuple[int, Said | None]
"""Something sent on a link, or the link closed."""


@dataclass(frozen=True)
class Manner:
    """How this hub differs from the rules; each of these can be declared."""

    dialect: str = "auth"
    perms: bool = True
    """Whether it has permissions on the wire."""
    extra_fields: bool = False
    refusals_as_ok: bool = False
    same_credential: bool = False
    echo: int = 0
    """The sub-protocol on which it sends back what it gets."""
    without_msg_id: bool = False
    burst: int = 0
    offline_unbinds: bool = False
    tells_strangers: bool = False


@dataclass
class StrangeHub:
    """The machine. ``fault`` is the mistake it makes with the next frame."""

    manner: Manner
    roles: dict[str, list[str]]
    fault: str = ""
    book: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Device -> node, secret ("": none that is good), and the last secret that was."""
    links: dict[int, str | None] = field(default_factory=dict)
    counter: int = 1
    recent: dict[int, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.book["admin"] = {"node": 900, "secret": ADMIN["secret"], "old": "", "role": "admin"}

    # Connections

    def connected(self, link: int) -> None:
        self.links[link] = None

    def gone(self, link: int) -> None:
        self.links.pop(link, None)

    def got(self, link: int, frame: Said, now: int) -> list[Done]:
        """Handle one frame."""
        fault, self.fault = self.fault, ""
        if self.manner.burst:
            came = self.recent[link] = [at for at in self.recent.get(link, []) if now - at < 1_000_000] + [now]
            if len(came) > self.manner.burst:
                return []
        if frame["sub_proto"] != 2:
            return self._pass_on(link, frame, fault)
        words = json.loads(frame["body"])
        data = words if self.manner.dialect == "flat" else words["data"]
        answer: Callable[..., list[Done]] = getattr(self, "_" + words["action"].replace("login", "auth"))
        done = answer(link, frame, data, fault)
        if fault == "silent":
            return [each for each in done if each[1] is None]
        return [*done, *[each for each in done if each[1] is not None]] if fault == "twice" else done

    # Words

    def _say(self, link: int, frame: Said, code: int, fields: Said) -> Done:
        manner = self.manner
        word = json.loads(frame["body"])["action"]
        data = {"code": code, "msg": "fine" if code == 1 else "no", **fields}
        if manner.extra_fields:
            data = {"server": "strange/0.1", **data}
            if code != 1 and not fields:
                data = {"node_id": 0xBAD, "device_id": "whoever", **data}
        body = data if manner.dialect == "flat" else {"data": data, "action": word + "_resp"}
        major = OK if code == 1 or manner.refusals_as_ok else ERR
        msg_id = 0 if manner.without_msg_id else frame["msg_id"]
        header = {"major": major, "msg_id": msg_id, "source": 1, "target": 0, "sub_proto": 2, "header": 1}
        return link, {**header, "body": json.dumps(body).encode()}

    def _grant(self, device: str) -> Said:
        role = self.book[device].get("role", "node")
        return {"role": role, "perms": self.roles.get(role, [])}

    def _node_at(self, link: int) -> int:
        device = self.links[link]
        return int(self.book[device]["node"]) if device else 0

    def _enter(self, link: int, frame: Said, device: str, node: int) -> Done:
        self.links[link] = device
        entry = self.book[device]
        said = {"device_id": device, "node_id": node}
        if self.manner.dialect != "flat":
            said["credential"] = entry["secret"]
            said |= self._grant(device) if self.manner.perms else {}
        return self._say(link, frame, 1, said)

    def _leave(self, device: str, but: int = 0) -> list[Done]:
        """Whoever is on another link as this device is put out."""
        done: list[Done] = []
        for link in [link for link, who in self.links.items() if who == device and link != but]:
            del self.links[link]
            done.append((link, None))
        return done

    # Entering

    def _register(self, link: int, frame: Said, data: Said, fault: str) -> list[Done]:
        device = data["device_id"]
        entry = self.book.get(device)
        closed = self._leave(device, but=link)
        if entry is None:
            self.counter += 1
            entry = self.book[device] = {"node": self.counter, "secret": "", "old": ""}
            if fault == "node_twice":
                self.counter -= 1
                entry["node"] = self.counter
        if not (self.manner.same_credential and entry["secret"]) and self.manner.dialect != "flat":
            self.issued = getattr(self, "issued", 0) + 1
            entry["secret"] = entry["old"] = f"{self.issued:x}".rjust(43, "s")
        entry["known"] = True
        node = entry["node"] + 500 if fault == "wrong_node" else entry["node"]
        return [*closed, self._enter(link, frame, device, node)]

    def _auth(self, link: int, frame: Said, data: Said, fault: str) -> list[Done]:
        device, shown = data["device_id"], data.get("credential", "")
        entry = self.book.get(device)
        if self.manner.dialect == "flat":
            good = entry is not None
            if fault == "stranger_admitted":
                self.counter += 1
                entry, good = self.book.setdefault(device, {"node": self.counter, "secret": "", "old": ""}), True
        else:
            good = entry is not None and bool(entry["secret"]) and entry["secret"] == shown
            if fault == "prefix" and entry is not None:
                good = entry["secret"].startswith(shown)
            if fault == "revoked_admitted" and entry is not None and entry["old"] == shown:
                good, entry["secret"] = True, shown
        if not good or entry is None:
            return [self._say(link, frame, 4002 if fault == "wrong_code" else 4001, {})]
        closed = self._leave(device, but=link)
        node = entry["node"] + 500 if fault == "wrong_node" else entry["node"]
        return [*closed, self._enter(link, frame, device, node)]

    # Being here

    def _offline(self, link: int, frame: Said, data: Said, fault: str) -> list[Done]:
        device = self.links[link]
        if device is None or device != data["device_id"]:
            return [self._say(link, frame, 4701, data)]
        node = self.book[device]["node"]
        if fault != "offline_ignored":
            self.links[link] = None
            if self.manner.offline_unbinds:
                self.book[device]["secret"] = ""
        return [self._say(link, frame, 1, {"device_id": device, "node_id": node})]

    def _revoke(self, link: int, frame: Said, data: Said, fault: str) -> list[Done]:
        if self.links[link] != "admin":
            return [self._say(link, frame, 403, data)]
        entry = self.book.get(data["device_id"])
        if entry is None or not entry["secret"]:
            return []
        entry["secret"] = ""
        answer = self._say(link, frame, 1, {"device_id": data["device_id"], "node_id": entry["node"]})
        return [answer] if fault == "session_kept" else [answer, *self._leave(data["device_id"])]

    def _get_perms(self, link: int, frame: Said, data: Said, fault: str) -> list[Done]:
        nobody = {"node_id": data["node_id"], "role": "", "perms": []}
        if self.links[link] is None:
            return [self._say(link, frame, 403, nobody)]
        device = next((name for name, entry in self.book.items() if entry["node"] == data["node_id"]), None)
        if device is None:
            return [self._say(link, frame, 4404, nobody)]
        grant = {"role": "node", "perms": ["stale"]} if fault == "stale_perms" else self._grant(device)
        return [self._say(link, frame, 1, {"node_id": data["node_id"], **grant})]

    def _list_roles(self, link: int, frame: Said, data: Said, fault: str) -> list[Done]:
        if self.links[link] is None:
            return [self._say(link, frame, 403, {})]
        nodes = sorted((entry["node"], name) for name, entry in self.book.items())
        wanted = data.get("role") or None
        rows = [
            {"node_id": node, **self._grant(name)}
            for node, name in nodes
            if wanted in (None, self._grant(name)["role"])
        ]
        total = len(nodes) if fault == "total_unfiltered" else len(rows)
        return [self._say(link, frame, 1, {"total": total, "roles": rows})]

    def _perms_invalidate(self, link: int, frame: Said, _data: Said, _fault: str) -> list[Done]:
        return [] if self.links[link] == "admin" else [self._say(link, frame, 403, {})]

    # Other sub-protocols

    def _pass_on(self, link: int, frame: Said, fault: str) -> list[Done]:
        if self.links[link] is None or frame["source"] != self._node_at(link):
            return []
        if frame["target"] == 1:
            echo = {**frame, "source": 1, "target": frame["source"]}
            return [(link, echo)] if frame["sub_proto"] == self.manner.echo else []
        onward = dict(frame)
        if frame["header"] == 2 and fault != "hops_kept":
            onward["hop_limit"] = frame["hop_limit"] - 1
        if frame["target"] == 0:
            hear = [other for other, who in self.links.items() if who or self.manner.tells_strangers]
            return [(other, onward) for other in hear if other != link]
        return [(other, onward) for other in self.links if other != link and self._node_at(other) == frame["target"]]
