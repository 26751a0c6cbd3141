"""Files wherever Spark can reach them: a directory of this machine, HDFS, an object store.

Everything goes through Hadoop's file systems, so that a path means the same to the driver and to the executors.
"""

import re
from typing import Any

from attrs import frozen
from pyspark.sql import SparkSession


class StorageProblem(Exception):
    """Something cannot be listed, read or written: what the file system said."""


@frozen
class Stored:
    """A file."""

    path: str
    """With its scheme, as Spark names it."""
    size: int

    @property
    def name(self) -> str:
        return self.path.rsplit("/", 1)[-1]

    @property
    def folder(self) -> str:
        """The name of the directory it is in."""
        return self.path.rsplit("/", 2)[-2]


class Storage:
    """The file systems that a session knows."""

    def __init__(self, spark: SparkSession) -> None:
        context: Any = spark.sparkContext
        self._jvm = context._jvm
        self._configuration = context._jsc.hadoopConfiguration()

    def files(self, path: str) -> list[Stored]:
        """The file, or every file below the directory, sorted; hidden ones left out. Raises StorageProblem."""
        root, system = self._open(path)
        found = []
        try:
            if not system.exists(root):
                raise StorageProblem(f"{path} does not exist")
            listed = system.listFiles(root, True)
            while listed.hasNext():
                status = listed.next()
                found.append(Stored(status.getPath().toString(), status.getLen()))
        except StorageProblem:
            raise
        except Exception as problem:  # py4j raises what Java raised, whatever that is
            raise StorageProblem(f"cannot list {path}: {brief(problem)}") from problem
        below = len(root.makeQualified(system.getUri(), system.getWorkingDirectory()).toString())
        visible = [file for file in found if not any(_hidden(part) for part in file.path[below:].split("/"))]
        return sorted(visible, key=lambda file: file.path)

    def exists(self, path: str) -> bool:
        target, system = self._open(path)
        return bool(system.exists(target))

    def names(self, path: str) -> list[str]:
        """What is in a directory, hidden or not."""
        target, system = self._open(path)
        return [status.getPath().getName() for status in system.listStatus(target)]

    def is_file(self, path: str) -> bool:
        target, system = self._open(path)
        return bool(system.getFileStatus(target).isFile())

    def write(self, path: str, text: str) -> None:
        """Write or replace a text file, its directory made if needed. Raises StorageProblem."""
        target, system = self._open(path)
        try:
            stream = system.create(target, True)
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()
        except Exception as problem:
            raise StorageProblem(f"cannot write {path}: {brief(problem)}") from problem

    def move(self, path: str, there: str) -> None:
        """Give a file or a directory another name, the directory above it made if needed. Raises StorageProblem."""
        source, system = self._open(path)
        target, _ = self._open(there)
        system.mkdirs(target.getParent())
        if not system.rename(source, target):
            raise StorageProblem(f"cannot move {path} to {there}")

    def settings(self, names: list[str]) -> dict[str, str]:
        """What Spark was told of its file systems, as far as it was."""
        told = {name: self._configuration.get(name) for name in names}
        return {name: str(value) for name, value in told.items() if value is not None}

    def remove(self, path: str) -> None:
        """Remove a file or a whole directory, if it is there."""
        target, system = self._open(path)
        system.delete(target, True)

    def parquet_footer(self, path: str) -> "Footer":
        """What a Parquet file says about itself. Raises StorageProblem if it is none."""
        hadoop = self._jvm.org.apache.parquet.hadoop
        try:
            target = self._jvm.org.apache.hadoop.fs.Path(path)
            opened = hadoop.util.HadoopInputFile.fromPath(target, self._configuration)
            reader = hadoop.ParquetFileReader.open(opened)
            try:
                schema = reader.getFooter().getFileMetaData().getSchema()
                columns = {}
                for index in range(schema.getFieldCount()):
                    field = schema.getType(index)
                    kind = field.asPrimitiveType().getPrimitiveTypeName().toString() if field.isPrimitive() else "group"
                    columns[field.getName()] = kind
                return Footer(int(reader.getRecordCount()), columns)
            finally:
                reader.close()
        except Exception as problem:
            raise StorageProblem(brief(problem)) from problem

    def _open(self, path: str) -> tuple[Any, Any]:
        try:
            target = self._jvm.org.apache.hadoop.fs.Path(path)
            return target, target.getFileSystem(self._configuration)
        except Exception as problem:
            raise StorageProblem(f"cannot reach {path}: {brief(problem)}") from problem


@frozen
class Footer:
    """Of a Parquet file: how many rows it has, and the physical type of each column."""

    rows: int
    columns: dict[str, str]


def join(directory: str, *names: str) -> str:
    """A path below a directory, whatever its scheme."""
    return "/".join([directory.rstrip("/"), *names])


def literal(path: str) -> str:
    """A path that stands for itself where Spark reads, which would take it for a pattern."""
    return re.sub(r"([\\*?{}\[\]])", r"\\\1", path)


def brief(problem: Exception) -> str:
    """The line of an exception, Java's or Python's, that says what is wrong."""
    cause: Any = getattr(problem, "java_exception", None)
    if cause is not None:
        while cause.getCause() is not None:
            cause = cause.getCause()
        return str(cause.getMessage() or cause.toString()).splitlines()[0]
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[0] if lines else type(problem).__name__


def _hidden(name: str) -> bool:
    return name.startswith((".", "_"))
