"""Values made native: what mypyc is given in place of an attrs class or a frozen msgspec one.

mypyc compiles what works on values well, and leaves the values themselves as slow as they are unless they are classes
of its own kind. So the copy of a source that is compiled has, for every value that is declared there, a ``@final``
class with the same fields, defaults, equality, hash, words and order, written out. The declaration in the source is
all that this is made from. A class that is not understood whole stays as it is, interpreted.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
VALUES = "hubauth.core.values"
FROM_VALUES = frozenset({"astuple", "evolve", "fields", "has"})
"""What of attrs works on native values, too; the names that mypy may look at less closely."""
_CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]+")
_IDENTICAL = frozenset({"int", "bool", "str", "bytes", "float"})
"""Types whose ``==`` is as quick as ``is``."""
_PLAIN_OPTIONS = {"frozen": {"eq", "slots"}, "define": {"eq"}, "Struct": {"frozen", "gc"}}
_HEADER = (
    "from typing import Annotated as _Annotated, Any as _Any, ClassVar as _ClassVar, Final as _Final\n"
    "from typing import cast as _cast, final as _final\n"
    f"from {VALUES} import UNSET as _UNSET, describe as _describe\n"
)


@dataclass(frozen=True)
class Field:
    """One field of a value, in the words of its source."""

    name: str
    annotation: str
    default: str | None = None
    factory: str | None = None
    converter: str | None = None
    eq: bool = True
    shown: bool = True

    @property
    def alias(self) -> str:
        """What it is called when a value is made."""
        return self.name.lstrip("_")

    @property
    def type(self) -> str:
        """The annotation without quotes."""
        found = ast.parse(self.annotation, mode="eval").body
        return found.value if isinstance(found, ast.Constant) and isinstance(found.value, str) else self.annotation


@dataclass(frozen=True)
class Value:
    """A class of values as declared."""

    node: ast.ClassDef
    frozen: bool
    eq: bool
    fields: tuple[Field, ...]
    constants: tuple[ast.AnnAssign, ...]
    methods: tuple[_Function, ...]

    @property
    def name(self) -> str:
        return self.node.name

    def has(self, method: str) -> bool:
        return any(each.name == method for each in self.methods)


class NotCompilable(Exception):
    """Why a module has to stay interpreted."""


class _Unknown(Exception):
    """Something is declared in a way that is not understood here."""


def rewrite(source: str, structs: frozenset[str] = frozenset(), *, constants: bool = True) -> str:
    """The source with its values native. ``structs`` are the msgspec classes that msgspec never reads or writes.

    ``constants``: what a module names in capitals is never replaced, not even by a test.

    Raises NotCompilable where a class would come to mean something else.
    """
    module = ast.parse(source)
    makers = _makers(module)
    lines = source.splitlines(keepends=True)
    for node in reversed(module.body):
        if isinstance(node, ast.ClassDef):
            value = _value_of(node, makers, structs)
            if value is not None:
                start = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                lines[start - 1 : node.end_lineno] = [_written(value)]
            elif node.bases:
                _quote(node, lines)
        elif constants and isinstance(node, ast.Assign | ast.AnnAssign) and (final := _final(node, module)) is not None:
            lines[node.lineno - 1 : node.end_lineno] = [final]
        elif isinstance(node, ast.ImportFrom) and node.module == "attrs":
            lines[node.lineno - 1 : node.end_lineno] = [_import_of(node)]
    at = next(node.lineno for node in module.body if not _is_docstring(node))
    first = source.splitlines(keepends=True)[: at - 1]
    return "".join([*lines[: len(first)], _HEADER, *lines[len(first) :]])


def values_in(source: str, structs: frozenset[str] = frozenset()) -> list[str]:
    """The names of the classes that become native."""
    module = ast.parse(source)
    makers = _makers(module)
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    return [node.name for node in classes if _value_of(node, makers, structs) is not None]


def _final(node: ast.Assign | ast.AnnAssign, module: ast.Module) -> str | None:
    """A constant of the module, declared to be one: else every use of it is looked up by its name."""
    target = (
        node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else getattr(node, "target", None)
    )
    if not isinstance(target, ast.Name) or node.value is None or not _CONSTANT.fullmatch(target.id):
        return None
    stores = [each for each in ast.walk(module) if isinstance(each, ast.Name) and each.id == target.id]
    if sum(isinstance(each.ctx, ast.Store) for each in stores) > 1:
        return None
    if isinstance(node, ast.Assign):
        return f"{target.id}: _Final = {ast.unparse(node.value)}\n"
    return f"{target.id}: _Final[{ast.unparse(node.annotation)}] = {ast.unparse(node.value)}\n"


def _quote(node: ast.ClassDef, lines: list[str]) -> None:
    """Annotations of a class that stays interpreted, as texts: mypyc keeps no other of what is more than a name."""
    if node.keywords:
        raise NotCompilable(f"mypyc would not pass on the options of class {node.name}")
    for each in reversed(node.body):
        if isinstance(each, ast.AnnAssign) and not ast.unparse(each.annotation).startswith("ClassVar"):
            assert isinstance(each.target, ast.Name)
            said = f"_Annotated[{ast.unparse(each.annotation)}, ()]"
            value = "" if each.value is None else f" = {ast.unparse(each.value)}"
            indent = " " * each.col_offset
            lines[each.lineno - 1 : each.end_lineno] = [f"{indent}{each.target.id}: {said!r}{value}\n"]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _makers(module: ast.Module) -> dict[str, str]:
    """Local name -> ``frozen`` or ``define``, as far as these come from attrs or from ``hubauth.core.values``."""
    found: dict[str, str] = {}
    for node in module.body:
        if isinstance(node, ast.ImportFrom) and node.module in ("attrs", VALUES):
            found |= {a.asname or a.name: a.name for a in node.names if a.name in ("frozen", "define")}
    return found


def _import_of(node: ast.ImportFrom) -> str:
    """Of what is imported from attrs, what works on both kinds of values comes from elsewhere."""
    told = {home: [a for a in node.names if (a.name in FROM_VALUES) == (home == VALUES)] for home in ("attrs", VALUES)}
    return "".join(
        ast.unparse(ast.ImportFrom(module=home, names=names, level=0)) + "\n" for home, names in told.items() if names
    )


def _value_of(node: ast.ClassDef, makers: dict[str, str], structs: frozenset[str]) -> Value | None:
    """The class as a value; None if it is none, or not one that is understood."""
    try:
        if node.name in structs and [ast.unparse(base) for base in node.bases] == ["msgspec.Struct"]:
            return _read(node, "Struct", {each.arg or "": each.value for each in node.keywords})
        if node.bases or node.keywords or len(node.decorator_list) != 1:
            return None
        maker = node.decorator_list[0]
        options = {}
        if isinstance(maker, ast.Call) and not maker.args:
            options = {each.arg or "": each.value for each in maker.keywords}
            maker = maker.func
        if not isinstance(maker, ast.Name) or maker.id not in makers:
            return None
        return _read(node, makers[maker.id], options)
    except _Unknown:
        return None


def _read(node: ast.ClassDef, maker: str, options: dict[str, ast.expr]) -> Value:
    if not options.keys() <= _PLAIN_OPTIONS[maker]:
        raise _Unknown
    fields: list[Field] = []
    constants: list[ast.AnnAssign] = []
    methods: list[_Function] = []
    for each in node.body:
        if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            if ast.unparse(each.annotation).startswith("ClassVar"):
                constants.append(each)
            else:
                fields.append(_field(each.target.id, ast.unparse(each.annotation), each.value))
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            methods.append(each)
        elif not _is_docstring(each):
            raise _Unknown
    compared = options.get("eq")
    eq = compared is None or ast.unparse(compared) != "False"
    return Value(node, maker != "define", eq, tuple(fields), tuple(constants), tuple(methods))


def _field(name: str, annotation: str, value: ast.expr | None) -> Field:
    if not isinstance(value, ast.Call) or ast.unparse(value.func) != "field":
        return Field(name, annotation, None if value is None else ast.unparse(value))
    if value.args or not {each.arg for each in value.keywords} <= {
        *("default", "factory", "converter", "eq", "repr"),
    }:
        raise _Unknown
    said = {each.arg or "": ast.unparse(each.value) for each in value.keywords}
    return Field(
        name,
        annotation,
        said.get("default"),
        said.get("factory"),
        said.get("converter"),
        said.get("eq", "True") == "True",
        said.get("repr", "True") == "True",
    )


def _written(value: Value) -> str:
    """The native class, and the words by which attrs' own functions know its fields."""
    body = [*_opening(value), *_initializer(value), *_dunders(value), *_methods(value)]
    lines = ["@_final", f"class {value.name}:", *(f"    {line}" if line else "" for line in body)]
    known = ", ".join(f"({each.name!r}, {each.type!r}, {_said(each)})" for each in value.fields)
    lines.append(f"_describe({value.name}, ({known}{',' if known else ''}))")
    return "\n".join(lines) + "\n"


def _said(field: Field) -> str:
    """How a field is filled that is not given: nothing to say, a default, or a factory."""
    if field.factory is not None:
        return f"(), {field.factory}"
    return "(), None" if field.default is None else f"({field.default},), None"


def _opening(value: Value) -> Iterator[str]:
    docstring = ast.get_docstring(value.node)
    if docstring:
        yield repr(docstring)
    for constant in value.constants:
        yield ast.unparse(constant)
    names = ", ".join(repr(each.name) for each in value.fields)
    yield f"__match_args__: _ClassVar = ({names}{',' if value.fields else ''})"
    # What a method of attrs would fill in after the constructor cannot be final to mypy.
    final = value.frozen and not value.has("__attrs_post_init__")
    for each in value.fields:
        yield f"{each.name}: _Final[{each.type}]" if final else f"{each.name}: {each.type}"
    for cached in _cached(value):
        yield f"_found_{cached.name}: {_returned(cached)} | None"


def _initializer(value: Value) -> Iterator[str]:
    parameters = ["self"]
    for each in value.fields:
        if each.factory is not None or each.converter is not None:
            default = "" if each.default is None and each.factory is None else f" = {each.default or '_UNSET'}"
            parameters.append(f"{each.alias}: _Any{default}")
        else:
            parameters.append(f"{each.alias}: {each.type}" + ("" if each.default is None else f" = {each.default}"))
    yield f"def __init__({', '.join(parameters)}) -> None:"
    for each in value.fields:
        given = each.alias
        if each.factory is not None:
            given = f"({each.factory}() if {given} is _UNSET else {given})"
        if each.converter is not None:
            given = f"{each.converter}({given})"
        if each.factory is not None or each.converter is not None:
            given = f"_cast({each.type!r}, {given})"
        yield f"    self.{each.name} = {given}"
    for cached in _cached(value):
        yield f"    self._found_{cached.name} = None"
    for method in value.methods:
        if method.name == "__attrs_post_init__":
            body = [ast.unparse(_Assigned().visit(each)) for each in method.body]
            yield from (f"    {line}" for each in body for line in each.split("\n"))
    if not value.fields and not _cached(value):
        yield "    pass"


class _Assigned(ast.NodeTransformer):
    """``object.__setattr__(self, "name", value)`` as the plain assignment that it stands for."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        call = node.value
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "object.__setattr__":
            _, name, value = call.args
            return ast.parse(f"self.{ast.literal_eval(name)} = {ast.unparse(value)}").body[0]
        return node


def _dunders(value: Value) -> Iterator[str]:
    compared = [each for each in value.fields if each.eq]
    if value.eq and not value.has("__eq__"):
        yield "def __eq__(self, other: object) -> bool:"
        yield f"    if not isinstance(other, {value.name}):"
        yield "        return NotImplemented"
        yield f"    return {' and '.join(map(_equal, compared)) or 'True'}"
    if value.eq and value.frozen and not value.has("__hash__"):
        yield "def __hash__(self) -> int:"
        yield f"    return hash(({', '.join(f'self.{each.name}' for each in compared)}{',' if compared else ''}))"
    if not value.has("__repr__"):
        shown = ", ".join(f"{each.name}={{self.{each.name}!r}}" for each in value.fields if each.shown)
        yield "def __repr__(self) -> str:"
        yield f"    return f{value.name + '(' + shown + ')'!r}"
    given = ", ".join(f"self.{each.name}" for each in value.fields)
    yield "def __reduce__(self) -> tuple[_Any, ...]:"
    yield f"    return ({value.name}, ({given}{',' if given else ''}))"


def _equal(field: Field) -> str:
    mine, other = f"self.{field.name}", f"other.{field.name}"
    return f"{mine} == {other}" if field.type in _IDENTICAL else f"({mine} is {other} or {mine} == {other})"


def _cached(value: Value) -> list[_Function]:
    return [each for each in value.methods if "cached_property" in map(ast.unparse, each.decorator_list)]


def _returned(method: _Function) -> str:
    assert method.returns is not None
    return ast.unparse(method.returns)


def _methods(value: Value) -> Iterator[str]:
    cached = _cached(value)
    for method in value.methods:
        if method.name == "__attrs_post_init__":
            continue
        if method in cached:
            name, kind = method.name, _returned(method)
            yield from ("@property", f"def {name}(self) -> {kind}:", f"    found = self._found_{name}")
            yield from ("    if found is None:", f"        found = self._found_{name} = self._find_{name}()")
            yield "    return found"
            method.name, method.decorator_list = f"_find_{name}", []
        yield from ast.unparse(method).split("\n")
