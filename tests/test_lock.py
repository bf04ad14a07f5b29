"""`uv.lock` holds every dependency of `pyproject.toml`, from the public index alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
HOSTS = {"pypi.org", "files.pythonhosted.org"}


@pytest.fixture(scope="module")
def lock() -> dict[str, Any]:
    return tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))


def _normal(requirement: str) -> str:
    """Return the normalized name of a requirement, as an index spells it."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    assert name is not None, requirement
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def test_every_address_is_the_public_indexs(lock: dict[str, Any]) -> None:
    text = (ROOT / "uv.lock").read_text("utf-8")
    addresses = re.findall(r'"([a-z+]+://[^"]+)"', text)
    assert len(addresses) > 500
    assert {urlsplit(address).hostname for address in addresses} == HOSTS
    assert "file:" not in text


def test_nothing_comes_from_a_path_but_the_package_itself(lock: dict[str, Any]) -> None:
    sources = {package["name"]: package["source"] for package in lock["package"]}
    assert sources.pop("commonplace-mcp") == {"editable": "."}
    assert {tuple(source) for source in sources.values()} == {("registry",)}


def test_every_dependency_is_locked(lock: dict[str, Any]) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    locked = {package["name"] for package in lock["package"]}
    assert {_normal(requirement) for requirement in named} <= locked
