"""What TLC has printed, as Python wants it: constants of a model and what is in ``act``."""

from model_tests.equivalence.values import Function, Value


def as_function(value: Value) -> list[tuple[Value, Value]]:
    assert isinstance(value, Function)
    return sorted(value, key=str)


def as_number(value: Value) -> int:
    assert isinstance(value, int)
    return value


def as_names(value: Value) -> tuple[str, ...]:
    assert isinstance(value, frozenset)
    return tuple(sorted(str(name) for name in value))


def as_numbers(value: Value) -> tuple[int, ...]:
    assert isinstance(value, frozenset)
    return tuple(sorted(as_number(number) for number in value))


def as_triples(value: Value) -> list[tuple[str, str, str]]:
    assert isinstance(value, frozenset | tuple)
    found = []
    for triple in value:
        assert isinstance(triple, tuple)
        first, second, third = triple
        found.append((str(first), str(second), str(third)))
    return found


def as_record(value: Value) -> dict[str, Value]:
    return {str(key): item for key, item in as_function(value)}


def as_records(value: Value) -> list[dict[str, Value]]:
    assert isinstance(value, tuple)
    return [as_record(item) for item in value]
