"""The machine of the documents as a hub of ``hubauth.lab``, and what it looks like to PlainHub.tla.

Between the two everything is JSON, through the codec of the dialect. The machine knows nothing of ``trace_id``, by
which the model tells requests apart: what it passes up gets that of the request that came in, an answer that of the
request it settles.
"""

import copy
import json
from typing import Any

from attrs import evolve, field, frozen
from immutables import Map

from hubauth.core.inputs import PARENT, Input, Link, LinkDown, LinkUp, OperatorRevoke, Received
from hubauth.core.messages import SUB_PROTO, Action, Answer, Frame, Major
from hubauth.core.outputs import Send
from hubauth.core.policy import Dialect
from hubauth.lab import plain
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import RawFrame, read_frame
from hubauth.wire.header import Header
from model_tests.equivalence.tree_abstraction import CLOSED, IDLE, Ports, TreeConstants, number_of
from model_tests.equivalence.values import Value, function, record

_CODEC = CODECS[Dialect.LOGIN]


@frozen
class PlainStranger:
    """A machine between two steps. It is copied before each, so that this one stays what it was."""

    hub: plain.PlainHub
    ops: Map[tuple[Link, int], int] = field(factory=Map)
    """(link, MsgID) -> the number of the device's request that came in so."""

    def take(self, happened: Input) -> "tuple[PlainStranger, tuple[Send, ...]]":
        hub, ops, came = _copied(self.hub), self.ops, Frame(b"")
        settled: list[tuple[Link, int, str]] = []
        match happened:
            case LinkUp(link):
                said = hub.link_up(link)
            case LinkDown(link):
                said = hub.link_down(link)
            case Received(link, came, fresh):
                hub.fresh = lambda: fresh
                ops = ops.set((link, came.msg_id), came.trace_id)
                settled = [(link, came.msg_id, getattr(came.body, "device_id", ""))]
                said = hub.receive(link, _written(came))
            case OperatorRevoke(revoke):
                named = {"device_id": revoke.device_id, "credential": revoke.credential}
                said = hub.operate("revoke", **{name: value for name, value in named.items() if value})
            case _:
                raise AssertionError(f"a plain hub knows of no {happened}")
        waits = {id(one) for one in hub.waiting}
        settled += [(one.link, one.msg_id, one.device_id) for one in self.hub.waiting if id(one) not in waits]
        sent = []
        for link, frame in said:
            read = _read(frame)
            if isinstance(read.body, Answer):
                read = self._recognised(read, read.body, link, ops, settled)
            else:
                read = evolve(read, trace_id=came.trace_id)
            sent.append(Send(link, read))
        return PlainStranger(hub, ops), tuple(sent)

    def _recognised(
        self,
        frame: Frame,
        answer: Answer,
        link: Link,
        ops: Map[tuple[Link, int], int],
        settled: list[tuple[Link, int, str]],
    ) -> Frame:
        """An answer with the number of the request it settles, unless a hub is told that without its MsgID."""
        if answer.action in (Action.REVOKE, Action.OFFLINE, Action.ASSIST_OFFLINE):
            return frame
        asked = next(one for one in settled if one[0] == link)
        settled.remove(asked)
        if link in (PARENT, *self.hub.hubs):
            return frame if self.hub.msg_id == "zero" else evolve(frame, trace_id=ops[asked[:2]])
        # Where nothing but the connection matters, the documents leave the device out of a failure.
        return evolve(frame, trace_id=ops[asked[:2]], body=evolve(answer, device_id=asked[2]))


def _copied(hub: plain.PlainHub) -> plain.PlainHub:
    other = copy.copy(hub)
    for name, value in vars(hub).items():
        if isinstance(value, dict | list | set):
            setattr(other, name, value.copy())
    return other


def _written(frame: Frame) -> plain.PlainFrame:
    assert not isinstance(frame.body, bytes)
    body = json.loads(_CODEC.encode(frame.body))
    return plain.PlainFrame(body, frame.source, frame.target, frame.msg_id, int(frame.major))


def _read(frame: plain.PlainFrame) -> Frame:
    payload = json.dumps(frame.body).encode()
    fields: Any = Major(frame.major), SUB_PROTO, 0, frame.msg_id, frame.source, frame.target, 0
    return read_frame(_CODEC, RawFrame(Header((), 0, len(payload), *fields), payload, ())).frame


# What it looks like


def plain_value(shape: TreeConstants, stranger: PlainStranger, name: str, ports: Ports) -> Value:
    """``hub[name]`` of a plain hub."""
    hub = stranger.hub
    link_of = {ports[link]: link for link in hub.links if link != PARENT}
    given = [node for device, node in hub.nodes.items() if device in shape.devices]
    return record(
        present=hub.parent_present,
        links=function({port: _link(shape, hub, port, link_of.get(port)) for port in shape.ports(name)}),
        reg=function({device: record(node=hub.nodes.get(device, 0)) for device in shape.devices}),
        next=max([shape.first_node - 1, *given]) + 1,
        wl=function({device: _entry(hub, device) for device in shape.devices}),
        index=function({node: _place(hub, node, ports) for node in shape.nodes}),
        waiting=tuple(_waiting(stranger, one, ports) for one in hub.waiting),
    )


def session_on(hub: plain.PlainHub, link: Link) -> tuple[str, int] | None:
    """The device, and its node, that a plain hub takes for being on this link."""
    return next(((device, node) for node, (where, device) in hub.index.items() if where == link), None)


def _link(shape: TreeConstants, hub: plain.PlainHub, port: str, link: Link | None) -> Value:
    if link is None:
        return CLOSED
    return record(dev=shape.owner[port], node=hub.hubs[link]) if link in hub.hubs else IDLE


def _entry(hub: plain.PlainHub, device: str) -> Value:
    node, credential = hub.whitelist.get(device, (0, ""))
    return record(node=node, cred=number_of(credential))


def _place(hub: plain.PlainHub, node: int, ports: Ports) -> Value:
    link, device = hub.index.get(node, (None, ""))
    return record(dev=device, at="" if link is None else ports[link])


def _waiting(stranger: PlainStranger, one: plain.Asked, ports: Ports) -> Value:
    return record(
        kind="reg" if one.up == "assist_register" else "auth",
        link=ports[one.link] if one.link in stranger.hub.links else "",
        direct=not one.action.startswith("assist_"),
        op=stranger.ops[one.link, one.msg_id],
        dev=one.device_id,
        cred=number_of(one.credential),
    )
