"""Settings: the environment over config.toml over defaults, and a sentence that names what cannot be used."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commonplace.settings import PREFIX, BadSetting, Settings, user_path


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No setting of the machine reaches a test; `config.toml` is the test's own."""
    for item in fields(Settings):
        monkeypatch.delenv(PREFIX + item.name.upper(), raising=False)
    (tmp_path / "config.toml").touch()
    monkeypatch.setenv("COMMONPLACE_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


def test_without_anything_the_defaults_hold() -> None:
    assert Settings.load() == Settings()


@pytest.mark.parametrize("kind", ["data", "cache", "config"])
@given(
    home=st.sampled_from([None, "", "/", "/home/ann", "/home/ann/", "relative", "/home/./b c"]),
    xdg=st.sampled_from([None, "", " ", "/elsewhere", "relative", "~/own"]),
)
@settings(deadline=None, max_examples=50)
def test_a_users_files_are_where_platformdirs_says(kind: str, home: str | None, xdg: str | None) -> None:
    with pytest.MonkeyPatch.context() as environment:
        for name, value in (("HOME", home), (f"XDG_{kind.upper()}_HOME", xdg)):
            environment.delenv(name, raising=False)
            if value is not None:
                environment.setenv(name, value)
        assert user_path(kind) == getattr(platformdirs, f"user_{kind}_path")("commonplace")


def test_the_environment_is_stronger_than_the_file_and_an_argument_than_both(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean.write_text('threads = 3\nlanguage = "de"\nhome = "~/books"', encoding="utf-8")
    monkeypatch.setenv("COMMONPLACE_LANGUAGE", "fr")
    loaded = Settings.load(threads=5)
    assert (loaded.threads, loaded.language, loaded.home) == (5, "fr", Path.home() / "books")
    assert Settings.load(threads=None).threads == 3
    assert Settings.load(home=Path("~/shelf")).home == Path.home() / "shelf"


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("COMMONPLACE_THREADS", "two", "COMMONPLACE_THREADS must be a whole number, not 'two'"),
        ("COMMONPLACE_THREADS", "0", "COMMONPLACE_THREADS must be at least 1, not 0"),
        ("COMMONPLACE_EMBED_ON_SEARCH", "-1", "COMMONPLACE_EMBED_ON_SEARCH must be at least 0"),
        ("COMMONPLACE_SESSION_MAX", "9" * 30, "COMMONPLACE_SESSION_MAX must be at most 2147483647, not 999"),
        ("COMMONPLACE_IMPORT_MAX_BYTES", "9" * 5000, "COMMONPLACE_IMPORT_MAX_BYTES must be a whole number"),
        ("COMMONPLACE_KNOWLEDGE_CHARS_PER_TOKEN", "0.5", "CHARS_PER_TOKEN must be at least 1, not"),
        ("COMMONPLACE_KNOWLEDGE_CHARS_PER_TOKEN", "nan", "CHARS_PER_TOKEN must be at least 1, not"),
        ("COMMONPLACE_KNOWLEDGE_CHARS_PER_TOKEN", "few", "CHARS_PER_TOKEN must be a number, not"),
        ("COMMONPLACE_LANGUAGE", "english", "COMMONPLACE_LANGUAGE must be an ISO 639-1 code such as en, not 'english'"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, sentence: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(BadSetting, match=sentence) as bad:
        Settings.load()
    assert bad.value.exit_code == 78


def test_a_number_may_have_a_fraction_where_its_argument_may(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clean.write_text("knowledge_chars_per_token = 3.5\nfull_max_chars = 1", encoding="utf-8")
    assert (Settings.load().knowledge_chars_per_token, Settings.load().full_max_chars) == (3.5, 1)
    monkeypatch.setenv("COMMONPLACE_KNOWLEDGE_CHARS_PER_TOKEN", "2.5")
    assert Settings.load().knowledge_chars_per_token == 2.5


@pytest.mark.parametrize("content", ["threads = ", "threads = 'two'", "threads = 2.5", "threads = true", "\udcff"])
def test_a_file_that_cannot_be_read_is_named(clean: Path, content: str) -> None:
    clean.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(BadSetting, match=r"config\.toml"):
        Settings.load()


def test_a_file_that_is_named_has_to_be_there_and_the_usual_one_has_not(
    clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clean.write_text("threads = 3", encoding="utf-8")
    monkeypatch.setenv("HOME", str(clean.parent))
    monkeypatch.setenv("COMMONPLACE_CONFIG", "~/config.toml")
    assert Settings.load().threads == 3
    monkeypatch.setenv("COMMONPLACE_CONFIG", "~/confg.toml")
    with pytest.raises(BadSetting, match=r"^COMMONPLACE_CONFIG names .*/confg\.toml, and there is no such file\."):
        Settings.load()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(clean.parent / "none"))
    monkeypatch.delenv("COMMONPLACE_CONFIG")
    assert Settings.load() == Settings()


def test_an_empty_variable_is_one_that_is_not_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for item in fields(Settings):
        monkeypatch.setenv(PREFIX + item.name.upper(), "")
    assert Settings.load() == Settings()


def test_every_setting_says_what_it_does() -> None:
    assert all(item.metadata["doc"].endswith(".") for item in fields(Settings))


def test_a_setting_that_does_not_exist_is_named(clean: Path) -> None:
    clean.write_text('langauge = "de"', encoding="utf-8")
    with pytest.raises(BadSetting, match=r"config\.toml sets langauge, which is no setting"):
        Settings.load()


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("hosts = ['a', 'b']", r"hosts in config\.toml must be a text in quotes, not \['a', 'b'\]"),
        ("model = 5", r"model in config\.toml must be a text in quotes, not 5"),
        ("home = true", r"home in config\.toml must be a text in quotes"),
        ("[home]\na = 1", r"home in config\.toml must be a text in quotes"),
        ("home = ''", r"home in config\.toml must name a folder"),
        ('models = "a\\u0000b"', r"models in config\.toml contains U\+0000"),
        ('hosts = "a\\u0000b"', r"hosts in config\.toml contains U\+0000"),
    ],
)
def test_a_value_of_the_file_that_is_no_text_is_named(clean: Path, line: str, sentence: str) -> None:
    clean.write_text(line, encoding="utf-8")
    with pytest.raises(BadSetting, match=sentence):
        Settings.load()
