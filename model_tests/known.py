"""Bugs of the core that these machines found and that are not mended yet. Each flag keeps the machines out of the
situation that shows it; when it is mended, set the flag to False, see the machines pass, and delete it.
"""

A_SUPERSEDED_HUB_STAYS_CONNECTED = True
"""With ``close_superseded`` off, a hub whose own older join arrives late loses its session on the live link, which is
not closed. On its parent link it cannot hear the ``offline`` that devices get (403, FRAME-19): it believes its parent
present for ever, while the parent has no session for it. Seen with ``walk(10048, 80)``; mended by always closing the
link of a superseded hub in ``presence.displace``."""
