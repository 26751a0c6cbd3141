"""Words and numbers that are written down somewhere (states, traces, the wire) and so must never change."""

from hubauth.core.inputs import PARENT
from hubauth.core.messages import CODES, MAX_DEVICE_ID_BYTES, MAX_NODE_ID, NO_GRANT, SUB_PROTO, Action, Major, Reason
from hubauth.core.model import PARENT_NEIGHBOUR, Neighbour, Pending, Purpose, State
from hubauth.core.outputs import NoteKind
from hubauth.core.policy import ROOT_NODE_ID, Assist, Dialect, Policy, Reregister, Trust


def test_actions_are_the_words_of_the_newest_document() -> None:
    assert [action.value for action in Action] == [
        "register",
        "auth",
        "revoke",
        "offline",
        "get_perms",
        "list_roles",
        "perms_invalidate",
        "assist_register",
        "assist_auth",
        "assist_query_credential",
        "assist_offline",
        "hub_online",
        "hub_dismiss",
        "hub_fence",
    ]


def test_majors_are_two_bits() -> None:
    assert [(major.name, major.value) for major in Major] == [("OK_RESP", 0), ("ERR_RESP", 1), ("MSG", 2), ("CMD", 3)]


def test_reasons_and_their_codes() -> None:
    assert {reason.value: CODES[reason] for reason in Reason} == {
        "ok": 1,
        "invalid_request": 400,
        "forbidden": 403,
        "not_admitted": 4001,
        "protected": 4001,
        "unreachable": 4002,
        "not_whitelisted": 4401,
        "credential_mismatch": 4402,
        "unknown_node": 4404,
        "internal": 4500,
        "exhausted": 4500,
        "busy": 4500,
        "offline_internal": 4700,
        "not_indexed": 4701,
    }


def test_purposes_and_kinds_of_notes() -> None:
    assert [purpose.value for purpose in Purpose] == [
        "register",
        "authenticate",
        "query",
        "relay",
        "perms",
        "held",
        "admit",
        "self_register",
        "self_authenticate",
        "dismiss",
        "revoke",
        "confirm",
        "fence",
        "sent",
        "unheard",
        "pace",
    ]
    assert [kind.value for kind in NoteKind] == [
        "dropped",
        "delivered",
        "refused_by_parent",
        "policy_refused",
        "command_refused",
        "unconfirmed",
    ]


def test_the_choices_of_an_operator() -> None:
    choices = (Dialect, Assist, Reregister, Trust)
    assert [[choice.value for choice in kind] for kind in choices] == [
        ["auth", "login", "flat"],
        ["auth", "query", "none"],
        ["open", "after_revoke"],
        ["links", "open"],
    ]
    assert Policy().device_id == "hub"


def test_numbers_that_mean_something() -> None:
    assert (SUB_PROTO, MAX_NODE_ID, MAX_DEVICE_ID_BYTES, ROOT_NODE_ID) == (2, 4_294_967_295, 128, 1)
    assert (PARENT, PARENT_NEIGHBOUR) == (0, 0)


def test_what_is_not_said_is_empty() -> None:
    pending = Pending(Purpose.RELAY, Action.REGISTER, 1)
    assert (pending.asker, pending.msg_id, pending.trace_id, pending.device_id) == (None, 0, 0, "")
    assert (pending.node_id, pending.credential, pending.held, pending.number) == (0, "", None, 0)
    assert (pending.epoch, pending.stale) == (0, False)
    assert Neighbour() == Neighbour(sent=0, handled=0, written=0, batch=0)
    state = State()
    assert (state.node_id, state.credential, state.next_node_id, state.next_msg_id) == (0, "", 0, 1)
    assert (state.parent_present, state.parent_node, state.perms_epoch) == (False, 0, 0)
    assert (state.announcing, state.announce_timer) == (None, 0)
    assert (NO_GRANT.role, NO_GRANT.perms) == ("", ())
