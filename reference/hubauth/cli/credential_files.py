"""A credential from a file: on a command line everybody who lists processes would see it."""

from pathlib import Path

from hubauth import private
from hubauth.bounded import read_text
from hubauth.cli.problems import CommandError
from hubauth.wire.dialects.fields import MAX_CREDENTIAL


def read_credential(option: str, path: Path | None) -> str:
    """The credential in the file that an option names, which only its owner can read; no file: none."""
    if path is None:
        return ""
    problem = private.why_not_private(path)
    if problem:
        raise CommandError(f"{option}: {problem}", "others may know what was in it by now")
    try:
        credential = read_text(path).strip()
    except OSError as unreadable:
        raise CommandError(f"cannot read {path}: {unreadable.strerror}") from None
    except ValueError as wrong:
        # Without the bytes that are wrong, which may be part of it.
        why = "is not UTF-8" if isinstance(wrong, UnicodeDecodeError) else f"holds {wrong}"
        raise CommandError(f"{path} {why}") from None
    if not 0 < len(credential) <= MAX_CREDENTIAL:
        raise CommandError(f"{path} holds no credential: 1 to {MAX_CREDENTIAL} characters")
    return credential
