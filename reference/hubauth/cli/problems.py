"""How a command fails: a message, perhaps a hint, and an exit code."""

REFUSED = 1
"""The hub's answer was no."""
WRONG = 2
"""The command could not be carried out."""
FAILED = 3
"""The check itself failed."""
UNREADABLE = 4
"""A file cannot be read, or there is nothing in it."""


class CommandError(Exception):
    """Why a command could not be carried out."""

    def __init__(self, message: str, hint: str = "", code: int = WRONG) -> None:
        super().__init__(message)
        self.hint, self.code = hint, code
