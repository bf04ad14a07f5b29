"""Fixture tools that ask for more before they answer: the rounds of protocol 2026-07-28."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import mcp_types as types

from commonplace.model import JSON
from commonplace.server.mcp import Context

Answers = Mapping[str, Any]
"""What the client answered to the requests it was sent back with, by their keys."""
Round = Callable[[Context, Answers, str | None], dict[str, JSON]]
"""One round of a tool: the answers so far and the state it was given to keep, to the next result."""


def said(text: str) -> dict[str, JSON]:
    return {"content": [{"type": "text", "text": text}], "resultType": "complete"}


def asked(requests: Mapping[str, JSON], state: str | None = None) -> dict[str, JSON]:
    result: dict[str, JSON] = {"resultType": "input_required", "inputRequests": dict(requests)}
    return result if state is None else {**result, "requestState": state}


def form(message: str, **fields: str) -> dict[str, JSON]:
    """A request for a form whose fields have these types, all required."""
    properties = {name: {"type": kind} for name, kind in fields.items()}
    schema = {"type": "object", "properties": properties, "required": list(fields)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sample(question: str) -> dict[str, JSON]:
    message = {"role": "user", "content": {"type": "text", "text": question}}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": 100}}


ROOTS: dict[str, JSON] = {"method": "roots/list", "params": {}}


def _elicitation(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    if "user_name" in answers:
        return said(f"Hello, {answers['user_name'].content['name']}!")
    return asked({"user_name": form("What is your name?", name="string")})


def _sampling(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    if "capital_question" in answers:
        return said(f"The model said: {_shown(answers['capital_question'])}")
    return asked({"capital_question": sample("What is the capital of France?")})


def _list_roots(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    if "client_roots" in answers:
        return said(f"The roots are {_shown(answers['client_roots'])}")
    return asked({"client_roots": ROOTS})


def _request_state(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    if "confirm" in answers and state == "asked":
        return said("state-ok")
    return asked({"confirm": form("Please confirm", ok="boolean")}, "asked")


def _multiple_inputs(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    requests = {
        "user_name": form("What is your name?", name="string"),
        "greeting": sample("Generate a greeting"),
        "client_roots": ROOTS,
    }
    return said(f"{sorted(answers)}") if answers.keys() >= requests.keys() else asked(requests, "asked")


def _multi_round(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    if "step1" in answers:
        name = answers["step1"].content["name"]
        return asked({"step2": form("Step 2: What is your favorite color?", color="string")}, f"second:{name}")
    if "step2" in answers and state is not None:
        return said(f"{state.removeprefix('second:')} likes {answers['step2'].content['color']}.")
    return asked({"step1": form("Step 1: What is your name?", name="string")}, "first")


def _capabilities(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    """Asks only for what the client said it can give."""
    able = context.session.client_capabilities or types.ClientCapabilities()
    requests: dict[str, JSON] = {}
    if able.sampling is not None:
        requests["greeting"] = sample("Generate a greeting")
    if able.elicitation is not None:
        requests["user_name"] = form("What is your name?", name="string")
    return asked(requests) if requests and not answers else said("Nothing to ask.")


def prompt(context: Context, answers: Answers, state: str | None) -> dict[str, JSON]:
    """The same for a prompt: rounds are not only for tools."""
    if "user_context" not in answers:
        return asked({"user_context": form("What context should the prompt use?", context="string")})
    text = f"Use this context: {answers['user_context'].content['context']}"
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "resultType": "complete"}


def _shown(answer: Any) -> str:
    return json.dumps(answer.model_dump(mode="json", by_alias=True, exclude_none=True))


ROUNDS: dict[str, Round] = {
    "test_input_required_result_elicitation": _elicitation,
    "test_input_required_result_sampling": _sampling,
    "test_input_required_result_list_roots": _list_roots,
    "test_input_required_result_request_state": _request_state,
    "test_input_required_result_tampered_state": _request_state,
    "test_input_required_result_multiple_inputs": _multiple_inputs,
    "test_input_required_result_multi_round": _multi_round,
    "test_input_required_result_capabilities": _capabilities,
    "test_streaming_elicitation": _elicitation,
}
