"""The address at which a model is served, and the limits to be kept with its server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from commonplace.errors import Unavailable

OLLAMA_PORT = 11434
_ALL_INTERFACES = ("0.0.0.0", "::", "[::]")  # noqa: S104 - where a server listens, which is nowhere to connect to
_PLAIN = re.compile(r"[!-~]+")


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
