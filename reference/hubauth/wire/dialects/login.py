"""The dialect ``login``: ``auth`` without roles and permissions, and with another word for authenticating."""

from attrs import evolve

from hubauth.core.messages import Action
from hubauth.wire.dialects import auth
from hubauth.wire.dialects.codec import Form
from hubauth.wire.dialects.fields import Admission, AdmissionAndGrant, Entrance, EntranceAndGrant, Outcome
from hubauth.wire.dialects.nested import NestedCodec
from hubauth.wire.dialects.outcomes import WORDINGS

_WORDS = {Action.AUTHENTICATE: "login", Action.ASSIST_AUTHENTICATE: "assist_login"}
_ABOUT_PERMS = frozenset({Action.GET_PERMS, Action.LIST_ROLES, Action.PERMS_INVALIDATE})
_WITHOUT_GRANT: dict[type[Outcome], type[Outcome]] = {AdmissionAndGrant: Admission, EntranceAndGrant: Entrance}

_ALL_FORMS: tuple[Form, ...] = tuple(evolve(form, word=_WORDS.get(form.action, form.word)) for form in auth.FORMS)

FORMS: tuple[Form, ...] = tuple(
    evolve(form, success=_WITHOUT_GRANT.get(form.success, form.success))
    for form in _ALL_FORMS
    if form.action not in _ABOUT_PERMS
)

LOGIN = NestedCodec(FORMS, WORDINGS)

LOGIN_AND_PERMS = NestedCodec(_ALL_FORMS, WORDINGS)
"""The words of ``login`` for all that ``auth`` can say: no document has it, some hubs speak it."""
