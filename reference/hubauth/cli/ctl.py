"""``hubauth hub ctl``: tell a running hub what to do, through the door in its data directory."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hubauth.bounded import read_toml
from hubauth.cli.credential_files import read_credential
from hubauth.cli.grammar import add_command, node_id, seconds
from hubauth.cli.problems import REFUSED, CommandError
from hubauth.cli.terminal import tell
from hubauth.core.messages import MAX_DEVICE_ID_BYTES
from hubauth.report.escape import visible
from hubauth.shell.doorway import (
    MAX_NODES,
    MAX_WAIT,
    Answered,
    AnyReply,
    AnyRequest,
    InvalidateRequest,
    NeighbourStatus,
    NoAnswer,
    Problem,
    ReloadRequest,
    Revoked,
    RevokeRequest,
    RevokeStanding,
    Status,
    StatusRequest,
    call,
)

_EXAMPLES = """\
examples:
  hubauth hub ctl status --config hub.toml
  hubauth hub ctl revoke thief --data-dir hub-data
"""
_STANDINGS = {
    "acknowledged": "acknowledged by",
    "owed": "owed to",
    "unconfirmed": "not confirmed by",
    "unsent": "not sent to",
}


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    about = "Tell a running hub what to do. Only the owner of its data directory can."
    ctl = commands.add_parser("ctl", help="tell a running hub what to do", description=about, epilog=_EXAMPLES)
    verbs = ctl.add_subparsers(metavar="ACTION", required=True)
    revoke = add_command(verbs, "revoke", run_revoke, "end a device's credential everywhere", "thief --config hub.toml")
    revoke.add_argument("device", metavar="DEVICE", help="whose credential to revoke")
    revoke.add_argument("--node", type=node_id, default=0, metavar="NODE", help="only if this is its node id")
    revoke.add_argument("--credential-file", type=Path, metavar="FILE", help="only the credential in this file")
    revoke.add_argument("--wait", type=seconds, default=5.0, metavar="SECONDS", help="for other hubs; default: 5")
    invalidate = add_command(
        verbs, "invalidate", run_invalidate, "have cached permissions forgotten", "7 8 --refresh --config hub.toml"
    )
    invalidate.add_argument("nodes", type=node_id, nargs="*", metavar="NODE", help="default: all")
    invalidate.add_argument("--refresh", action="store_true", help="have the named nodes' permissions asked for again")
    status = add_command(verbs, "status", run_status, "how things are", "--config hub.toml --json")
    reload = add_command(verbs, "reload", run_reload, "read the configuration again", "--config hub.toml")
    for parser in (revoke, invalidate, status, reload):
        parser.add_argument("--config", type=Path, metavar="FILE", help="hub.toml, which names the data directory")
        parser.add_argument("--data-dir", type=Path, metavar="DIR", help="of the hub, instead of --config")
        parser.add_argument("--json", action="store_true", help="for a machine to read")


# Commands


def run_revoke(chosen: argparse.Namespace) -> int:
    """Revoke a credential at this hub and every other. Ends when each neighbouring hub that can has acknowledged it."""
    if not 0 < len(chosen.device.encode()) <= MAX_DEVICE_ID_BYTES:
        raise CommandError(f"a device_id of 1 to {MAX_DEVICE_ID_BYTES} bytes is needed")
    if chosen.wait > MAX_WAIT:
        raise CommandError(f"--wait {chosen.wait:g}: at most {MAX_WAIT:g} seconds")
    credential = read_credential("--credential-file", chosen.credential_file)
    request = RevokeRequest(device_id=chosen.device, node_id=chosen.node, credential=credential, wait=chosen.wait)
    answers = list[Answered]()
    for reply in _told(chosen, request):
        if isinstance(reply, Answered):
            answers.append(reply)
            if not chosen.json:
                about = f"{chosen.device} (node {reply.node_id})" if reply.node_id else chosen.device
                tell(f"hub {reply.hub}: {about}: {reply.code} {reply.reason}")
        elif isinstance(reply, Revoked):
            _show_revoked(chosen, answers, reply)
            done = all(neighbour.standing == "acknowledged" for neighbour in reply.neighbours)
            return 0 if done and all(answer.code == 1 for answer in answers) else REFUSED
    raise AssertionError("a revoke has an outcome")


def run_invalidate(chosen: argparse.Namespace) -> int:
    """Have this hub and those below it forget cached permissions."""
    if 0 in chosen.nodes or len(chosen.nodes) > MAX_NODES:
        raise CommandError(f"1 to {MAX_NODES} nodes can be named, and 0 is none")
    return _do(chosen, InvalidateRequest(node_ids=tuple(chosen.nodes), refresh=chosen.refresh))


def run_reload(chosen: argparse.Namespace) -> int:
    """Have the hub read the file of its configuration again, as SIGHUP does, and hear what came of it."""
    return _do(chosen, ReloadRequest())


def run_status(chosen: argparse.Namespace) -> int:
    """Say how things are: the hub, its neighbours, what is owed to them, its journal."""
    for reply in _told(chosen, StatusRequest()):
        assert isinstance(reply, Status)
        tell(*([json.dumps(_plain(reply))] if chosen.json else _table(reply)))
    return 0


def _do(chosen: argparse.Namespace, request: AnyRequest) -> int:
    for reply in _told(chosen, request):
        tell(json.dumps(_plain(reply)) if chosen.json else "done")
    return 0


def _told(chosen: argparse.Namespace, request: AnyRequest) -> Iterator[AnyReply]:
    """What the hub says; what it finds wrong is this command's problem."""
    directory = _directory(chosen)
    try:
        for reply in call(directory, request):
            if isinstance(reply, Problem):
                raise CommandError(reply.error, reply.hint, REFUSED if reply.refused else 2)
            yield reply
    except PermissionError:
        raise CommandError(f"{directory} is for its owner only", "be the user that runs the hub") from None
    except (FileNotFoundError, ConnectionRefusedError):
        raise CommandError(f"no hub runs on {directory}", "start it with: hubauth hub --config FILE") from None
    except OSError as problem:
        raise CommandError(f"cannot reach the hub of {directory}: {problem.strerror or problem}") from None
    except NoAnswer as problem:
        raise CommandError(str(problem), "its log may say why") from None


# What it is given


def _directory(chosen: argparse.Namespace) -> Path:
    if (chosen.config is None) == (chosen.data_dir is None):
        raise CommandError("which hub?", "name its --config FILE or its --data-dir DIR, one of them")
    if chosen.data_dir is not None:
        return _checked(chosen.data_dir)
    # Not the whole configuration: whether that is any good is for the hub to say.
    try:
        tables = read_toml(chosen.config)
    except OSError as problem:
        raise CommandError(f"cannot read {chosen.config}: {problem.strerror}") from None
    except ValueError as problem:
        raise CommandError(f"{chosen.config} is not TOML: {problem}", "name its --data-dir instead") from None
    storage = tables.get("storage")
    named = storage.get("data_dir") if isinstance(storage, dict) else None
    if not isinstance(named, str) or not named:
        raise CommandError(f"{chosen.config} names no data directory", "a hub that has none has no door")
    return _checked(Path(named))


def _checked(directory: Path) -> Path:
    if "\0" in str(directory):
        raise CommandError("a name of a directory has no NUL in it")
    return directory


# What it shows


def _plain(reply: AnyReply) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(reply)
    return plain


def _show_revoked(chosen: argparse.Namespace, answers: list[Answered], outcome: Revoked) -> None:
    if chosen.json:
        tell(json.dumps({"answers": [_plain(answer) for answer in answers], **_plain(outcome)}))
        return
    if not answers:
        tell("no hub with an entry has answered")
    if outcome.unsaid:
        tell(f"{outcome.unsaid} more answers")
    parts = list[str]()
    for standing, words in _STANDINGS.items():
        hubs = [_named(neighbour) for neighbour in outcome.neighbours if neighbour.standing == standing]
        parts += [f"{words} {', '.join(hubs)}"] if hubs else []
    tell("; ".join(parts) or "there is no other hub to tell")
    if outcome.ended == "stopping":
        tell("the hub is stopping; what is owed is sent after its next start")


def _named(neighbour: RevokeStanding) -> str:
    known = f"hub {neighbour.hub}" if neighbour.hub else "the parent"
    about = ["parent"] if neighbour.parent and neighbour.hub else []
    about += ["away"] if neighbour.standing in ("owed", "unsent") and not neighbour.present else []
    return f"{known} ({', '.join(about)})" if about else known


def _table(status: Status) -> Iterator[str]:
    rows = [
        ("hub", f"{visible(status.device_id)}, node {status.node_id or 'not known yet'}, dialect {status.dialect}"),
        ("authority", "this hub" if status.authority else "another hub"),
        ("version", f"{status.version}, up {_age(status.uptime)}"),
        ("online", f"{status.online} here, {status.below} below"),
        ("pending", str(status.pending)),
        ("journal", f"generation {status.generation}, {status.records} records"),
    ]
    if status.broken is not None:
        broken = ", ".join(f"{visible(promise)} {often} times" for promise, often in sorted(status.broken.items()))
        rows.append(("promises", f"BROKEN: {broken}" if broken else "none broken"))
    yield from (f"{name:<11} {value}" for name, value in rows)
    if status.neighbours:
        yield ""
        titles = ("neighbour", "name", "", "online", "owed", "oldest")
        yield from _aligned([titles, *map(_row, status.neighbours)])


def _row(neighbour: NeighbourStatus) -> tuple[str, ...]:
    title = f"hub {neighbour.hub or '?'}{' (parent)' if neighbour.parent else ''}"
    presence = f"{'present' if neighbour.present else 'away'} {_age(neighbour.seconds)}"
    presence += ", plain" if neighbour.present and not neighbour.extended else ""
    online = "" if neighbour.parent else str(neighbour.online)
    return title, visible(neighbour.name), presence, online, str(neighbour.owed), visible(neighbour.oldest)


def _aligned(rows: list[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def _age(lasted: float) -> str:
    """For how long, in the two largest units that say something."""
    left = int(lasted)
    parts = list[str]()
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or (parts and len(parts) < 2) or unit == "s":
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2])
