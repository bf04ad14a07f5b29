"""Arguments of every tool: the sentences for wrong ones, and that nothing an agent sends breaks a tool."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knowledge_calls import Tools

from commonplace.profiles.registry import profile
from commonplace.server.calls import Failure, run
from commonplace.tools.profile import Registry
from commonplace.tools.tool import Call
from schemas import arguments

REGISTRY = Registry(profile("knowledge"), writable=True, aliases=True)
TEXTS = st.sampled_from(
    [
        "tea",
        "talk",
        "notes://tea",
        "chats://talk/m1",
        "1",
        "sea captain",
        "",
        " ",
        "2024-05-01",
        "new",
        "\x00",
        "-x",
        '"',
    ]
)


@pytest.mark.parametrize(
    ("tool", "given", "code", "sentence"),
    [
        ("notes.search", {}, "invalid_argument", 'notes.search needs "query".'),
        ("notes.search", {"query": " "}, "invalid_argument", "query is blank: give at least one word."),
        ("notes.search", {"query": ""}, "invalid_argument", "query is blank: give at least one word."),
        (
            "notes.search",
            {"query": "x" * 1001},
            "invalid_argument",
            "query must have at most 1000 characters, not 1001.",
        ),
        ("notes.search", {"query": "x", "limit": 500}, "invalid_argument", "limit must be between 1 and 100, not 500."),
        (
            "notes.search",
            {"query": "x", "offset": -1},
            "invalid_argument",
            "offset must be between 0 and 10000, not -1.",
        ),
        ("notes.search", {"query": "x", "limit": "5"}, "invalid_argument", 'limit must be a whole number, not "5".'),
        ("notes.search", {"query": "x", "user_id": 1}, "unknown_argument", 'notes.search has no argument "user_id".'),
        (
            "media.search",
            {"query": "x", "types": ["a"]},
            "unknown_argument",
            'media.search has no argument "types". Did you mean "media_types"? It takes: query, limit, ',
        ),
        (
            "notes.get",
            {"note_id": "tea", "retrieval": {"windows": 1}},
            "unknown_argument",
            'notes.get has no argument "retrieval.windows".',
        ),
        ("notes.get", {"note_id": "tea", "retrieval": {"query": " "}}, "invalid_argument", "retrieval.query is blank"),
        (
            "media.search",
            {"query": "x", "date_from": "last week"},
            "invalid_argument",
            'date_from "last week" is not an ISO 8601 date; write 2024-05-01 or 2024-05-01T09:30:00Z.',
        ),
        ("media.search", {"query": "x", "date_to": ""}, "invalid_argument", 'date_to "" is not an ISO 8601 date; '),
        (
            "knowledge.search",
            {"query": "x", "filters": {"media": {"date_from": ""}}},
            "invalid_argument",
            'filters.media.date_from "" is not an ISO 8601 date; ',
        ),
        ("knowledge.search", {"query": "x", "session": ""}, "invalid_argument", "session must not be empty."),
        ("notes.get", {"note_id": "tea", "session": ""}, "invalid_argument", "session must not be empty."),
        ("chats.get", {"conversation_id": "talk", "page": 0}, "invalid_argument", "page must be at least 1, not 0."),
        (
            "media.search",
            {"query": "x", "order_by": "size"},
            "invalid_argument",
            'order_by must be one of relevance, recent, not "size".',
        ),
        ("characters.search", {"query": []}, "invalid_argument", "query must have at least 1 entry."),
        ("characters.search", {"query": ["a"] * 21}, "invalid_argument", "query must have at most 20 entries, not 21."),
        ("prompts.search", {"query": "x", "fields": ["title"]}, "invalid_argument", "fields.0 must be one of name, "),
        (
            "knowledge.search",
            {"query": "x", "sources": ["web"]},
            "invalid_argument",
            "sources.0 must be one of notes, ",
        ),
    ],
)
def test_wrong_arguments_are_refused_in_a_sentence(
    filled: Tools, tool: str, given: dict[str, Any], code: str, sentence: str
) -> None:
    refused = filled.refused(tool, **given)
    assert refused.code == code
    assert refused.message.startswith(sentence), refused.message


def test_a_whole_number_may_be_written_with_a_point(filled: Tools) -> None:
    found = filled("notes.search", query="tea", limit=1.0, offset=0.0, snippet_length=40.0)
    assert found == filled("notes.search", query="tea", limit=1, offset=0, snippet_length=40)
    filled("media.get", media_id=1.0, retrieval={"mode": "full", "offset": 2.0, "loc": {"chunk_index": 0.0}})
    filled("media.transcript", media_id=1.0, from_ms=1.0)
    filled("notes.update", note_id="tea", title="T", expected_version=1.0)


@pytest.mark.parametrize("name", [tool.name for tool in REGISTRY.tools])
def test_nothing_an_agent_sends_breaks_a_tool(filled: Tools, name: str) -> None:
    tool = REGISTRY.find(name)
    assert tool is not None
    assert tool.output is not None
    call = Call(filled.library)

    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    @given(arguments(tool.input, TEXTS) | arguments(tool.input, TEXTS, wild=True))
    def send(sent: dict[str, Any]) -> None:
        answer = run(tool, call, sent)
        if isinstance(answer, Failure):
            assert answer.code != "internal", answer
        else:
            jsonschema.validate(answer, tool.output)  # type: ignore[arg-type]

    send()
    assert filled.library.store.check() == []


@pytest.mark.parametrize("name", [tool.name for tool in REGISTRY.tools])
def test_every_declaration_is_strict_and_tells_enough(name: str) -> None:
    tool = REGISTRY.find(name)
    assert tool is not None
    assert tool.output is not None
    assert len(tool.description) > 20

    def strict(schema: Any) -> None:
        if isinstance(schema, dict):
            if "properties" in schema:
                assert schema["additionalProperties"] is False, name
            for part in schema.values():
                strict(part)
        elif isinstance(schema, list):
            for part in schema:
                strict(part)

    strict(tool.input)
    assert tool.input["type"] == tool.output["type"] == "object"
    jsonschema.Draft202012Validator.check_schema(tool.input)
    jsonschema.Draft202012Validator.check_schema(tool.output)
