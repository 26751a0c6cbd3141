"""Frozen values that are cheap to make: a step makes a dozen of them.

attrs fills a frozen value through ``object.__setattr__``, field by field, and that is most of what such a value costs.
Here it is filled while it is still of an open class with the same fields, and then becomes what it is for good. All
else is attrs: equality, order of fields, ``evolve``, and the error for whoever tries to change one.
"""

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any

import attrs
from attrs import astuple as astuple
from attrs import evolve as evolve
from attrs import fields as fields
from attrs import has as has

if TYPE_CHECKING:
    from attrs import frozen as frozen
else:

    def frozen(maybe_class: type | None = None, **options: Any) -> Any:
        """``attrs.frozen`` for values with plain defaults: no factories, converters or validators."""
        if maybe_class is None:
            return lambda cls: frozen(cls, **options)
        cls = attrs.frozen(maybe_class, weakref_slot=False, **options)
        original = cls.__init__
        cls.__init__ = _initializer(cls)
        cls.__reduce__ = _reduced
        # A subclass may look different inside: it is made as attrs makes it.
        cls.__init_subclass__ = classmethod(lambda subclass: setattr(subclass, "__init__", original))
        return cls


class Choice(Enum):
    """An enum whose members are looked up in a dict without calling back into Python."""

    __hash__ = object.__hash__


UNSET: Any = attrs.NOTHING
"""Stands for a field that was not given."""


def describe(cls: type, said: tuple[tuple[str, str, tuple[Any, ...], Callable[[], Any] | None], ...]) -> None:
    """Tell attrs of a compiled value what it knows of others: each field's name, type, default and factory."""
    made: dict[str, Any] = {}
    for name, _, default, factory in said:
        given: dict[str, Any] = {"default": default[0]} if default else {}
        made[name] = attrs.field(factory=factory, **given) if factory is not None else attrs.field(**given)
    twin = attrs.make_class(cls.__name__, made, slots=False, eq=False, repr=False, order=False)
    cls.__attrs_attrs__ = attrs.fields(twin)  # type: ignore[attr-defined]
    cls.__annotations__ = {name: kind for name, kind, _, _ in said}


def _reduced(value: Any) -> tuple[type, tuple[Any, ...]]:
    """What a value is pickled as: the same as where it is compiled, so that either can read what the other has sent."""
    return type(value), tuple(getattr(value, field.name) for field in attrs.fields(type(value)))


def _initializer(cls: type) -> Any:
    """The ``__init__`` that attrs would write, with plain assignments."""
    writable = {"__slots__": (), "__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    names: dict[str, Any] = {"frozen_class": cls, "open_class": type(cls.__name__, (cls,), writable)}
    names["become"] = object.__dict__["__class__"].__set__
    parameters, assignments = ["self"], ["become(self, open_class)"]
    for field in attrs.fields(cls):
        assert not isinstance(field.default, attrs.Factory) and field.converter is None and field.validator is None  # type: ignore[arg-type]
        names[f"default_{field.name}"] = field.default
        has_default = field.default is not attrs.NOTHING
        parameters.append(f"{field.alias}=default_{field.name}" if has_default else f"{field.alias}")
        assignments.append(f"self.{field.name} = {field.alias}")
    body = "\n    ".join([*assignments, "self.__class__ = frozen_class"])
    exec(f"def __init__({', '.join(parameters)}):\n    {body}", names)
    init = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = cls.__init__.__annotations__  # type: ignore[misc]
    return init
