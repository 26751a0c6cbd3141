"""``python -m hubauth.cli``"""

import sys

from hubauth.cli.main import main

sys.exit(main())
