"""Mutants of what decides and of what judges: small changes of the source, each of which some test must notice.

A mutant is one changed function. It is put in place by giving the real function object the changed code, so nothing
needs to be imported again and a mutant costs a fork and no more. Evidence (``cite``), texts, annotations, defaults and
asserts are not mutated: they decide nothing.
"""

import ast
import copy
import importlib
from collections.abc import Callable, Iterator
from functools import _lru_cache_wrapper, cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from attrs import frozen

MODULES = (
    "step",
    "register",
    "authenticate",
    "search",
    "admission",
    "presence",
    "offline",
    "revoke",
    "owed",
    "once",
    "perms",
    "routing",
    "links",
    "extension",
    "plain",
    "unheard",
    "authority",
    "credentials",
    "talk",
    "policy",
    "keys",
    "messages",
    "model",
    "ordered",
    "values",
    "transition",
    "indexes",
    "canonical",
    "recovery",
    "invariants",
)
"""Every module of the core that has a function: what decides, what keeps the tables, and what judges them."""
AROUND = (
    "./seen",
    "promises/monitor",
    "lab/history",
    "lab/invariants",
    "lab/observed",
    "lab/tree",
    "wire/depth",
    "wire/framing",
    "wire/header",
    "wire/dialects/codec",
    "wire/dialects/extension",
    "wire/dialects/fields",
    "wire/dialects/flat",
    "wire/dialects/nested",
    "shell/journal",
)
"""What judges the core, what brings it its frames, and what keeps its state: paths below the package."""
WITHOUT_DECISIONS = ("__init__", "inputs", "outputs")
"""The rest of the core: declarations of values, in which there is nothing to change."""
PACKAGE = "hubauth.core"
CORE = Path(__file__).parent.parent / "reference" / "hubauth" / "core"


def path_of(file: str) -> Path:
    """Where the file of a mutant is: in the core, or beside it if its name says in which folder."""
    return CORE.parent / file if "/" in file else CORE / file


def import_name(module: str) -> str:
    if "/" not in module:
        return f"{PACKAGE}.{module}"
    return ".".join([PACKAGE.partition(".")[0], *Path(module).parts])


_SWAPS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}

Change = Callable[[], None]
"""Changes one node of a (copied) tree in place."""


@frozen
class Mutant:
    """One changed function."""

    file: str
    qualname: str
    line: int
    end_line: int
    """The lines of the statement that was changed."""
    operator: str
    source: str
    """The first line of that statement."""
    number: int
    """Of the change within the function."""

    @property
    def name(self) -> str:
        return f"{self.file}:{self.line} [{self.operator}] {self.source}"


def mutants_of(module: str) -> Iterator[Mutant]:
    """Every mutant of a module, in the order of its source."""
    text = _text(f"{module}.py")
    lines = text.splitlines()
    for qualname, function, _ in _functions(ast.parse(text)):
        for number, (operator, statement, _) in enumerate(_changes(function)):
            first, last = statement.lineno, _own_end(statement)
            yield Mutant(f"{module}.py", qualname, first, last, operator, lines[first - 1].strip(), number)


def install(mutant: Mutant) -> None:
    """Put the mutant's code into the running function. There is no way back but the end of the process."""
    module = mutant.file.removesuffix(".py")
    for qualname, function, owner in _functions(ast.parse(_text(mutant.file))):
        if qualname != mutant.qualname:
            continue
        changed = copy.deepcopy(function)
        _, _, change = list(_changes(changed))[mutant.number]
        change()
        body: list[ast.stmt] = [changed]
        if owner is not None:
            body = [ast.ClassDef(owner.name, [], [], body, [])]
        tree = ast.fix_missing_locations(ast.Module(body, []))
        code = _code_named(compile(tree, str(path_of(mutant.file)), "exec"), function.name)
        assert code is not None
        _real_function(module, qualname).__code__ = code
        return
    raise LookupError(mutant.name)


@cache
def _text(file: str) -> str:
    """Read once: somebody may edit the core while its mutants run."""
    return path_of(file).read_text()


# Finding functions


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef, ast.ClassDef | None]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node, None
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and _is_changeable(member):
                    yield f"{node.name}.{member.name}", member, node


def _is_changeable(method: ast.FunctionDef) -> bool:
    """Whether a method decides anything, and its code can be replaced: with ``super`` it belongs to its class."""
    calls_super = any(isinstance(node, ast.Name) and node.id == "super" for node in ast.walk(method))
    return not calls_super and method.name not in ("__repr__", "__hash__")


def _real_function(module: str, qualname: str) -> FunctionType:
    found: Any = importlib.import_module(import_name(module))
    for part in qualname.split("."):
        found = vars(found)[part]
    if isinstance(found, property):
        found = found.fget
    elif isinstance(found, cached_property):
        found = found.func
    elif isinstance(found, classmethod | staticmethod):
        found = found.__func__
    elif isinstance(found, _lru_cache_wrapper):
        found.cache_clear()  # what the real function said would hide the mutant
        found = found.__wrapped__
    assert isinstance(found, FunctionType), qualname
    return found


def _code_named(code: CodeType, name: str) -> CodeType | None:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if constant.co_name == name:
                return constant
            if (inner := _code_named(constant, name)) is not None:
                return inner
    return None


# Finding what to change


def _changes(function: ast.FunctionDef) -> Iterator[tuple[str, ast.stmt, Change]]:
    """Every change that can be made to a function: its name, the statement it is in, and how to make it."""
    body = function.body[1:] if _is_text(function.body[0]) else function.body
    if isinstance(function.returns, ast.Constant) and function.returns.value is None and len(body) > 1:
        yield "return early", body[0], lambda: function.body.insert(0, ast.Return(None))
    for owner, field, statements in _blocks(function):
        for at, statement in enumerate(statements):
            if _is_text(statement) or isinstance(statement, ast.Assert):
                continue
            if _is_call(statement) and not _is_evidence(statement):
                yield "drop call", statement, _replacing(owner, field, at, ast.Pass())
            if _only_evidence(statement):
                continue
            if isinstance(statement, ast.If):
                yield "never", statement, _setting(statement, "test", ast.Constant(False))
            for node in _expressions(statement):
                yield from ((name, statement, change) for name, change in _changes_of(node))


def _changes_of(node: ast.AST) -> Iterator[tuple[str, Change]]:
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not _has_swap(node.test):
        yield "negate", _setting(node, "test", ast.UnaryOp(ast.Not(), node.test))
    if isinstance(node, ast.comprehension):
        for at, test in enumerate(node.ifs):
            if not _has_swap(test):
                yield "negate", _replacing(node, "ifs", at, ast.UnaryOp(ast.Not(), test))
    if isinstance(node, ast.Compare):
        for at, operation in enumerate(node.ops):
            new = _SWAPS[type(operation)]
            yield f"{type(operation).__name__} to {new.__name__}", _replacing(node, "ops", at, new())
    if isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"to {type(other).__name__}", _setting(node, "op", other)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield "drop not", lambda: _become(node, ast.Call(ast.Name("bool", ast.Load()), [node.operand], []))
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        yield f"{node.value} to {not node.value}", _setting(node, "value", not node.value)
    if isinstance(node, ast.Constant) and type(node.value) is int and node.value in (0, 1):
        yield f"{node.value} to {1 - node.value}", _setting(node, "value", 1 - node.value)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub) and isinstance(node.right, ast.Constant):
        yield "swap + and -", _setting(node, "op", ast.Sub() if isinstance(node.op, ast.Add) else ast.Add())


def _setting(node: Any, field: str, value: Any) -> Change:
    return lambda: setattr(node, field, value)


def _replacing(node: Any, field: str, at: int, value: Any) -> Change:
    return lambda: getattr(node, field).__setitem__(at, value)


def _become(node: Any, other: Any) -> None:
    """Turn a node into another, wherever it hangs."""
    node.__class__ = other.__class__
    vars(node).clear()
    vars(node).update(vars(other))


def _blocks(function: ast.FunctionDef) -> Iterator[tuple[Any, str, list[ast.stmt]]]:
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            statements = getattr(node, field, None)
            if isinstance(statements, list) and statements and isinstance(statements[0], ast.stmt):
                yield node, field, statements


def _expressions(statement: ast.stmt) -> Iterator[ast.AST]:
    """The parts of a statement that are not statements themselves, evidence and texts left out."""
    yield statement
    pending = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    if isinstance(statement, ast.AnnAssign):
        pending = [part for part in (statement.value,) if part is not None]
    while pending:
        node = pending.pop(0)
        if isinstance(node, ast.JoinedStr) or _names_evidence(node) or isinstance(node, ast.stmt):
            continue
        yield node
        pending = [*ast.iter_child_nodes(node), *pending]


def _own_end(statement: ast.stmt) -> int:
    """The last line of a statement without the statements inside it."""
    inner = [block[0].lineno - 1 for _, _, block in _blocks(statement)] if hasattr(statement, "body") else []  # type: ignore[arg-type]
    return max(statement.lineno, min(inner, default=statement.end_lineno or statement.lineno))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _names_evidence(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in ("cite", "note")


def _is_evidence(node: ast.stmt) -> bool:
    """A call of ``cite``. A ``note`` is an output: leaving one out must be noticed."""
    return isinstance(node, ast.Expr) and _names_evidence(node.value) and node.value.func.attr == "cite"  # type: ignore[attr-defined]


def _only_evidence(node: ast.stmt) -> bool:
    """A citation, or a condition that decides about nothing but citations."""
    if isinstance(node, ast.If):
        return all(_only_evidence(inner) for inner in (*node.body, *node.orelse))
    return _is_evidence(node)


def _has_swap(test: ast.expr) -> bool:
    """Whether negating this is the same as another change of it."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return True
    exact = (ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn)
    return isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], exact)
