"""SourceID 0 from a hub: the hub itself where it assists, and else a stranger whose words it passed on."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistOffline,
    AssistRegister,
    GetPerms,
    ListRoles,
    Major,
    Malformed,
    Offline,
    PermsInvalidate,
    Reason,
    Register,
    Request,
    Revoke,
)
from hubauth.lab.hub import NODE, dropped, key, mid, root, sent, with_hubs

FROM_STRANGERS: tuple[Request | Malformed, ...] = (
    Revoke("d"),
    GetPerms(9),
    ListRoles(),
    PermsInvalidate(),
    Malformed(Action.REVOKE, "no device_id"),
)


def test_a_hub_that_assists_need_not_name_itself() -> None:
    for message in (AssistRegister("x"), AssistAuthenticate("x", key("x")), AssistOffline("x", 9)):
        named, unnamed = with_hubs(root()), with_hubs(root())
        done = unnamed.receive(1, message, source=0)
        assert done.outputs == named.receive(1, message).outputs and "FRAME-27" in done.rules
        assert unnamed.state == named.state


def test_what_a_hub_passes_on_from_a_stranger_is_dropped() -> None:
    hub = with_hubs(root())
    hub.registered(3, "d")
    for message in (*FROM_STRANGERS, Offline("hub-a")):
        assert dropped("FRAME-27", 1, hub.receive(1, message, source=0))
        assert hub.unchanged


def test_what_the_parent_passes_on_from_a_stranger_is_dropped() -> None:
    hub = mid()
    hub.admitted_from_above(3, "d", 30)
    for message in FROM_STRANGERS:
        assert dropped("FRAME-27", PARENT, hub.receive(PARENT, message, source=0))
        assert hub.unchanged
    done = hub.receive(PARENT, AssistAuthenticate("d", key("d")), source=0)
    assert [send.frame.body.reason for send in sent(done) if isinstance(send.frame.body, Answer)] == [Reason.OK]


def test_an_answer_without_a_source_is_the_hubs_own_where_it_assists() -> None:
    hub = mid()
    hub.up(3)
    hub.receive(3, Register("d"))
    done = hub.answered(PARENT, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 30, key("d"), NODE), source=0)
    assert hub.session(3).node_id == 30 and "FRAME-27" not in done.rules
    below = with_hubs(root())
    answer = Answer(Action.ASSIST_OFFLINE, Reason.OK, "d", 30)
    assert "FRAME-27" in below.receive(1, answer, source=0, major=Major.OK_RESP).rules
    for action in (Action.REVOKE, Action.GET_PERMS):
        assert dropped("FRAME-27", 1, below.receive(1, Answer(action, Reason.OK, "d", 30), source=0))
