"""``pytest -p hubauth.pytest --hub HOST:PORT``: the conformance cases as tests, and the fixture ``hub`` for one's own.

def test_a_device_keeps_its_node(hub):
    device = hub.device()
    first = device.register().node_id
    device.hang_up()
    assert hub.again(device).authenticate().node_id == first
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hubauth.core.policy import Dialect
from hubauth.oracle.conform.cases import CASES
from hubauth.oracle.conform.compare import Difference
from hubauth.oracle.conform.declare import Case
from hubauth.oracle.conform.profile import Profile, ProfileError, load_profile
from hubauth.oracle.conform.results import LEVELS
from hubauth.oracle.conform.run import Played, play, prepare, why_skipped
from hubauth.oracle.conform.subject import NotServing, Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.oracle.conform.world import World
from hubauth.report.conceal import conceal, secrets_in
from hubauth.report.escape import visible
from hubauth.shell.addresses import parse_address
from hubauth.wire.header import Version

_SUBJECT = pytest.StashKey[Subject]()
_FAILED = 3


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of this plugin."""
    group = parser.getgroup("hubauth", "conformance of a hub")
    group.addoption("--hub", metavar="HOST:PORT", help="the hub under test")
    group.addoption("--hub-profile", metavar="FILE", help="what it has and which way it chose")
    group.addoption("--hub-dialect", choices=["auth", "login", "flat"], help="over the profile's")


def pytest_configure(config: pytest.Config) -> None:
    """Reach the hub under test before anything is collected."""
    for level in LEVELS:
        config.addinivalue_line("markers", f"{level.lower()}: a conformance case of this level")
    if config.getoption("--hub") is None:
        return
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError("one hub cannot be judged by several processes at once: leave -n out")
    try:
        address = parse_address(config.getoption("--hub"))
        profile = _profile(config)
        above = parse_address(profile.parent.listen) if profile.parent is not None else None
    except (ValueError, ProfileError) as problem:
        raise pytest.UsageError(str(problem)) from None
    subject = config.stash[_SUBJECT] = Subject(*address, profile, Version(profile.header[0]))
    try:
        if above is not None:
            subject.listen(*above)
            subject.join()
        prepare(subject, subject.version)
    except (Unreachable, NotServing, OSError) as problem:
        pytest.exit(f"{problem} (this says nothing about any rule)", _FAILED)


def _profile(config: pytest.Config) -> Profile:
    file, dialect = config.getoption("--hub-profile"), config.getoption("--hub-dialect")
    profile = Profile() if file is None else load_profile(Path(file))
    return profile if dialect is None else replace(profile, dialect=Dialect(dialect))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the hub under test."""
    subject = config.stash.get(_SUBJECT, None)
    if subject is not None:
        subject.close()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for every case and header version."""
    subject = config.stash.get(_SUBJECT, None)
    if subject is None:
        return
    group = Conformance.from_parent(session, name="conform", nodeid="conform")
    passed: dict[str, bool] = {}
    for version in map(Version, subject.profile.header):
        for case in CASES.values():
            name = f"{case.id}[v{int(version)}]"
            items.append(ConformanceItem.from_parent(group, name=name, case=case, version=version, passed=passed))


class Conformance(pytest.Collector):
    """Holds the cases together."""

    def collect(self) -> list[pytest.Item]:
        return []


class CaseFailed(Exception):
    """The hub under test broke the rule of a case, or another one on the way."""

    def __init__(self, case: Case, played: Played, differences: tuple[Difference, ...]) -> None:
        super().__init__(case.id)
        self.case, self.played, self.differences = case, played, differences


class ConformanceItem(pytest.Item):
    """One case as a test."""

    def __init__(self, *, case: Case, version: Version, passed: dict[str, bool], **options: Any) -> None:
        super().__init__(**options)
        self._case, self._version, self._passed = case, version, passed
        self.add_marker(case.level.lower())

    def runtest(self) -> None:
        case, subject = self._case, self.config.stash[_SUBJECT]
        skipped = why_skipped(case, subject.profile, self._version)
        if skipped:
            pytest.skip(skipped)
        broken = [name for name in case.depends_on if not self._passed.get(name, True)]
        if broken:
            pytest.skip(f"{', '.join(broken)} did not pass")
        if subject.version is not self._version:
            prepare(subject, self._version)
        played = play(subject, case)
        wrong = played.differences + tuple(one for one in played.aside if not one.informational)
        self._passed[case.id] = not wrong and played.verdict in ("pass", "info")
        if played.verdict == "error":
            raise RuntimeError(played.reason)
        if wrong and not case.informational:
            raise CaseFailed(case, played, wrong)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What the rule says, what was expected and what was seen."""
        failed = excinfo.value
        if not isinstance(failed, CaseFailed):
            return super().repr_failure(excinfo, style)
        lines = [failed.case.title, f"{failed.case.rule.id}: {failed.case.rule.text}"]
        for one in failed.differences:
            rule = f" ({one.rule})" if one.rule != failed.case.rule.id else ""
            lines += ["", f"{one.what}{rule}", f"  expected  {one.expected}", f"  seen      {one.seen}"]
        lines += ["", *(f"{one.sender} -> {one.receiver}: {one.detail or one.label}" for one in failed.played.exchange)]
        secrets = self.config.stash[_SUBJECT].profile.secrets.union(*map(secrets_in, lines))
        return "\n".join(visible(conceal(line, secrets)) for line in lines)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, None, f"{self.name} {self._case.title}"


@pytest.fixture
def hub(pytestconfig: pytest.Config) -> Iterator[World]:
    """The hub under test and everything around it; whatever it does otherwise than the rules say fails the test."""
    subject = pytestconfig.stash.get(_SUBJECT, None)
    if subject is None:
        pytest.skip("needs --hub HOST:PORT")
    world = World(subject)
    try:
        yield world
    finally:
        world.close()
