"""A difference between Python and TLA+ in words."""

from model_tests.equivalence.machine import Event, State, compare

SIDES = ("TLA+", "Python")
CHANGE = ("before", "after")


def told(event: Event) -> str:
    """An event as one would write it in TLA+."""
    shown = (str(sorted(item)) if isinstance(item, frozenset) else str(item) for item in event[1:])
    return f"{event[0]}({', '.join(shown)})"


def told_path(path: list[Event]) -> list[str]:
    if not path:
        return ["In the initial state:"]
    return [f"After {len(path)} steps:", *(f"  {told(event)}" for event in path)]


def side_by_side(parts: tuple[str, ...], left: State, right: State, heads: tuple[str, str] = SIDES) -> list[str]:
    """The fields in which two states differ."""
    rows = [("", *heads), *compare(parts, left, right)]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    return [f"  {row[0]:<{widths[0]}}  {row[1]:<{widths[1]}}  {row[2]}".rstrip() for row in rows]


def explain(
    parts: tuple[str, ...],
    state: State,
    path: list[Event],
    ours: dict[tuple[str, State], Event],
    theirs: set[tuple[str, State]],
) -> tuple[str, ...]:
    """What one side does in a state and the other does not."""
    lines = told_path(path)
    for name in sorted({name for name, _ in ours.keys() ^ theirs}):
        only_ours = [target for action, target in ours if action == name and (action, target) not in theirs]
        only_theirs = [target for action, target in theirs if action == name and (action, target) not in ours]
        for target in only_ours:
            event = told(ours[name, target])
            if only_theirs:
                closest = min(only_theirs, key=lambda other: len(compare(parts, other, target)))
                only_theirs.remove(closest)
                lines += [f"{event} leads elsewhere:", *side_by_side(parts, closest, target)]
            else:
                lines += [f"{event} is possible in Python only. It changes:"]
                lines += side_by_side(parts, state, target, CHANGE)
        for target in only_theirs:
            lines += [f"{name} is possible in TLA+ only. It changes:", *side_by_side(parts, state, target, CHANGE)]
    return tuple(lines)
