"""``hubauth provision``: one child hub's binding, for both sides."""

import argparse
import json
import secrets
from collections.abc import Mapping

from hubauth.cli.problems import CommandError
from hubauth.cli.template import quoted
from hubauth.cli.terminal import tell
from hubauth.core.keys import read_keys
from hubauth.core.messages import MAX_NODE_ID
from hubauth.core.policy import Policy
from hubauth.shell.addresses import parse_address
from hubauth.shell.origins import read_origin

_EXAMPLES = """\
examples:
  hubauth provision hub-2 2 --parent 10.0.0.1:7080
  hubauth provision hub-2 2 --json
  hubauth provision warehouse 12 --plain-address 10.0.0.5
"""


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """The grammar of this command."""
    provision = commands.add_parser(
        "provision",
        help="make a child hub's binding for both sides",
        description="Draw a credential for a child hub and print what belongs into which configuration.",
        epilog=_EXAMPLES,
    )
    provision.set_defaults(run=run)
    provision.add_argument("device_id", help="the child hub's name, unique in the tree")
    provision.add_argument("node_id", type=int, help="the child hub's node id, never handed out otherwise")
    provision.add_argument("--role", default="hub", help="needs auth.assist in auth.role_perms (default: hub)")
    provision.add_argument("--parent", default="", metavar="HOST:PORT", help="where the parent listens")
    plain = provision.add_mutually_exclusive_group()
    plain.add_argument(
        "--plain-address",
        default="",
        metavar="ADDRESS",
        help="the child hub never authenticates: it is known by the address or network it connects from",
    )
    plain.add_argument(
        "--plain-certificate",
        default="",
        metavar="sha256:HEX",
        help="likewise, by the fingerprint of the TLS certificate it shows",
    )
    provision.add_argument("--json", action="store_true", help="for a machine to read")


def run(chosen: argparse.Namespace) -> int:
    if not 1 < chosen.node_id <= MAX_NODE_ID:
        raise CommandError(f"not a node id for a child hub: {chosen.node_id}", "1 is the root's; take 2 or more")
    if not 0 < len(chosen.device_id.encode()) <= 128:
        raise CommandError("the name must have 1 to 128 bytes")
    if chosen.role not in read_keys({"auth.role_perms": f"{chosen.role}:auth.assist"}, Policy()).policy.role_perms:
        raise CommandError(f"not the name of a role: {chosen.role!a}")
    if chosen.parent:
        try:
            parse_address(chosen.parent)
        except ValueError as problem:
            raise CommandError(f"--parent: {problem}") from None
    if chosen.plain_address or chosen.plain_certificate:
        return _provision_plain(chosen)
    credential = secrets.token_urlsafe(32)
    binding = {"device_id": chosen.device_id, "node_id": chosen.node_id, "credential": credential, "role": chosen.role}
    listed = {key: value for key, value in binding.items() if key != "credential"}
    own = {key: value for key, value in binding.items() if key != "role"}
    if chosen.json:
        tell(json.dumps({"parent": binding, "authority": listed, "child": own}))
        return 0
    tell("# In the configuration of the parent, which verifies it:", "")
    _table("[[provisioned]]", binding)
    tell(f"# and under [auth]: role_perms = {quoted(chosen.role + ':auth.assist')}", "")
    tell("# In the configuration of the authority, if that is another hub:", "")
    _table("[[provisioned]]", listed)
    tell("# In the configuration of the child hub itself:", "")
    _table("[hub]", own)
    _table("[parent]", {"address": chosen.parent or "HOST:PORT"})
    return 0


def _provision_plain(chosen: argparse.Namespace) -> int:
    """What the parent and the authority must know of a hub that nothing is said to."""
    origin = {"address": chosen.plain_address, "certificate": chosen.plain_certificate}
    try:
        read_origin(**origin)
    except ValueError as problem:
        raise CommandError(f"not where a hub can connect from: {problem}") from None
    known = {"node_id": chosen.node_id, **{key: value for key, value in origin.items() if value}}
    listed = {"device_id": chosen.device_id, "node_id": chosen.node_id}
    if chosen.json:
        tell(json.dumps({"parent": known, "authority": listed}))
        return 0
    tell("# In the configuration of the parent:", "")
    _table("[[plain_hub]]", known)
    tell("# In the configurations of the parent and of the authority, if that is another hub:", "")
    _table("[[provisioned]]", listed)
    return 0


def _table(name: str, values: Mapping[str, str | int]) -> None:
    tell(name)
    for key, value in values.items():
        tell(f"{key} = {quoted(value)}")
    tell("")
