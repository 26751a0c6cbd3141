"""The rows that show a finding: what came before it on the links concerned, and what was done then."""

from collections.abc import Iterable

from hubauth.forms.events import Event
from hubauth.judge.compare import Difference

SHOWN = 12
_AFTER = 4
"""In observed order: the row itself, and some that came then."""


def leads_to(event: Event, recent: Iterable[Event], one: Difference | None, *, in_order: bool) -> tuple[Event, ...]:
    """Of the recent rows, the last of these links and those of the step; where nobody knows these, some more."""
    concerned = [] if one is None else [each.link for each in (one.due, one.done) if each is not None]
    links, rows = {event.link, *concerned}, list(recent)
    same = [row for row in rows if row.link in links]
    before = [row for row in same if row.sequence < event.sequence][-SHOWN:]
    if in_order:
        return (*before, *(row for row in rows if row.sequence >= event.sequence))
    after = [row for row in same if row.sequence >= event.sequence][:SHOWN]
    until = one.done.sequence if one is not None and one.done is not None else event.sequence
    return (*before, *after[:_AFTER], *(row for row in after[_AFTER:] if row.sequence <= until))
