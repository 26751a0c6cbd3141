"""``hubauth device``: what a device can ask for, from the shell."""

import argparse
import asyncio
import json
import os
import ssl
from collections.abc import Awaitable, Callable
from errno import EISDIR
from pathlib import Path
from typing import Any

import msgspec
from attrs import evolve, frozen

from hubauth import private
from hubauth.bounded import read_json
from hubauth.cli.credential_files import read_credential
from hubauth.cli.grammar import node_id, seconds
from hubauth.cli.problems import REFUSED, CommandError
from hubauth.cli.terminal import tell
from hubauth.core.messages import CODES, Answer, ListRoles, PermsInvalidate, Reason, Revoke
from hubauth.core.policy import Dialect
from hubauth.shell.addresses import parse_address
from hubauth.shell.client import DeviceClient, Options, Refused, Unavailable
from hubauth.shell.tls import client_context
from hubauth.wire.dialects.codec import NotInDialect
from hubauth.wire.dialects.outcomes import WORDINGS
from hubauth.wire.header import Version

CREDENTIAL_VARIABLE = "HUBAUTH_CREDENTIAL"


class Identity(msgspec.Struct):
    """What a device keeps of itself."""

    device_id: str
    node_id: int = 0
    credential: str = ""


@frozen
class _Verb:
    """One thing to ask for. ``admit``: be admitted first, with the credential from before."""

    name: str
    help: str
    ask: Callable[[DeviceClient, argparse.Namespace], Awaitable[Answer | None]]
    example: str
    """What may follow the name."""
    grammar: Callable[[argparse.ArgumentParser], None] = lambda _: None
    admit: bool = True
    silence: str = ""
    """What no answer means."""


async def _register(device: DeviceClient, chosen: argparse.Namespace) -> Answer:
    if chosen.identity is not None:
        # A credential that cannot be kept would be lost, and the one before it is void by then.
        _save(chosen.identity, None)
    answer = await device.register()
    if chosen.identity is not None:
        try:
            _save(chosen.identity, Identity(device.device_id, device.node_id, device.credential))
        except CommandError:
            _show(chosen, answer, with_credential=True)
            raise
    return answer


async def _authenticate(device: DeviceClient, _: argparse.Namespace) -> Answer:
    return await device.authenticate()


async def _offline(device: DeviceClient, chosen: argparse.Namespace) -> Answer:
    return await device.offline(chosen.reason)


async def _get_perms(device: DeviceClient, chosen: argparse.Namespace) -> Answer:
    return await device.get_perms(chosen.node)


async def _list_roles(device: DeviceClient, chosen: argparse.Namespace) -> Answer:
    return await device.list_roles(ListRoles(chosen.offset, chosen.limit, chosen.role, tuple(chosen.nodes)))


async def _revoke(device: DeviceClient, chosen: argparse.Namespace) -> Answer | None:
    message = Revoke(chosen.revoked, chosen.node, chosen.revoked_credential)
    return await device.revoke(message, target=chosen.target, wait=chosen.wait)


async def _invalidate(device: DeviceClient, chosen: argparse.Namespace) -> None:
    await device.perms_invalidate(PermsInvalidate(tuple(chosen.nodes), chosen.reason, chosen.refresh))


def _offline_grammar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", default="", metavar="TEXT", help="said to the hubs above")


def _get_perms_grammar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("node", type=node_id, nargs="?", default=0, metavar="NODE", help="default: this device")


def _list_roles_grammar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodes", type=node_id, nargs="*", metavar="NODE", help="only these")
    parser.add_argument("--role", default="", metavar="NAME", help="only this role")
    parser.add_argument("--offset", type=int, default=0, metavar="N", help="rows to leave out")
    parser.add_argument("--limit", type=int, default=100, metavar="N", help="rows to show at most")


def _revoke_grammar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("revoked", metavar="DEVICE", help="whose credential to revoke")
    parser.add_argument("--node", type=node_id, default=0, metavar="NODE", help="only if this is its node id")
    parser.add_argument(
        "--revoked-credential-file", type=Path, metavar="FILE", help="only if the credential in this file is its own"
    )
    parser.add_argument("--target", type=node_id, default=0, metavar="NODE", help="one hub; default: everywhere")
    parser.add_argument("--wait", type=seconds, default=2.0, metavar="SECONDS", help="for an answer")


def _invalidate_grammar(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("nodes", type=node_id, nargs="*", metavar="NODE", help="default: all")
    parser.add_argument("--reason", default="", metavar="TEXT", help="said to the hubs below")
    parser.add_argument("--refresh", action="store_true", help="have the named nodes' permissions asked for again")


_VERBS = (
    _Verb("register", "get a node id and a credential", _register, "--device-id sensor", admit=False),
    _Verb("auth", "be admitted with the credential from before", _authenticate, "--json", admit=False),
    _Verb(
        "revoke",
        "end a device's credential",
        _revoke,
        "thief",
        _revoke_grammar,
        silence="no hub with an entry has answered",
    ),
    _Verb("offline", "end the session", _offline, "--reason maintenance", _offline_grammar),
    _Verb("get-perms", "role and permissions of a node", _get_perms, "7", _get_perms_grammar),
    _Verb("list-roles", "nodes and their roles", _list_roles, "--role admin --limit 20", _list_roles_grammar),
    _Verb(
        "perms-invalidate",
        "have cached permissions forgotten",
        _invalidate,
        "7 8 --refresh",
        _invalidate_grammar,
        silence="done",
    ),
)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    examples = "\n".join(_example(verb) for verb in _VERBS)
    device = commands.add_parser(
        "device",
        help="ask a hub for something, as a device",
        description="Ask a hub for something, as a device.",
        epilog=f"examples:\n{examples}\n",
    )
    verbs = device.add_subparsers(metavar="ACTION", required=True)
    for verb in _VERBS:
        parser = verbs.add_parser(verb.name, help=verb.help, epilog=f"examples:\n{_example(verb)}\n")
        parser.set_defaults(run=run, verb=verb)
        parser.add_argument("--hub", default="127.0.0.1:7080", metavar="HOST:PORT", help="default: 127.0.0.1:7080")
        parser.add_argument("--device-id", default="", metavar="NAME", help="who asks")
        parser.add_argument(
            "--credential", default="", metavar="SECRET", help=f"better: ${CREDENTIAL_VARIABLE}, or --identity"
        )
        parser.add_argument("--identity", type=Path, metavar="FILE", help="keeps name, node id and credential")
        parser.add_argument("--dialect", choices=["auth", "login", "flat"], default="auth", help="default: auth")
        parser.add_argument("--header", type=int, choices=[1, 2], default=1, help="version of the frame header")
        parser.add_argument("--tls", action="store_true", help="connect by TLS")
        parser.add_argument("--ca", default="", metavar="FILE", help="certificates to trust")
        parser.add_argument("--server-name", default="", metavar="NAME", help="the name in the hub's certificate")
        parser.add_argument("--timeout", type=seconds, default=10.0, metavar="SECONDS", help="for an answer")
        parser.add_argument("--json", action="store_true", help="for a machine to read")
        verb.grammar(parser)


def _example(verb: _Verb) -> str:
    return f"  hubauth device {verb.name} {verb.example} --identity {'admin' if verb.admit else 'sensor'}.json"


def run(chosen: argparse.Namespace) -> int:
    """Connect, be admitted if need be, ask, and show the answer."""
    identity = _identity(chosen)
    verb: _Verb = chosen.verb
    if verb.name == "revoke":
        chosen.revoked_credential = read_credential("--revoked-credential-file", chosen.revoked_credential_file)
    try:
        address = parse_address(chosen.hub)
    except ValueError as problem:
        raise CommandError(f"--hub: {problem}") from None
    if (chosen.ca or chosen.server_name) and not chosen.tls:
        raise CommandError("--ca and --server-name need --tls", "without it the credential travels for all to read")
    if verb.name != "register" and not identity.credential and chosen.dialect != "flat":
        hint = f"set {CREDENTIAL_VARIABLE}, or name the --identity file that `hubauth device register` wrote"
        raise CommandError("no credential", hint)

    async def ask() -> Answer | None:
        device = DeviceClient(
            address,
            identity.device_id,
            credential=identity.credential,
            node_id=identity.node_id,
            options=Options(
                Dialect(chosen.dialect), Version(chosen.header), _tls(chosen), chosen.server_name, chosen.timeout
            ),
        )
        async with device:
            if verb.admit:
                await device.authenticate()
            return await verb.ask(device, chosen)

    try:
        answer = asyncio.run(ask())
    except Refused as refused:
        _show(chosen, refused.answer)
        return REFUSED
    except NotInDialect:
        raise CommandError(f"the dialect {chosen.dialect} has no {verb.name}") from None
    except Unavailable as problem:
        raise CommandError(str(problem), f"is a hub listening at {address}, with this dialect and header?") from None
    if answer is None:
        tell(json.dumps({"code": None, "msg": verb.silence}) if chosen.json else verb.silence)
    else:
        # Whoever registers without an identity file has to keep the credential somewhere else.
        _show(chosen, answer, with_credential=verb.name == "register" and chosen.identity is None)
    return 0


def _tls(chosen: argparse.Namespace) -> ssl.SSLContext | None:
    return client_context(chosen.ca) if chosen.tls else None


def _identity(chosen: argparse.Namespace) -> Identity:
    identity = Identity(chosen.device_id)
    if chosen.identity is not None and (chosen.verb.name != "register" or not chosen.device_id):
        try:
            identity = read_json(chosen.identity, Identity)
        except OSError as problem:
            raise CommandError(f"cannot read {chosen.identity}: {problem.strerror}") from None
        except ValueError as problem:
            raise CommandError(f"{chosen.identity} is no identity file: {problem}") from None
    if chosen.device_id:
        identity.device_id = chosen.device_id
    identity.credential = chosen.credential or os.environ.get(CREDENTIAL_VARIABLE, "") or identity.credential
    if not 0 < len(identity.device_id.encode()) <= 128:
        raise CommandError("a device_id of 1 to 128 bytes is needed", "--device-id NAME, or --identity FILE")
    return identity


def _save(path: Path, identity: Identity | None) -> None:
    """Replace the file as a whole. None: only find out whether that can be done."""
    temporary = path.with_name(path.name + ".new")
    try:
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        temporary.unlink(missing_ok=True)
        private.write(temporary, msgspec.json.encode(identity) if identity is not None else b"")
        if identity is not None:
            temporary.rename(path)
        else:
            temporary.unlink()
    except OSError as problem:
        raise CommandError(f"cannot write {path}: {problem.strerror}") from None


def _show(chosen: argparse.Namespace, answer: Answer, *, with_credential: bool = False) -> None:
    """Say what was answered; a credential only to whoever would lose it otherwise."""
    said = _fields(answer if with_credential else evolve(answer, credential=""))
    if chosen.json:
        tell(json.dumps(said))
        return
    if answer.reason is not Reason.OK:
        tell(f"refused: {said['code']} {said['msg']}")
        return
    for name, value in said.items():
        if name == "roles":
            for row in value:
                tell(f"  {row['node_id']:>10}  {row['role']:<16} {' '.join(row['perms'])}")
        elif name not in ("code", "msg") and value not in ("", 0, [], None):
            tell(f"{name:<11} {' '.join(value) if isinstance(value, list) else value}")
    if len(said) == 2:
        tell("ok")


def _fields(answer: Answer) -> dict[str, Any]:
    said: dict[str, Any] = {"code": CODES[answer.reason], "msg": WORDINGS[answer.reason].msg}
    for name in ("device_id", "node_id", "credential"):
        if getattr(answer, name):
            said[name] = getattr(answer, name)
    if answer.grant.role:
        said |= {"role": answer.grant.role, "perms": list(answer.grant.perms)}
    if answer.roles or answer.total:
        said["total"] = answer.total
        said["roles"] = [
            {"node_id": row.node_id, "role": row.grant.role, "perms": list(row.grant.perms)} for row in answer.roles
        ]
    return said
