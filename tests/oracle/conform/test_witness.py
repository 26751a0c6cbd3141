"""What the tool sends and reads, as its witness of the promises takes it."""

from hubauth.core.messages import Action, Answer, AssistRegister, Frame, Major, Reason
from hubauth.oracle.conform.profile import Profile
from hubauth.oracle.conform.witness import Witness
from hubauth.wire.dialects import CODECS
from hubauth.wire.framing import encode_frame
from hubauth.wire.header import Version

CODEC = CODECS[Profile().dialect]


def test_the_end_of_an_earlier_connection_to_the_parent_is_no_end_of_the_next() -> None:
    witness = Witness(Profile())
    earlier = witness.meet(Version.V1, as_parent=True)
    later = witness.meet(Version.V1, as_parent=True)
    later.told(encode_frame(Version.V1, CODEC, Frame(AssistRegister("d"), Major.CMD, 5, 9)))
    earlier.ended(by_hub=True)
    later.said(Frame(Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 10, "c" * 43), Major.OK_RESP, 5))
    assert witness.take() == []
    later.said(Frame(Answer(Action.ASSIST_REGISTER, Reason.OK, "d", 10, "c" * 43), Major.OK_RESP, 5))
    assert [finding.rule for finding in witness.take()] == ["NoAnswerWithoutRequest"]


def test_what_is_no_frame_is_not_taken_for_one() -> None:
    witness = Witness(Profile())
    line = witness.meet(Version.V1)
    line.told(b"\xff" * 100)
    line.told(encode_frame(Version.V1, CODEC, Frame(AssistRegister("d"), Major.CMD, 5, 9)))
    line.said(Frame(Answer(Action.ASSIST_REGISTER, Reason.FORBIDDEN, "d"), Major.ERR_RESP, 5))
    assert [finding.rule for finding in witness.take()] == ["NoAnswerWithoutRequest"]
