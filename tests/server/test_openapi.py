"""Whatever is sent that the OpenAPI document allows or forbids, the answer is not a failure of the server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error

from commonplace.library import Library
from commonplace.model import Draft
from commonplace.profiles.registry import profile
from commonplace.server.auth import OpenGate
from commonplace.server.http import make_app
from commonplace.settings import Settings
from serving import served


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[schemathesis.BaseSchema]:
    home: Path = tmp_path_factory.mktemp("home")
    config = Settings(home=home, models=home / "models", model="static", allow_writes=True)
    with Library.open(home, settings=config) as library:  # vsearch is rightly a 503 where nothing has vectors
        library.put(Draft("collection", "papers", title="papers", fields={"root": str(home), "pattern": "**/*.md"}))
        library.put(Draft("document", "plan.md", parent="papers", title="Plan", body="# Plan\n\nTo be found."))
        library.embed()
    app = make_app(config, OpenGate())
    with served(app) as port:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{port}/openapi.json")


@pytest.mark.parametrize("name", [tool.name for tool in profile("all").tools])
def test_no_request_is_answered_with_a_failure_of_the_server(api: schemathesis.BaseSchema, name: str) -> None:
    @settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))
    @given(case=api[f"/api/v1/tools/{name}"]["POST"].as_strategy())
    def sent(case: schemathesis.Case) -> None:  # type: ignore[type-arg]
        case.call_and_validate(checks=[not_a_server_error])

    sent()
