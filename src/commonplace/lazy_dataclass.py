"""A `dataclass` for the nouns that a command-line search loads: nothing is compiled until many objects are made.

The standard one writes and compiles six methods for every class. The 74 classes of a search cost 0.1 s of CPU that way
and a few milliseconds this way; every other module uses the standard one.
Fields are found by the standard library, so `fields`, `replace` and `asdict` work as ever; comparing, hashing and
showing go by those fields; the initializer is compiled once sixteen objects were made without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    import reprlib
    from collections.abc import Callable, Iterable
    from functools import partial
    from operator import attrgetter
    from typing import Any

    _FEW = 16
    """Objects that are made without an initializer: as many as take half the time of compiling one."""

    def dataclass(
        cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Any:
        if cls is None:
            return partial(dataclass, frozen=frozen, slots=slots, kw_only=kw_only)
        cls.__doc__ = cls.__doc__ or cls.__name__  # else the standard library reads a signature to write one
        new_class = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(cls)
        methods = _methods(new_class, frozen)
        if frozen:
            methods |= _KEPT | (_PICKLED if slots else {})
        for name, method in methods.items():
            if cls.__dict__.get(name) is None:  # a class that says what is equal has no hash, which is None
                setattr(new_class, name, method)
        return new_class

    def _methods(cls: type, frozen: bool) -> dict[str, Any]:
        parts = dataclasses.fields(cls)
        compared = _values([part.name for part in parts if part.compare])
        hashed = _values([part.name for part in parts if (part.compare if part.hash is None else part.hash)])

        count = 0

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            nonlocal count
            count += 1
            if count > _FEW or (values := _assigned(parts, args, kwargs)) is None:
                cls.__init__ = _initializer(cls, parts, frozen)
                cls.__init__(self, *args, **kwargs)
                return
            _assign(self, values)
            if hasattr(cls, "__post_init__"):
                self.__post_init__()

        def __eq__(self: Any, other: object) -> bool:
            return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

        def __hash__(self: Any) -> int:
            return hash(hashed(self))

        @reprlib.recursive_repr()
        def __repr__(self: Any) -> str:
            texts = (f"{part.name}={getattr(self, part.name)!r}" for part in parts if part.repr)
            return f"{type(self).__qualname__}({', '.join(texts)})"

        hashing = __hash__ if frozen else None
        return {"__init__": __init__, "__eq__": __eq__, "__hash__": hashing, "__repr__": __repr__}

    def _values(names: list[str]) -> Callable[[Any], Any]:
        """Return a function that gives an object's values under these names, in one step."""
        if len(names) > 1:
            return attrgetter(*names)
        return lambda thing: tuple(getattr(thing, name) for name in names)

    def _assigned(parts: Iterable[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any] | None:
        """Return the value of each field; None where the arguments are wrong, which the initializer then says."""
        argument_by_name = (
            dict(zip((part.name for part in parts if part.init and not part.kw_only), args, strict=False)) | kwargs
        )
        if len(argument_by_name) < len(args) + len(kwargs):
            return None  # more than there are, or one twice
        values = {}
        for part in parts:
            if part.init and part.name in argument_by_name:
                values[part.name] = argument_by_name.pop(part.name)
            elif part.default_factory is not dataclasses.MISSING:
                values[part.name] = part.default_factory()
            elif part.default is not dataclasses.MISSING:
                values[part.name] = part.default
            elif part.init:
                return None
        return None if argument_by_name else values

    def _assign(self: Any, values: dict[str, Any]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _initializer(cls: type, parts: Iterable[Any], frozen: bool) -> Callable[..., None]:
        """Return the initializer of the standard library, but for how it writes on what is frozen.

        While it does so the object is of a class that is the same and not frozen. That takes a quarter of the time of
        `object.__setattr__` for each of a dozen fields. A subclass may have more fields than that other class has.
        """
        scope: dict[str, Any] = {"_new": dataclasses.MISSING, "_assign": _assign}
        ordered, keyword_only, values = ["self"], [], {}
        for part in parts:
            name, value = part.name, part.name
            default = ""
            if part.default_factory is not dataclasses.MISSING:
                scope[f"_make_{name}"], default = part.default_factory, " = _new"
                value = f"_make_{name}() if {name} is _new else {name}" if part.init else f"_make_{name}()"
            elif part.default is not dataclasses.MISSING:
                scope[f"_default_{name}"], default = part.default, f" = _default_{name}"
                value = name if part.init else f"_default_{name}"
            elif not part.init:
                continue
            if part.init:
                (keyword_only if part.kw_only else ordered).append(f"{name}{default}")
            values[name] = value
        body = [f"self.{name} = {value}" for name, value in values.items()]
        if frozen and body:
            scope |= {"_frozen": cls, "_free": _twin(cls), "_set": object.__setattr__}
            everything = ", ".join(f"{name!r}: {value}" for name, value in values.items())
            body = [
                "if self.__class__ is _frozen:",
                *(f"  {line}" for line in ("_set(self, '__class__', _free)", *body, "self.__class__ = _frozen")),
                f"else: _assign(self, {{{everything}}})",
            ]
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        arguments = ", ".join([*ordered, *(["*", *keyword_only] if keyword_only else [])])
        exec(f"def __init__({arguments}):\n  " + ("\n  ".join(body) or "pass"), scope)  # noqa: S102, of our own names
        initializer: Callable[..., None] = scope["__init__"]
        initializer.__qualname__, initializer.__module__ = f"{cls.__qualname__}.__init__", cls.__module__
        return initializer

    def _twin(cls: type) -> type:
        """Return a class with the same fields in the same places, to be assigned to; of the same types, if generic."""
        same = {name: cls.__dict__[name] for name in ("__slots__", "__orig_bases__") if name in cls.__dict__}
        return type(cls.__name__, cls.__bases__, {**same, "__setattr__": object.__setattr__})

    def _keep(self: Any, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _keep_all(self: Any, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def _state(self: Any) -> list[Any]:
        return [getattr(self, part.name) for part in dataclasses.fields(self)]

    def _restore(self: Any, state: list[Any]) -> None:
        for part, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, part.name, value)

    _KEPT = {"__setattr__": _keep, "__delattr__": _keep_all}
    _PICKLED = {"__getstate__": _state, "__setstate__": _restore}
