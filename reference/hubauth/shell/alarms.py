"""Alarms for the operator: a device or hub was refused, or a device may have been taken over."""

from typing import Protocol

from hubauth.core.messages import Action, Answer, AssistRegister, Body, Reason, Register
from hubauth.core.model import State, bound_node
from hubauth.core.policy import Policy
from hubauth.core.transition import Step
from hubauth.shell.observe import Observer

_ASSISTS = {action for action in Action if action.value.startswith("assist_")}
_REGISTERED_AGAIN = "REG-9"


class AlarmSubject(Protocol):
    """Whom it is about."""

    peer: str

    @property
    def is_hub(self) -> bool: ...
    def has_failed(self) -> None:
        """An authentication of this peer was refused."""


def watch_registration(observer: Observer, peer: AlarmSubject, policy: Policy, body: Body, done: Step) -> None:
    """Raise an alarm when a known device gets a new credential: it lost the old one, or a stranger took its place."""
    if isinstance(body, Register | AssistRegister) and policy.has_credentials and _REGISTERED_AGAIN in done.rules:
        observer.alarm("reregistered", peer=peer.peer, subject=body.device_id, device=body.device_id)


def watch_answer(observer: Observer, peer: AlarmSubject, policy: Policy, state: State, body: Body) -> None:
    """A peer is told that it is not the device or the hub that it said to be."""
    if not isinstance(body, Answer) or body.reason is Reason.OK:
        return
    if body.action is Action.AUTHENTICATE and body.reason is Reason.NOT_ADMITTED:
        observer.alarm("failed_authentication", peer=peer.peer, **named(policy, state, body.device_id))
        peer.has_failed()
    elif body.action in _ASSISTS and body.reason is Reason.FORBIDDEN and not peer.is_hub:
        observer.alarm("refused_hub", peer=peer.peer, **named(policy, state, body.device_id))


def named(policy: Policy, state: State, device_id: str) -> dict[str, str]:
    """A device as it may be shown: by its name only if it is known, since a stranger may send a credential as one."""
    if policy.is_provisioned(device_id) or bound_node(state, device_id):
        return {"subject": device_id, "device": device_id}
    return {"device": f"unknown, a name of {len(device_id)} characters"}
