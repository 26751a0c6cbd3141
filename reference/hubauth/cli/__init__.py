"""One command, ``hubauth``."""

from hubauth.cli.main import main

__all__ = ["main"]
