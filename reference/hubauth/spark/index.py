"""Which row groups of Parquet files hold which rows of which hub: from what the files say about themselves alone."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import pyarrow as pa
from attrs import define, field, frozen

from hubauth.core.inputs import PARENT
from hubauth.spark.access import Access
from hubauth.trace.parquet import LARGEST_GROUP

PHYSICAL = {pa.string(): "BYTE_ARRAY", pa.binary(): "BYTE_ARRAY", pa.int64(): "INT64", pa.int32(): "INT32"}

Hub: TypeAlias = tuple[str, str]
"""Trace and hub."""


@frozen
class Group:
    """A row group: of one hub, with rows (or checkpoints) from ``first`` to ``last``."""

    file: str
    number: int
    """Its place in the file."""
    rows: int
    first: int
    last: int
    reaches_up: bool = True
    """Whether rows of the link to the hub's parent may be among them."""


@define
class Index:
    """The row groups of every hub, in the order of their rows; and the files that do not tell."""

    hubs: dict[Hub, list[Group]] = field(factory=dict)
    rows_in: dict[str, int] = field(factory=dict)
    """File -> the rows that it says it has."""
    silent: list[str] = field(factory=list)
    """Files that say too little, or are of another kind."""

    def add(self, path: str, rows: int, groups: Iterable[tuple[Hub, Group]] | None) -> None:
        """A file, and what is in it; None: it does not say."""
        self.rows_in[path] = rows
        if groups is None:
            self.silent.append(path)
            return
        for hub, group in groups:
            self.hubs.setdefault(hub, []).append(group)

    def in_order(self, hub: Hub) -> list[Group] | None:
        """A hub's row groups one after the other; None: they are not in order, or some rows are there twice."""
        groups = sorted(self.hubs.get(hub, ()), key=lambda group: (group.first, group.last))
        numbers: dict[str, int] = {}
        for group in groups:
            if numbers.get(group.file, -1) >= group.number or group.rows > group.last - group.first + 1:
                return None
            numbers[group.file] = group.number
        return groups if all(one.last < other.first for one, other in pairwise(groups)) else None

    def files_of(self, hubs: Iterable[Hub]) -> set[str]:
        return {group.file for hub in hubs for group in self.hubs.get(hub, ())}


def read_groups(access: Access, path: str, schema: Any) -> tuple[int, list[tuple[Hub, Group]] | None]:
    """How many rows a file has, and its row groups; None: it does not say what is in them, or they are too large.

    Raises whatever pyarrow raises, and ValueError if its columns are others than those of ``schema``.
    """
    with access.open_parquet(path) as file:
        metadata = file.metadata
    columns = {metadata.schema.column(at).path: at for at in range(metadata.num_columns)}
    for each in schema:
        at = columns.get(each.name)
        if at is None or metadata.schema.column(at).physical_type != PHYSICAL[each.type]:
            raise ValueError(each.name)
    found = list(_groups(path, metadata, [columns[name] for name in ("trace", "hub", "sequence")], columns.get("link")))
    whole = [each for each in found if each is not None]
    return metadata.num_rows, whole if len(whole) == len(found) else None


def _groups(path: str, metadata: Any, at: list[int], link: int | None) -> Iterator[tuple[Hub, Group] | None]:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if not group.num_rows:
            continue
        told = [group.column(column).statistics for column in at]
        if group.total_byte_size > LARGEST_GROUP or not all(map(_tells, told)):
            yield None
            continue
        trace, hub, sequence = told
        if trace.min != trace.max or hub.min != hub.max:
            yield None
        else:
            links = group.column(link).statistics if link is not None else None
            reaches_up = links is None or not links.has_min_max or links.min <= PARENT
            where = (path, number, group.num_rows, sequence.min, sequence.max)
            yield (trace.min, hub.min), Group(*where, reaches_up)


def _tells(statistics: Any) -> bool:
    """Whether these say exactly between what the values are, and that none is missing."""
    told = statistics is not None and statistics.has_min_max and statistics.has_null_count
    return told and not statistics.null_count and isinstance(statistics.min, (str, int))
