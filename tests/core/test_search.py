"""assist_auth (assist_login) and assist_query_credential: hubs that are searched, and hubs in between."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import (
    Action,
    Answer,
    AssistAuthenticate,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    HubOnline,
    Reason,
    Register,
)
from hubauth.core.model import Pending, Purpose, Route
from hubauth.core.outputs import Close, StartTimer
from hubauth.core.policy import Assist, Dialect
from hubauth.lab.hub import (
    HUB_A,
    HUB_B,
    NODE,
    Hub,
    dropped,
    issued,
    key,
    listing,
    mid,
    question,
    reply,
    root,
    sent,
    with_hubs,
)

WRONG = "w" * 43
SEARCH = AssistAuthenticate("d", key("d"))
QUERY = AssistQueryCredential("d")


def found(node_id: int, credential: str) -> Answer:
    return Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", node_id, credential, NODE)


def refused(reason: Reason, action: Action = Action.ASSIST_AUTHENTICATE) -> Answer:
    return Answer(action, reason, "d")


def knowing() -> Hub:
    """A root with two hubs and device d, which registered here."""
    hub = with_hubs(root())
    hub.registered(3, "d")
    return hub


def test_a_searched_hub_with_an_entry_answers_and_only_reads() -> None:
    hub = knowing()
    credential = hub.state.whitelist["d"].credential
    done = hub.receive(1, AssistAuthenticate("d", credential), trace_id=5)
    assert done.outputs == (reply(1, found(2, credential), hub, target=HUB_A, trace_id=5),)
    assert hub.unchanged
    assert "AUTH-7" in done.rules


def test_a_searched_hub_refuses_another_credential() -> None:
    hub = knowing()
    done = hub.receive(1, AssistAuthenticate("d", WRONG))
    assert done.outputs == (reply(1, refused(Reason.NOT_ADMITTED), hub, target=HUB_A),)
    assert hub.unchanged
    assert "AUTH-7" in done.rules


def test_the_parent_may_search_here_too() -> None:
    hub = mid()
    hub.admitted_from_above(1, "d", 30)
    done = hub.receive(PARENT, SEARCH, source=1)
    answer = Answer(Action.ASSIST_AUTHENTICATE, Reason.OK, "d", 30, key("d"))
    assert done.outputs == (reply(PARENT, answer, hub, target=1),)
    assert hub.unchanged


def test_without_an_entry_the_search_follows_the_directory() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 2)
    for link in (1, PARENT):
        asked = hub.next_id
        done = hub.receive(link, SEARCH, msg_id=9, trace_id=5)
        assert done.outputs == (
            question(2, SEARCH, hub, asked, target=HUB_B, trace_id=5),
            StartTimer(asked, 5.0),
        )
        assert hub.state.pending[asked] == Pending(
            Purpose.RELAY,
            Action.ASSIST_AUTHENTICATE,
            2,
            link,
            9,
            5,
            device_id="d",
            credential=key("d") if link == 1 else "",
            climbs=link == 1,
        )
        assert "AUTH-20" in done.rules and ("AUTH-22" in done.rules) == (link == 1)


def test_a_directory_that_leads_back_does_not_help() -> None:
    hub = with_hubs(mid())
    hub.found_below("d", 30, 1)
    asked = hub.next_id
    done = hub.receive(1, SEARCH)
    assert sent(done) == [question(PARENT, SEARCH, hub, asked, target=1)]
    assert "AUTH-9" in done.rules and "AUTH-20" not in done.rules
    hub = with_hubs(root(**listing(d=30)))
    hub.found_below("d", 30, 1)
    done = hub.receive(1, SEARCH)
    assert done.outputs == (reply(1, refused(Reason.NOT_ADMITTED), hub, target=HUB_A),)
    assert "AUTH-9" in done.rules


def test_a_search_from_the_parent_never_goes_back_up() -> None:
    hub = mid()
    done = hub.receive(PARENT, SEARCH, source=1)
    assert done.outputs == (reply(PARENT, refused(Reason.NOT_ADMITTED), hub, target=1),)
    assert "AUTH-9" in done.rules
    assert hub.unchanged


def test_a_search_whose_parent_is_away_is_unreachable() -> None:
    hub = with_hubs(mid(joined=False))
    done = hub.receive(1, SEARCH)
    assert done.outputs == (reply(1, refused(Reason.UNREACHABLE), hub, target=HUB_A),)
    assert "AUTH-10" in done.rules


def test_an_answer_travels_back_and_changes_nothing_on_the_way() -> None:
    hub = with_hubs(mid())
    before = hub.state
    hub.receive(1, SEARCH, msg_id=9, trace_id=5)
    done = hub.answered(PARENT, found(30, key("d")))
    assert sent(done) == [reply(1, found(30, key("d")), hub, msg_id=9, target=HUB_A, trace_id=5)]
    assert (hub.state.whitelist, hub.state.directory, hub.state.pending) == (
        before.whitelist,
        before.directory,
        before.pending,
    )
    assert "AUTH-11" in done.rules and "AUTH-33" not in done.rules


def test_a_refusal_travels_back_as_it_came() -> None:
    hub = with_hubs(mid())
    for reason in (Reason.NOT_ADMITTED, Reason.FORBIDDEN, Reason.INTERNAL):
        hub.receive(1, SEARCH, msg_id=9)
        done = hub.answered(PARENT, Answer(Action.ASSIST_AUTHENTICATE, reason))
        assert sent(done) == [reply(1, refused(reason), hub, msg_id=9, target=HUB_A)]


def test_two_searches_for_one_device_are_told_apart_by_number() -> None:
    hub = with_hubs(mid())
    hub.receive(1, SEARCH, msg_id=21)
    first = hub.last_question(PARENT)
    hub.receive(2, SEARCH, msg_id=22)
    second = hub.last_question(PARENT)
    done = hub.answered(PARENT, refused(Reason.NOT_ADMITTED), msg_id=second)
    assert [(send.link, send.frame.msg_id) for send in sent(done)] == [(2, 22)]
    done = hub.answered(PARENT, refused(Reason.NOT_ADMITTED), msg_id=first)
    assert [(send.link, send.frame.msg_id) for send in sent(done)] == [(1, 21)]


def test_a_query_is_served_only_where_the_policy_is_query() -> None:
    for assist in (Assist.AUTH, Assist.NONE):
        hub = with_hubs(root(assist=assist))
        hub.registered(3, "d")
        done = hub.receive(1, QUERY)
        forbidden = refused(Reason.FORBIDDEN, Action.ASSIST_QUERY_CREDENTIAL)
        assert done.outputs == (reply(1, forbidden, hub, target=HUB_A),)
        assert "AUTH-13" in done.rules
        assert hub.unchanged
    hub = with_hubs(root(assist=Assist.QUERY))
    hub.registered(3, "d")
    credential = hub.state.whitelist["d"].credential
    done = hub.receive(1, QUERY)
    answer = Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.OK, "d", 2, credential)
    assert done.outputs == (reply(1, answer, hub, target=HUB_A),)
    assert {"AUTH-13", "AUTH-7"} <= set(done.rules)
    assert hub.unchanged


def test_a_query_is_passed_on_and_back_without_being_kept() -> None:
    hub = with_hubs(mid(assist=Assist.QUERY))
    asked = hub.next_id
    query = AssistQueryCredential("d", 30)
    done = hub.receive(1, query, msg_id=9)
    assert sent(done) == [question(PARENT, query, hub, asked, target=1)]
    done = hub.answered(PARENT, Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.OK, "d", 30, key("d")))
    answer = Answer(Action.ASSIST_QUERY_CREDENTIAL, Reason.OK, "d", 30, key("d"))
    assert sent(done) == [reply(1, answer, hub, msg_id=9, target=HUB_A)]
    assert "d" not in hub.state.whitelist
    hub = with_hubs(root(assist=Assist.QUERY))
    done = hub.receive(1, QUERY)
    nobody = refused(Reason.NOT_ADMITTED, Action.ASSIST_QUERY_CREDENTIAL)
    assert done.outputs == (reply(1, nobody, hub, target=HUB_A),)


# Without presence messages


def flat_root() -> Hub:
    return with_hubs(root(dialect=Dialect.FLAT))


def test_without_presence_a_success_shows_the_answering_hub_where_the_device_is() -> None:
    hub = flat_root()
    done = hub.receive(1, AssistRegister("d"))
    assert hub.state.directory[2] == Route("d", HUB_A, True)
    assert "AUTH-33" in done.rules
    done = hub.receive(2, AssistAuthenticate("d"))
    assert sent(done) == [reply(2, found(2, ""), hub, target=HUB_B)]
    assert hub.state.directory[2] == Route("d", HUB_B, True)
    assert {"AUTH-15", "AUTH-33"} <= set(done.rules) and "AUTH-7" not in done.rules


def test_without_presence_a_relayed_success_shows_it_too() -> None:
    hub = with_hubs(mid(dialect=Dialect.FLAT))
    hub.receive(1, AssistAuthenticate("d"))
    done = hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    assert hub.state.directory[30] == Route("d", HUB_A, True)
    assert "AUTH-33" in done.rules and "AUTH-11" not in done.rules
    hub.receive(2, AssistAuthenticate("e"))
    done = hub.answered(PARENT, Answer(None, Reason.NOT_ADMITTED))
    assert "AUTH-33" not in done.rules and 0 not in hub.state.directory


def test_without_presence_a_success_towards_the_parent_shows_nothing() -> None:
    hub = mid(dialect=Dialect.FLAT)
    hub.up(1)
    hub.receive(1, Register("d"))
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30))
    done = hub.receive(PARENT, AssistAuthenticate("d"), source=1)
    assert hub.state.directory[30] == Route("d", 30, True)
    assert "AUTH-33" not in done.rules


def test_without_presence_a_device_that_moved_below_loses_its_session_here() -> None:
    hub = flat_root()
    hub.registered(3, "d")
    done = hub.receive(1, AssistAuthenticate("d"))
    assert Close(3) in done.outputs and 3 not in hub.state.links
    assert hub.state.directory[2] == Route("d", HUB_A, True)
    assert {"AUTH-33", "BIND-3"} <= set(done.rules)


def test_without_presence_an_answer_with_this_hubs_own_node_or_none_makes_no_route() -> None:
    hub = with_hubs(mid(dialect=Dialect.FLAT))
    for node_id in (0, 5, HUB_B):
        before = hub.state.directory
        hub.receive(1, AssistAuthenticate("d"))
        done = hub.answered(PARENT, Answer(None, Reason.OK, "d", node_id))
        assert hub.state.directory == before and "AUTH-33" not in done.rules


def test_without_presence_a_hub_that_asks_for_itself_keeps_its_link_or_its_route_goes_with_it() -> None:
    hub = flat_root()
    hub.receive(1, AssistAuthenticate("hub-a"))
    hub.receive(2, b"hello", target=HUB_A)


def test_without_presence_an_answer_for_a_hub_that_has_left_its_link_makes_no_route() -> None:
    hub = with_hubs(mid(dialect=Dialect.FLAT))
    hub.receive(1, AssistAuthenticate("d"))
    search = hub.last_question(PARENT)
    hub.receive(1, Register("e"))
    hub.answered(PARENT, Answer(None, Reason.OK, "e", 31))
    assert not hub.session(1).is_hub
    hub.answered(PARENT, Answer(None, Reason.OK, "d", 30), msg_id=search)
    hub.down(1)
    done = hub.receive(2, b"hello", target=30)
    assert [send.link for send in sent(done)] == [PARENT]


def test_an_empty_credential_is_a_search_only_where_there_are_no_credentials() -> None:
    hub = with_hubs(root())
    done = hub.receive(1, HubOnline("d", 0))
    assert dropped("BIND-10", 1, done)
    hub = flat_root()
    done = hub.receive(1, AssistAuthenticate("d", ""))
    assert done.outputs == (reply(1, refused(Reason.NOT_ADMITTED), hub, target=HUB_A),)


def test_a_device_found_nowhere_is_not_admitted_by_a_search_of_its_own_hub() -> None:
    hub = knowing()
    hub.up(4)
    done = hub.receive(4, Authenticate("x", issued(1)))
    assert sent(done) == [reply(4, Answer(Action.AUTHENTICATE, Reason.NOT_ADMITTED, "x"), hub)]


def test_a_query_names_the_node_where_the_directory_knows_it() -> None:
    hub = with_hubs(mid(assist=Assist.QUERY))
    hub.found_below("d", 30, 1)
    hub.up(3)
    done = hub.receive(3, Authenticate("d", key("d")))
    assert [send.frame.body for send in sent(done, 1)] == [AssistQueryCredential("d", 30)]
    done = hub.receive(3, Authenticate("e", key("e")))
    assert [send.frame.body for send in sent(done, PARENT)] == [AssistQueryCredential("e")]
