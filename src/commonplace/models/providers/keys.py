"""Keys of providers: from the environment, or from a file that nobody else can read. Never in a setting."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from commonplace.models.providers.endpoint import Misconfigured, Provider
from commonplace.settings import PREFIX

_PRIVATE = stat.S_IRWXG | stat.S_IRWXO


def find_key(provider: Provider, host: str, role: str, path: Path, environment: Mapping[str, str], *, own: bool) -> str:
    """Return the key for a provider at a host, or "" where there is none. The nearest wins:

    COMMONPLACE_EMBEDDER_KEY and its like, the file's entry for the host, the provider's own variable, the file's entry
    for the provider. The last two are for its `own` address: a key is not sent to whoever else speaks the same way.
    """
    key_by_name = read_keys(path)
    places = [environment.get(f"{PREFIX}{role.upper()}_KEY", ""), key_by_name.get(host, "")]
    if own:
        places += [environment.get(provider.key_variable, ""), key_by_name.get(provider.name, "")]
    key = next((place.strip() for place in places if place.strip()), "")
    if not key.isascii() or any(character.isspace() for character in key):
        raise Misconfigured(f"The key for {provider.name} at {host} has characters that no key has. Write it again.")
    return key


def read_keys(path: Path) -> dict[str, str]:
    """Return keys by host or provider, from a TOML file. Refuse one that others can read: who knows who has."""
    try:
        with path.open("rb") as file:
            _require_private(path, os.fstat(file.fileno()))
            keys = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):  # neither says what is in the file: the parser's own words may quote it
        raise Misconfigured(
            f'{path} cannot be read. Write lines such as openai = "the key", or move it away.'
        ) from None
    return {name: _text(path, name, value) for name, value in keys.items()}


def _require_private(path: Path, state: os.stat_result) -> None:
    if state.st_mode & _PRIVATE:
        raise Misconfigured(f"{path} holds keys and others can read it. Run `chmod 600 {path}`.")


def _text(path: Path, name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise Misconfigured(f"{path} has something else than a text for {name!r}. Put the key in quotes.")
    return value
