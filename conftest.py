"""Which of the two a run of pytest is about: the sources, or with HUBAUTH_COMPILED=1 what is compiled from them."""

import tools  # decides it, before anything of the package is imported

__all__ = ["tools"]
