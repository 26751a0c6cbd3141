"""A hub that does what the three documents say, and nothing else. Comments name document:line (001 is as 000)."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

PARENT, OPERATOR = 0, -1  # links with a meaning of their own; no number of a child link is used twice
OK_RESP, ERR_RESP, MSG, CMD = range(4)
TEXTS = {1: "ok", 403: "denied", 4001: "invalid credential", 4002: "upstream unavailable", 4402: "other credential"}
FLAT = {"register", "assist_register", "login", "assist_login"}  # 002:17
LOGIN = FLAT | {"revoke", "offline", "assist_offline", "assist_query_credential"}  # 001:29-33
AUTH = (LOGIN - {"login", "assist_login"}) | {"auth", "assist_auth", "get_perms", "list_roles", "perms_invalidate"}


class PlainFrame(NamedTuple):
    """What the hub needs of a frame; ``body`` is decoded JSON for SubProto 2, else anything."""

    body: Any
    source: int = 0
    target: int = 0
    msg_id: int = 0
    major: int = CMD
    sub_proto: int = 2


@dataclass(frozen=True)
class Asked:
    """A request; ``up`` is the action by which it was passed to the parent."""

    link: int
    action: str
    data: dict[str, Any]
    msg_id: int = 0
    device_id: str = ""
    node_id: int = 0
    credential: str = ""
    up: str = ""


@dataclass
class PlainHub:
    """One hub. A public method takes what happened and returns the frames to send, each after its link."""

    fresh: Callable[[], str]
    dialect: str = "auth"  # or login, flat
    device_id: str = "hub"
    node_id: int = 1
    has_parent: bool = False
    joins: bool = False  # authenticates to its parent like a device; else its SourceID is its name
    credential: str = ""
    query: bool = False  # asks for credentials instead of having them verified
    msg_id: str = "echo"  # or zero: always 0; or reordered: echo, answers to hubs wait for flush, the last goes first
    echoes: bool = False  # a revoke goes back to where it came from, too
    terse: bool = False  # failures lack the device_id to hubs, too, as in 000:98 and 002:98
    hub_devices: tuple[str, ...] = ()  # are hubs once they authenticate; others by their first assist_*
    first_node_id: int = 100
    grants: dict[int, tuple[str, list[str]]] = field(default_factory=dict)  # node -> role, perms: 000:79-80
    nodes: dict[str, int] = field(default_factory=dict)  # bindings, at the authority: 002:29
    whitelist: dict[str, tuple[int, str]] = field(default_factory=dict)  # device -> node, credential: 000:16
    index: dict[int, tuple[int, str]] = field(default_factory=dict)  # node -> link, device: 000:49
    hubs: dict[int, int] = field(default_factory=dict)  # link -> node
    cache: dict[int, tuple[str, list[str]]] = field(default_factory=dict)  # node -> role, perms: 000:65
    parent_present: bool = False
    parent_node: int = 0  # as whoever is there names itself
    number: int = 1  # the next MsgID
    waiting: list[Asked] = field(default_factory=list)  # for the parent
    heard: list[dict[str, Any]] = field(default_factory=list)  # answers to the operator

    def __post_init__(self) -> None:
        self.links, self._out = set[int](), list[tuple[int, PlainFrame]]()
        self._revokes, self._held = dict[str, Asked](), dict[int, dict[str, PlainFrame]]()
        self._flat, self._word = self.dialect == "flat", "auth" if self.dialect == "auth" else "login"
        self._actions = {"flat": FLAT, "login": LOGIN, "auth": AUTH}[self.dialect]

    def link_up(self, link: int) -> list[tuple[int, PlainFrame]]:
        self.links.add(link)
        if link == PARENT and self.joins:
            action = self._word if self.credential or (self._flat and self.node_id) else "register"
            mine = {"device_id": self.device_id, "credential": self.credential}
            self._request(PARENT, action, {name: value for name, value in mine.items() if value}, source=0)  # 000:7
        self.parent_present |= link == PARENT and not self.joins
        return self.flush(())

    def link_down(self, link: int) -> list[tuple[int, PlainFrame]]:
        self.links.discard(link)
        self._held.pop(link, None)
        self.hubs.pop(link, None)
        self.parent_present &= link != PARENT
        self.parent_node = 0 if link == PARENT else self.parent_node
        for asked in self.waiting if link == PARENT else ():
            self._fail(asked, 4002)  # 000:70
        self.waiting = [] if link == PARENT else self.waiting
        for node in [node for node, (where, _) in self.index.items() if where == link]:
            self._up({"device_id": self.index.pop(node)[1], "node_id": node})
        return self.flush(())

    def receive(self, link: int, frame: PlainFrame) -> list[tuple[int, PlainFrame]]:
        body = frame.body if frame.sub_proto == 2 and isinstance(frame.body, dict) else {}
        self.parent_node = frame.source if body and link == PARENT and frame.source else self.parent_node
        data, action = body if self._flat else body.get("data"), str(body.get("action", ""))
        if frame.sub_proto != 2:
            self._route(link, frame)
        elif isinstance(data, dict) and (action.endswith("_resp") or (self._flat and not action)):  # 002:82
            self._answered(link, action.removesuffix("_resp"), data)
        elif isinstance(data, dict) and action in self._actions:
            self._ask(link, frame, action, data)
        return self.flush(())

    def operate(self, action: str, **data: Any) -> list[tuple[int, PlainFrame]]:
        """The operator's revoke (000:51) or perms_invalidate (000:64)."""
        self._ask(OPERATOR, PlainFrame(None), action, data)
        return self.flush(())

    def flush(self, links: tuple[int, ...] | None = None) -> list[tuple[int, PlainFrame]]:
        """What is to be sent, and (called from outside, when nothing else comes) the answers held back."""
        for link in list(self._held) if links is None else links:
            self._out += [(link, frame) for frame in reversed(self._held.pop(link, {}).values())]
        done, self._out = self._out, []
        return done

    def _ask(self, link: int, frame: PlainFrame, action: str, data: dict[str, Any]) -> None:
        device, node, credential = data.get("device_id", ""), data.get("node_id", 0), data.get("credential", "")
        if not (isinstance(device, str) and isinstance(node, int) and isinstance(credential, str)):
            return
        asked = Asked(link, action, data, frame.msg_id, device, node, credential)
        if action.startswith("assist_") and link != PARENT and frame.source:  # 002:38
            self.hubs[link] = frame.source
            self.index[frame.source] = link, self.index.get(frame.source, (link, ""))[1]
        if action.startswith(("assist_", "revoke", "perms_")) and link not in (PARENT, OPERATOR, *self.hubs):
            self._fail(asked, 403)  # 000:51, 000:73
        elif device or action in ("get_perms", "list_roles", "perms_invalidate"):
            getattr(self, "_" + action.removeprefix("assist_"))(asked)

    def _register(self, asked: Asked) -> None:
        if self._flat and asked.device_id in self.whitelist:  # 002:37
            self._admit(asked, *self.whitelist[asked.device_id])
        elif self.has_parent:  # 000:8, 000:9
            self._ask_parent(asked, "assist_register", 4002)
        else:
            taken = {self.node_id, *self.nodes.values(), *self.hubs.values(), *self.grants}
            free = next(n for n in range(self.first_node_id, 2**32) if n not in taken)  # 002:29, 002:30
            node = self.nodes.setdefault(asked.device_id, free)
            self._admit(asked, node, "" if self._flat else self.fresh())  # 000:15

    def _auth(self, asked: Asked) -> None:
        bound = self.nodes.get(asked.device_id, 0) if self._flat else 0
        node, credential = self.whitelist.get(asked.device_id, (bound, ""))
        query = asked.action == "assist_query_credential"
        if not node:  # 000:50, 002:41
            up = "assist_query_credential" if self.query else f"assist_{self._word}"
            self._ask_parent(asked, asked.action if asked.action.startswith("assist_") else up, 4001)
        elif self._flat or (query and asked.node_id in (0, node)) or (not query and asked.credential == credential):
            self._admit(asked, node, credential)
        else:
            self._fail(asked, 4001)

    _login = _query_credential = _auth

    def _admit(self, asked: Asked, node: int, credential: str) -> None:
        if not asked.action.startswith("assist_"):  # the direct hub; those above keep no credential: 000:10, 000:16
            self.whitelist[asked.device_id] = node, credential
        if asked.link != PARENT and asked.link in self.links:
            self.index[node] = asked.link, asked.device_id
            self.hubs |= {asked.link: node} if asked.device_id in self.hub_devices else {}
        told: dict[str, Any] = {} if self._flat else {"credential": credential}
        if self.dialect == "auth" and asked.action != "assist_query_credential":  # 000:6
            told["role"], told["perms"] = self._grant(node)
        self._answer(asked, 1, device_id=asked.device_id, node_id=node, **told)

    def _ask_parent(self, asked: Asked, action: str, otherwise: int) -> None:
        """Pass a request up. There is no way up, or it came from there: ``otherwise``; not now: 4002."""
        names = {"get_perms": ["node_id"], "assist_query_credential": ["device_id", "node_id"]}
        names |= {"assist_auth": ["device_id", "credential"]}  # 000:29-34
        names |= {} if self._flat else {"assist_login": ["device_id", "credential"]}
        if self.has_parent and asked.link != PARENT and self.parent_present:
            self.waiting.append(replace(asked, up=action))
            self._request(PARENT, action, {name: getattr(asked, name) for name in names.get(action, ["device_id"])})
        else:
            self._fail(asked, 4002 if self.has_parent and asked.link != PARENT else otherwise)

    def _answered(self, link: int, action: str, data: dict[str, Any]) -> None:
        """An answer goes to whom it names (002:8, 002:43), a failure that names nobody to whoever asked first."""
        code, device, node = data.get("code", 4002), data.get("device_id", ""), data.get("node_id", 0)
        origin = self._revokes.get(device) if action == "revoke" else None
        if origin and origin.link != link:
            self._answer(origin, code, device_id=device, node_id=node)
        elif link == PARENT and self.joins and not self.parent_present:
            if code == 1 and device == self.device_id:
                self.node_id, self.credential, self.parent_present = node, data.get("credential", ""), True
        elif link == PARENT:
            name, value = ("node_id", node) if action == "get_perms" else ("device_id", device)
            fits = (one for one in self.waiting if action in (one.up, ""))
            asked = next((one for one in fits if getattr(one, name) == value or (code != 1 and not value)), None)
            if asked is not None:
                self.waiting.remove(asked)
                self._settle(asked, code, node, data)

    def _settle(self, asked: Asked, code: int, node: int, data: dict[str, Any]) -> None:
        credential = data.get("credential", "")
        if code == 1 and "role" in data:
            self.cache[node] = data["role"], data.get("perms", [])
        if asked.up == "get_perms":
            self._get_perms(asked)
        elif code == 1 and (asked.action != self._word or self._flat or credential == asked.credential):
            self._admit(asked, node, credential)
        else:
            # 000:59: a wrong guess is not cached; 000:70: what the parent may say of an authentication
            told = code if self._flat or asked.action == "register" or code in (4001, 4002, 4500) else 4002
            self._fail(asked, 4001 if code == 1 else told)

    def _revoke(self, asked: Asked) -> None:
        node, credential = self.whitelist.get(asked.device_id, (0, ""))
        agrees = asked.node_id in (0, node) and asked.credential in ("", credential)
        self._revokes[asked.device_id] = asked
        if node and agrees:  # the credential goes, nothing is said of the index: 000:51
            del self.whitelist[asked.device_id]
        if node:  # 000:11
            self._answer(asked, 1 if agrees else 4402, device_id=asked.device_id, node_id=node)
        neighbours = {*self.hubs, *([PARENT] if self.parent_present else [])}
        for link in sorted(neighbours if self.echoes else neighbours - {asked.link}):
            self._request(link, "revoke", asked.data)

    def _offline(self, asked: Asked) -> None:
        node = asked.node_id or next((n for n, (_, device) in self.index.items() if device == asked.device_id), 0)
        found = self.index.pop(node, None)
        if found and asked.link != PARENT:  # 000:53
            self._up(asked.data | {"node_id": node})
        self._answer(asked, 1 if found else 4701, device_id=asked.device_id, node_id=node)

    def _grant(self, node: int) -> tuple[str, list[str]]:
        """Role and permissions (000:77-80), empty if the node is not known here."""
        default = "node" if not self.has_parent and node in (self.node_id, *self.nodes.values()) else ""
        return self.grants.get(node) or self.cache.get(node) or (default, [])

    def _get_perms(self, asked: Asked) -> None:
        role, perms = self._grant(asked.node_id)
        if not role and not asked.up and self.has_parent:
            self._ask_parent(asked, "get_perms", 4404)
        else:
            self._answer(asked, 1 if role else 4404, node_id=asked.node_id, role=role, perms=perms)  # 000:43

    def _list_roles(self, asked: Asked) -> None:
        role, only, start = asked.data.get("role"), asked.data.get("node_ids"), asked.data.get("offset", 0)
        known = [(node, *self._grant(node)) for node in sorted({*self.nodes.values(), *self.grants, *self.cache})]
        rows = [row for row in known if row[1] == (role or row[1]) and (not only or row[0] in only)]
        page = [dict(zip(("node_id", "role", "perms"), row, strict=True)) for row in rows[start:]]
        self._answer(asked, 1, total=len(rows), roles=page[: asked.data.get("limit", 100)])  # 000:35

    def _perms_invalidate(self, asked: Asked) -> None:
        nodes = asked.data.get("node_ids") or []
        self.cache = {node: grant for node, grant in self.cache.items() if nodes and node not in nodes}
        for link in sorted(self.hubs.keys() - {asked.link}):  # 000:65
            self._request(link, "perms_invalidate", asked.data)
        for node in nodes if asked.data.get("refresh") and self.parent_present else ():
            self._ask_parent(Asked(OPERATOR, "get_perms", {}, node_id=node), "get_perms", 4404)

    def _route(self, link: int, frame: PlainFrame) -> None:
        """Other sub-protocols: by the index, else up; TargetID 0: to all below; SourceID 0: nowhere (000:57)."""
        below = {where for where, _ in self.index.values()}
        to = {self.index.get(frame.target, (PARENT, ""))[0]} if frame.target else below
        for where in sorted(to - {link}) if frame.source and frame.target != self.node_id else ():
            self._send(where, frame)

    def _up(self, data: dict[str, Any]) -> None:
        if self.parent_present and not self._flat and data["device_id"]:
            self._request(PARENT, "assist_offline", data)  # 000:53

    def _node_at(self, link: int) -> int:
        return self.parent_node if link == PARENT else self.hubs.get(link, 0)

    def _request(self, link: int, action: str, data: dict[str, Any], source: int = -1) -> None:
        body = {"action": action, **data} if self._flat else {"action": action, "data": data}
        number, self.number = 0 if self.msg_id == "zero" else self.number, self.number + 1
        target = 0 if action == "perms_invalidate" else self._node_at(link)  # 000:65, 002:107-109
        target = 0 if action == "revoke" and link == PARENT else target
        self._send(link, PlainFrame(body, self.node_id if source < 0 else source, target, number))

    def _fail(self, asked: Asked, code: int) -> None:
        named = asked.device_id and not self.terse and asked.link in (PARENT, *self.hubs)
        self._answer(asked, code, **({"device_id": asked.device_id} if named else {}))

    def _answer(self, asked: Asked, code: int, **fields: Any) -> None:
        told = {"code": code, "msg": TEXTS.get(code, "not found"), **fields}
        body = told if self._flat else {"action": f"{asked.action}_resp", "data": told}
        number, major = 0 if self.msg_id == "zero" else asked.msg_id, OK_RESP if code == 1 else ERR_RESP
        frame = PlainFrame(body, self.node_id, self._node_at(asked.link), number, major)  # 000:58, 002:75-77, 002:124
        held = self._held.get(asked.link, {})
        holds = self.msg_id == "reordered" and asked.action.startswith("assist_") and asked.link in self.links
        if holds and asked.device_id not in held:
            self._held[asked.link] = held | {asked.device_id: frame}
        else:
            self._send(asked.link, frame)

    def _send(self, link: int, frame: PlainFrame) -> None:
        """Nothing but the answer about another device goes before an answer that is held back."""
        self._out = self.flush((link,))
        if link == OPERATOR:
            self.heard.append(frame.body["data"])
        elif link in self.links:
            self._out.append((link, frame))
