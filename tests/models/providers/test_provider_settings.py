"""Addresses and keys: what is connected to, what is sent along, and what is refused."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commonplace.errors import NotFound, Unavailable
from commonplace.models import open_embedder
from commonplace.models.providers.endpoint import Misconfigured, read_address, read_keys
from commonplace.models.providers.provided_models import (
    provided_embedder,
    provided_generator,
    provided_reranker,
    provided_summarizer,
)
from commonplace.models.providers.provider_line import Breaker
from commonplace.settings import Settings
from wire_server import Make, Site

KEY = "sk-planted-0123456789"


def endpoint(settings: Settings, environment: dict[str, str], name: str = "openai:m") -> object:
    return provided_embedder(name, settings, environment)._line.endpoint


def test_a_provider_s_name_stands_for_its_address(tmp_path: Path) -> None:
    settings = Settings(keys=tmp_path / "keys.toml", models=tmp_path)
    found = {name: endpoint(settings, {}, name).url for name in ("ollama:m", "openai:m")}  # type: ignore[attr-defined]
    assert found == {"ollama:m": "http://127.0.0.1:11434", "openai:m": "https://api.openai.com/v1"}
    own = {"OLLAMA_HOST": "0.0.0.0:9", "OPENAI_API_BASE": "http://box:1234"}
    assert endpoint(settings, own, "ollama:m").url == "http://127.0.0.1:9"  # type: ignore[attr-defined]
    assert endpoint(settings, own).url == "http://box:1234/v1"  # type: ignore[attr-defined]
    set_too = Settings(keys=tmp_path / "keys.toml", models=tmp_path, embedder_url="http://other:1/v1/")
    assert endpoint(set_too, own).url == "http://other:1/v1"  # type: ignore[attr-defined]


def test_versions_in_addresses_are_not_doubled(tmp_path: Path) -> None:
    settings = Settings(keys=tmp_path / "keys.toml", reranker_url="http://box:1/v1", generator_url="http://box:1/v1")
    assert provided_reranker("jina:m", settings, {})._line.endpoint.url == "http://box:1"
    key = {"ANTHROPIC_API_KEY": "k", "COMMONPLACE_GENERATOR_KEY": "k"}
    assert provided_generator("anthropic:m", settings, key)._line.endpoint.url == "http://box:1"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("localhost", "http://localhost:11434"),
        ("box:80", "http://box:80"),
        ("https://box/", "https://box"),
        ("http://[::1]:5/x/", "http://[::1]:5/x"),
        ("http://0.0.0.0:5", "http://127.0.0.1:5"),
    ],
)
def test_addresses_are_read_as_people_write_them(written: str, read: str) -> None:
    assert read_address(written, "OLLAMA_HOST", port=11434) == read


@pytest.mark.parametrize(
    "written",
    ["ftp://box", "http://", "http://me:secret@box", "http://box?x=1", "http://box#x", "http://box:port", "http://a b"],
)
def test_an_address_that_is_none_is_refused_without_repeating_what_is_in_it(written: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        read_address(written, "COMMONPLACE_EMBEDDER_URL")
    assert str(caught.value).startswith("COMMONPLACE_EMBEDDER_URL must")
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_a_sentence(text: str) -> None:
    try:
        address = read_address(text, "X", port=1)
    except Misconfigured:
        return
    assert address.startswith(("http://", "https://"))
    assert read_address(address, "X", port=1) == address


def keyring(path: Path, content: str, mode: int = 0o600) -> Path:
    path.write_text(content, encoding="utf-8")
    path.chmod(mode)
    return path


def test_the_nearest_key_is_sent_and_nobody_gets_another_s(tmp_path: Path) -> None:
    file = keyring(tmp_path / "keys.toml", 'openai = "of-provider"\n"box:1" = "of-host"\n')
    default = Settings(keys=file, models=tmp_path)
    elsewhere = Settings(keys=file, models=tmp_path, embedder_url="http://other:1/v1")
    at_host = Settings(keys=file, models=tmp_path, embedder_url="http://box:1/v1")

    def key(settings: Settings, **environment: str) -> str:
        return str(endpoint(settings, environment).key)  # type: ignore[attr-defined]

    assert key(default) == "of-provider"
    assert key(default, OPENAI_API_KEY="of-env") == "of-env"
    assert key(elsewhere, OPENAI_API_KEY="of-env") == ""  # whoever speaks OpenAI's way is not OpenAI
    assert key(elsewhere, COMMONPLACE_EMBEDDER_KEY="given") == "given"
    assert key(at_host, OPENAI_API_KEY="of-env") == "of-host"
    own_base = Settings(keys=tmp_path / "none.toml", models=tmp_path)
    assert key(own_base, OPENAI_API_KEY="of-env", OPENAI_API_BASE="http://other:1/v1") == "of-env"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666])
def test_a_keyring_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = keyring(tmp_path / "keys.toml", f'openai = "{KEY}"', mode)
    with pytest.raises(Misconfigured, match=r"holds keys and others can read it\. Run `chmod 600") as caught:
        read_keys(file)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize("content", [f"openai = {KEY}", f'openai = ["{KEY}"]', "\x00", f'openai = "a b {KEY}"'])
def test_a_keyring_that_cannot_be_read_says_so_without_a_key(tmp_path: Path, content: str) -> None:
    settings = Settings(keys=keyring(tmp_path / "keys.toml", content), models=tmp_path)
    with pytest.raises(Misconfigured) as caught:
        endpoint(settings, {})
    assert KEY not in str(caught.value)
    assert KEY not in repr(caught.value.__context__)


def test_no_keyring_is_no_keys(tmp_path: Path) -> None:
    assert read_keys(tmp_path / "none.toml") == {}


def test_what_a_provider_needs_is_asked_for(tmp_path: Path) -> None:
    settings = Settings(keys=tmp_path / "none.toml", models=tmp_path)
    with pytest.raises(Misconfigured, match=r"azure:m needs its address\. Set COMMONPLACE_EMBEDDER_URL"):
        endpoint(settings, {}, "azure:m")
    with pytest.raises(Misconfigured, match=r"anthropic:m needs a key\. Set ANTHROPIC_API_KEY"):
        provided_generator("anthropic:m", settings, {})
    elsewhere = replace(settings, generator_url="http://127.0.0.1:8000")  # where the provider's own key does not go
    with pytest.raises(Misconfigured, match=r"anthropic:m needs a key\. Set COMMONPLACE_GENERATOR_KEY"):
        provided_generator("anthropic:m", elsewhere, {"ANTHROPIC_API_KEY": KEY})
    with pytest.raises(Unavailable, match="model must be one of ollama:MODEL, openai:MODEL, azure:MODEL"):
        open_embedder("cohere:m", tmp_path)
    with pytest.raises(NotFound, match="or a provider's: ollama:MODEL"):
        open_embedder("nonsense", tmp_path)


def test_azure_is_asked_its_own_way(make: Make, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("AZURE_OPENAI_API_VERSION", "2030-01-01")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", site.url)
    settings = make(embedder_url="")
    open_embedder("azure:my deployment", settings.models, settings=settings).warm()
    assert site.paths() == ["/openai/deployments/my%20deployment/embeddings?api-version=2030-01-01"]
    assert site.asked[0].headers["api-key"] == "azure-key"
    assert "authorization" not in site.asked[0].headers


def test_a_breaker_lets_one_through_when_its_rest_is_over() -> None:
    breaker = Breaker(failures=2, rest=0.05)
    breaker.failed()
    assert breaker.wait() == 0
    breaker.failed()
    assert breaker.wait() > 0
    time.sleep(breaker.wait())  # exactly what it asks for
    assert breaker.wait() == 0  # this one tries
    assert breaker.wait() > 0  # the others wait for what it finds
    breaker.succeeded()
    assert breaker.wait() == breaker.wait() == 0


def test_a_summariser_of_another_provider_gets_neither_the_generators_key_nor_its_address(tmp_path: Path) -> None:
    keys = {"COMMONPLACE_GENERATOR_KEY": "sk-openai-secret", "ANTHROPIC_API_KEY": "sk-ant-own"}
    elsewhere = Settings(
        home=tmp_path, generator="openai:gpt-5", generator_url="http://127.0.0.1:9/v1", keys=tmp_path / "k"
    )
    other = provided_summarizer("anthropic:claude", elsewhere, keys)._line.endpoint
    assert (other.key, other.host) == ("sk-ant-own", "api.anthropic.com")
    same = provided_summarizer("openai:gpt-5-mini", elsewhere, keys)._line.endpoint
    assert (same.key, same.host) == ("sk-openai-secret", "127.0.0.1:9")
