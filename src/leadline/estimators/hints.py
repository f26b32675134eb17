"""Type hints of options as rules: what a value must be, and how to say so."""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np


def option_types(cls: type, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of a class's options: those of its signature, or of the defaults where it states none."""
    by_default = {key: type(value) for key, value in defaults.items() if type(value) in (bool, int, float, str)}
    try:
        return by_default | get_type_hints(cls.__init__)  # type: ignore[misc]  # it is looked at, not called
    except NameError:  # a name that another package imports for its type checker only
        return by_default


def fits(value: Any, hint: Any) -> bool:
    """Say whether a value is what a hint asks for; NumPy's numbers are numbers, and strange hints ask for nothing."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is Literal:
        return any(type(value) is type(allowed) and value == allowed for allowed in arguments)
    if origin is tuple and Ellipsis not in arguments:
        return (
            isinstance(value, list | tuple)
            and len(value) == len(arguments)
            and all(fits(item, argument) for item, argument in zip(value, arguments, strict=True))
        )
    if isinstance(origin, type) and issubclass(origin, Collection) and not issubclass(origin, Mapping):
        is_many = isinstance(value, list | tuple | set | frozenset)
        return is_many and all(fits(item, arguments[0]) for item in value)
    is_bool, kinds = isinstance(value, bool | np.bool_), _KINDS.get(hint)
    return kinds is None or (isinstance(value, kinds) and is_bool == (hint is bool))


def describe(hint: Any) -> str:
    """Return what a type hint asks for, in words."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(describe(argument) for argument in arguments)
    if origin is Literal:
        return "one of " + ", ".join(map(str, arguments))
    if origin is tuple:
        return f"{len(arguments)} numbers"
    words = {int: "an integer", float: "a number", bool: "true or false", str: "text", types.NoneType: "none"}
    return words.get(hint, "a collection of names")


_KINDS: Mapping[Any, tuple[type, ...]] = types.MappingProxyType({
    int: (int, np.integer),
    float: (int, float, np.integer, np.floating),
    str: (str,),
    bool: (bool, np.bool_),
    types.NoneType: (types.NoneType,),
})  # fmt: skip
