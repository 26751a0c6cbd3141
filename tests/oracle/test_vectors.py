"""The vectors: complete, current, the same in every process, true of the reference, and not true of a broken one."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from attrs import evolve
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from hubauth.core import authenticate, authority, perms, presence, register, revoke, routing
from hubauth.core.messages import Reason
from hubauth.core.model import Registration
from hubauth.core.policy import Dialect
from hubauth.core.transition import Transition
from hubauth.oracle.forms import SendForm
from hubauth.oracle.vectors import AnyCase, Case, Index, Shown, index_of, run_case
from hubauth.oracle.vectors_files import FOLDER, VectorError, archive_of, archived_files, load_cases
from hubauth.specification import rules
from hubauth.wire.dialects import CODECS
from tools.generate import stale_files
from tools.vectors import render

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = {"README.md", "coverage.toml"}


@pytest.fixture(scope="module")
def cases() -> list[AnyCase]:
    return load_cases()


@pytest.fixture(scope="module")
def some(cases: list[AnyCase]) -> list[AnyCase]:
    """One dialect's: enough to notice a broken decision."""
    return [case for case in cases if case.id.startswith("auth/")]


@pytest.fixture(scope="module")
def index(cases: list[AnyCase]) -> Index:
    return index_of(cases)


def test_the_files_are_what_the_tests_yield_now() -> None:
    assert stale_files(render()) == []


def test_there_is_no_file_that_nothing_renders() -> None:
    written = {path.relative_to(ROOT).as_posix() for path in FOLDER.rglob("*") if path.is_file()}
    assert written - set(render()) == {f"spec/vectors/{name}" for name in BY_HAND}


@pytest.mark.slow
def test_the_hash_seed_makes_no_difference() -> None:
    """The generator once more, in a process with another seed than this one."""
    seed = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    script = (
        "import sys; from tools.vectors import render; sys.stdout.write(''.join(p + c for p, c in render().items()))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        check=True,
        timeout=500,
    )
    assert len(done.stdout) > 1_000_000
    assert done.stdout == "".join(path + content for path, content in render().items()).encode()


def test_the_total_stays_small() -> None:
    """Plain links and admissions that wait are some two hundred and forty short cases: one megabyte of it."""
    assert sum(len(content) for content in render().values()) < 7_500_000


def test_the_reference_does_what_every_vector_says(cases: list[AnyCase]) -> None:
    assert len(cases) > 1000
    assert [found for case in cases if (found := run_case(case)) is not None] == []


def test_every_case_has_a_name_of_its_own_and_says_something(cases: list[AnyCase]) -> None:
    assert len({case.id for case in cases}) == len(cases)
    assert all(case.steps for case in cases if isinstance(case, Case))


def test_every_file_fits_its_schema() -> None:
    schema = msgspec.json.decode((FOLDER / "vectors.schema.json").read_bytes())
    validator = Draft202012Validator(schema)
    Draft202012Validator.check_schema(schema)
    paths = [path for folder in ("auth", "login", "flat", "wire") for path in (FOLDER / folder).glob("*.json")]
    assert len(paths) > 50
    for path in paths:
        validator.validate(msgspec.json.decode(path.read_bytes()))


# Which rules are shown, and how


def coverage() -> dict[str, Any]:
    return tomllib.loads((FOLDER / "coverage.toml").read_text(encoding="utf-8"))


def total(shown: dict[str, Shown], side: str) -> int:
    return sum(getattr(one, side) for one in shown.values())


def test_every_rule_is_shown_in_every_dialect_that_has_it(index: Index) -> None:
    assert set(index) == set(rules())
    missing = [
        (name, dialect) for name, rule in rules().items() for dialect in rule.dialects if dialect not in index[name]
    ]
    assert missing == []


def test_rules_that_only_refuse_name_the_rules_that_show_the_proper_way(index: Index) -> None:
    proper = coverage()["proper"]
    assert set(proper) == {rule for rule, shown in index.items() if not total(shown, "accepted")}
    for others in proper.values():
        assert others and all(total(index[other], "accepted") for other in others), others


def test_rules_that_only_accept_name_what_breaks_them_or_why_nothing_can(index: Index) -> None:
    broken, unbreakable = coverage()["broken"], coverage()["unbreakable"]
    alone = [rule for group in unbreakable for rule in group["rules"]]
    assert len(alone) == len(set(alone))
    assert not set(alone) & set(broken)
    assert set(alone) | set(broken) == {rule for rule, shown in index.items() if not total(shown, "refused")}
    for others in broken.values():
        assert others and all(total(index[other], "refused") for other in others), others
    assert all(len(group["reason"]) > 20 for group in unbreakable)


def test_refusals_name_their_neutral_reason(cases: list[AnyCase]) -> None:
    """Every reason but the two that only this hub's own failures have."""
    said = {
        output.reason
        for case in cases
        if isinstance(case, Case)
        for one in case.steps
        for output in one.outputs
        if isinstance(output, SendForm)
    }
    assert set(Reason) - said <= {Reason.OFFLINE_INTERNAL, Reason.INTERNAL}


# A broken reference


def always(value: object) -> Callable[..., object]:
    return lambda *_arguments, **_options: value


BROKEN: tuple[tuple[object, str, object, str], ...] = (
    (authenticate, "verify", always(True), "AUTH-2"),
    (register, "is_privileged", always(False), "REG-12"),
    (register, "is_well_formed", always(True), "REG-4"),
    (authority, "is_here", always(True), "AUTHY-2"),
    (revoke, "agrees", always(True), "REV-8"),
    (routing, "lower_hop_limit", always(15), "FRAME-8"),
    (presence, "contradicts", always(False), "BIND-10"),
    (routing, "reachable_through", always(True), "FRAME-22"),
    (perms, "is_hub_grant", always(False), "TRUST-1"),
)


@pytest.mark.parametrize(("module", "name", "replacement", "rule"), BROKEN, ids=[row[1] for row in BROKEN])
def test_a_broken_decision_is_noticed_by_its_rule(
    some: list[AnyCase],
    monkeypatch: pytest.MonkeyPatch,
    module: object,
    name: str,
    replacement: object,
    rule: str,
) -> None:
    monkeypatch.setattr(module, name, replacement)
    found = [mismatch for case in some if (mismatch := run_case(case)) is not None]
    assert rule in {named for mismatch in found for named in mismatch.rules}


def test_the_rule_of_a_broken_decision_comes_first(some: list[AnyCase], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authenticate, "verify", always(True))
    name = "auth/authenticate/a_different_credential_is_refused_and_nothing_changes"
    (case,) = [case for case in some if case.id == name]
    found = run_case(case)
    assert found is not None
    assert (found.case, found.what, found.rules[0]) == (name, "outputs", "AUTH-2")
    assert found.expected[0]["reason"] == "not_admitted"


def test_a_wrong_code_is_noticed_by_its_rule(some: list[AnyCase], monkeypatch: pytest.MonkeyPatch) -> None:
    codec = CODECS[Dialect.AUTH]
    encode = codec.encode
    monkeypatch.setattr(codec, "encode", lambda body: encode(body).replace(b'"code":4404', b'"code":4405'))
    found = [mismatch for case in some if (mismatch := run_case(case)) is not None]
    assert found
    assert all("CODE-9" in mismatch.rules for mismatch in found)


def test_a_state_that_differs_in_silence_is_noticed(some: list[AnyCase], monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is sent tells of it: a hub that forgets that a device was revoked."""
    monkeypatch.setattr(Transition, "put_registration", _forgetful(Transition.put_registration))
    found = [mismatch for case in some if (mismatch := run_case(case)) is not None]
    assert "digest" in {mismatch.what for mismatch in found}
    assert any("REV-12" in mismatch.rules for mismatch in found)


def _forgetful(put: Callable[[Transition, str, Registration], None]) -> Callable[[Transition, str, Registration], None]:
    return lambda transition, device_id, registration: put(transition, device_id, evolve(registration, revoked=False))


def test_a_damaged_archive_is_a_message(tmp_path: Path) -> None:
    """Wherever a byte is wrong: it is said, or it was a byte that means nothing."""
    content = archive_of({"a.json": b'{"format":1,"cases":[]}' * 20, "b.txt": b"words " * 50})
    path = tmp_path / "vectors.zip"
    refused = 0
    for at in range(len(content)):
        for wrong in (content[at] ^ 0xFF, content[at] ^ 1):
            path.write_bytes(content[:at] + bytes([wrong]) + content[at + 1 :])
            try:
                archived_files(path)
            except VectorError as problem:
                refused += str(path) in str(problem)
    assert refused > len(content)
    for end in range(len(content)):
        path.write_bytes(content[:end])
        with pytest.raises(VectorError):
            archived_files(path)
