"""What tests take out of answers, with the type that it is there."""

from __future__ import annotations

from typing import Any, TypeVar

from mcp.types import CallToolResult, TextContent, TextResourceContents

T = TypeVar("T")


def present(value: T | None) -> T:
    """Return a value that has to be there."""
    assert value is not None
    return value


def text_of(answer: CallToolResult) -> str:
    """Return the text of a tool's answer."""
    first = answer.content[0]
    assert isinstance(first, TextContent)
    return first.text


def said(content: object) -> str:
    """Return the text of a resource, or of a message of a prompt."""
    assert isinstance(content, (TextContent, TextResourceContents))
    return content.text


def data_of(answer: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a tool's answer."""
    return present(answer.structured_content)
