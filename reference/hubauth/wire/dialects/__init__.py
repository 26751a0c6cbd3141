"""The three dialects: between JSON payloads and core messages."""

from collections.abc import Mapping

from hubauth.core.policy import Dialect
from hubauth.wire.dialects.auth import AUTH
from hubauth.wire.dialects.codec import Codec
from hubauth.wire.dialects.flat import FLAT
from hubauth.wire.dialects.login import LOGIN, LOGIN_AND_PERMS

__all__ = ["CODECS", "LOGIN_AND_PERMS"]

CODECS: Mapping[Dialect, Codec] = {Dialect.AUTH: AUTH, Dialect.LOGIN: LOGIN, Dialect.FLAT: FLAT}
