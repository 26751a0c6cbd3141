"""What plain hubs were asked and nobody waits for any more.

Their answers may bear no number. So a request that is given up stays outstanding until it is answered or its link
drops: a late success must not admit whom a revoke has ended since, and a failure may mean either of two requests.
"""

from hubauth.core.inputs import Link
from hubauth.core.messages import Revoke
from hubauth.core.model import Pending, Purpose, asked_for, is_plain
from hubauth.core.transition import Transition

_ON_BEHALF_OF_SOMEBODY = (
    Purpose.REGISTER,
    Purpose.AUTHENTICATE,
    Purpose.QUERY,
    Purpose.RELAY,
    Purpose.PERMS,
    Purpose.HELD,
    Purpose.ADMIT,
    Purpose.CONFIRM,
)


def forget(t: Transition, msg_id: int, *, fired: bool = False) -> Pending:
    """Nobody waits for a pending request any more; a plain neighbour may answer it all the same."""
    pending = t.take_pending(msg_id, fired=fired)
    link = pending.asked
    if link is None or pending.purpose not in _ON_BEHALF_OF_SOMEBODY or not is_plain(t, link):
        return pending
    remembered = t.queues.get((link, link), ())
    if len(remembered) >= t.policy.pending_limit:
        t.take_pending(next(iter(remembered)))
    about = pending.device_id, pending.node_id  # and no credential: nobody presents one any more
    t.put_pending(msg_id, Pending(Purpose.UNHEARD, asked_for(pending), link, None, 0, pending.trace_id, *about))
    return pending


def end(t: Transition, link: Link, message: Revoke) -> None:
    """A plain neighbour is sent a revoke: what it was asked before about that device, it may have decided before."""
    for msg_id in t.asked.get((link, message.device_id), ()):
        if t.pending[msg_id].purpose is Purpose.UNHEARD:
            t.flag_pending(msg_id)


def rank(pending: Pending) -> int:
    """Whose a success is that several requests agree with: lowest first, then the oldest.

    Where no revoke lies between two equal requests, it does not matter which of them a success answers.
    """
    if pending.purpose is not Purpose.UNHEARD:
        return 1
    return 0 if pending.number else 2
