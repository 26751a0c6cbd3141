"""An immutable ordered set of integers that knows the position of every member.

A tree of tuples: adding, removing and taking a page all cost the logarithm of the size, so a page of
``list_roles`` never sorts all nodes and an announcement can go on where it stopped. A leaf holds runs of members, not
members: node ids are given out one after another, so all nodes of a large hub are a handful of runs.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from hubauth.core.values import frozen

_WIDTH = 64
_FILL = 60


@frozen(eq=False)
class _Branch:
    children: "tuple[_Node, ...]"
    lowest: tuple[int, ...]
    """The lowest member below each child."""
    count: int


_Leaf: TypeAlias = tuple[int, ...]
"""The bounds of its runs, ascending: the first member, the first number after the run, and so on."""

_Node: TypeAlias = _Leaf | _Branch


def _count(node: _Node) -> int:
    return sum(node[1::2]) - sum(node[::2]) if isinstance(node, tuple) else node.count


def _lowest(node: _Node) -> int:
    return node[0] if isinstance(node, tuple) else node.lowest[0]


def _branch(children: tuple[_Node, ...]) -> _Branch:
    return _Branch(children, tuple(map(_lowest, children)), sum(map(_count, children)))


def _toggled(leaf: _Leaf, at: int, item: int) -> _Leaf:
    """The leaf with the item swapped in or out: a bound at either side of it goes if it is there, comes if not.

    ``at`` is the number of bounds up to the item; the item is a member if that is odd.
    """
    below = leaf[: at - 1] if at and leaf[at - 1] == item else leaf[:at] + (item,)
    above = leaf[at + 1 :] if at < len(leaf) and leaf[at] == item + 1 else (item + 1,) + leaf[at:]
    return below + above


def _halves(items: _Leaf) -> tuple[_Node, ...]:
    # A full leaf that grows at its end keeps most runs: ids arrive in increasing order.
    if len(items) <= _WIDTH:
        return (items,)
    return (items[:_FILL], items[_FILL:])


def _add(node: _Node, item: int) -> tuple[_Node, ...]:
    """The nodes that replace ``node``; the very same node if the item was there."""
    if isinstance(node, tuple):
        at = bisect_right(node, item)
        return (node,) if at % 2 else _halves(_toggled(node, at, item))
    at = max(bisect_right(node.lowest, item) - 1, 0)
    old = node.children[at]
    new = _add(old, item)
    if len(new) == 1 and new[0] is old:
        return (node,)
    children = node.children[:at] + new + node.children[at + 1 :]
    if len(children) <= _WIDTH:
        # The common case, without visiting the other children.
        lowest = node.lowest[:at] + tuple(map(_lowest, new)) + node.lowest[at + 1 :]
        return (_Branch(children, lowest, node.count + 1),)
    return (_branch(children[:_FILL]), _branch(children[_FILL:]))


def _discard(node: _Node, item: int) -> _Node | None:
    """The node without the item: None if nothing is left, the very same node if it was not there."""
    if isinstance(node, tuple):
        at = bisect_right(node, item)
        return (_toggled(node, at, item) or None) if at % 2 else node
    at = max(bisect_right(node.lowest, item) - 1, 0)
    old = node.children[at]
    new = _discard(old, item)
    if new is old:
        return node
    kept: tuple[_Node, ...] = () if new is None else (new,)
    children = node.children[:at] + kept + node.children[at + 1 :]
    if not children:
        return None
    lowest = node.lowest[:at] + tuple(map(_lowest, kept)) + node.lowest[at + 1 :]
    return _Branch(children, lowest, node.count - 1)


def _iterate_from(node: _Node, offset: int) -> Iterator[int]:
    if isinstance(node, tuple):
        for run in map(range, node[::2], node[1::2]):
            yield from run[offset:]
            offset = max(offset - len(run), 0)
        return
    for child in node.children:
        size = _count(child)
        if offset >= size:
            offset -= size
            continue
        yield from _iterate_from(child, offset)
        offset = 0


@frozen(eq=False)
class OrderedIds:
    """The set itself. Two sets are equal if they have the same members, however they grew."""

    _root: _Node = ()

    @classmethod
    def of(cls, items: Iterable[int]) -> "OrderedIds":
        """A set of the given integers."""
        bounds: list[int] = []
        for item in sorted(items if isinstance(items, set) else set(items)):
            if bounds and bounds[-1] == item:
                bounds[-1] = item + 1
            else:
                bounds += (item, item + 1)
        level: list[_Node] = [tuple(bounds[at : at + _FILL]) for at in range(0, len(bounds), _FILL)]
        while len(level) > 1:
            level = [_branch(tuple(level[at : at + _FILL])) for at in range(0, len(level), _FILL)]
        return cls(level[0]) if level else EMPTY

    def add(self, item: int) -> "OrderedIds":
        """The set with ``item``; this very set if it is a member already."""
        parts = _add(self._root, item)
        if len(parts) == 1:
            return self if parts[0] is self._root else OrderedIds(parts[0])
        return OrderedIds(_branch(parts))

    def discard(self, item: int) -> "OrderedIds":
        """The set without ``item``; this very set if it is not a member."""
        root = _discard(self._root, item)
        if root is None:
            return EMPTY
        return self if root is self._root else OrderedIds(root)

    def page(self, offset: int) -> Iterator[int]:
        """The members in ascending order from position ``offset`` on, found lazily."""
        return _iterate_from(self._root, offset)

    def above(self, item: int) -> Iterator[int]:
        """The members greater than ``item``, ascending."""
        return self.page(self.position(item + 1))

    def highest(self) -> int:
        """The greatest member; there must be one."""
        return next(self.page(len(self) - 1))

    def position(self, item: int) -> int:
        """How many members are smaller than ``item``."""
        node, before = self._root, 0
        while not isinstance(node, tuple):
            at = max(bisect_left(node.lowest, item) - 1, 0)
            before += sum(map(_count, node.children[:at]))
            node = node.children[at]
        at = bisect_right(node, item)
        inside = item if at % 2 else 0
        return before + inside + sum(node[1:at:2]) - sum(node[:at:2])

    def __len__(self) -> int:
        return _count(self._root)

    def __iter__(self) -> Iterator[int]:
        return self.page(0)

    def __contains__(self, item: int) -> bool:
        node = self._root
        while not isinstance(node, tuple):
            node = node.children[max(bisect_right(node.lowest, item) - 1, 0)]
        return bisect_right(node, item) % 2 == 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OrderedIds) and len(self) == len(other) and all(map(int.__eq__, self, other))

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"OrderedIds.of({list(self)})"


EMPTY = OrderedIds()
