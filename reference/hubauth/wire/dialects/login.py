"""The dialect ``login``: ``auth`` without roles and permissions, and with another word for authenticating."""

from attrs import evolve

from hubauth.core.messages import Action
from hubauth.wire.dialects import auth
from hubauth.wire.dialects.fields import Admission, AdmissionAndGrant
from hubauth.wire.dialects.nested import NestedCodec
from hubauth.wire.dialects.outcomes import WORDINGS

_WORDS = {Action.AUTHENTICATE: "login", Action.ASSIST_AUTHENTICATE: "assist_login"}
_ABOUT_PERMS = frozenset({Action.GET_PERMS, Action.LIST_ROLES, Action.PERMS_INVALIDATE})

FORMS = tuple(
    evolve(
        form,
        word=_WORDS.get(form.action, form.word),
        success=Admission if form.success is AdmissionAndGrant else form.success,
    )
    for form in auth.FORMS
    if form.action not in _ABOUT_PERMS
)

LOGIN = NestedCodec(FORMS, WORDINGS)
