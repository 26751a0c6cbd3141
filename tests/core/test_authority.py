"""Which hub hands out node ids, and the way there."""

from hubauth.core.authority import Authority, choose_authority
from hubauth.core.inputs import PARENT
from hubauth.core.messages import Action, Answer, AssistRegister, Reason, Register
from hubauth.core.model import is_authority
from hubauth.core.policy import Policy
from hubauth.lab.hub import HUB_A, Hub, key, mid, question, reply, root, sent, with_hubs

UNREACHABLE = Answer(Action.REGISTER, Reason.UNREACHABLE, "d")


def test_a_configured_node_goes_before_the_parent_and_the_parent_before_this_hub() -> None:
    assert choose_authority(5, 5, True) is Authority.SELF
    assert choose_authority(5, 5, False) is Authority.SELF
    assert choose_authority(5, 6, True) is Authority.NODE
    assert choose_authority(5, 6, False) is Authority.NODE
    assert choose_authority(0, 6, True) is Authority.PARENT
    assert choose_authority(0, 6, False) is Authority.SELF


def test_both_forms_of_the_question_agree() -> None:
    for configured in (0, 5):
        for own in (5, 6):
            for has_parent in (True, False):
                policy = Policy(node_id=own, has_parent=has_parent, authority=configured)
                here = choose_authority(configured, own, has_parent) is Authority.SELF
                assert is_authority(policy, own) is here


def test_a_configured_authority_below_the_root_allocates_itself() -> None:
    hub = mid(authority=5)
    assert hub.registered(1, "d") == 2
    done = hub.receive(1, Register("d"))
    assert "AUTHY-1" in done.rules and "AUTHY-3" not in done.rules


def test_the_way_to_a_configured_authority_is_the_directory() -> None:
    hub = with_hubs(root(authority=30))
    hub.found_below("boss", 30, 1)
    hub.up(3)
    asked = hub.next_id
    done = hub.receive(3, Register("d"))
    assert sent(done) == [question(1, AssistRegister("d"), hub, asked, target=HUB_A)]
    assert "AUTHY-1" in done.rules and "AUTHY-2" not in done.rules


def test_the_authority_may_be_the_child_hub_itself() -> None:
    hub = with_hubs(root(authority=HUB_A))
    hub.up(3)
    assert sent(hub.receive(3, Register("d")))[0].link == 1


def test_an_authority_that_the_directory_does_not_know_is_upwards() -> None:
    hub = mid(authority=77)
    hub.up(1)
    asked = hub.next_id
    done = hub.receive(1, Register("d"))
    assert sent(done) == [question(PARENT, AssistRegister("d"), hub, asked, target=1)]
    assert "AUTHY-1" in done.rules


def test_an_authority_that_is_offline_in_the_directory_is_upwards_too() -> None:
    hub = with_hubs(mid(authority=30))
    hub.found_below("boss", 30, 1)
    hub.down(1)
    hub.up(3)
    assert sent(hub.receive(3, Register("d")))[0].link == PARENT


def test_an_authority_that_cannot_be_reached_is_never_replaced_by_this_hub() -> None:
    for hub in (root(authority=30), mid(joined=False), mid(joined=False, authority=77)):
        hub.up(1)
        done = hub.receive(1, Register("d"))
        assert done.outputs == (reply(1, UNREACHABLE, hub),)
        assert "AUTHY-5" in done.rules and "AUTHY-6" not in done.rules
        assert hub.unchanged


def test_a_parent_that_went_away_cannot_be_reached() -> None:
    hub = mid()
    hub.down(PARENT)
    hub.up(1)
    done = hub.receive(1, Register("d"))
    assert done.outputs == (reply(1, UNREACHABLE, hub),)
    assert {"AUTHY-2", "AUTHY-5"} <= set(done.rules)


def test_a_hub_that_is_asked_allocates_only_if_it_is_the_authority() -> None:
    hub = with_hubs(mid())
    done = hub.receive(1, AssistRegister("d"))
    assert [send.link for send in sent(done)] == [PARENT]
    assert not hub.state.registry
    assert "AUTHY-4" in done.rules


def test_a_way_that_leads_back_is_no_way() -> None:
    hub = with_hubs(root(authority=30))
    hub.found_below("boss", 30, 1)
    done = hub.receive(1, AssistRegister("d"))
    assert done.outputs == (reply(1, Answer(Action.ASSIST_REGISTER, Reason.UNREACHABLE, "d"), hub, target=HUB_A),)
    assert "AUTHY-6" in done.rules and "AUTHY-5" not in done.rules
    assert hub.unchanged
    done = hub.receive(2, AssistRegister("d"))
    assert [send.link for send in sent(done)] == [1]
    assert "AUTHY-6" not in done.rules


def test_a_parent_that_asks_its_child_is_not_asked_in_return() -> None:
    hub = mid()
    done = hub.receive(PARENT, AssistRegister("d"), source=1)
    assert done.outputs == (reply(PARENT, Answer(Action.ASSIST_REGISTER, Reason.UNREACHABLE, "d"), hub, target=1),)
    assert "AUTHY-6" in done.rules


def test_a_hub_that_registers_into_being_the_authority_begins_to_list_nodes() -> None:
    hub = Hub(Policy(device_id="mid", has_parent=True, authority=9))
    hub.up(PARENT)
    hub.answered(PARENT, Answer(Action.REGISTER, Reason.OK, "mid", 9, key("mid")))
    assert list(hub.state.index.roster) == [9]
    assert hub.registered(1, "d") == 2
