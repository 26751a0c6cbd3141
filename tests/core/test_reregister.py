"""Registering a device that is known, and devices that may not be registered over."""

from hubauth.core.messages import (
    Action,
    Answer,
    AssistRegister,
    Grant,
    HubFence,
    Reason,
    Register,
    Revoke,
)
from hubauth.core.model import Registration, Session
from hubauth.core.policy import Dialect, Reregister
from hubauth.lab.hub import (
    HUB_A,
    LISTED,
    NODE,
    issued,
    mid,
    numbered,
    question,
    reply,
    root,
    sent,
    with_hubs,
)


def registered_answer(device_id: str, node_id: int, credential: str, grant: Grant = NODE) -> Answer:
    return Answer(Action.REGISTER, Reason.OK, device_id, node_id, credential, grant)


def test_registering_again_gives_the_same_node_a_new_credential_and_revokes_first() -> None:
    hub = with_hubs(root())
    hub.registered(3, "d")
    first = hub.next_id
    revoke = Revoke("d", 2)
    hub.up(4)
    done = hub.receive(4, Register("d"))
    fresh = hub.state.whitelist["d"].credential
    sends = sent(done)
    assert sends == [
        numbered(1, revoke, 1, 1, first),
        question(1, HubFence(), hub, first + 1, target=HUB_A),
        numbered(2, revoke, 1, 1, first + 2),
        question(2, HubFence(), hub, first + 3, target=11),
        reply(4, registered_answer("d", 2, fresh), hub),
    ]
    assert fresh == issued(hub.inputs)
    assert 3 not in hub.state.links and hub.session(4).node_id == 2
    assert hub.state.registry["d"] == Registration(2, revoked=False)
    assert hub.state.next_node_id == 3
    assert {"REG-9", "REG-10", "REV-19", "REV-2", "REV-6", "REV-7"} <= set(done.rules)


def test_registering_again_on_its_own_link_keeps_that_link() -> None:
    hub = root()
    hub.registered(1, "d")
    done = hub.receive(1, Register("d"))
    assert hub.session(1) == Session("d", 2, False)
    assert "REV-6" in done.rules and "REV-7" not in done.rules
    assert hub.is_online(2)


def test_for_another_hub_the_revoke_goes_to_the_asking_path_before_the_answer() -> None:
    hub = with_hubs(root())
    hub.receive(1, AssistRegister("d"))
    first = hub.next_id
    done = hub.receive(1, AssistRegister("d"))
    assert sent(done, 1) == [
        numbered(1, Revoke("d", 2), 1, 1, first),
        question(1, HubFence(), hub, first + 1, target=HUB_A),
        reply(1, Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 2, issued(hub.inputs), NODE), hub, target=HUB_A),
    ]


def test_the_revoke_before_a_new_credential_can_be_switched_off() -> None:
    hub = with_hubs(root(revoke_on_reregister=False))
    hub.registered(3, "d")
    hub.up(4)
    done = hub.receive(4, Register("d"))
    assert sent(done) == [reply(4, registered_answer("d", 2, issued(hub.inputs)), hub)]
    assert "REG-9" in done.rules and "REG-10" not in done.rules


def test_without_presence_messages_registering_again_revokes_nothing() -> None:
    hub = root(dialect=Dialect.FLAT)
    hub.registered(1, "d")
    done = hub.receive(1, Register("d"))
    assert done.outputs == (reply(1, registered_answer("d", 2, ""), hub),)
    assert "REG-10" not in done.rules


def test_after_revoke_means_that_a_known_device_must_have_been_revoked() -> None:
    hub = root(reregister=Reregister.AFTER_REVOKE)
    hub.registered(1, "d")
    done = hub.receive(1, Register("d"))
    assert done.outputs == (reply(1, Answer(Action.REGISTER, Reason.PROTECTED, "d"), hub),)
    assert hub.unchanged
    assert "REG-11" in done.rules and "REG-9" not in done.rules
    hub.provisioned(2, "admin")
    hub.receive(2, Revoke("d"))
    assert hub.state.registry["d"].revoked
    hub.up(3)
    done = hub.receive(3, Register("d"))
    assert hub.session(3) == Session("d", 2, False)
    assert not hub.state.registry["d"].revoked
    assert "REG-9" in done.rules and "REG-11" not in done.rules
    assert sent(hub.receive(3, Register("d")))[0].frame.body == Answer(Action.REGISTER, Reason.PROTECTED, "d")


def test_a_provisioned_device_is_never_registered_over() -> None:
    hub = root(provisioned=LISTED)
    hub.up(1)
    done = hub.receive(1, Register("admin"))
    assert done.outputs == (reply(1, Answer(Action.REGISTER, Reason.PROTECTED, "admin"), hub),)
    assert "REG-12" in done.rules
    assert hub.unchanged
    for hub in (mid(), mid(joined=False)):
        hub.up(1)
        done = hub.receive(1, Register("admin"))
        assert done.outputs == (reply(1, Answer(Action.REGISTER, Reason.PROTECTED, "admin"), hub),)
        assert "REG-12" in done.rules
        assert hub.unchanged
    hub = with_hubs(mid())
    done = hub.receive(1, AssistRegister("admin"))
    assert done.outputs == (reply(1, Answer(Action.ASSIST_REGISTER, Reason.PROTECTED, "admin"), hub, target=HUB_A),)


def test_a_hubs_own_name_is_not_registered_below_it() -> None:
    for hub in (mid(), mid(authority=5)):
        hub.up(1)
        done = hub.receive(1, Register("mid"))
        assert done.outputs == (reply(1, Answer(Action.REGISTER, Reason.PROTECTED, "mid"), hub),)
        assert "REG-12" in done.rules and hub.unchanged
    hub = root(device_id="top")
    assert hub.registered(1, "top") == 2


def test_a_device_with_power_over_others_is_never_registered_over() -> None:
    for perms, is_protected in (
        (("*",), True),
        (("auth.revoke",), True),
        (("p", "auth.anything"), True),
        (("auth", "authority.x", "p.auth."), False),
        ((), False),
    ):
        hub = root()
        hub.registered(1, "d")
        hub.now_with(node_roles={2: "special"}, role_perms={"special": perms})
        done = hub.receive(1, Register("d"))
        assert ("REG-12" in done.rules) is is_protected
        assert (sent(done)[-1].frame.body.reason is Reason.PROTECTED) is is_protected  # type: ignore[union-attr]
        assert hub.unchanged is is_protected
