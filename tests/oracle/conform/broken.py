"""Hubs that are wrong on purpose: the reference with one decision changed, and the rule that must find it out."""

from attrs import evolve

from hubauth.core.messages import (
    Answer,
    AssistOffline,
    AssistRegister,
    Authenticate,
    GetPerms,
    ListRoles,
    Major,
    Offline,
    PermsInvalidate,
    Register,
    Revoke,
)
from tests.oracle.conform import escaped, wrong
from tests.oracle.conform.breaking import Broken, answering, instead, rewriting

BROKEN: dict[str, Broken] = {
    "admits without asking": Broken("AUTH-27", instead(Authenticate, wrong.admits_without_asking), role="middle"),
    "caches upstream": Broken("REG-7", instead(AssistRegister, wrong.caches_upstream)),
    "same credential on re-register": Broken("REG-9", wrong.same_credential, also=frozenset({"REG-4"})),
    "forgets MsgID": Broken("FRAME-12", answering(lambda frame, _: evolve(frame, msg_id=0))),
    "answers revoke when not found": Broken("REV-9", instead(Revoke, wrong.answers_when_not_found)),
    "allocates when asked": Broken("AUTHY-4", instead(AssistRegister, wrong.allocates), role="middle"),
    "broadcasts revoke to devices": Broken("REV-2", rewriting(wrong.revokes_to_devices)),
    "leaks role in a refusal": Broken("MSG-13", spoil=wrong.mentions_role),
    "wrong code": Broken("AUTH-2", answering(wrong.wrong_code)),
    "wrong action in the answer": Broken("MSG-1", spoil=wrong.other_word),
    "leaves node_id out": Broken("MSG-10", spoil=wrong.without_node),
    "answers before it revokes": Broken("REG-10", wrong.out_of_order),
    "lets strangers ask for permissions": Broken("FRAME-23", instead(GetPerms, wrong.serves_strangers)),
    "lets strangers list roles": Broken("FRAME-23", instead(ListRoles, wrong.serves_strangers)),
    "accepts any credential": Broken(
        "AUTH-2", instead(Authenticate, wrong.accepts_any_credential), promises=frozenset({"AdmittedByCredential"})
    ),
    "keeps session after revoke": Broken(
        "REV-6", instead(Revoke, wrong.keeps_the_session), profile={"close_on_revoke": False}
    ),
    "ignores perms_invalidate": Broken("PERM-12", instead(PermsInvalidate, wrong.ignores), role="child"),
    "answers offline though it says not": Broken(
        "OFF-2", profile={"answer_offline": False}, hub={"answer_offline": True}
    ),
    "drops SourceID 0 of who is admitted": Broken("FRAME-21", wrong.drops_zero),
    "forbids offline to who is not there": Broken("OFF-10", answering(wrong.forbids_offline)),
    "forbids offline to hubs": Broken("OFF-12", instead(Offline, wrong.hubs_say_it_for_themselves)),
    "gives a reason of its own": Broken("OFF-13", rewriting(wrong.has_its_own_reason), role="child"),
    "addresses invalidations": Broken("PERM-18", rewriting(wrong.addresses_invalidations)),
    "lists its cache alone": Broken("PERM-19", instead(ListRoles, wrong.lists_the_cache), role="child"),
    "wrong Major": Broken("FRAME-13", answering(lambda frame, _: evolve(frame, major=Major.OK_RESP))),
    "wrong TargetID": Broken("FRAME-14", answering(lambda frame, _: evolve(frame, target=77))),
    "sends frames back": Broken("FRAME-7", rewriting(wrong.back_to_the_sender)),
    "broadcasts to strangers": Broken("FRAME-6", rewriting(wrong.to_everybody)),
    "counts no hops": Broken("FRAME-8", rewriting(wrong.without_counting)),
    "forgets homes": Broken("REG-15", wrong.without_homes),
    "takes what it could not ask for a no": Broken("AUTH-10", answering(wrong.surely_not), role="middle"),
    "searches one child hub only": Broken("AUTH-21", wrong.one_leg, role="middle"),
    "asks for no confirmation": Broken("REG-16", rewriting(wrong.asks_nobody), profile={"reregister": "after_revoke"}),
    "takes an announcement for a confirmation": Broken(
        "REG-17", wrong.believes_announcements, profile={"reregister": "after_revoke"}
    ),
    "owes no batches": Broken("REV-21", limits={"revoke_batch": 9}),
    "lets successes overtake": Broken("REV-22", wrong.successes_first),
    "erases newer routes": Broken("OFF-7", escaped.erases_newer_routes),
    "takes any answer for an acknowledgement": Broken(
        "EXT-12", instead(Answer, escaped.takes_any_answer_for_an_acknowledgement)
    ),
    "looks at no credential where a node is named": Broken("REV-8", instead(Revoke, escaped.trusts_node_ids)),
    "ends what was there": Broken("BIND-3", escaped.ends_what_was_there, profile={"close_superseded": False}),
    "answers one in fifty late": Broken("FRAME-12", escaped.late_by_one()),
    "short credentials": Broken("REG-4", spoil=wrong.short),
    "decreasing node ids": Broken("REG-2", wrong.skips_a_node),
    "believes late reports": Broken("OFF-7", instead(AssistOffline, wrong.late_offline)),
    "allocates while the parent is away": Broken(
        "AUTHY-5", instead(Register, wrong.allocates_when_alone), role="child"
    ),
    "lets who left wait": Broken("LINK-10", rewriting(wrong.silent_when_left), role="child"),
    "keeps superseded hubs": Broken("LINK-11", rewriting(wrong.keeps_hubs), profile={"close_superseded": False}),
    "lets devices assist": Broken("TRUST-3", instead(AssistRegister, wrong.assists_devices)),
    "keeps superseded sessions": Broken("BIND-3", hub={"close_superseded": False}),
    "accepts long payloads": Broken("WIRE-6", limits={"payload": 65536}),
    "grants everything": Broken("PERM-1", answering(wrong.wrong_perms)),
    "lists unsorted": Broken("PERM-19", answering(wrong.unsorted)),
}
