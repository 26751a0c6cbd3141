"""Rows are dealt out evenly, and a hub is cut only where a checkpoint is."""

import pytest

from hubauth.spark.plan import FIRST, LAST, SMALLEST_SEGMENT, HubLog, make_tasks


def log(hub: str, rows: int, every: int = 0) -> HubLog:
    marks = tuple(range(every, rows, every)) if every else ()
    return HubLog("t", hub, rows, rows - 1, marks)


def test_one_hot_hub_is_cut_at_checkpoints() -> None:
    tasks = make_tasks((log("hot", 800_000, 10_000),), cores=2)
    assert len(tasks) == 8
    assert [task.begin for task in tasks] == [FIRST, *(task.end for task in tasks[:-1])]
    assert tasks[-1].end == LAST
    assert all(task.end % 10_000 == 0 for task in tasks[:-1])
    assert [task.resumes for task in tasks] == [False] + [True] * 7
    assert [task.is_last for task in tasks] == [False] * 7 + [True]
    assert {task.bin for task in tasks} == set(range(8))
    assert max(task.rows for task in tasks) < 1.2 * min(task.rows for task in tasks)


def test_without_checkpoints_a_hub_stays_whole() -> None:
    (task,) = make_tasks((log("hot", 800_000),), cores=2)
    assert (task.begin, task.end, task.rows) == (FIRST, LAST, 800_000)


def test_a_small_hub_is_not_worth_cutting() -> None:
    assert len(make_tasks((log("small", SMALLEST_SEGMENT, 100),), cores=4)) == 1


def test_few_checkpoints_cut_where_they_are() -> None:
    hub = HubLog("t", "hot", 900_000, 899_999, (300_000, 310_000))
    tasks = make_tasks((hub,), cores=2)
    assert [(task.begin, task.end) for task in tasks] == [(FIRST, 300_000), (300_000, 310_000), (310_000, LAST)]


@pytest.mark.parametrize("cores", [1, 2, 7])
def test_bins_are_even(cores: int) -> None:
    hubs = tuple(log(f"hub-{n}", 10_000 + 997 * (n % 13)) for n in range(64))
    tasks = make_tasks(hubs, cores)
    loads: dict[int, int] = {}
    for task in tasks:
        loads[task.bin] = loads.get(task.bin, 0) + task.rows
    assert set(loads) == set(range(min(4 * cores, 64)))
    assert max(loads.values()) - min(loads.values()) <= max(task.rows for task in tasks)
    assert sum(loads.values()) == sum(hub.rows for hub in hubs)


def test_nothing_makes_no_tasks() -> None:
    assert make_tasks((), cores=2) == []
