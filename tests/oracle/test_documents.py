"""What the pages about vectors and oracle show is what happens, and what they name is there."""

import json
import re
from contextlib import redirect_stdout
from hashlib import sha256
from io import StringIO
from pathlib import Path

from attrs import fields
from msgspec import UnsetType

from hubauth.cli import main
from hubauth.core.canonical import TABLES
from hubauth.core.messages import Frame, Grant
from hubauth.core.model import Entry, Learnt, Neighbour, Owed, Pending, Plain, Registration, Route, Session
from hubauth.core.transition import SCALARS
from hubauth.oracle.forms import InputForm, OutputForm
from hubauth.oracle.process import Request
from hubauth.oracle.process import Session as Conversation
from hubauth.oracle.vectors import Case, plain
from hubauth.oracle.vectors_files import load_cases

ROOT = Path(__file__).resolve().parents[2]
VECTORS = (ROOT / "spec" / "vectors" / "README.md").read_text(encoding="utf-8")
ORACLE = (ROOT / "docs" / "oracle.md").read_text(encoding="utf-8")


def test_the_conversation_is_real() -> None:
    session = Conversation()
    questions = re.findall(r"^> (.*)\n< (.*)$", ORACLE, re.MULTILINE)
    assert len(questions) > 4
    for question, shown in questions:
        answer = json.loads(session.answer(question.encode()))
        assert {**answer, "hubauth": ""} == {**json.loads(shown), "hubauth": ""}


def test_the_commands_print_what_is_shown() -> None:
    shown = re.findall(r"^\$ hubauth (vectors (?:list|run).*)\n((?:[^$`].*\n)+)", VECTORS, re.MULTILINE)
    assert len(shown) == 2
    for command, output in shown:
        with redirect_stdout(StringIO()) as said:
            assert main(command.split()) == 0
        assert said.getvalue() == output
    assert len(load_cases()) > 1000


def rows(page: str) -> dict[str, str]:
    """First cell of every table row -> the rest."""
    return {row[1]: row[2] for row in re.finditer(r"^\| `([a-z_`, ]+)` \|(.*)\|$", page, re.MULTILINE)}


def test_the_tables_of_a_state_are_as_described() -> None:
    described = rows(VECTORS)
    assert [name for name in described if name in TABLES] == list(TABLES)
    assert re.findall(r"`([a-z_]+)`", described["hub"]) == list(SCALARS)
    values = {
        "links": Session,
        "plain": Plain,
        "learnt": Learnt,
        "registry": Registration,
        "whitelist": Entry,
        "directory": Route,
        "perms": Grant,
        "pending": Pending,
        "neighbours": Neighbour,
        "owed": Owed,
    }
    for table, kind in values.items():
        names = ", ".join(attribute.name for attribute in fields(kind))
        assert f"`[{names}]`" in described[table], table
    frame = ", ".join(attribute.name for attribute in fields(Frame)).replace("body", "message")
    assert f"`[{frame}]`" in VECTORS


def test_the_digest_can_be_computed_as_described() -> None:
    """By the page alone, from what the oracle says of a state."""
    session = Conversation()
    cases = [case for case in load_cases() if isinstance(case, Case) and isinstance(case.state, UnsetType)]
    for case in cases[::40]:
        session.answer(json.dumps({"do": "init", "policy": plain(case.policy), "journal": case.journal}).encode())
        for one in case.steps:
            session.answer(json.dumps({"do": "input", "input": plain(one.input)}).encode())
        sums = dict.fromkeys(re.findall(r"^\| `([a-z]+)` \| ", VECTORS.partition("### The digest")[2], re.MULTILINE), 0)
        for entry in json.loads(session.answer(b'{"do":"state"}'))["state"]:
            compact = json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()
            sums[entry[0]] += int.from_bytes(sha256(compact).digest(), "big")
        whole = b"".join((value % 2**256).to_bytes(32, "big") for value in sums.values())
        assert sha256(whole).hexdigest() == case.steps[-1].digest


def test_every_kind_of_input_output_and_request_is_described() -> None:
    for union, page in ((InputForm, VECTORS), (OutputForm, VECTORS), (Request, ORACLE)):
        for form in union.__args__:
            assert f"`{form.__struct_config__.tag}`" in page, form


def test_links_lead_somewhere() -> None:
    for page in (ROOT / "spec" / "vectors" / "README.md", ROOT / "docs" / "oracle.md"):
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"
