"""A root hub as one would write it on a napkin: plain dictionaries, no indexes, no rules, no reuse of the core.

It predicts, for everything that may happen to a root that is its own authority, who is answered with what, which
links are closed, and who has a session afterwards. Only the *meaning* of the protocol is here.
"""

from typing import TypeAlias

from attrs import Factory, define

from hubauth.core.messages import Action, Reason
from hubauth.core.policy import Policy, Reregister

Said: TypeAlias = tuple[int, Action, Reason, int]
"""(link, what was asked, how it was answered, the node id in the answer)"""
SILENCE: list[Said] = []


@define
class NaiveRoot:
    """What a root must know. Node ids and credentials are whatever they are in the real hub's answers."""

    policy: Policy
    nodes: dict[str, int] = Factory(dict)
    """The registry."""
    revoked: dict[str, bool] = Factory(dict)
    entries: dict[str, tuple[int, str]] = Factory(dict)
    """The whitelist: node id and credential."""
    links: dict[int, str | None] = Factory(dict)
    """Who is on each link."""
    remembered: list[tuple[int, int]] = Factory(list)
    """(timer, link) of each device's revoke whose answers are still expected."""
    next_node: int = 0
    closed: list[int] = Factory(list)
    """The links closed by what happened last."""

    def __attrs_post_init__(self) -> None:
        self.next_node = self.policy.first_node_id
        self.entries = {binding.device_id: (binding.node_id, binding.credential) for binding in self.policy.provisioned}

    # Looking things up

    def node_on(self, link: int) -> int:
        device = self.links.get(link)
        return self.entries[device][0] if device is not None else 0

    def perms_of(self, node_id: int) -> tuple[str, ...]:
        roles = {binding.node_id: binding.role for binding in self.policy.provisioned}
        role = roles.get(node_id, self.policy.node_roles.get(node_id, self.policy.default_role))
        return self.policy.role_perms.get(role, self.policy.default_perms)

    def existing(self) -> list[int]:
        """Every node there is, ascending."""
        configured = [binding.node_id for binding in self.policy.provisioned]
        return sorted({1, *self.nodes.values(), *configured, *self.policy.node_roles})

    def refused_at_the_door(self, link: int, action: Action, source: int) -> list[Said] | None:
        """What everything but register and authenticate meets first; None: it may go on."""
        device = self.links[link]
        if action.value.startswith("hub_"):
            return SILENCE
        if device is None:
            return [(link, action, Reason.NOT_INDEXED if action is Action.OFFLINE else Reason.FORBIDDEN, 0)]
        if source not in (0, self.node_on(link)):
            return SILENCE
        if action.value.startswith("assist"):
            return [(link, action, Reason.FORBIDDEN, 0)]
        return None

    # Sessions

    def leave(self, link: int) -> None:
        self.links[link] = None
        self.remembered = [(timer, asker) for timer, asker in self.remembered if asker != link]

    def close(self, link: int) -> None:
        self.leave(link)
        del self.links[link]
        self.closed.append(link)

    def enter(self, link: int, device: str) -> None:
        """The device is on this link now, and nowhere else."""
        if self.links[link] not in (None, device):
            self.leave(link)
        for other in [other for other, there in self.links.items() if there == device and other != link]:
            if self.policy.close_superseded:
                self.close(other)
            else:
                self.leave(other)
        self.links[link] = device

    def forget(self, device: str, keep_open: int | None) -> None:
        """A revoke deletes the entry and ends the session of the device."""
        del self.entries[device]
        for link in [link for link, there in self.links.items() if there == device]:
            if self.policy.close_on_revoke and link != keep_open:
                self.close(link)
            else:
                self.leave(link)

    # What happens

    def register(self, link: int, device: str, credential: str) -> list[Said]:
        reason = self._why_not_register(device, len(credential) == 43)
        if reason is not None:
            return [(link, Action.REGISTER, reason, 0)]
        if device not in self.nodes:
            self.nodes[device] = self.next_node = self._free_node()
            self.next_node += 1
        elif self.policy.has_credentials and self.policy.revoke_on_reregister and device in self.entries:
            self.forget(device, keep_open=link)
        self.revoked[device] = False
        self.entries[device] = (self.nodes[device], credential if self.policy.has_credentials else "")
        self.enter(link, device)
        return [(link, Action.REGISTER, Reason.OK, self.nodes[device])]

    def _why_not_register(self, device: str, usable: bool) -> Reason | None:
        if self.policy.has_credentials and not usable:
            return Reason.INTERNAL
        if any(binding.device_id == device for binding in self.policy.provisioned):
            return Reason.PROTECTED
        if device not in self.nodes:
            return Reason.EXHAUSTED if self._free_node() >= 2**32 else None
        if any(name == "*" or name.startswith("auth.") for name in self.perms_of(self.nodes[device])):
            return Reason.PROTECTED
        if self.policy.reregister is Reregister.AFTER_REVOKE and not self.revoked[device]:
            return Reason.PROTECTED
        return None

    def _free_node(self) -> int:
        node_id = self.next_node
        while node_id in (1, *self.nodes.values()) or self._is_kept(node_id):
            node_id += 1
        return node_id

    def _is_kept(self, node_id: int) -> bool:
        """Whether the configuration names this node."""
        role = self.policy.node_roles.get(node_id, self.policy.default_role)
        special = role != self.policy.default_role
        return special or any(binding.node_id == node_id for binding in self.policy.provisioned)

    def authenticate(self, link: int, device: str, credential: str) -> list[Said]:
        if not self.policy.has_credentials:
            if device not in self.entries and device in self.nodes:
                self.entries[device] = (self.nodes[device], "")
            right = device in self.entries
        else:
            right = device in self.entries and credential != "" and self.entries[device][1] == credential
        if not right:
            return [(link, Action.AUTHENTICATE, Reason.NOT_ADMITTED, 0)]
        self.enter(link, device)
        return [(link, Action.AUTHENTICATE, Reason.OK, self.entries[device][0])]

    def offline(self, link: int, device: str, node_id: int, source: int) -> list[Said]:
        refused = self.refused_at_the_door(link, Action.OFFLINE, source)
        if refused is not None:
            return [(link, Action.OFFLINE, Reason.NOT_INDEXED, node_id)] if refused else SILENCE
        own = self.node_on(link)
        if device != self.links[link] or node_id not in (0, own):
            others = [other for other, there in self.links.items() if there is not None and other != link]
            named = any(self.links[other] == device or self.node_on(other) == node_id for other in others)
            return [(link, Action.OFFLINE, Reason.FORBIDDEN if named else Reason.NOT_INDEXED, node_id)]
        self.leave(link)
        return [(link, Action.OFFLINE, Reason.OK, own)] if self.policy.answer_offline else SILENCE

    def may(self, link: int, permission: str) -> bool:
        perms = self.perms_of(self.node_on(link))
        return permission in perms or "*" in perms

    def revoke(
        self, link: int | None, device: str, node_id: int, credential: str, target: int, source: int = 0
    ) -> list[Said]:
        """By the device on ``link``, or by the operator (None)."""
        if link is not None:
            refused = self.refused_at_the_door(link, Action.REVOKE, source)
            if refused is not None:
                return [(link, Action.REVOKE, Reason.FORBIDDEN, node_id)] if refused else SILENCE
            if not self.may(link, "auth.revoke"):
                return [(link, Action.REVOKE, Reason.FORBIDDEN, node_id)]
            if len([asker for _, asker in self.remembered if asker == link]) >= self.policy.pending_limit:
                return [(link, Action.REVOKE, Reason.BUSY, node_id)]
            if target not in (0, 1):
                return [(link, Action.REVOKE, Reason.UNREACHABLE, node_id)]
        elif target not in (0, 1):
            return SILENCE
        entry = self.entries.get(device)
        meant = entry is not None and node_id in (0, entry[0]) and credential in ("", entry[1])
        if device in self.nodes and (meant or (node_id in (0, self.nodes[device]) and not credential)):
            self.revoked[device] = True
        if entry is None:
            reason, silent = Reason.NOT_WHITELISTED, target == 0
        elif not meant:
            reason, silent = Reason.CREDENTIAL_MISMATCH, not self.policy.answer_mismatch
        else:
            reason, silent, node_id = Reason.OK, False, entry[0]
            self.forget(device, keep_open=None)
        return SILENCE if silent or link is None else [(link, Action.REVOKE, reason, node_id)]

    def get_perms(self, link: int, node_id: int, source: int) -> list[Said]:
        refused = self.refused_at_the_door(link, Action.GET_PERMS, source)
        if refused is not None:
            return [(link, Action.GET_PERMS, Reason.FORBIDDEN, node_id)] if refused else SILENCE
        known = node_id in self.existing()
        return [(link, Action.GET_PERMS, Reason.OK if known else Reason.UNKNOWN_NODE, node_id)]

    def page(self, offset: int, limit: int, role: str, wanted: tuple[int, ...]) -> tuple[int, list[int]]:
        """What list_roles shows: how many, and which."""
        roles = {binding.node_id: binding.role for binding in self.policy.provisioned}
        nodes = [
            node_id
            for node_id in self.existing()
            if (not role or roles.get(node_id, self.policy.node_roles.get(node_id, self.policy.default_role)) == role)
            and (not wanted or node_id in wanted)
        ]
        return len(nodes), nodes[offset : offset + min(limit, 1000)]

    def forwarded(self, link: int, source: int, target: int, hop_limit: int) -> list[int]:
        """The links that a frame of another sub-protocol goes out on."""
        if self.links[link] is None or source != self.node_on(link) or target == 1 or hop_limit == 1:
            return []
        others = [other for other, device in self.links.items() if device is not None and other != link]
        return sorted(other for other in others if target in (0, self.node_on(other)))
