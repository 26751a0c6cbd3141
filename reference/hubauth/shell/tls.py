"""TLS contexts from configuration. Certificates are always verified where TLS is used to connect."""

import ssl

from hubauth.shell.configuration import ConfigurationError, HubConfig
from hubauth.shell.settings import ParentTable, TlsTable


def check_tls(config: HubConfig) -> None:
    """Raise ConfigurationError for a certificate that cannot be used."""
    if config.tls is not None:
        server_context(config.tls)
    if config.parenting is not None:
        parent_context(config.parenting)


def server_context(table: TlsTable) -> ssl.SSLContext:
    """For those who connect. With ``client_ca`` they must show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load_chain(context, "tls.certificate", table.certificate, table.key)
    if table.client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        _load_trusted(context, "tls.client_ca", table.client_ca)
    return context


def parent_context(table: ParentTable) -> ssl.SSLContext | None:
    """For the connection to the parent; None if it is a plain one."""
    return client_context(table.ca, table.certificate, table.key, "parent") if table.tls else None


def client_context(ca: str = "", certificate: str = "", key: str = "", family: str = "tls") -> ssl.SSLContext:
    """For connecting: the other end must prove its name."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        _load_trusted(context, f"{family}.ca", ca)
    if certificate:
        _load_chain(context, f"{family}.certificate", certificate, key)
    return context


def _load_chain(context: ssl.SSLContext, name: str, certificate: str, key: str) -> None:
    try:
        context.load_cert_chain(certificate, key or None, password=_no_password)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigurationError(name, f"cannot be used: {problem}") from None


def _no_password() -> str:
    raise ssl.SSLError("the key is encrypted")


def _load_trusted(context: ssl.SSLContext, name: str, ca: str) -> None:
    try:
        context.load_verify_locations(ca)
    except (OSError, ssl.SSLError) as problem:
        raise ConfigurationError(name, f"cannot be used: {problem}") from None
