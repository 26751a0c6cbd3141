"""The dialect ``auth``: credentials, roles and permissions."""

from hubauth.core.messages import (
    AssistAuthenticate,
    AssistOffline,
    AssistQueryCredential,
    AssistRegister,
    Authenticate,
    GetPerms,
    HubDismiss,
    HubFence,
    HubOnline,
    ListRoles,
    Offline,
    PermsInvalidate,
    Register,
    Request,
    Revoke,
)
from hubauth.wire.dialects.codec import Form
from hubauth.wire.dialects.fields import (
    Admission,
    AdmissionAndGrant,
    Authentication,
    Departure,
    Device,
    DeviceAndCredential,
    DeviceAndNode,
    EntranceAndGrant,
    Invalidation,
    KnownSubject,
    Listing,
    Node,
    NodeGrant,
    Nothing,
    Outcome,
    Page,
    Place,
    Registration,
    RequestFields,
    Revocation,
    Subject,
)
from hubauth.wire.dialects.nested import NestedCodec
from hubauth.wire.dialects.outcomes import WORDINGS


def _form(
    message: type[Request],
    request: type[RequestFields],
    request_rule: str,
    success: type[Outcome],
    success_rule: str,
    failure: type[Outcome],
    *needed: str,
) -> Form:
    failure_rule = _FAILURE_RULES.get(failure, success_rule)
    word = message.action.value
    return Form(word, message, request, success, failure, needed, request_rule, success_rule, failure_rule)


_FAILURE_RULES: dict[type[Outcome], str] = {Outcome: "MSG-13", KnownSubject: "MSG-14"}
"""A failure that is written like a success has the success's rule."""

FORMS: tuple[Form, ...] = (
    # Asked by devices: a failure says no more than why.
    _form(Register, Registration, "MSG-4", EntranceAndGrant, "MSG-10", Outcome, "node_id", "credential"),
    _form(Authenticate, Authentication, "MSG-5", EntranceAndGrant, "MSG-10", Outcome, "node_id"),
    _form(ListRoles, Page, "MSG-8", Listing, "MSG-12", Outcome),
    _form(PermsInvalidate, Invalidation, "MSG-9", Outcome, "MSG-13", Outcome),
    # About somebody: a failure says about whom.
    _form(GetPerms, Node, "MSG-8", NodeGrant, "MSG-12", NodeGrant, "node_id"),
    _form(Revoke, Revocation, "MSG-7", Subject, "MSG-11", KnownSubject),
    _form(Offline, Departure, "MSG-7", Subject, "MSG-11", KnownSubject),
    # Asked by hubs: likewise.
    _form(AssistRegister, Device, "MSG-4", AdmissionAndGrant, "MSG-10", KnownSubject, "node_id", "credential"),
    _form(AssistAuthenticate, DeviceAndCredential, "MSG-5", AdmissionAndGrant, "MSG-10", KnownSubject, "node_id"),
    _form(AssistQueryCredential, DeviceAndNode, "MSG-7", Admission, "MSG-11", KnownSubject, "node_id", "credential"),
    _form(AssistOffline, Departure, "MSG-7", Subject, "MSG-11", KnownSubject),
    # The extension. An announcement is never answered, but what says it is an answer must be readable as one.
    _form(HubOnline, Place, "EXT-15", Outcome, "MSG-13", Outcome),
    _form(HubDismiss, Place, "EXT-15", Subject, "EXT-15", KnownSubject),
    _form(HubFence, Nothing, "EXT-15", Outcome, "EXT-15", Outcome),
)

AUTH = NestedCodec(FORMS, WORDINGS)
