"""Which registry is asked: the argument, then the environment, then pip's own files, then PyPI."""

from __future__ import annotations

from pathlib import Path

import pytest

from commonplace.models.pull import PYPI, registry_url


@pytest.fixture(autouse=True)
def no_pip_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def test_nothing_set_means_pypi() -> None:
    assert registry_url() == PYPI


def test_the_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_REGISTRY", "https://env/simple")
    assert registry_url("https://given/simple") == "https://given/simple"


def test_the_environment_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL", "COMMONPLACE_REGISTRY"):
        monkeypatch.setenv(name, f"https://{name}/simple")
        assert registry_url() == f"https://{name}/simple"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[global]\nindex-url = https://pip/simple%20x\n", "https://pip/simple%20x"),
        ("[global]\ncert = /x\n", PYPI),
        ("[install]\nindex-url = https://pip/simple\n", PYPI),
        ("not a configuration file", PYPI),
    ],
)
def test_pips_files_are_read(text: str, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "pip.conf"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(path))
    assert registry_url() == expected


def test_the_users_file_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PIP_CONFIG_FILE")
    path = tmp_path / "config" / "pip" / "pip.conf"
    path.parent.mkdir(parents=True)
    path.write_text("[global]\nindex-url = https://user/simple\n", encoding="utf-8")
    assert registry_url() == "https://user/simple"
