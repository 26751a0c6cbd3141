"""Where vectors are kept: the folder of the specification, or an archive that says of every file what it must hold."""

import hashlib
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from hubauth import __version__
from hubauth.bounded import decode_json, read
from hubauth.oracle.vectors import FORMAT, AnyCase, VectorFile
from hubauth.specification import SPEC

FOLDER = SPEC / "vectors"
MANIFEST = "manifest.json"
NOT_CASES = ("index.json", MANIFEST, ".schema.json")
"""How the JSON files are called that hold no cases."""
LARGEST = 64 * 1024 * 1024
"""Bytes that an archive may unpack to."""

_DAMAGED = (
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
    *(EOFError, RuntimeError, ValueError, OverflowError, IndexError),
)
"""What reading a ZIP archive raises that is not one, or only in part."""
_EPOCH = (1980, 1, 1, 0, 0, 0)


class VectorError(Exception):
    """What is wrong with a file, a folder or an archive of vectors."""


class Manifest(msgspec.Struct, forbid_unknown_fields=True):
    """What an archive holds."""

    format: int
    hubauth: str
    files: dict[str, str]
    """Name -> SHA-256 of its content, in hexadecimal digits."""


def folder_files(folder: Path = FOLDER) -> dict[str, bytes]:
    """Every file of a folder of vectors, by its path below it. Raises VectorError."""
    if not folder.is_dir():
        raise VectorError(f"no vectors in {folder}")
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    try:
        return {path.relative_to(folder).as_posix(): read(path) for path in paths}
    except (OSError, ValueError) as problem:
        raise VectorError(f"cannot read {folder}: {problem}") from None


def archive_of(files: Mapping[str, bytes]) -> bytes:
    """A ZIP archive of the files and their manifest: the same bytes for the same files."""
    manifest = Manifest(FORMAT, __version__, {name: _sum(content) for name, content in sorted(files.items())})
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in {MANIFEST: content, **dict(sorted(files.items()))}.items():
            entry = zipfile.ZipInfo(f"hubauth-vectors-{FORMAT}/{name}", _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data, compresslevel=9)
    return buffer.getvalue()


def archived_files(path: Path) -> dict[str, bytes]:
    """The files of an archive, if they are what its manifest says. Raises VectorError."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if sum(entry.file_size for entry in entries) > LARGEST:
                raise VectorError(f"{path} would unpack to more than {LARGEST} bytes")
            files = {entry.filename.partition("/")[2]: archive.read(entry) for entry in entries}
        manifest = decode_json(files.pop(MANIFEST), Manifest)
    except KeyError:
        raise VectorError(f"{path} has no {MANIFEST}") from None
    except OSError as problem:
        raise VectorError(f"cannot read {path}: {problem.strerror or problem}") from None
    except (*_DAMAGED, ValueError) as problem:
        raise VectorError(f"{path} is no archive of vectors: {problem}") from None
    sums = {name: _sum(content) for name, content in files.items()}
    damaged = sorted(name for name in {*sums, *manifest.files} if sums.get(name) != manifest.files.get(name))
    if damaged:
        raise VectorError(f"{path}: {damaged[0]} is not what the manifest says")
    return files


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def read_cases(files: Mapping[str, bytes]) -> Iterator[AnyCase]:
    """Every case of these files. Raises VectorError that names the file."""
    for name, content in files.items():
        if not name.endswith(".json") or name.endswith(NOT_CASES):
            continue
        try:
            file = decode_json(content, VectorFile)
        except ValueError as problem:
            raise VectorError(f"{name}: {problem}") from None
        if file.format != FORMAT:
            raise VectorError(f"{name}: format {file.format}; this program reads format {FORMAT}")
        yield from file.cases


def load_cases(source: Path = FOLDER) -> list[AnyCase]:
    """Every case of a folder or an archive. Raises VectorError, also if there is none."""
    cases = list(read_cases(folder_files(source) if source.is_dir() else archived_files(source)))
    if not cases:
        raise VectorError(f"no vectors in {source}")
    return cases
