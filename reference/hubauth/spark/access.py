"""Files as pyarrow reaches them, so that an executor reads its own row groups without the JVM.

A path is named as Spark names it, and what Spark was told of the store holds here, too, as far as pyarrow has a word
for it. What pyarrow does not reach is read by Spark.
"""

from typing import Any
from urllib.parse import urlsplit

import pyarrow.fs as pafs
import pyarrow.parquet as pq
from attrs import field, frozen

_S3 = ("s3a", "s3n", "s3")
_S3_SETTINGS = {
    "access.key": "access_key",
    "secret.key": "secret_key",
    "session.token": "session_token",
    "endpoint.region": "region",
    "endpoint": "endpoint_override",
}
"""Of ``fs.s3a.`` (or ``fs.s3a.bucket.NAME.``): what Spark calls it, and what pyarrow does."""
_S3_SWITCHES = ("path.style.access", "connection.ssl.enabled", "aws.credentials.provider")


@frozen
class Access:
    """What has to be known to open a file; it travels to executors with the function that they run."""

    settings: dict[str, str] = field(factory=dict, repr=False)

    @staticmethod
    def wanted(path: str) -> list[str]:
        """The settings of Hadoop's that say how to reach a path."""
        split = urlsplit(path)
        if split.scheme not in _S3:
            return []
        names = (*_S3_SETTINGS, *_S3_SWITCHES)
        return [f"{prefix}{name}" for prefix in ("fs.s3a.", f"fs.s3a.bucket.{split.netloc}.") for name in names]

    def open_parquet(self, path: str, **how: Any) -> Any:
        """A Parquet file. Raises whatever pyarrow raises."""
        system, inside = self._system(path)
        # A row group of a store at once: its columns one by one would be as many requests.
        ahead = not isinstance(system, pafs.LocalFileSystem)
        return pq.ParquetFile(system.open_input_file(inside), pre_buffer=ahead, **how)

    def _system(self, path: str) -> tuple[Any, str]:
        split = urlsplit(path)
        if split.scheme in ("", "file"):
            return pafs.LocalFileSystem(), path.removeprefix("file://").removeprefix("file:")
        if split.scheme in _S3:
            bucket, inside = split.netloc, path.split("://", 1)[1]
            return pafs.S3FileSystem(**self._s3(bucket)), inside
        system, inside = pafs.FileSystem.from_uri(path)
        return system, inside

    def _s3(self, bucket: str) -> dict[str, Any]:
        def said(name: str) -> str:
            return self.settings.get(f"fs.s3a.bucket.{bucket}.{name}") or self.settings.get(f"fs.s3a.{name}", "")

        given: dict[str, Any] = {ours: said(theirs) for theirs, ours in _S3_SETTINGS.items() if said(theirs)}
        if "Anonymous" in said("aws.credentials.provider"):
            given["anonymous"] = True
        if said("connection.ssl.enabled") == "false":
            given["scheme"] = "http"
        if "endpoint_override" in given:
            scheme, _, host = given["endpoint_override"].rpartition("://")
            given["endpoint_override"] = host
            given |= {"scheme": scheme} if scheme else {}
            given["force_virtual_addressing"] = said("path.style.access") != "true"
        return given
