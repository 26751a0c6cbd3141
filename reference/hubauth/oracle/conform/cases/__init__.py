"""The cases, by flow. Importing this declares them all, in the order in which they run."""

from hubauth.oracle.conform.cases import (  # noqa: I001 - a case depends only on those declared before it
    framing,
    register,
    routing,
    authenticate,
    presence,
    revoke,
    perms,
    links,
    admission,
    extension,
    plain,
)
from hubauth.oracle.conform.declare import CASES

FLOWS = (framing, register, routing, authenticate, presence, revoke, perms, links, admission, extension, plain)

__all__ = ["CASES", "FLOWS"]
