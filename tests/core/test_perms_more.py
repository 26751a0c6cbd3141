"""Paging at the highest node ids."""

from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.ordered import OrderedIds
from hubauth.core.perms import select_page


def test_the_last_page_of_two_lists_ends_with_the_highest_node() -> None:
    listed = (OrderedIds.of([1]), OrderedIds.of([MAX_NODE_ID - 1, MAX_NODE_ID]))
    pages = [select_page(listed, (), offset, 10) for offset in range(4)]
    everyone = [1, MAX_NODE_ID - 1, MAX_NODE_ID]
    assert pages == [(3, everyone[offset:]) for offset in range(4)]
