"""Hubs that never authenticate: who is believed to be one."""

from typing import Any

from hubauth.core.inputs import LinkUp, OperatorRevoke
from hubauth.core.messages import (
    Action,
    Answer,
    AssistOffline,
    AssistRegister,
    GetPerms,
    ListRoles,
    Malformed,
    Offline,
    PermsInvalidate,
    Revoke,
)
from hubauth.core.model import Plain, Session
from hubauth.core.outputs import Close
from hubauth.lab.hub import HUB_A, Hub, dropped, listing, notes, root, sent, with_hubs

PLAIN = 12
HERE, THERE = "10.0.0.5", "10.0.0.6"


def knowing(**changes: Any) -> Hub:
    """A root whose configuration names one plain hub."""
    return root(**{"plain_hubs": (PLAIN,), **changes})


def connected(hub: Hub, link: int, *hubs: int, peer: str = HERE) -> None:
    """A connection from where these hubs are known to come from."""
    hub.happens(LinkUp(link, hubs, peer))


def test_a_link_is_a_plain_hubs_when_its_first_assist_names_it() -> None:
    hub = knowing()
    connected(hub, 1, PLAIN)
    assert hub.state.plain[1] == Plain((PLAIN,), HERE) and hub.is_free(1)
    done = hub.receive(1, AssistRegister("d"), source=PLAIN)
    assert "TRUST-9" in done.rules and hub.session(1) == Session(f"hub:{PLAIN}", PLAIN, is_hub=True)
    hub.down(1)
    assert not hub.state.plain


def test_a_hub_that_has_nobody_to_assist_is_heard_all_the_same() -> None:
    hub = knowing()
    hub.registered(2, "d")
    for message in (Revoke("d"), GetPerms(PLAIN), Offline("x", 9)):
        connected(hub, 1, PLAIN)
        done = hub.receive(1, message, source=PLAIN)
        assert "TRUST-9" in done.rules and hub.session(1).node_id == PLAIN
        hub.down(1)
    assert "d" not in hub.state.whitelist, "its revoke was obeyed"


def test_its_first_word_is_no_echo_of_what_was_kept_for_it() -> None:
    hub = knowing()
    for _ in range(2):
        connected(hub, 1, PLAIN)
        hub.receive(1, AssistRegister("d"), source=PLAIN)
        hub.down(1)
        hub.happens(OperatorRevoke(Revoke("d")))
        hub.registered(2, "d")
        hub.down(2)
        connected(hub, 1, PLAIN)
        done = hub.receive(1, Revoke("d"), source=PLAIN)
        assert sent(done, 1)[0].frame.body == Revoke("d") and "REV-2" in done.rules
        assert "d" not in hub.state.whitelist
        assert dropped("REV-24", 1, hub.receive(1, Revoke("d"), source=PLAIN))
        hub.down(1)


def test_what_was_kept_for_it_goes_out_before_its_first_word_is_heeded() -> None:
    hub = knowing()
    connected(hub, 1, PLAIN)
    hub.receive(1, Revoke("x"), source=PLAIN)
    hub.down(1)
    hub.happens(OperatorRevoke(Revoke("d")))
    connected(hub, 2, PLAIN)
    done = hub.receive(2, GetPerms(PLAIN), source=PLAIN)
    assert [type(send.frame.body) for send in sent(done, 2)] == [Revoke, Answer]


def test_it_is_known_by_the_name_that_the_configuration_has_for_it() -> None:
    hub = knowing(**listing(warehouse=PLAIN))
    connected(hub, 1, PLAIN)
    hub.receive(1, AssistOffline("x", 9), source=PLAIN)
    assert hub.session(1).device_id == "warehouse"


def test_nothing_else_makes_it_a_hub() -> None:
    for message, source, hubs in (
        (AssistRegister("d"), 0, (PLAIN,)),
        (AssistRegister("d"), 13, (PLAIN,)),
        (AssistRegister("d"), 1, (PLAIN, 1)),
        (AssistRegister("d"), PLAIN, ()),
        (AssistRegister("d"), 13, (PLAIN, 13)),
        (Malformed(Action.ASSIST_REGISTER, "?"), PLAIN, (PLAIN,)),
        (Revoke("d"), 0, (PLAIN,)),
        (Revoke("d"), 13, (PLAIN,)),
        (Revoke("d"), PLAIN, ()),
        (ListRoles(), PLAIN, (PLAIN,)),
        (PermsInvalidate(), PLAIN, (PLAIN,)),
    ):
        hub = knowing()
        connected(hub, 1, *hubs)
        assert "FRAME-23" in hub.receive(1, message, source=source).rules and hub.unchanged


def test_a_live_link_is_displaced_from_the_same_place_only() -> None:
    hub = knowing()
    connected(hub, 1, PLAIN)
    hub.receive(1, AssistRegister("d"), source=PLAIN)
    connected(hub, 2, PLAIN, peer=THERE)
    assert "FRAME-23" in hub.receive(2, AssistRegister("e"), source=PLAIN).rules and hub.unchanged
    connected(hub, 3, PLAIN)
    done = hub.receive(3, AssistRegister("e"), source=PLAIN)
    assert Close(1) in done.outputs and hub.session(3).node_id == PLAIN
    hub.down(3)
    assert "TRUST-9" in hub.receive(2, AssistRegister("f"), source=PLAIN).rules


def test_a_link_that_nothing_is_known_of_is_never_displaced() -> None:
    hub = with_hubs(knowing(plain_hubs=(HUB_A,)))
    for link, peer in ((3, HERE), (4, "")):
        connected(hub, link, HUB_A, peer=peer)
        assert "FRAME-23" in hub.receive(link, AssistRegister("e"), source=HUB_A).rules and hub.unchanged
    hub.down(1)
    assert "TRUST-9" in hub.receive(4, AssistRegister("e"), source=HUB_A).rules
    connected(hub, 5, HUB_A, peer="")
    assert "FRAME-23" in hub.receive(5, AssistRegister("e"), source=HUB_A).rules


def test_nor_is_a_node_that_is_online_below_another_hub() -> None:
    hub = with_hubs(knowing(**listing(warehouse=PLAIN)))
    hub.found_below("warehouse", PLAIN, 1)
    connected(hub, 3, PLAIN)
    assert "FRAME-23" in hub.receive(3, AssistRegister("d"), source=PLAIN).rules and hub.unchanged


def test_its_node_is_given_to_nobody_else() -> None:
    hub = knowing(plain_hubs=(2, 3))
    assert hub.registered(1, "d") == 4
    taken = root()
    assert taken.registered(1, "d") == 2
    assert [note.rule for note in notes(taken.now_with(plain_hubs=(2,)))] == ["LINK-8"]
    taken.now_with(plain_hubs=(3,))
    assert taken.policy.plain_hubs == (3,)


def test_a_device_that_has_its_node_by_configuration_is_that_hub_by_another_name() -> None:
    hub = root(**listing(warehouse=PLAIN))
    hub.now_with(plain_hubs=(PLAIN,))
    assert hub.policy.plain_hubs == (PLAIN,)


def test_its_link_goes_with_its_name_in_the_configuration() -> None:
    hub = knowing()
    connected(hub, 1, PLAIN)
    hub.receive(1, AssistRegister("d"), source=PLAIN)
    hub.now_with(default_role="other")
    assert hub.session(1).is_hub
    done = hub.now_with(plain_hubs=())
    assert Close(1) in done.outputs and "TRUST-9" in done.rules and 1 not in hub.state.links


def test_a_link_with_a_session_is_not_bound_again() -> None:
    hub = knowing()
    connected(hub, 1, PLAIN)
    hub.receive(1, AssistRegister("d"), source=PLAIN)
    assert dropped("FRAME-22", 1, hub.receive(1, AssistRegister("d"), source=HUB_A))
