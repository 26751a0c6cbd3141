"""Which dialect and header version whoever listens at an address speaks: found out by asking something harmless."""

from attrs import frozen

from hubauth.core.messages import Action, Answer, Authenticate, Frame
from hubauth.core.policy import Dialect
from hubauth.oracle.conform.wire import Patience, Seen, Wire, write_frame
from hubauth.wire.dialects import CODECS
from hubauth.wire.header import Version

_NUMBER = 0xFD00_0001


@frozen
class Speech:
    """One way to speak."""

    dialect: Dialect
    version: Version

    def __str__(self) -> str:
        return f"dialect {self.dialect.value} with header {int(self.version)}"


def ask(host: str, port: int, speech: Speech, seconds: float) -> Seen | None:
    """The answer to a request that changes nothing, if it is one in this way to speak. Raises Unreachable.

    Who authenticates with an empty credential is refused; ``flat`` has none, there it is a register without a name.
    """
    codec = CODECS[speech.dialect]
    flat = speech.dialect is Dialect.FLAT
    payload = b'{"action":"register"}' if flat else codec.encode(Authenticate("conform-nobody", ""))
    wire = Wire.connect(host, port, speech.version, codec, seconds)
    try:
        wire.write(write_frame(speech.version, Frame(b"", msg_id=_NUMBER), payload))
        seen = wire.read(Patience(seconds))
    finally:
        wire.close()
    if not isinstance(seen, Seen) or not isinstance(seen.frame.body, Answer):
        return None
    return seen if flat or seen.frame.body.action is Action.AUTHENTICATE else None


def other_speech(host: str, port: int, wanted: Speech, seconds: float) -> Speech | None:
    """Another way to speak that is understood there, the likeliest first; None if there is none."""
    ways = [Speech(dialect, version) for dialect in Dialect for version in Version]
    ways.sort(key=lambda way: (way.dialect is not wanted.dialect, way.version is not wanted.version))
    return next((way for way in ways if way != wanted and ask(host, port, way, seconds) is not None), None)
