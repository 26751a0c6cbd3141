"""``hubauth profile``: what a hub is said to be, before anything is judged by it."""

import argparse
import sys
from pathlib import Path

import msgspec

from hubauth import private
from hubauth.cli.grammar import add_command, seconds
from hubauth.cli.problems import REFUSED, CommandError
from hubauth.cli.terminal import tell, tell_text
from hubauth.forms.events import TraceError
from hubauth.oracle.conform.fit import misfits
from hubauth.oracle.conform.learn import learn
from hubauth.oracle.conform.learn_trace import learn_trace
from hubauth.oracle.conform.profile import Profile, ProfileError, load_profile
from hubauth.oracle.conform.results import FAILED, UNREADABLE
from hubauth.oracle.conform.subject import NotServing, Subject
from hubauth.oracle.conform.wire import Unreachable
from hubauth.shell.addresses import Address, parse_address
from hubauth.wire.header import Version

_EXAMPLES = """\
examples:
  hubauth profile learn 127.0.0.1:7080 > my-hub.toml
  hubauth profile learn traces/tapped > my-hub.toml
  hubauth profile check 127.0.0.1:7080 my-hub.toml
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "What a hub is said to be: the file that hubauth conform reads."
    parser = commands.add_parser("profile", help="propose or check a profile", description=about, epilog=_EXAMPLES)
    inner = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = add_command(inner, "check", run_check, "whether it fits a hub", "127.0.0.1:7080 my-hub.toml")
    check.add_argument("hub", metavar="HOST:PORT", help="a running hub")
    check.add_argument("profile", type=Path, metavar="PROFILE", help="the profile")
    check.add_argument("--json", action="store_true", help="the result as JSON")
    learning = add_command(inner, "learn", run_learn, "propose one for a hub", "127.0.0.1:7080 > my-hub.toml")
    learning.add_argument(
        "source",
        metavar="TRACE|HOST:PORT",
        help="a trace of one hub, or a running hub, where two devices register",
    )
    learning.add_argument(
        "--timeout", type=seconds, default=1.0, metavar="SECONDS", help="for what may not be answered (default: 1)"
    )


def run_check(chosen: argparse.Namespace) -> int:
    """Ask a running hub for what its profile says: dialect, header, node ids, credentials, roles.

    Exit code 0: it fits; 1: it does not; 3: there is no such hub; 4: the profile cannot be read.
    """
    address = _address("HOST:PORT", chosen.hub)
    profile = _profile(chosen.profile)
    with Subject(address.host, address.port, profile, Version(profile.header[0])) as subject:
        if profile.parent is not None:
            above = _address("parent.listen", profile.parent.listen)
            try:
                subject.listen(above.host, above.port)
            except OSError as problem:
                raise CommandError(f"cannot listen on {above}: {problem.strerror}", "see parent.listen") from None
        try:
            found = list(misfits(subject))
        except (Unreachable, NotServing) as problem:
            raise CommandError(str(problem), "is that the hub, and does it run?", FAILED) from None
    if chosen.json:
        plain = [{"key": one.key, "said": one.said, "seen": one.seen} for one in found]
        tell(msgspec.json.encode({"fits": not found, "misfits": plain}).decode())
    elif found:
        tell(f"{chosen.profile} does not fit the hub at {address}:")
        tell(*(f"  {one.key}: the profile says {one.said}; {one.seen}" for one in found))
    else:
        known = [one.device_id for one in profile.bindings]
        versions = " and ".join(map(str, profile.header))
        tell(f"{chosen.profile} fits: dialect {profile.dialect.value}, header {versions}, {len(known)} known: {known}")
    return REFUSED if found else 0


def run_learn(chosen: argparse.Namespace) -> int:
    """Propose a profile from what a hub does, or did in a trace, for a person to read and to complete."""
    trace = Path(chosen.source)
    try:
        if trace.exists():
            found = learn_trace(trace)
        else:
            address = _address("TRACE|HOST:PORT", chosen.source)
            found = learn(address.host, address.port, chosen.timeout)
    except TraceError as problem:
        raise CommandError(str(problem), code=UNREADABLE) from None
    except (Unreachable, NotServing) as problem:
        raise CommandError(str(problem), "is that the hub, and does it run?", FAILED) from None
    tell_text(found.toml())
    return 0


def _profile(path: Path) -> Profile:
    try:
        profile = load_profile(path)
    except ProfileError as problem:
        raise CommandError(str(problem), code=UNREADABLE) from None
    shared = private.why_not_private(path) if profile.secrets else ""
    if shared:
        tell(f"warning: {shared}", to=sys.stderr)
    return profile


def _address(what: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as problem:
        raise CommandError(f"{what}: {problem}") from None
