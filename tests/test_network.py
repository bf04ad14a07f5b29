"""`offline` forbids every connection off this machine: (1) who is this machine; (2) each part that would go further."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from commonplace.cli.main import cli
from commonplace.errors import Offline
from commonplace.kinds.documents.packages.package import PackageRequest, open_package
from commonplace.kinds.documents.packages.source import read_source
from commonplace.library import Library
from commonplace.models.providers.endpoint import Misconfigured
from commonplace.models.providers.provided_models import provided_embedder
from commonplace.models.pull import pull
from commonplace.network import is_this_machine
from commonplace.server.tokens import make_jwt_gate
from commonplace.settings import Settings


@pytest.fixture
def nothing_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test that looks up a host or opens a connection off this machine."""

    def refuse(*asked: Any, **_: Any) -> None:
        raise AssertionError(f"asked the network for {asked}")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.9.1", "::1", "[::1]"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_this_machine(host)


@pytest.mark.parametrize("host", ["", "10.0.0.1", "localhost.example.org", "127.0.0.1.example.org", "::", "0.0.0.0"])
def test_everything_else_is_not(host: str) -> None:
    assert not is_this_machine(host)


@pytest.mark.parametrize("model", ["arctic-embed-s", "hf:acme/small"])
@pytest.mark.usefixtures("nothing_asked")
def test_models_are_not_pulled(model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_OFFLINE", "1")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    done = CliRunner().invoke(cli, ["models", "pull", model])
    assert done.exit_code != 0
    assert isinstance(done.exception, Offline)
    assert str(done.exception) == (
        f"Pulling {model} needs the network, and offline is set. Unset COMMONPLACE_OFFLINE to allow it."
    )


def test_a_model_that_is_there_needs_no_pull(tmp_path: Path) -> None:
    assert pull("static", tmp_path, offline=True).is_dir()


@pytest.mark.usefixtures("nothing_asked")
def test_the_first_folder_is_indexed_with_the_shipped_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMMONPLACE_OFFLINE", "1")
    monkeypatch.setenv("COMMONPLACE_MODELS", str(tmp_path / "models"))
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "tea.md").write_text("Oolong wants water just off the boil.\n", encoding="utf-8")
    done = CliRunner().invoke(cli, ["--home", str(tmp_path / "home"), "add", str(folder)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "Embedded: 1 passage with static" in done.output


def test_a_provider_elsewhere_is_not_asked_and_one_on_this_machine_is(tmp_path: Path) -> None:
    away = Settings(home=tmp_path, offline=True, embedder_url="http://models.example.org/v1")
    with pytest.raises(Misconfigured, match=r"openai:small needs models\.example\.org, and offline is set"):
        provided_embedder("openai:small", away, {})
    here = Settings(home=tmp_path, offline=True, embedder_url="http://127.0.0.1:9/v1")
    assert provided_embedder("openai:small", here, {}).name == "openai:small"


@pytest.mark.parametrize(
    "source", ["git+https://example.org/docs.git", "https://example.org/docs.tar.gz", "https://example.org/docs.json"]
)
@pytest.mark.usefixtures("nothing_asked")
def test_packages_are_not_fetched(source: str, tmp_path: Path) -> None:
    wanted = PackageRequest(
        read_source(source, tmp_path), (), (), Settings(home=tmp_path, offline=True), tmp_path / "clones"
    )
    with pytest.raises(Offline, match=r"needs example\.org, and offline is set"), open_package(wanted):
        pass


@pytest.mark.usefixtures("nothing_asked")
def test_an_issuer_elsewhere_contradicts_it(tmp_path: Path) -> None:
    settings = Settings(
        home=tmp_path, offline=True, jwt_issuer="me", jwt_audience="you", jwt_jwks_url="https://example.org/keys"
    )
    with pytest.raises(Offline, match=r"jwt_jwks_url needs example\.org"):
        make_jwt_gate(settings)


@pytest.mark.usefixtures("nothing_asked")
def test_an_index_elsewhere_contradicts_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURBOPUFFER_API_KEY", "key")
    monkeypatch.setenv("TURBOPUFFER_REGION", "here")
    monkeypatch.delenv("TURBOPUFFER_BASE_URL", raising=False)
    settings = Settings(home=tmp_path, offline=True, index="turbopuffer", model="static")
    with pytest.raises(Offline, match="index = turbopuffer needs here"):
        Library.open(tmp_path, settings=settings)
