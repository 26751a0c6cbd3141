"""A tour of the protocol on a pure three-level tree: what every hub does, step by step, and the rules that decided.

No sockets and no processes here: the tree is one immutable value, and each line is one call of ``step``.
"""

import sys

from hubauth.core.inputs import LinkDown, LinkUp, OperatorRevoke, Received
from hubauth.core.messages import Answer, Authenticate, Frame, Register, Revoke
from hubauth.core.outputs import Send
from hubauth.core.policy import Policy, Provisioned
from hubauth.lab import tree
from hubauth.lab.invariants import check
from hubauth.lab.tree import Happened, Network

ROLES = {"hub": ("auth.assist",)}
ROUTINE = ("FRAME-", "TIME-", "PERM-6", "TRUST-1", "AUTH-26", "AUTHY-3")
"""Rules that nearly every step cites: left out here to keep the lines short."""


def hub(node_id: int) -> Provisioned:
    return Provisioned(f"hub-{node_id}", node_id, f"h{node_id:042d}", "hub")


def child(node_id: int, *below: Provisioned) -> Policy:
    binding = hub(node_id)
    return Policy(
        device_id=binding.device_id,
        node_id=node_id,
        credential=binding.credential,
        has_parent=True,
        provisioned=below,
        role_perms=ROLES,
        first_node_id=10,
    )


def build() -> Network:
    root = Policy(provisioned=(hub(2), Provisioned("hub-3", 3, role="hub"), hub(4)), role_perms=ROLES, first_node_id=10)
    return tree.build(
        {"root": (None, root), "mid": ("root", child(2, hub(3))), "A": ("mid", child(3)), "B": ("root", child(4))}
    )


def describe(frame: Frame) -> str:
    body = frame.body
    if isinstance(body, bytes):
        return f"{len(body)} bytes of another sub-protocol"
    if isinstance(body, Answer):
        assert body.action is not None
        return f"{body.action.value}_resp {body.reason.value}" + (f" node {body.node_id}" if body.node_id else "")
    assert body.action is not None
    return f"{body.action.value} {getattr(body, 'device_id', '')}".strip()


def show(happened: Happened) -> None:
    match happened.input:
        case Received(_, frame):
            what = describe(frame)
        case LinkUp(link) | LinkDown(link):
            what = f"{'link up' if isinstance(happened.input, LinkUp) else 'link down'} {link or '(parent)'}"
        case OperatorRevoke(revoke):
            what = f"operator revokes {revoke.device_id}"
        case other:
            what = type(other).__name__
    rules = [rule for rule in happened.step.rules if not rule.startswith(ROUTINE)]
    sends = ", ".join(describe(output.frame) for output in happened.step.outputs if isinstance(output, Send))
    print(f"  {happened.hub:<5} {what:<32} -> {sends or '(nothing)':<62} {' '.join(rules)}")


class Tour:
    def __init__(self) -> None:
        self.network = build()
        self.steps = 0
        self.quiet = True

    def then(self, network: Network) -> None:
        self.network = network
        for happened in network.last:
            self.steps += 1
            if not self.quiet:
                show(happened)
        found = check(network)
        if found:
            sys.exit("an invariant is broken: " + "; ".join(found))

    def settle(self) -> None:
        while waiting := tree.waiting(self.network):
            self.then(tree.deliver(self.network, *waiting[0]))

    def chapter(self, title: str) -> None:
        print(f"\n{title}")
        self.quiet = False

    def device(self, name: str, at: str, message: Register | Authenticate) -> Answer:
        self.then(tree.connect(self.network, name, at))
        self.then(tree.say(self.network, self.network.next_connection - 1, Frame(message, msg_id=self.steps)))
        self.settle()
        answer = self.network.inboxes[name][-1].body
        assert isinstance(answer, Answer)
        return answer


def main() -> None:
    tour = Tour()
    print("root - mid - A\n     - B           each line: hub, what happened, what it sends, which rules decided")
    for name in ("mid", "A", "B"):
        tour.then(tree.connect(tour.network, name))
        tour.settle()
    tour.chapter("1. A sensor registers at A. Only the root allocates; only A keeps the credential.")
    credential = tour.device("sensor", "A", Register("sensor")).credential
    holders = [name for name, state in sorted(tour.network.states.items()) if "sensor" in state.whitelist]
    print(f"  hubs that hold the credential: {', '.join(holders)}")
    tour.chapter("2. It roams to B, which has never seen it and asks; A lets go.")
    tour.device("sensor", "B", Authenticate("sensor", credential))
    tour.chapter("3. mid is cut off, and the sensor is revoked meanwhile. The root owes mid the news.")
    number = tree.connection_of(tour.network, "mid")
    assert number is not None
    tour.then(tree.drop(tour.network, number))
    tour.settle()
    tour.then(tree.feed(tour.network, "root", OperatorRevoke(Revoke("sensor"))))
    tour.settle()
    tour.chapter("4. mid comes back: before anything else it is told, and passes it on to A.")
    tour.then(tree.connect(tour.network, "mid"))
    tour.settle()
    tour.chapter("5. The old credential opens no door any more.")
    answer = tour.device("sensor", "A", Authenticate("sensor", credential))
    print(f"\n{tour.steps} steps, every invariant checked after each; the sensor hears: {answer.reason.value}")


if __name__ == "__main__":
    main()
