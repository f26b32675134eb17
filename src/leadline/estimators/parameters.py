"""Options and learned state of an estimator, with scikit-learn's conventions."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from leadline.errors import InputError
from leadline.estimators.hints import describe, fits, option_types


class Parameters:
    """Options are the arguments of ``__init__``, which only stores them; learned state ends in ``_``."""

    #: Options whose attribute has another name, because a method took it.
    _stored_as: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def _parameter_names(cls) -> list[str]:
        """Return the names of the options, those of ``__init__``; a class without one has none."""
        if cls.__init__ is object.__init__:  # its signature has *args and **kwargs, and takes neither
            return []
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    @classmethod
    def _require_options(cls, names: Iterable[str]) -> None:
        """Refuse names that are no options of this class."""
        known = cls._parameter_names()
        for name in names:
            if name not in known:
                raise InputError(f"{cls.__name__} has no option {name!r}; it has {', '.join(known) or 'none'}.")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the options, by name."""
        return {name: getattr(self, self._stored_as.get(name, name)) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change options, by name."""
        self._require_options(params)
        for name, value in params.items():
            setattr(self, self._stored_as.get(name, name), value)
        return self

    def _check_options(self) -> None:
        """Refuse options that cannot work: of another type than the signature states, or out of range.

        Called before a fit, and for what a file says; a class whose options have ranges adds these.
        """
        options = self.get_params()
        hints = option_types(type(self), options)
        for name, value in options.items():
            if name in hints and not fits(value, hints[name]):
                raise InputError(f"{name} must be {describe(hints[name])}; got {value!r}.")

    def __repr__(self) -> str:
        """Return the call that makes an estimator like this one."""
        options = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({options})"

    def _learned(self) -> dict[str, Any]:
        """Return the learned state, by name."""
        return {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}

    def _forget(self) -> None:
        """Drop the learned state, all of it."""
        for name in self._learned():
            delattr(self, name)
