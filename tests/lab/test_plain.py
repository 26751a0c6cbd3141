"""The flows of the documents, on trees of plain hubs alone."""

from typing import Any

import pytest

from hubauth.lab.plain import PlainFrame
from tests.lab.trees import Tree, opaque

DIALECTS = ["auth", "login", "flat"]
CREDENTIALS = ["auth", "login"]
MSG_IDS = ["echo", "zero", "reordered"]


def word(dialect: str) -> str:
    return "auth" if dialect == "auth" else "login"


def three(dialect: str = "auth", **common: Any) -> Tree:
    """root (1) - mid (10) - leaf (11), and root - other (12)."""
    tree = Tree(dialect, **common)
    tree.hub("root")
    tree.hub("mid", "root", node_id=10)
    tree.hub("leaf", "mid", node_id=11)
    tree.hub("other", "root", node_id=12)
    return tree


def shown(answer: dict[str, Any]) -> set[str]:
    return set(answer)


@pytest.mark.parametrize("msg_id", MSG_IDS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_register_goes_to_the_root_and_its_answer_back_to_the_device(dialect: str, msg_id: str) -> None:
    tree = three(dialect, msg_id=msg_id)
    device = tree.device("leaf")
    answer = device.ask("register", device_id="cam")
    fields = {"code", "msg", "device_id", "node_id"} | ({"credential"} if dialect != "flat" else set())
    assert shown(answer) == fields | ({"role", "perms"} if dialect == "auth" else set())
    assert answer["code"] == 1 and answer["node_id"] == 100
    assert tree.hubs["leaf"].whitelist == {"cam": (100, answer.get("credential", ""))}
    assert not tree.hubs["mid"].whitelist and not tree.hubs["root"].whitelist
    assert tree.hubs["root"].nodes == {"cam": 100}
    assert all(100 in tree.hubs[name].index for name in ("leaf", "mid", "root"))
    assert tree.device("other").ask("register", device_id="lamp")["node_id"] == 101


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_device_registers_again_with_the_same_node_id(dialect: str) -> None:
    tree = three(dialect)
    first, again = (tree.device(hub).ask("register", device_id="cam") for hub in ("leaf", "root"))
    assert first["node_id"] == again["node_id"]
    assert dialect == "flat" or first["credential"] != again["credential"]


@pytest.mark.parametrize("msg_id", MSG_IDS)
@pytest.mark.parametrize("dialect", CREDENTIALS)
@pytest.mark.parametrize("query", [False, True])
def test_a_device_of_the_root_is_admitted_below(dialect: str, msg_id: str, query: bool) -> None:
    tree = three(dialect, msg_id=msg_id, query=query)
    credential = tree.device("root").ask("register", device_id="cam")["credential"]
    below = tree.device("leaf")
    refused = below.ask(word(dialect), device_id="cam", credential="wrong")
    assert refused == {"code": 4001, "msg": "invalid credential"}
    assert not tree.hubs["leaf"].whitelist
    admitted = below.ask(word(dialect), device_id="cam", credential=credential)
    assert (admitted["code"], admitted["node_id"], admitted["credential"]) == (1, 100, credential)
    assert tree.hubs["leaf"].whitelist == {"cam": (100, credential)}


def test_a_flat_device_is_admitted_wherever_the_root_is_reached() -> None:
    tree = three("flat")
    tree.device("leaf").ask("register", device_id="cam")
    assert tree.device("other").ask("login", device_id="cam")["node_id"] == 100
    assert tree.device("other").ask("login", device_id="nobody")["code"] == 4001


@pytest.mark.parametrize("terse", [False, True])
@pytest.mark.parametrize("msg_id", ["echo", "zero"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_answers_find_their_devices_when_many_ask_at_once(dialect: str, msg_id: str, terse: bool) -> None:
    tree = three(dialect, msg_id=msg_id, terse=terse)
    devices = [tree.device("leaf") for _ in range(5)]
    for at, device in enumerate(devices):
        action = "register" if at % 2 else word(dialect)
        device.say(action, device_id=f"device-{at}", credential="guess")
    tree.settle()
    answers = [device.taken() for device in devices]
    assert [[answer["code"] for answer in one] for one in answers] == [[4001], [1], [4001], [1], [4001]]
    assert [one[0]["device_id"] for one in answers if one[0]["code"] == 1] == ["device-1", "device-3"]


def test_reordered_answers_come_last_first() -> None:
    tree = three("auth", msg_id="reordered")
    asking = tree.device("root")
    for number, device_id in enumerate(("a", "b"), 1):
        asking.say("assist_register", source=50, msg_id=number, device_id=device_id)
    tree.settle()
    assert [frame.msg_id for frame in asking.heard] == [2, 1]


def test_an_answer_that_is_held_back_is_not_overtaken_by_a_revoke() -> None:
    tree = three("auth", msg_id="reordered")
    asking = tree.device("root")
    asking.say("assist_register", source=50, device_id="a")
    tree.step("root")
    tree.operate("root", "revoke", device_id="a")
    assert [frame.body["action"] for frame in asking.heard] == ["assist_register_resp", "revoke"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_without_its_parent_a_hub_admits_whom_it_knows_and_registers_nobody(dialect: str) -> None:
    tree = three(dialect)
    given = tree.device("leaf").ask("register", device_id="cam")
    tree.cut("leaf")
    known = {"device_id": "cam", "credential": given.get("credential", "")}
    assert tree.device("leaf").ask(word(dialect), **known)["code"] == 1
    assert tree.device("leaf").ask("register", device_id="new")["code"] == 4002
    assert (100 not in tree.hubs["mid"].index and 100 not in tree.hubs["root"].index) or dialect == "flat"
    tree.connect("leaf", "mid")
    assert tree.device("leaf").ask("register", device_id="new")["code"] == 1


def test_who_waits_when_the_parent_is_lost_is_told_so() -> None:
    tree = three()
    device = tree.device("leaf")
    device.say("register", device_id="cam")
    tree.step("leaf")
    tree.cut("leaf")
    assert [answer["code"] for answer in device.taken()] == [4002]


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_revoke_is_broadcast_and_answered_where_an_entry_was(dialect: str) -> None:
    tree = three(dialect)
    device, lamp = tree.device("leaf"), tree.device("other")
    credential = device.ask("register", device_id="cam")["credential"]
    lamp.ask("register", device_id="lamp")
    device.say("offline", source=100, device_id="cam", node_id=100)
    tree.settle()
    assert tree.operate("other", "revoke", device_id="cam", credential="another")[0]["code"] == 4402
    assert tree.operate("other", "revoke", device_id="cam", node_id=5)[0]["code"] == 4402
    assert tree.operate("other", "revoke", device_id="nobody") == []
    assert tree.operate("other", "revoke", device_id="cam", node_id=100, credential=credential) == [
        {"code": 1, "msg": "ok", "device_id": "cam", "node_id": 100}
    ]
    assert tree.operate("other", "revoke", device_id="cam") == []
    assert tree.device("leaf").ask(word(dialect), device_id="cam", credential=credential)["code"] == 4001
    assert tree.operate("root", "revoke", device_id="lamp")[0]["node_id"] == 101
    assert lamp.ask("revoke", source=101, device_id="lamp")["code"] == 403


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_offline_removes_the_index_on_the_whole_way_up(dialect: str) -> None:
    tree = three(dialect)
    device = tree.device("leaf")
    device.ask("register", device_id="cam")
    assert device.ask("offline", source=100, device_id="cam", node_id=100, reason="tired")["code"] == 1
    assert not any(100 in hub.index for hub in tree.hubs.values())
    assert device.ask("offline", source=100, device_id="cam", node_id=100)["code"] == 4701
    assert "cam" in tree.hubs["leaf"].whitelist


@pytest.mark.parametrize("dialect", CREDENTIALS)
def test_a_device_whose_connection_drops_goes_offline(dialect: str) -> None:
    tree = three(dialect)
    device = tree.device("leaf")
    device.ask("register", device_id="cam")
    device.leave()
    assert not any(100 in hub.index for hub in tree.hubs.values())


def test_permissions_are_asked_for_upwards_and_forgotten_downwards() -> None:
    tree = Tree("auth")
    tree.hub("root", grants={7: ("admin", ["p1", "p2"])})
    leaf = tree.hub("leaf", "root", node_id=10)
    device = tree.device("leaf")
    device.ask("register", device_id="cam")
    assert device.ask("get_perms", node_id=7) == {
        "code": 1,
        "msg": "ok",
        "node_id": 7,
        "role": "admin",
        "perms": ["p1", "p2"],
    }
    assert device.ask("get_perms", node_id=999)["code"] == 4404
    assert set(leaf.cache) == {7, 100}
    listed = device.ask("list_roles", role="admin")
    assert listed["total"] == 1 and listed["roles"] == [{"node_id": 7, "role": "admin", "perms": ["p1", "p2"]}]
    assert device.ask("list_roles", offset=1, limit=1)["roles"][0]["node_id"] == 100
    assert device.ask("list_roles", node_ids=[100])["total"] == 1
    tree.operate("root", "perms_invalidate", node_ids=[7])
    assert set(leaf.cache) == {100}
    tree.operate("root", "perms_invalidate", node_ids=[7], refresh=True)
    assert set(leaf.cache) == {7, 100}
    tree.operate("root", "perms_invalidate", node_ids=[], refresh=True)
    assert not leaf.cache
    assert device.ask("perms_invalidate", node_ids=[])["code"] == 403


@pytest.mark.parametrize("dialect", DIALECTS)
def test_other_frames_follow_the_index_else_go_up(dialect: str) -> None:
    tree = three(dialect)
    here, there = tree.device("leaf"), tree.device("other")
    here.ask("register", device_id="cam")
    there.ask("register", device_id="lamp")
    for sender, receiver, frame in ((here, there, opaque(100, 101)), (there, here, opaque(101, 100))):
        sender.send(frame)
        tree.settle()
        assert receiver.heard == [frame]
        receiver.heard = []
    here.send(opaque(0, 101))
    here.send(opaque(100, 100))
    here.send(opaque(100, 999))
    tree.settle()
    assert not here.heard and not there.heard


def test_frames_for_everybody_go_down() -> None:
    tree = three()
    devices = [tree.device(hub) for hub in ("root", "leaf", "other")]
    for at, device in enumerate(devices):
        device.ask("register", device_id=f"device-{at}")
    devices[0].send(opaque(100, 0))
    tree.settle()
    assert [len(device.heard) for device in devices] == [0, 1, 1]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hub_may_join_like_a_device(dialect: str) -> None:
    tree = Tree(dialect)
    root = tree.hub("root", hub_devices=("leaf",))
    leaf = tree.hub("leaf", "root", joins=True, node_id=0)
    assert leaf.parent_present and leaf.node_id == 100 and set(root.hubs.values()) == {100}
    tree.cut("leaf")
    assert not leaf.parent_present and not root.hubs
    tree.connect("leaf", "root")
    assert leaf.parent_present and leaf.node_id == 100
    assert tree.device("leaf").ask("register", device_id="cam")["node_id"] == 101


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_hub_that_is_refused_stays_away(dialect: str) -> None:
    tree = Tree(dialect)
    tree.hub("root")
    leaf = tree.hub("leaf", "root", joins=True, credential="wrong")
    assert not leaf.parent_present
    assert tree.device("leaf").ask("register", device_id="cam")["code"] == 4002


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_the_documents_do_not_know_has_no_effect(dialect: str) -> None:
    tree = three(dialect)
    device = tree.device("leaf")
    device.ask("register", device_id="cam", colour="red", ext={"v": 1})
    before = repr(tree.hubs)
    for action in ("hub_online", "hub_fence", "hub_dismiss", "hub_fence_resp", "register_resp", ""):
        device.say(action, source=100, device_id="cam", node_id=100, code=1)
    device.say("register", device_id=7)
    device.say("register")
    bodies: list[Any] = [b"{", None, [], {}, {"action": 7}, {"action": "register", "data": []}]
    for body in bodies:
        device.send(PlainFrame(body, 100))
    tree.settle()
    assert not device.heard and repr(tree.hubs) == before


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_stranger_assists_nobody(dialect: str) -> None:
    tree = three(dialect)
    device = tree.device("leaf")
    assert device.ask("assist_register", device_id="cam")["code"] == 403
    assert not tree.hubs["leaf"].hubs
