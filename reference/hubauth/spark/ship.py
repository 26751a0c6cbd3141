"""The package itself as an archive, for executors that may not have it, or may have another version of it."""

from pathlib import Path
from zipfile import ZipFile

_PACKAGE = Path(__file__).resolve().parents[1]


def zip_package(archive: Path) -> None:
    """The sources of the package, as ``--py-files`` wants them. What it depends on must be there already."""
    with ZipFile(archive, "w") as file:
        for path in sorted(_PACKAGE.rglob("*.py")):
            file.write(path, path.relative_to(_PACKAGE.parent).as_posix())
