"""One hub to which anything may be said: by its parent, by child hubs, by devices, honest or not.

No outcome is predicted here. Whatever happens a hub must not fail, its indexes must agree, it must stay within
what was asked of it, and once its links are gone nothing may wait for ever.
"""

from collections.abc import Callable
from typing import Any

from attrs import evolve

from hubauth.core.inputs import (
    PARENT,
    LinkDown,
    LinkUp,
    OperatorInvalidate,
    OperatorRevoke,
    PolicyChanged,
    TimerFired,
)
from hubauth.core.messages import (
    MAX_HANDLED,
    NO_GRANT,
    NOT_A_HUB,
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    Body,
    Ext,
    GetPerms,
    Grant,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Major,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Purpose
from hubauth.core.policy import Assist, Dialect, Policy, Provisioned, Reregister, Trust
from hubauth.lab.hub import OWN_JOURNAL
from model_tests.exercised import Tally
from model_tests.hub import OneHub
from model_tests.trees import Pick, rebound

HUB_A, HUB_B, ADMIN, OWN, AUTHORITY, PLAIN = 20, 21, 22, 5, 40, 70
NAMES = ("d1", "d2", "d3", "hub-a", "hub-b", "admin", "self")
NODES = (0, 1, OWN, 10, 11, HUB_A, HUB_B, ADMIN, AUTHORITY, 77)
LINKS = (1, 2, 3, 4, 5)
ROLES: dict[str, tuple[str, ...]] = {
    "hub": ("auth.assist",),
    "admin": ("auth.revoke", "auth.perms_invalidate"),
    "star": ("*",),
    "wordy": tuple(f"permission.{count}.{'x' * 900}" for count in range(20)),
}
GRANTS = (NO_GRANT, Grant("node", ()), Grant("hub", ROLES["hub"]), Grant("admin", ROLES["admin"]))
BINDINGS = (
    Provisioned("hub-a", HUB_A, "A" * 43, "hub"),
    Provisioned("hub-b", HUB_B, "B" * 43, "hub"),
    Provisioned("admin", ADMIN, "C" * 43, "admin"),
)
EXTS = (
    *(Ext("journal of a liar", OWN_JOURNAL, handled) for handled in (0, 0, 3)),
    Ext("another journal", OWN_JOURNAL, MAX_HANDLED),
    Ext("another journal", "somebody else's", 3),
    Ext(OWN_JOURNAL, OWN_JOURNAL),
    NOT_A_HUB,
    None,
)
"""What may be said of the extension, mostly so that it is taken up."""
KEYS = {binding.device_id: binding.credential for binding in BINDINGS}

Event = Callable[["Liars", Pick], None]
EVENTS: dict[str, Event] = {}


def event(method: Event) -> Event:
    """List a method as something that may happen."""
    EVENTS[method.__name__] = method
    return method


def draw_policy(pick: Pick) -> Policy:
    """Any configuration."""
    has_parent = pick((True, True, False))
    dialect = pick((Dialect.AUTH, Dialect.AUTH, Dialect.LOGIN, Dialect.FLAT))
    own = pick((OWN, 0)) if has_parent else 0
    return Policy(
        device_id="self",
        node_id=own,
        credential="S" * 43 if own else "",
        has_parent=has_parent,
        authority=pick((0, 0, 0, OWN, AUTHORITY, HUB_A)),
        dialect=dialect,
        first_node_id=pick((10, 10, 10, 2**32 - 1)),
        default_perms=pick(((), (), ("auth.list",), ("auth.assist",))),
        node_roles=pick(
            (
                {},
                {10: "admin"},
                {10: "hub", 11: "star"},
                {10: "wordy", 11: "wordy", 12: "wordy"},
                {10: "node", 11: "hub"},
            )
        ),
        role_perms=ROLES,
        provisioned=BINDINGS,
        assist=pick(tuple(Assist)),
        reregister=pick((Reregister.OPEN, Reregister.OPEN, Reregister.AFTER_REVOKE)),
        trust=pick((Trust.LINKS, Trust.LINKS, Trust.OPEN)),
        revoke_on_reregister=pick((True, False)),
        close_superseded=pick((True, False)),
        close_on_revoke=pick((True, False)),
        answer_offline=pick((True, False)),
        answer_mismatch=pick((True, False)),
        pending_limit=pick((256, 1, 2)),
        hub_pending_limit=pick((4096, 1, 2)),
        announce_batch=pick((1, 2, 256)),
        revoke_batch=pick((1, 2, 256)),
        extension=pick((*(True,) * 7, False)),
        plain_hubs=(PLAIN,),
    )


class Liars:
    """The hub, and everybody around it."""

    def __init__(self, pick: Pick, tally: Tally) -> None:
        self.hub = OneHub(draw_policy(pick), tally, among_liars=True)
        self.most_pending = 0
        self.given: list[str] = []
        if pick((True, True, False)):
            self.join(pick)
        for link, name in ((1, "hub-a"), (2, "admin"), (3, "hub-b")):
            if pick((True, False)):
                self.arrive(link, name, pick)

    @property
    def flat(self) -> bool:
        return self.hub.policy.dialect is Dialect.FLAT

    def after(self) -> None:
        self.most_pending = max(self.most_pending, len(self.hub.state.pending))

    def finish(self) -> None:
        """With every timer fired nobody has to wait any longer, and with every link gone nothing is left."""
        for timer in sorted(self.hub.timers):
            if timer in self.hub.timers:
                self.hub.happens(TimerFired(timer))
        self.hub.is_idle()
        for link in sorted(self.hub.state.links, reverse=True):
            if link in self.hub.state.links:
                self.hub.happens(LinkDown(link))
        for timer in sorted(self.hub.timers):
            self.hub.happens(TimerFired(timer))
        state = self.hub.state
        assert not state.pending and not state.links, f"{state.pending} wait on {state.links}"
        assert not any(route.online for route in state.directory.values()), "online without a link"

    def receive(self, link: int, body: Body, pick: Pick, **header: Any) -> None:
        session = self.hub.state.links.get(link)
        honest = session.node_id if session is not None else 0
        header.setdefault("source", pick((*(honest,) * 20, *NODES)))
        header.setdefault("target", pick((*(0,) * 10, *NODES)))
        header.setdefault("msg_id", pick((1, 2, 3, 4, 1000)))
        credential = pick((*(None,) * 9, "too short"))
        self.hub.receive(link, body, credential=credential, trace_id=pick((0, 9)), **header)

    # Links, timers, operators

    @event
    def up(self, pick: Pick) -> None:
        link = pick((*LINKS, PARENT, PARENT) if self.hub.policy.has_parent else LINKS)
        self.hub.happens(LinkUp(link))

    @event
    def down(self, pick: Pick) -> None:
        self.hub.happens(LinkDown(pick((*LINKS, PARENT))))

    @event
    def fire(self, pick: Pick) -> None:
        if self.hub.timers:
            self.hub.happens(TimerFired(pick(sorted(self.hub.timers))))

    @event
    def operator(self, pick: Pick) -> None:
        if pick((True, False)):
            self.hub.happens(OperatorRevoke(self._revoke(pick), pick((0, 0, *NODES))))
        elif self.hub.policy.has_perms:
            self.hub.happens(OperatorInvalidate(self._invalidation(pick)))

    @event
    def change_policy(self, pick: Pick) -> None:
        policy = self.hub.policy
        more = (*policy.provisioned, Provisioned("d1", 60, "D" * 43, "star"))
        nodes = {binding.node_id for binding in BINDINGS}
        found = [
            (*BINDINGS, Provisioned(name, entry.node_id, entry.credential))
            for name, entry in sorted(self.hub.state.whitelist.items())
            if entry.node_id not in nodes
        ]
        changes: dict[str, Any] = pick(
            (
                {"provisioned": pick((more, BINDINGS, BINDINGS[1:], rebound(BINDINGS, pick), *found))},
                {"provisioned": (evolve(BINDINGS[0], credential="E" * 43), *BINDINGS[1:])},
                {"node_roles": pick(({}, {10: "hub"}, {HUB_A: "star"}))},
                {"role_perms": pick((ROLES, {**ROLES, "node": ("auth.assist",)}))},
                {"node_id": 99},
                {"dialect": Dialect.LOGIN},
                {"close_superseded": not policy.close_superseded},
                {"extension": not policy.extension},
            )
        )
        if changes.get("node_id") and self.hub.state.node_id == 0:
            return  # a hub that asks its parent for a node id is not given one by hand as well
        self.hub.happens(PolicyChanged(evolve(policy, **changes)))

    @event
    def plain_hub_up(self, pick: Pick) -> None:
        """A hub that never authenticates connects, from a place where it is known or not, and speaks."""
        link = pick(LINKS)
        if link not in self.hub.state.links:
            self.hub.happens(LinkUp(link, pick(((PLAIN,), (PLAIN,), ())), pick(("here", "there"))))
        first = pick((AssistRegister, AssistRegister, Revoke))
        self.receive(link, first(pick(("d1", "d2"))), pick, source=PLAIN)

    @event
    def provision_who_waits(self, pick: Pick) -> None:
        """A device registers, nobody names its role, and while it waits for that the configuration takes it over."""
        link, name = pick(LINKS), pick(("d1", "d2", "d3"))
        if link not in self.hub.state.links:
            self.hub.happens(LinkUp(link))
        self.receive(link, Register(name), pick, source=0)
        for msg_id, asked in sorted(self.hub.state.pending.items()):
            if asked.purpose is Purpose.REGISTER and asked.asker == link and asked.asked is not None:
                answer = Answer(Action.ASSIST_REGISTER, Reason.OK, asked.device_id, 61, "F" * 43)
                self.receive(asked.asked, answer, pick, msg_id=msg_id, source=1)
        for msg_id, asked in sorted(self.hub.state.pending.items()):
            if asked.purpose is Purpose.ADMIT and asked.asker == link:
                mine = (asked.device_id, asked.node_id)  # no configuration names either of them twice
                others = [
                    one for one in self.hub.policy.provisioned if one.device_id != mine[0] and one.node_id != mine[1]
                ]
                binding = Provisioned(asked.device_id, asked.node_id, pick((asked.credential, "E" * 43)))
                self.hub.happens(PolicyChanged(evolve(self.hub.policy, provisioned=(*others, binding))))
                self.hub.happens(TimerFired(msg_id))

    @event
    def disturb_who_waits(self, pick: Pick) -> None:
        """Somebody waits on a link for its role, beside who has a session there; then something happens to them."""
        link, name, key, by_entry = pick(LINKS), "spare", "G" * 43, pick((True, False))
        if link not in self.hub.state.links:
            self.hub.happens(LinkUp(link))
        self.receive(link, Authenticate("admin", "" if self.flat else KEYS["admin"]), pick, source=0)
        bindings = self.hub.policy.provisioned
        if by_entry and all(name != one.device_id for one in bindings):
            with_it = (*bindings, Provisioned(name, 62, key))
            self.hub.happens(PolicyChanged(evolve(self.hub.policy, provisioned=with_it)))
        body = Authenticate(name, "" if self.flat else key) if by_entry else Register("d1")
        self.receive(link, body, pick, source=0)
        for msg_id, asked in sorted(self.hub.state.pending.items()):
            if asked.purpose is Purpose.REGISTER and asked.asker == link and asked.asked is not None:
                answer = Answer(Action.ASSIST_REGISTER, Reason.OK, asked.device_id, 61, "F" * 43)
                self.receive(asked.asked, answer, pick, msg_id=msg_id, source=1)
        what, session = pick(("revoke", "enter", "configure")), self.hub.state.links.get(link)
        if what == "revoke" and session is not None and not self.flat:
            self.hub.happens(OperatorRevoke(Revoke(session.device_id)))
        elif what == "enter":
            other: tuple[Body, ...] = (Register("d2"), Authenticate("d2", "" if self.flat else "w" * 43))
            self.receive(link, pick(other), pick, source=0)
        elif what == "configure":
            self.hub.happens(PolicyChanged(evolve(self.hub.policy, provisioned=bindings)))
        for msg_id, asked in sorted(self.hub.state.pending.items()):
            if asked.purpose is Purpose.ADMIT and asked.asker == link and msg_id in self.hub.timers:
                self.hub.happens(TimerFired(msg_id))

    # What anybody may send

    @event
    def enter(self, pick: Pick) -> None:
        """A device or hub presents itself, mostly with what it was given."""
        link, name = pick(LINKS), pick(NAMES)
        keys = [KEYS.get(name, ""), *self.given[-3:], "w" * 43]
        ext = pick((None, *EXTS))
        bodies: tuple[Body, ...] = (Register(name, ext), Authenticate(name, "" if self.flat else pick(keys), ext))
        self.receive(link, pick(bodies), pick)
        self.given = sorted({entry.credential for entry in self.hub.state.whitelist.values()} - {""})

    @event
    def join(self, pick: Pick) -> None:
        """The parent takes this hub in, as it should."""
        if self.hub.policy.has_parent:
            self.hub.happens(LinkUp(PARENT))
        for msg_id, asked in sorted(self.hub.state.pending.items()):
            if asked.purpose in (Purpose.SELF_REGISTER, Purpose.SELF_AUTHENTICATE):
                action = None if self.flat else asked.action
                own, ext = self.hub.state.node_id or 50, pick(EXTS)
                answer = Answer(action, Reason.OK, "self", own, "" if self.flat else "S" * 43, ext=ext)
                self.receive(PARENT, answer, pick, msg_id=msg_id, source=1)

    @event
    def change_parents(self, pick: Pick) -> None:
        """The operator revokes while the parent is away, and another one may be there instead when it is back."""
        self.join(pick)
        self.hub.happens(LinkDown(PARENT))
        if not self.flat:
            self.hub.happens(OperatorRevoke(Revoke(pick(("d1", "d2")))))
        self.join(pick)

    @event
    def enter_honestly(self, pick: Pick) -> None:
        """A new link for one of the configured."""
        self.arrive(pick(LINKS), pick(("hub-a", "hub-b", "admin")), pick)

    def arrive(self, link: int, name: str, pick: Pick) -> None:
        self.hub.happens(LinkUp(link))
        self.receive(link, Authenticate(name, "" if self.flat else KEYS[name], pick(EXTS)), pick)

    @event
    def speak(self, pick: Pick) -> None:
        """Any request at all, on any link."""
        name, node_id = pick(NAMES), pick(NODES)
        link = pick((*sorted(self.hub.state.links), *sorted(self.hub.state.links), *LINKS, PARENT))
        flat: tuple[Body, ...] = (
            AssistRegister(name),
            AssistAuthenticate(name, "" if self.flat else pick(("w" * 43, *self.given[-2:]))),
            Register(name),
            Malformed(pick((None, Action.REGISTER, Action.ASSIST_REGISTER)), "bad", is_answer=pick((False, True))),
            b"opaque",
        )
        more: tuple[Body, ...] = (
            AssistAuthenticate(name),
            HubOnline(name, node_id),
            HubOnline(name, node_id),
            HubDismiss(name, node_id),
            HubFence(),
            Malformed(pick((Action.HUB_ONLINE, Action.HUB_DISMISS, Action.HUB_FENCE)), "bad"),
            AssistQueryCredential(name),
            AssistOffline(name, node_id),
            AssistOffline(name, node_id),
            Offline(name, node_id),
            self._revoke(pick),
            self._revoke(pick),
            Malformed(Action.OFFLINE, "bad"),
        )
        perms: tuple[Body, ...] = (
            GetPerms(node_id),
            self._invalidation(pick),
        )
        body = pick(flat + (() if self.flat else more) + (perms if self.hub.policy.has_perms else ()))
        self.receive(link, body, pick, hop_limit=pick((0, 0, 1)))

    @event
    def list_roles(self, pick: Pick) -> None:
        """Somebody who has a session asks for a page; some roles here are long."""
        sessions = [link for link, session in sorted(self.hub.state.links.items()) if session is not None]
        if sessions and self.hub.policy.has_perms:
            role = pick(("", "hub", *(grant.role for grant in GRANTS)))
            body = ListRoles(pick((0, 1)), pick((100, 1, 2000)), role, pick(((), (), (10, HUB_A))))
            self.receive(pick(sessions), body, pick)

    @event
    def answer(self, pick: Pick) -> None:
        """What the hub asked is answered: rightly, wrongly, by the wrong one, or twice."""
        pending = sorted(self.hub.state.pending.items())
        if not pending:
            return
        msg_id, asked = pick(pending)
        expected = Action.GET_PERMS if asked.purpose is Purpose.ADMIT else asked.action
        action = pick((expected, expected, *Action))
        assist = {Action.REGISTER: Action.ASSIST_REGISTER, Action.AUTHENTICATE: Action.ASSIST_AUTHENTICATE}
        if asked.asker is not None and action in assist:
            action = assist[action]
        reason = pick((Reason.OK, Reason.OK, Reason.OK, *Reason))
        name = pick((asked.device_id, asked.device_id, asked.device_id, *NAMES))
        node_id = pick((asked.node_id or 10, *NODES))
        key = "" if self.flat else pick((asked.credential or "v" * 43, ""))
        body = Answer(None if self.flat else action, reason, name, node_id, key, pick(GRANTS), ext=pick(EXTS))
        link = pick((asked.asked, asked.asked, *LINKS)) if asked.asked is not None else PARENT
        major = Major.OK_RESP if reason is Reason.OK else Major.ERR_RESP
        for _ in range(pick((1, 1, 2))):
            self.receive(link or PARENT, body, pick, msg_id=msg_id, major=major)

    # Pieces

    def _revoke(self, pick: Pick) -> Revoke:
        keys = ("", "", "w" * 43, *self.given[-2:])
        return Revoke(pick(NAMES), pick((0, 0, *NODES)), pick(keys), pick((0, 1, 2, 3, 2**32 - 1)))

    def _invalidation(self, pick: Pick) -> PermsInvalidate:
        return PermsInvalidate(pick(((), (10,), (11, HUB_A))), refresh=pick((True, False)))
