"""OrderedIds against a sorted set."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hubauth.core.ordered import EMPTY, OrderedIds

SMALL = st.integers(min_value=0, max_value=60)


def check(ordered: OrderedIds, expected: set[int]) -> None:
    """Everything an ordered set can be asked."""
    members = sorted(expected)
    assert list(ordered) == members
    assert len(ordered) == len(members)
    for item in {-1, 0, *members[:3], *members[-3:], *(item + 1 for item in members[:70:9])}:
        assert (item in ordered) is (item in expected)
        assert ordered.position(item) == sum(member < item for member in members)
        assert list(ordered.above(item)) == [member for member in members if member > item]
    for offset in (0, 1, len(members) // 2, len(members), len(members) + 1):
        assert list(ordered.page(offset)) == members[offset:]


@given(st.lists(st.tuples(st.booleans(), SMALL), max_size=80))
def test_few_members_added_and_removed_in_any_order(changes: list[tuple[bool, int]]) -> None:
    ordered, expected = EMPTY, set[int]()
    for adds, item in changes:
        ordered = ordered.add(item) if adds else ordered.discard(item)
        expected = expected | {item} if adds else expected - {item}
    check(ordered, expected)


@settings(max_examples=25, deadline=None)
@given(
    st.sets(st.integers(min_value=0, max_value=6000), max_size=900),
    st.lists(st.integers(min_value=0, max_value=6000), max_size=300),
    st.randoms(use_true_random=False),
)
def test_many_members_built_at_once_and_one_by_one(members: set[int], others: list[int], random: object) -> None:
    at_once = OrderedIds.of(members)
    one_by_one = EMPTY
    shuffled = sorted(members)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    for item in shuffled:
        one_by_one = one_by_one.add(item)
    check(at_once, members)
    check(one_by_one, members)
    assert at_once == one_by_one and hash(at_once) == hash(one_by_one)
    left = set(members)
    for item in others:
        at_once, left = at_once.discard(item), left - {item}
    check(at_once, left)


def test_a_tree_of_three_levels() -> None:
    count = 60 * 60 * 2 + 5
    for ordered in (OrderedIds.of(range(0, 2 * count, 2)), grown(count)):
        assert len(ordered) == count and list(ordered) == list(range(0, 2 * count, 2))
        for item in (0, 1, 119, 120, 7199, 7200, 7201, 2 * count - 2, 2 * count):
            assert (item in ordered) is (item % 2 == 0 and item < 2 * count)
            assert ordered.position(item) == min((item + 1) // 2, count)
        assert next(ordered.page(3600)) == 7200 and next(ordered.above(7200)) == 7202
        between = ordered.add(3601)
        assert list(between.page(1800))[:3] == [3600, 3601, 3602] and len(between) == count + 1
        assert between.discard(3601) == ordered


def grown(count: int) -> OrderedIds:
    ordered = EMPTY
    for item in range(0, 2 * count, 2):
        ordered = ordered.add(item)
    return ordered


def test_growing_downwards_and_shrinking_from_both_ends() -> None:
    ordered = EMPTY
    for item in range(9000, -1, -2):
        ordered = ordered.add(item)
    assert list(ordered) == list(range(0, 9001, 2))
    for item in range(0, 4500, 2):
        ordered = ordered.discard(item).discard(9000 - item)
        assert item not in ordered and item + 2 in ordered and 8998 - item in ordered
    assert list(ordered) == [4500]
    assert ordered.discard(4500) is EMPTY


def test_neighbours_are_one_run_however_they_came() -> None:
    for ordered in (OrderedIds.of((8, 2, 4, 3, 9)), OrderedIds.of((2, 4, 8)).add(3).add(9)):
        assert ordered._root == (2, 5, 8, 10)
        assert ordered.discard(3)._root == (2, 3, 4, 5, 8, 10)
        assert ordered.discard(8)._root == (2, 5, 9, 10) and ordered.discard(4)._root == (2, 4, 8, 10)
        assert list(ordered.page(2)) == [4, 8, 9] and list(ordered.page(4)) == [9]
    everyone = OrderedIds.of(range(1, 1_000_001)).add(1_000_001)
    assert everyone._root == (1, 1_000_002) and next(everyone.page(500_000)) == 500_001


def test_a_leaf_that_is_emptied_goes() -> None:
    ordered = OrderedIds.of(range(0, 240, 2))
    for item in range(60, 120, 2):
        ordered = ordered.discard(item)
    check(ordered, {*range(0, 60, 2), *range(120, 240, 2)})
    root = ordered._root
    assert not isinstance(root, tuple) and all(root.children) and root.lowest == tuple(map(lowest, root.children))


def test_what_changes_nothing_returns_the_very_same_set() -> None:
    for ordered in (OrderedIds.of(range(10)), OrderedIds.of(range(0, 500, 2)), OrderedIds.of(range(0, 9000, 2))):
        assert ordered.add(4) is ordered
        assert ordered.discard(10_000) is ordered and ordered.discard(-1) is ordered and ordered.discard(11) is ordered
        assert ordered.add(10_000) is not ordered
    assert EMPTY.discard(1) is EMPTY
    assert OrderedIds.of(()) is EMPTY


def test_sets_are_equal_by_their_members_and_never_change() -> None:
    three = OrderedIds.of((3, 1, 2, 1))
    assert three == OrderedIds.of((1, 2)).add(3) and three != OrderedIds.of((1, 2, 4))
    assert three != OrderedIds.of((1, 2)) and three != (1, 2, 3) and three != OrderedIds.of((1, 2, 3, 4))
    assert repr(three) == "OrderedIds.of([1, 2, 3])"
    three.add(9)
    three.discard(1)
    assert list(three) == [1, 2, 3]
    assert not EMPTY and three


def test_nodes_stay_narrow() -> None:
    ordered = grown(5000)
    node = ordered._root
    while not isinstance(node, tuple):
        assert len(node.children) <= 64 and node.lowest == tuple(map(lowest, node.children))
        assert node.count == sum(len(OrderedIds(child)) for child in node.children)
        node = node.children[-1]
    assert 0 < len(node) <= 64


def lowest(node: object) -> int:
    return next(iter(OrderedIds(node)))  # type: ignore[arg-type]
