"""One typed Settings object: environment over config.toml over defaults."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from platformdirs import user_cache_path, user_config_path, user_data_path

from commonplace.errors import CommonplaceError

PREFIX = "COMMONPLACE_"
_BOOLEANS = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


class BadSetting(CommonplaceError):
    """A setting that cannot be used. Ends a process with EX_CONFIG."""

    code, status, exit_code = "bad_setting", 500, 78


def setting(default: Any, doc: str, *, least: float | None = None) -> Any:
    """A setting: its default, the sentence that explains it, and its bound, in one place."""
    factory = default if callable(default) else lambda: default
    return field(default_factory=factory, metadata={"doc": doc, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything a user may set. The environment variable of `home` is COMMONPLACE_HOME, and so on."""

    home: Path = setting(lambda: user_data_path("commonplace"), "Where libraries live.")
    models: Path = setting(
        lambda: user_cache_path("commonplace") / "models", "Where pulled models live, shared by all homes."
    )
    model: str = setting("", "The embedder for new libraries: a catalogue name, `static`, `hf:owner/name` or a folder.")
    language: str = setting("en", "The language of texts whose own cannot be told, as an ISO 639-1 code.")
    threads: int = setting(2, "How many threads an embedder may use.", least=1)
    allow_writes: bool = setting(False, "Whether agents may write: lists `remember`, `revise` and `forget`.")
    embed_on_search: int = setting(
        64, "How many pending chunks a search embeds on the spot, where vectors exist.", least=0
    )

    @classmethod
    def load(cls, **overrides: Any) -> Self:
        """Read config.toml and the environment. What cannot be understood is an error that names the setting."""
        values: dict[str, Any] = {}
        given = _config_file()
        unknown = ", ".join(sorted(given.keys() - {item.name for item in fields(cls)}))
        if unknown:
            raise BadSetting(f"config.toml sets {unknown}, which is no setting. docs/operations.md lists them.")
        for item in fields(cls):
            name = PREFIX + item.name.upper()
            if item.name in overrides and overrides[item.name] is not None:
                values[item.name] = overrides[item.name]
            elif os.environ.get(name):  # an empty variable is one that is not set
                values[item.name] = _parse(name, os.environ[name], str(item.type), item.metadata.get("least"))
            elif item.name in given:
                values[item.name] = _parse(
                    f"{item.name} in config.toml", given[item.name], str(item.type), item.metadata.get("least")
                )
        return cls(**values)


def _config_file() -> dict[str, Any]:
    path = Path(os.environ.get(f"{PREFIX}CONFIG") or user_config_path("commonplace") / "config.toml")
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadSetting(f"{path} cannot be read: {error}. Mend it or move it away.") from error


def _parse(name: str, value: Any, kind: str, least: float | None) -> Any:
    if kind == "Path":
        return Path(str(value)).expanduser()
    if kind == "str":
        return str(value)
    if kind == "bool":
        if str(value).lower() not in _BOOLEANS:
            raise BadSetting(f"{name} must be true or false, not {value!r}.")
        return _BOOLEANS[str(value).lower()]
    try:
        number = int(str(value))
    except ValueError:
        raise BadSetting(f"{name} must be a whole number, not {value!r}.") from None
    if least is not None and number < least:
        raise BadSetting(f"{name} must be at least {least}, not {number}.")
    return number


def reference() -> str:
    """Every setting as a Markdown table: what docs/operations.md shows."""
    rows = ["| setting | environment | default | what it does |", "|---|---|---|---|"]
    for item in fields(Settings):
        default = (
            "the platform's own folder"
            if item.type == "Path"
            else f"`{_default(item)}`"
            if _default(item) != ""
            else "–"
        )
        rows.append(f"| `{item.name}` | `{PREFIX}{item.name.upper()}` | {default} | {item.metadata['doc']} |")
    return "\n".join(rows)


def _default(item: Any) -> Any:
    return item.default_factory()
