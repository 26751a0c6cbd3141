"""Every rule about the wire and the keys decides something, and nothing is decided by a rule nobody wrote down."""

import tomllib
from pathlib import Path

from hubauth.core.messages import CODES, Reason
from hubauth.lab.wire_rules import exercised_rules
from hubauth.wire.dialects.outcomes import FLAT_WORDINGS, WORDINGS

SPEC = Path(__file__).resolve().parents[2] / "spec"
FAMILIES = ("WIRE-", "MSG-", "CODE-", "CFG-")
EXTENSION = "EXT-15"
"""The one rule of the extension that is about the wire alone."""


def written_rules() -> set[str]:
    catalogues = [tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted(SPEC.glob("rules*.toml"))]
    ids = {rule["id"] for catalogue in catalogues for rule in catalogue["rule"]}
    return {rule_id for rule_id in ids if rule_id.startswith(FAMILIES) or rule_id == EXTENSION}


def test_every_rule_is_exercised_and_every_exercised_rule_is_written() -> None:
    written = written_rules()
    assert written
    assert exercised_rules() == written


def test_every_reason_has_a_wording_and_its_own_code() -> None:
    for wordings in (WORDINGS, FLAT_WORDINGS):
        assert set(wordings) == set(Reason)
        assert all(wording.code == CODES[reason] and wording.msg for reason, wording in wordings.items())
