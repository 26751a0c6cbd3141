"""What earlier steps have ended: whoever goes on as if they had not disobeys the rule by which that ended.

So a device that is served after its session should have ended is not told as a question of who is served, but as the
revoke that was not obeyed.
"""

from attrs import evolve
from immutables import Map

from hubauth.core.inputs import Input, LinkDown, LinkUp, OperatorInvalidate, OperatorRevoke, Received
from hubauth.core.messages import Action, Answer, PermsInvalidate, Reason, Revoke
from hubauth.core.model import State
from hubauth.core.transition import ALL, Step
from hubauth.forms.events import Kind
from hubauth.forms.reading import frame_of
from hubauth.judge.compare import Difference
from hubauth.wire.dialects.codec import Codec

Ended = Map[tuple[str, int], str]
"""A session by its link, permissions by their node -> the rule by which that ended."""
NOTHING_ENDED: Ended = Map()

_SESSION, _PERMS = "links", "perms"
_BY = {_SESSION: "REV-6", _PERMS: "PERM-12"}


def having_ended(ended: Ended, happened: Input, done: Step) -> Ended:
    """What has ended after one more step."""
    if isinstance(happened, Received):
        if not isinstance(happened.frame.body, Revoke | PermsInvalidate):
            return ended
    elif isinstance(happened, LinkUp | LinkDown):
        return ended.delete((_SESSION, happened.link)) if (_SESSION, happened.link) in ended else ended
    elif not isinstance(happened, OperatorRevoke | OperatorInvalidate):
        return ended
    for table, key, old, new in done.changes:
        if table in _BY and old and not new:
            ended = ended.update({(table, each): _BY[table] for each in (old if key == ALL else (key,))})
    return ended


def as_disobeyed(one: Difference, ended: Ended, state: State, codec: Codec) -> Difference:
    """The difference under the rule that was not obeyed earlier, if that is what it shows."""
    if not ended or one.done is None or one.done.kind is not Kind.FRAME_OUT:
        return one
    said = frame_of(one.done, codec).body
    if not isinstance(said, Answer) or said.reason is not Reason.OK:
        return one
    session, perms = (_SESSION, one.done.link or 0), (_PERMS, said.node_id)
    if one.rule == "FRAME-23" and session in ended and state.links.get(session[1]) is None:
        return evolve(one, rule=ended[session])
    asked = said.action is Action.GET_PERMS and one.rule in ("PERM-2", "PERM-3")
    if asked and perms in ended and said.node_id not in state.perms:
        return evolve(one, rule=ended[perms])
    return one
