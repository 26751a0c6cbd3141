"""Subjects for tests: nothing that hubauth itself runs."""
