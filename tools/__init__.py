"""What makes, checks and counts. All of it, and every test, runs the sources, unless HUBAUTH_COMPILED=1 is set.

Mistakes are planted in sources and by replacing functions of a module; a compiled module would not hear of it.
"""

import os

COMPILED = os.environ.get("HUBAUTH_COMPILED", "") not in ("", "0")

if not COMPILED:
    os.environ["HUBAUTH_PURE"] = "1"
