"""The address at which a model is served, the limits to be kept with its server, its key, and the prefixes it wants.

Keys come from the environment, or from a file that nobody else can read, never from a setting.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from commonplace.errors import Unavailable
from commonplace.settings import PREFIX

OLLAMA_PORT = 11434
_ALL_INTERFACES = ("0.0.0.0", "::", "[::]")  # noqa: S104 - where a server listens, which is nowhere to connect to
_PLAIN = re.compile(r"[!-~]+")
_ARCTIC = "Represent this sentence for searching relevant passages: "
_QWEN = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "
_PRIVATE = stat.S_IRWXG | stat.S_IRWXO


class Misconfigured(Unavailable):
    """A provider that is set in a way that cannot work. What needs it goes without, and says so."""

    code, exit_code = "bad_setting", 78


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider as far as it is known before anyone talks to it."""

    name: str
    address: str
    """The address that its name stands for; empty where only the user can know."""
    key_variable: str = ""
    address_variable: str = ""
    needs_key: bool = False


PROVIDERS: Mapping[str, Provider] = {
    provider.name: provider
    for provider in (
        Provider("ollama", f"http://127.0.0.1:{OLLAMA_PORT}", "OLLAMA_API_KEY", "OLLAMA_HOST"),
        Provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_API_BASE"),
        Provider("azure", "", "AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", needs_key=True),
        Provider("anthropic", "https://api.anthropic.com", "ANTHROPIC_API_KEY", needs_key=True),
        Provider("cohere", "https://api.cohere.com", "COHERE_API_KEY"),
        Provider("jina", "https://api.jina.ai", "JINA_API_KEY"),
        Provider("tei", "http://127.0.0.1:8080"),
    )
}


@dataclass(frozen=True, slots=True)
class ModelEndpoint:
    """A model at an address. Two that are equal share one line: its connections, its limits and its rest."""

    provider: str
    model: str
    url: str
    """Without a slash at its end."""
    setting: str
    """The setting that names the address, for sentences."""
    key: str = field(default="", repr=False)
    organization: str = ""
    version: str = ""
    """Azure's `api-version`."""
    timeout: float = 30.0
    attempts: int = 3
    pause: float = 0.5
    """Before the second attempt; each pause after it is twice as long."""
    concurrency: int = 4

    @property
    def name(self) -> str:
        return f"{self.provider}:{self.model}"

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def place(self) -> str:
        """Return the address as part of a model's identity: one machine has several names for itself."""
        parts = urlsplit(self.url)
        host = "localhost" if parts.hostname in ("127.0.0.1", "::1", "localhost") else parts.hostname
        return f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}{parts.path}"


def is_provided(name: str) -> bool:
    """Return whether a model's name says that somebody serves it: `ollama:nomic-embed-text`."""
    return name.partition(":")[0] in PROVIDERS and ":" in name


def split_name(name: str, offered: tuple[str, ...], setting: str) -> tuple[Provider, str]:
    """Return the provider and the model of `provider:model`.

    Raise Misconfigured for one that cannot do what is wanted.
    """
    provider, _, model = name.partition(":")
    if provider not in offered or not model.strip():
        provider_name = ", ".join(f"{one}:MODEL" for one in offered)
        raise Misconfigured(f"{setting} must be one of {provider_name}, not {name!r}.")
    return PROVIDERS[provider], model.strip()


def read_address(address: str, setting: str, *, port: int | None = None) -> str:
    """Return an address as it is connected to. `port` is assumed where neither a scheme nor a port is written."""
    url = address.strip()
    if "://" not in url:
        url = f"http://{url}"
        assumed = port
    else:
        assumed = None
    parts = _split(url, setting)
    if parts.scheme not in ("http", "https") or not parts.hostname or not _PLAIN.fullmatch(url):
        raise Misconfigured(f"{setting} must be an http or https address such as http://127.0.0.1:8000/v1.")
    if parts.username is not None or parts.password is not None:
        raise Misconfigured(f"{setting} must not carry a name or password. Put the key into the file of keys.")
    if parts.query or parts.fragment:
        raise Misconfigured(f"{setting} must end with its path: no '?' and no '#'.")
    host = "127.0.0.1" if parts.hostname in _ALL_INTERFACES else parts.hostname
    bracketed_host = f"[{host}]" if ":" in host else host
    number = parts.port or assumed
    return f"{parts.scheme}://{bracketed_host}{f':{number}' if number else ''}{parts.path.rstrip('/')}"


def _split(url: str, setting: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port  # a port that is no number is found out here
    except ValueError:
        raise Misconfigured(f"{setting} must be an http or https address such as http://127.0.0.1:8000/v1.") from None
    return parts


@dataclass(frozen=True, slots=True)
class Prefixes:
    query: str = ""
    passage: str = ""


_KNOWN: tuple[tuple[str, Prefixes], ...] = (
    ("nomic-embed", Prefixes("search_query: ", "search_document: ")),
    ("embeddinggemma", Prefixes("task: search result | query: ", "title: none | text: ")),
    ("qwen3-embedding", Prefixes(_QWEN)),
    ("arctic-embed2", Prefixes("query: ")),
    ("arctic-embed-l-v2", Prefixes("query: ")),
    ("arctic-embed-m-v2", Prefixes("query: ")),
    ("arctic-embed", Prefixes(_ARCTIC)),
    ("mxbai-embed", Prefixes(_ARCTIC)),
    ("bge-m3", Prefixes()),
    ("bge-", Prefixes(_ARCTIC)),
    ("multilingual-e5", Prefixes("query: ", "passage: ")),
    ("e5-small", Prefixes("query: ", "passage: ")),
    ("e5-base", Prefixes("query: ", "passage: ")),
    ("e5-large", Prefixes("query: ", "passage: ")),
)
"""Fragments of names, the first that fits counts. `instruct` variants of e5 want an instruction of the user's own."""


def prefixes_of(model: str) -> Prefixes:
    """Return the prefixes of the model with this name, whatever tag, owner or folder stands around it.

    They are empty where none are known.
    """
    name = model.lower()
    if "instruct" in name and "qwen3" not in name:
        return Prefixes()
    return next((prefixes for fragment, prefixes in _KNOWN if fragment in name), Prefixes())


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
