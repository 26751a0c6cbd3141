"""The extension at the edge of what a hub may say of itself."""

from hubauth.core.messages import MAX_HANDLED, Ext
from hubauth.lab.hub import OWN_JOURNAL, root
from tests.core.test_extension import A, joins


def test_the_highest_number_that_can_have_been_handled_is_believed() -> None:
    hub = root()
    joins(hub, Ext(A, OWN_JOURNAL, MAX_HANDLED))
    assert hub.session(1).extended
