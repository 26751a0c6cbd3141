"""TLA+ values: what TLC writes is read, what is written TLC could read, and a difference is found where it is."""

import pytest

from model_tests.equivalence.values import (
    Function,
    Value,
    differences,
    function,
    parse,
    parse_after,
    record,
    show,
    split_record,
)

HUB = record(
    present=True, dir=function({10: record(dev="d", via=3)}), pend=(record(op=1),), fences=frozenset([("A", 1)])
)
TEXT = """[ present |-> TRUE, fences |-> {<<"A", 1>>},
  dir |-> (10 :> [dev |-> "d", via |-> 3]), pend |-> <<[op |-> 1]>> ]"""


def test_reading_what_tlc_writes() -> None:
    assert parse(TEXT) == HUB
    assert parse("<< >>") == parse("<<>>") == ()
    assert parse("(1 :> {} @@ 3 :> -2)") == Function([(1, frozenset()), (3, -2)])


def test_fields_that_are_history_are_left_out_at_any_depth() -> None:
    assert parse("[ver |-> 1, cache |-> <<[ver |-> 2, born |-> 7]>>]", frozenset(["born"])) == record(
        ver=1, cache=(record(ver=2),)
    )


def test_one_value_is_one_value() -> None:
    with pytest.raises(ValueError, match="more than one value"):
        parse("1 2")


def test_a_printed_value_is_found_among_other_output() -> None:
    said = 'TLC says\n"constants"\n[ Root |->\n "root" ]\nand goes on'
    assert parse_after('"constants"\n', said) == record(Root="root")
    with pytest.raises(ValueError, match="nothing was printed"):
        parse_after('"constants"\n', "an error")


def test_a_function_over_one_to_n_is_a_sequence() -> None:
    assert function({2: "b", 1: "a"}) == ("a", "b")
    assert function({2: "b", 3: "a"}) == Function([(2, "b"), (3, "a")])
    assert function({}) == Function()


@pytest.mark.parametrize("value", [HUB, (), frozenset[Value](), True, 7, "x", function({4: (1, "a")})])
def test_writing_and_reading_again(value: Value) -> None:
    assert parse(show(value)) == value


def test_splitting_a_record_reads_nothing_inside() -> None:
    text = '[root|->[a|-><<1,2>>,b|->{"x"}],A|->(10:>[c|->1]),B|->5]'
    assert dict(split_record(text)) == {"root": '[a|-><<1,2>>,b|->{"x"}]', "A": "(10:>[c|->1])", "B": "5"}


def test_differences_name_the_field() -> None:
    other = record(present=True, dir=function({10: record(dev="d", via=4)}), pend=(record(op=2),), fences=frozenset())
    assert list(differences("hub[A]", HUB, other)) == [
        ("hub[A].dir[10].via", "3", "4"),
        ("hub[A].fences", '{<<"A", 1>>}', "{}"),
        ("hub[A].pend[1].op", "1", "2"),
    ]
    assert list(differences("x", record(a=1), record(b=1))) == [("x.a", "1", "-"), ("x.b", "-", "1")]
    assert list(differences("x", HUB, HUB)) == []
