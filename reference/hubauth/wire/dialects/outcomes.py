"""From a reason to ``code`` and ``msg``. One table; ``flat`` differs from it in one line."""

from collections.abc import Mapping

import msgspec

from hubauth.core.messages import CODES, Reason


class Wording(msgspec.Struct, frozen=True):
    """What a reason reads like in a dialect, and the rule that says so."""

    code: int
    msg: str
    rule: str


def _worded(texts: Mapping[Reason, tuple[str, str]]) -> dict[Reason, Wording]:
    return {reason: Wording(CODES[reason], msg, rule) for reason, (msg, rule) in texts.items()}


WORDINGS: Mapping[Reason, Wording] = _worded(
    {
        Reason.OK: ("ok", "CODE-1"),
        Reason.NOT_ADMITTED: ("invalid credential", "CODE-2"),
        Reason.PROTECTED: ("already registered", "CODE-4"),
        Reason.UNREACHABLE: ("upstream unavailable", "CODE-5"),
        Reason.INTERNAL: ("internal error", "CODE-6"),
        Reason.EXHAUSTED: ("no node id left", "CODE-6"),
        Reason.BUSY: ("busy", "CODE-6"),
        Reason.NOT_WHITELISTED: ("not found", "CODE-7"),
        Reason.CREDENTIAL_MISMATCH: ("credential mismatch", "CODE-7"),
        Reason.NOT_INDEXED: ("not online", "CODE-8"),
        Reason.OFFLINE_INTERNAL: ("internal error", "CODE-8"),
        Reason.UNKNOWN_NODE: ("unknown node", "CODE-9"),
        Reason.FORBIDDEN: ("permission denied", "CODE-9"),
        Reason.INVALID_REQUEST: ("invalid request", "CODE-10"),
    }
)

FLAT_WORDINGS: Mapping[Reason, Wording] = {
    **WORDINGS,
    **_worded({Reason.NOT_ADMITTED: ("unregistered device", "CODE-3")}),
}
