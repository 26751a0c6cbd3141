"""Credentials: their shape, and comparing them without telling how much was right."""

import hmac
import re

_SHAPE = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


def is_well_formed(credential: str) -> bool:
    """Whether this can be 32 bytes as unpadded base64url."""
    return _SHAPE.fullmatch(credential) is not None


def same_credential(known: str, presented: str) -> bool:
    """Constant-time equality. An empty credential equals nothing, not even another empty one."""
    if not known or not presented:
        return False
    return hmac.compare_digest(known.encode(), presented.encode())
