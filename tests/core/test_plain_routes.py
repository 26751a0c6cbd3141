"""Where the devices of plain hubs are: what they were told, and who speaks through them."""

from typing import Any

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    GetPerms,
    HubOnline,
    Offline,
    Reason,
    Revoke,
)
from hubauth.core.model import Learnt, Route
from hubauth.core.outputs import Close
from hubauth.core.policy import Assist, Dialect
from hubauth.lab.hub import ADMIN, HUB_A, HUB_B, Hub, dropped, key, mid, root, sent


def plainly(hub: Hub, link: int, device_id: str) -> None:
    """A hub connects that says nothing of the extension."""
    hub.up(link)
    hub.receive(link, Authenticate(device_id, key(device_id) if hub.policy.has_credentials else ""))
    assert hub.session(link).is_hub and not hub.session(link).extended


def plain_children(hub: Hub) -> Hub:
    """Hubs A and B on links 1 and 2, both plain."""
    plainly(hub, 1, "hub-a")
    plainly(hub, 2, "hub-b")
    return hub


def above_plain(**changes: Any) -> Hub:
    """A root with plain children, and a device d (node 2) of its own on link 3."""
    hub = plain_children(root(**changes))
    hub.registered(3, "d")
    return hub


def test_the_parent_hears_of_the_devices_behind_a_plain_child_that_is_lost() -> None:
    hub = mid()
    plainly(hub, 1, "hub-a")
    hub.receive(1, AssistAuthenticate("leaf", key("leaf")))
    hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "leaf", 30, key("leaf")))
    assert hub.is_online(30)
    done = hub.down(1)
    assert AssistOffline("leaf", 30) in [send.frame.body for send in sent(done, PARENT)] and not hub.is_online(30)


def test_what_a_plain_child_was_told_shows_where_a_device_is() -> None:
    hub = above_plain()
    done = hub.receive(1, AssistRegister("leaf"))
    assert hub.state.directory[3] == Route("leaf", HUB_A, online=True) and "AUTH-33" in done.rules
    done = hub.receive(2, AssistAuthenticate("d", hub.state.whitelist["d"].credential))
    assert hub.state.directory[2] == Route("d", HUB_B, online=True) and Close(3) in done.outputs


def test_a_failure_shows_nothing() -> None:
    hub = above_plain()
    done = hub.receive(2, AssistAuthenticate("d", key("guess")))
    assert hub.session(3).node_id == 2 and "AUTH-33" not in done.rules


def test_a_query_proves_nothing_and_displaces_nobody() -> None:
    hub = above_plain(assist=Assist.QUERY)
    hub.receive(2, AssistQueryCredential("d"))
    assert hub.state.directory[2] == Route("d", 2, online=True)
    hub.down(3)
    hub.receive(2, AssistQueryCredential("d"))
    assert hub.state.directory[2] == Route("d", HUB_B, online=True)


def test_an_extended_parent_is_told() -> None:
    hub = mid()
    plainly(hub, 1, "hub-a")
    hub.receive(1, AssistRegister("leaf"))
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "leaf", 30, key("leaf")))
    assert hub.state.directory[30] == Route("leaf", HUB_A, online=True)
    assert [send.frame.body for send in sent(done, PARENT)] == [HubOnline("leaf", 30)]


def test_a_child_that_speaks_the_extension_announces_by_itself() -> None:
    hub = root()
    hub.provisioned(1, "hub-a")
    hub.receive(1, AssistRegister("leaf"))
    assert 2 not in hub.state.directory


def test_its_devices_leave_with_its_word_or_its_link() -> None:
    for message in (AssistOffline("leaf", 3), AssistOffline("leaf"), Offline("leaf", 3)):
        hub = above_plain()
        hub.receive(1, AssistRegister("leaf"))
        done = hub.receive(1, message)
        assert not hub.is_online(3)
        assert [send.frame.body.reason for send in sent(done, 1) if isinstance(send.frame.body, Answer)] == [Reason.OK]
    hub.receive(1, AssistRegister("leaf"))
    hub.down(1)
    assert not hub.is_online(3)


# Those it admits by itself


def test_who_speaks_through_a_plain_child_is_reached_there() -> None:
    hub = above_plain()
    assert sent(hub.receive(1, b"x", source=30, target=2))[0].link == 3
    assert hub.state.learnt[30] == Learnt(1, 0)
    done = hub.receive(3, b"y", target=30)
    assert [send.link for send in sent(done)] == [1] and "FRAME-26" in done.rules
    assert 30 not in hub.state.directory
    assert hub.receive(1, b"x", source=30, target=2) and hub.unchanged
    hub.down(1)
    assert not hub.state.learnt


def test_one_that_was_last_seen_there_is_learnt_again() -> None:
    hub = above_plain()
    hub.receive(1, AssistRegister("leaf"))
    hub.receive(1, AssistOffline("leaf", 3))
    hub.receive(1, b"x", source=3, target=2)
    assert [send.link for send in sent(hub.receive(3, b"y", target=3))] == [1]


def test_the_last_frame_wins() -> None:
    hub = above_plain()
    hub.receive(1, b"x", source=30, target=2)
    hub.receive(2, b"x", source=30, target=2)
    assert hub.state.learnt[30].link == 2 and [send.link for send in sent(hub.receive(3, b"y", target=30))] == [2]


def test_the_directory_goes_before() -> None:
    hub = above_plain()
    hub.receive(1, AssistRegister("leaf"))
    assert dropped("FRAME-2", 2, hub.receive(2, b"x", source=3, target=2))
    hub.receive(2, b"x", source=30, target=2)
    hub.receive(1, AssistAuthenticate("leaf", key("leaf")))
    hub.receive(2, b"x", source=2, target=2)
    assert hub.session(3).node_id == 2 and set(hub.state.learnt) == {30}


def test_a_route_ends_what_was_learnt() -> None:
    hub = above_plain()
    hub.receive(2, b"x", source=4, target=2)
    hub.receive(2, b"x", source=3, target=2)
    hub.receive(1, AssistRegister("leaf"))
    assert set(hub.state.learnt) == {4}


def test_some_are_never_learnt() -> None:
    hub = plain_children(mid(plain_hubs=(12,), node_roles={13: "admin"}, extension=False))
    for source in (5, 1, HUB_B, 12, 13, ADMIN):
        assert dropped("FRAME-2", 1, hub.receive(1, b"x", source=source, target=99)) and hub.unchanged
    hub.admitted_from_above(3, "d", 30)
    hub.receive(3, GetPerms(31))
    grant = hub.policy.resolve(13)
    hub.answered(PARENT, Answer(Action.GET_PERMS, Reason.OK, node_id=31, grant=grant))
    assert dropped("FRAME-2", 1, hub.receive(1, b"x", source=31, target=99))


def test_only_plain_children_are_learnt_from() -> None:
    hub = mid()
    hub.provisioned(1, "hub-a")
    hub.admitted_from_above(3, "d", 30)
    for link in (1, 3):
        assert dropped("FRAME-2", link, hub.receive(link, b"x", source=40, target=30))
    hub.receive(PARENT, b"x", source=40, target=30)
    assert not hub.state.learnt


def test_requests_count_as_words_too_but_no_revoke_does() -> None:
    hub = above_plain()
    hub.receive(1, GetPerms(2), source=30)
    assert 30 in hub.state.learnt
    hub.receive(1, Revoke("x"), source=31)
    assert 31 not in hub.state.learnt


def test_learning_is_bounded() -> None:
    hub = above_plain(learnt_limit=2)
    for source in (30, 40, 20 + 1, 30):
        hub.receive(1, b"x", source=source, target=2)
    assert {node: known.turn for node, known in hub.state.learnt.items()} == {21: 2, 30: 3}


def test_where_there_are_no_credentials_every_hub_is_plain() -> None:
    hub = plain_children(root(dialect=Dialect.FLAT))
    hub.receive(1, AssistRegister("leaf"))
    assert hub.state.directory[2] == Route("leaf", HUB_A, online=True)
    hub.receive(2, b"x", source=30, target=2)
    assert hub.state.learnt[30].link == 2
