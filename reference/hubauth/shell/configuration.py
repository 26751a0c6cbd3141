"""From ``hub.toml`` to what a hub runs with. Everything that is wrong is found here, before anything is opened."""

import re
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
from attrs import frozen

from hubauth.bounded import read_toml
from hubauth.core.keys import read_keys
from hubauth.core.messages import MAX_DEVICE_ID_BYTES
from hubauth.core.policy import Policy, Provisioned
from hubauth.shell.addresses import Address, parse_address
from hubauth.shell.origins import read_origin
from hubauth.shell.settings import (
    File,
    LimitsTable,
    ListenTable,
    LogTable,
    ParentTable,
    PerAddressTable,
    PlainHubTable,
    StorageTable,
    TlsTable,
)
from hubauth.wire.header import Version

_AT = re.compile(r"^(?P<reason>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<name>[^`]*)`")
_TYPES = re.compile(r"`([^`]*)`")
_MISSING = re.compile(r"missing required field `(?P<name>[^`]*)`")


class ConfigurationError(Exception):
    """What is wrong with the configuration: the key, the reason, and perhaps what to do about it."""

    def __init__(self, key: str, reason: str, hint: str = "") -> None:
        super().__init__(f"{key}: {reason}" if key else reason)
        self.key, self.reason, self.hint = key, reason, hint


@frozen
class HubConfig:
    """What one hub runs with."""

    policy: Policy
    listen: Address
    listening: ListenTable
    header: Version | None
    """None: as the first frame of a connection shows."""
    parent: Address | None
    parenting: ParentTable | None
    limits: LimitsTable
    per_address: PerAddressTable
    storage: StorageTable
    tls: TlsTable | None
    metrics: Address | None
    log: LogTable
    plain_hubs: tuple[PlainHubTable, ...]


def load(path: Path, overrides: Mapping[str, Mapping[str, Any]] | None = None) -> HubConfig:
    """The configuration in a file, some keys replaced. Raises ConfigurationError, and nothing else."""
    try:
        tables = read_toml(path)
    except OSError as problem:
        hint = "`hubauth hub init` writes a configuration to begin with"
        raise ConfigurationError("", f"cannot read {path}: {problem.strerror or problem}", hint) from problem
    except ValueError as problem:
        raise ConfigurationError("", f"{path} is not TOML: {problem}") from problem
    return configure(merge(tables, overrides or {}))


def merge(tables: dict[str, Any], overrides: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The tables with the overriding keys in their place."""
    merged = dict(tables)
    for name, keys in overrides.items():
        table = merged.get(name, {})
        merged[name] = {**table, **keys} if isinstance(table, dict) else table
    return merged


def configure(tables: Mapping[str, Any]) -> HubConfig:
    """The configuration that these tables describe. Raises ConfigurationError for the first thing that is wrong."""
    for family in ("auth", "authority"):
        _check_texts(family, tables.get(family))
    try:
        file = msgspec.convert(tables, File)
    except msgspec.ValidationError as problem:
        raise _located(str(problem)) from None
    listen = _address("listen.address", file.listen.address)
    parent = None if file.parent is None else _address("parent.address", file.parent.address)
    if parent is not None and parent.port == 0:
        raise ConfigurationError("parent.address", "port 0 cannot be connected to")
    metrics = None if file.metrics is None else _address("metrics.address", file.metrics.address)
    _check_exempt(file)
    _check_storage(file)
    _check_tls(file)
    _check_plain_hubs(file)
    return HubConfig(
        policy=_policy(file),
        listen=listen,
        listening=file.listen,
        header=None if file.listen.header == "auto" else Version(file.listen.header),
        parent=parent,
        parenting=file.parent,
        limits=file.limits,
        per_address=file.per_address,
        storage=file.storage,
        tls=file.tls,
        metrics=metrics,
        log=file.log,
        plain_hubs=file.plain_hub,
    )


def _check_texts(family: str, table: object) -> None:
    """The documents' keys are texts in a syntax of their own. msgspec would not say which key of a mapping it means."""
    if isinstance(table, Mapping):
        for name, value in table.items():
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise ConfigurationError(f"{family}.{name}", 'must be a text, such as "p1,p2" or "1:admin;2:node"')


def _located(message: str) -> ConfigurationError:
    """msgspec's sentence as key and reason."""
    match = _AT.match(message)
    assert match is not None
    reason, path = match["reason"], match["path"] or ""
    for pattern, said in ((_UNKNOWN, "unknown key"), (_MISSING, "is missing")):
        field = pattern.search(reason)
        if field is not None:
            return ConfigurationError(".".join(filter(None, (path, field["name"]))), said)
    reason = _TYPES.sub(lambda types: types[1].replace("str", "text").replace("object", "table"), reason)
    return ConfigurationError(path, reason[:1].lower() + reason[1:])


def _address(key: str, text: str) -> Address:
    try:
        return parse_address(text)
    except ValueError as problem:
        raise ConfigurationError(key, str(problem)) from None


def _check_exempt(file: File) -> None:
    for at, network in enumerate(file.per_address.exempt):
        try:
            ip_network(network)
        except ValueError as problem:
            hint = "an address such as 10.0.0.5, or a network such as 10.0.0.0/24"
            raise ConfigurationError(f"per_address.exempt[{at}]", str(problem), hint) from None


def _check_storage(file: File) -> None:
    if "\0" in file.storage.data_dir:
        raise ConfigurationError("storage.data_dir", "is no name of a directory")
    if file.storage.durability != "none" and not file.storage.data_dir:
        hint = 'name a directory of the hub\'s own, or say durability = "none": then a restart forgets everything'
        raise ConfigurationError("storage.data_dir", "is missing", hint)


def _check_tls(file: File) -> None:
    files: dict[str, str] = {}
    if file.tls is not None:
        files |= {"tls.certificate": file.tls.certificate, "tls.key": file.tls.key, "tls.client_ca": file.tls.client_ca}
    if file.parent is not None:
        parent = file.parent
        files |= {"parent.ca": parent.ca, "parent.certificate": parent.certificate, "parent.key": parent.key}
        if bool(parent.certificate) != bool(parent.key):
            raise ConfigurationError("parent.certificate", "certificate and key belong together")
        if not parent.tls and (parent.ca or parent.certificate or parent.server_name):
            raise ConfigurationError("parent.tls", "is not on, but its other keys are set")
    for key, name in files.items():
        if name and not _is_file(name):
            raise ConfigurationError(key, f"no such file: {name}")


def _check_plain_hubs(file: File) -> None:
    for at, hub in enumerate(file.plain_hub):
        key = f"plain_hub[{at}]"
        if bool(hub.address) == bool(hub.certificate):
            hint = "where the hub connects from: address or certificate"
            raise ConfigurationError(key, "needs either address or certificate", hint)
        try:
            read_origin(hub.address, hub.certificate)
        except ValueError as problem:
            hint = "an address such as 10.0.0.5, a network such as 10.0.0.0/24, or sha256: and 64 hexadecimal digits"
            raise ConfigurationError(
                f"{key}.{'address' if hub.address else 'certificate'}", str(problem), hint
            ) from None
        if hub.certificate and (file.tls is None or not file.tls.client_ca):
            raise ConfigurationError(f"{key}.certificate", "nobody is asked for a certificate without tls.client_ca")


def _is_file(name: str) -> bool:
    try:
        return Path(name).is_file()
    except OSError:
        return False


def _policy(file: File) -> Policy:
    hub, limits = file.hub, file.limits
    chosen = {name: getattr(hub, name) for name in hub.__struct_fields__}
    base = Policy(
        **chosen,
        has_parent=file.parent is not None,
        provisioned=_provisioned(file),
        plain_hubs=tuple(sorted({hub.node_id for hub in file.plain_hub})),
        pending_limit=limits.pending,
        hub_pending_limit=limits.hub_pending,
        request_seconds=limits.request_seconds,
        revoke_memory_seconds=limits.revoke_memory_seconds,
        learnt_limit=limits.learnt,
        announce_batch=limits.announce_batch,
        revoke_batch=limits.revoke_batch,
    )
    keys = {f"auth.{name}": str(value) for name, value in file.auth.items()}
    keys |= {f"authority.{name}": str(value) for name, value in file.authority.items()}
    parsed = read_keys(keys, base)
    if parsed.problems:
        problem = parsed.problems[0]
        raise ConfigurationError(problem.key, problem.reason)
    _check_identity(file, parsed.policy)
    return parsed.policy


def _provisioned(file: File) -> tuple[Provisioned, ...]:
    devices: set[str] = set()
    nodes: set[int] = set()
    for at, binding in enumerate(file.provisioned):
        key = f"provisioned[{at}]"
        if len(binding.device_id.encode(errors="replace")) > MAX_DEVICE_ID_BYTES:
            raise ConfigurationError(f"{key}.device_id", f"longer than {MAX_DEVICE_ID_BYTES} bytes")
        if binding.device_id in devices:
            raise ConfigurationError(f"{key}.device_id", f"{binding.device_id!a} is provisioned twice")
        if binding.node_id in nodes or binding.node_id == file.hub.node_id:
            raise ConfigurationError(f"{key}.node_id", f"node {binding.node_id} is taken already")
        devices.add(binding.device_id)
        nodes.add(binding.node_id)
    return tuple(
        Provisioned(binding.device_id, binding.node_id, binding.credential, binding.role)
        for binding in file.provisioned
    )


def _check_identity(file: File, policy: Policy) -> None:
    if policy.node_id in policy.plain_hubs:
        raise ConfigurationError("plain_hub", f"node {policy.node_id} is this hub's own")
    if policy.node_id in policy.provisioned_by_node:
        raise ConfigurationError("hub.node_id", f"node {policy.node_id} is provisioned for a device")
    if len(policy.device_id.encode(errors="replace")) > MAX_DEVICE_ID_BYTES:
        raise ConfigurationError("hub.device_id", f"longer than {MAX_DEVICE_ID_BYTES} bytes")
    for at, binding in enumerate(policy.provisioned):
        expected = bool(policy.role_perms) or (bool(binding.credential) and not policy.default_perms)
        if binding.role and expected and binding.role not in policy.role_perms:
            reason = f"role {binding.role!a} has no permissions in auth.role_perms"
            raise ConfigurationError(f"provisioned[{at}].role", reason)
    if file.parent is not None and bool(file.hub.credential) and not file.hub.node_id:
        raise ConfigurationError("hub.node_id", "is missing, although hub.credential is set")
