"""`commonplace.lazy_dataclass.dataclass` beside the standard library's: whatever one does, the other does.

1. Made, shown, compared, hashed, copied, pickled and refused alike, for every shape of class that is used here.
2. An initializer is compiled when many objects were made, and not before.
3. Nothing in the package uses the other one: it would be compiled whenever it is loaded.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import pickle
import pkgutil
import re
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import commonplace
from commonplace.lazy_dataclass import dataclass

Decorator = Callable[..., Any]
STANDARD: Decorator = dataclasses.dataclass
OURS: Decorator = dataclass
T = TypeVar("T")


def point(decorate: Decorator, **options: Any) -> Any:
    class Point:
        """A place."""

        x: int
        y: Any = 0
        seen: list[int] = dataclasses.field(default_factory=list, compare=False)
        secret: str = dataclasses.field(default="", repr=False)
        total: int = dataclasses.field(init=False, default=3)

    return decorate(**options)(Point)


def used(kind: Any, often: bool) -> Any:
    """The same class, of which many objects were made already."""
    for number in range(100 if often else 0):
        kind(number)
    return kind


def checked(decorate: Decorator) -> Any:
    @decorate(frozen=True, slots=True)
    class Checked:
        size: int

        def __post_init__(self) -> None:
            if self.size < 0:
                raise ValueError("less than nothing")

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

    return Checked


def ordered(decorate: Decorator) -> Any:
    @decorate(kw_only=True, frozen=True)
    class Ordered:
        size: int = 1
        name: str

    return Ordered


@dataclass(frozen=True, slots=True)
class Kept:
    name: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Never:
    name: str


SHAPES: tuple[dict[str, bool], ...] = ({}, {"slots": True}, {"frozen": True}, {"frozen": True, "slots": True})
both = pytest.mark.parametrize("options", SHAPES, ids=str)
compiled = pytest.mark.parametrize("compiled", [False, True], ids=["the first objects", "the others"])
values = st.one_of(st.integers(), st.text(max_size=5), st.tuples(st.integers()), st.none())


def outcome(work: Callable[[], Any]) -> Any:
    """What comes of it, in words that leave out which of the two classes it was."""
    try:
        return re.sub(r"\S*<locals>\.", "", repr(work()))
    except (TypeError, ValueError, AttributeError) as error:
        return type(error), re.sub(r"\S*<locals>\.", "", str(error))


@both
@compiled
@given(x=values, y=values, other=values)
@settings(deadline=None, max_examples=50)
def test_objects_are_shown_compared_and_hashed_as_by_the_standard_library(
    options: dict[str, bool], compiled: bool, x: Any, y: Any, other: Any
) -> None:
    def told(kind: Any) -> list[Any]:
        one, same, third = kind(x, y), kind(x, y=y, seen=[1]), kind(x, other, secret="s")
        return [
            outcome(lambda: one),
            one == same,
            one == third,
            one == (x, y),
            outcome(lambda: hash(one) == hash(same)),
            dataclasses.astuple(third),
            outcome(lambda: dataclasses.replace(third, x=7)),
            [(part.name, part.default, part.compare, part.repr) for part in dataclasses.fields(kind)],
            kind.__match_args__,
            hasattr(one, "__dict__"),
        ]

    assert told(used(point(OURS, **options), compiled)) == told(point(STANDARD, **options))


@both
@compiled
@pytest.mark.parametrize(
    "wrong",
    [
        lambda kind: kind(),
        lambda kind: kind(1, 2, 3, 4, 5),
        lambda kind: kind(1, x=2),
        lambda kind: kind(1, z=2),
        lambda kind: kind(1, total=2),
        lambda kind: setattr(kind(1), "x", 2),
        lambda kind: delattr(kind(1), "x"),
        lambda kind: dataclasses.replace(kind(1), total=2),
    ],
)
def test_what_the_standard_library_refuses_is_refused_in_the_same_words(
    options: dict[str, bool], compiled: bool, wrong: Callable[[Any], Any]
) -> None:
    ours = used(point(OURS, **options), compiled)
    assert outcome(lambda: wrong(ours)) == outcome(lambda: wrong(point(STANDARD, **options)))


def test_a_default_that_is_made_is_made_for_each() -> None:
    kind = point(OURS, frozen=True, slots=True)
    assert kind(1).seen is not kind(1).seen


def test_a_class_may_check_itself_and_say_what_is_equal() -> None:
    ours, standard = checked(OURS), checked(STANDARD)
    assert outcome(lambda: ours(-1)) == outcome(lambda: standard(-1)) == (ValueError, "less than nothing")
    assert ours(1) == ours(2)
    assert hash(ours(1)) != hash(ours(2))


@both
@compiled
def test_a_subclass_is_made_as_by_the_standard_library(options: dict[str, bool], compiled: bool) -> None:
    def told(decorate: Decorator) -> list[Any]:
        kind = used(point(decorate, **options), compiled)

        class Named(kind):  # type: ignore[misc, valid-type]
            def named(self) -> str:
                return f"{self.x}!"

        class Further(kind):  # type: ignore[misc, valid-type]
            z: int = 0

        further = used(decorate(**options)(Further), compiled)
        plain, more = Named(1, 2), further(1, z=9)
        return [
            outcome(lambda: plain),
            type(plain) is Named,
            plain.named(),
            outcome(lambda: more),
            type(more) is further,
            outcome(lambda: setattr(more, "z", 2)),
            outcome(lambda: setattr(kind(1), "x", 2)),
        ]

    assert told(OURS) == told(STANDARD)


@both
@compiled
def test_a_class_of_any_type_is_made_as_by_the_standard_library(options: dict[str, bool], compiled: bool) -> None:
    def told(decorate: Decorator) -> list[Any]:
        class Box(Generic[T]):
            """A box."""

            inside: T

        kind = used(decorate(**options)(Box), compiled)
        box = kind("tea")
        return [
            outcome(lambda: box),
            type(box) is kind,
            outcome(lambda: setattr(box, "inside", "milk")),
            kind[str].__args__,
        ]

    assert told(OURS) == told(STANDARD)


def test_named_arguments_have_no_order() -> None:
    kind = ordered(OURS)
    assert outcome(lambda: kind(name="a")) == outcome(lambda: ordered(STANDARD)(name="a"))
    assert outcome(lambda: kind("a")) == outcome(lambda: ordered(STANDARD)("a"))


def test_frozen_objects_are_copied_and_pickled() -> None:
    kept = Kept("tea", ("green",))
    assert copy.deepcopy(kept) == pickle.loads(pickle.dumps(kept)) == copy.copy(kept) == kept


def test_an_initializer_is_compiled_once_a_few_objects_were_made_without_it() -> None:
    before = Never.__init__
    first = Never("x")
    assert Never.__init__ is before
    many = [Never("x") for _ in range(100)]
    after = Never.__init__
    assert before is not after
    assert after.__qualname__ == "Never.__init__"
    assert {first, Never("x"), *many} == {Never("x")}
    assert after is Never.__init__


def test_every_class_of_the_package_can_be_made_often() -> None:
    names = [
        name for _, name, _ in pkgutil.walk_packages(commonplace.__path__, "commonplace.") if "__main__" not in name
    ]
    found = {kind for name in names for kind in vars(importlib.import_module(name)).values() if isinstance(kind, type)}
    ours = [
        kind for kind in found if "__dataclass_fields__" in vars(kind) and kind.__module__.startswith("commonplace.")
    ]
    assert len(ours) > 100
    for kind in ours:
        with pytest.raises(TypeError, match=rf"{kind.__name__}.*nothing of the kind"):  # compiled, to be told by it
            kind(**{"nothing of the kind": 1})
        made: Any = object.__new__(kind)
        if free := kind.__init__.__globals__.get("_free"):  # type: ignore[misc]
            object.__setattr__(made, "__class__", free)
            made.__class__ = kind
