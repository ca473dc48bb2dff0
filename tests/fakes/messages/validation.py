"""What the service takes as a request; each refusal has the status, the type and nearly the words of the real one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.fakes.messages import conversation, schemas
from tests.fakes.messages.refusing import RequestError, one_of, only, whole

VERSIONS = ("2023-06-01", "2026-10-21")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
MOST_OUTPUT = 128_000
MOST_STRICT_TOOLS = 20
SAMPLING = ("temperature", "top_p", "top_k")
_COUNTED = frozenset(
    {
        *("messages", "model", "cache_control", "output_config", "speed", "system", "thinking"),
        *("tool_choice", "tools"),
    }
)
_ASKED = _COUNTED | {
    *("max_tokens", "container", "diagnostics", "inference_geo", "metadata", "service_tier"),
    *("stop_sequences", "stream"),
}
_TOOL = frozenset(
    {
        *("name", "description", "input_schema", "type", "strict", "cache_control", "allowed_callers"),
        *("defer_loading", "eager_input_streaming", "input_examples"),
    }
)
_TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")
_CHOICES = {
    "auto": frozenset({"type", "disable_parallel_tool_use"}),
    "any": frozenset({"type", "disable_parallel_tool_use"}),
    "tool": frozenset({"type", "name", "disable_parallel_tool_use"}),
    "none": frozenset({"type"}),
}
_THINKING = {
    "adaptive": frozenset({"type", "display"}),
    "enabled": frozenset({"type", "budget_tokens", "display"}),
    "disabled": frozenset({"type"}),
}


def credential(headers: Mapping[str, str], known: frozenset[str]) -> str:
    """Return how a request proves who asks: `bearer` or `x-api-key`; it has to be a known key."""
    bearer = headers.get("authorization") or ""
    key, kind = headers.get("x-api-key") or "", "x-api-key"
    if bearer.lower().startswith("bearer "):
        key, kind = bearer[7:], "bearer"
    if not key:
        raise RequestError("x-api-key header is required", 401, "authentication_error")
    if key not in known:
        raise RequestError(f"invalid {kind}", 401, "authentication_error")
    return kind


def version(headers: Mapping[str, str]) -> None:
    """Refuse a request that does not say for which version of the API it is."""
    given = headers.get("anthropic-version")
    if not given:
        raise RequestError("anthropic-version: header is required")
    if given not in VERSIONS:
        raise RequestError(f'anthropic-version: "{given}" is not a valid version')


def asked(body: Any, models: tuple[str, ...]) -> dict[str, Any]:
    """Return the body of a request for a message when the service would take it; no `models`: every name is one."""
    for name in SAMPLING:
        if isinstance(body, dict) and name in body:
            raise RequestError(f"`{name}` is not supported for this model.")
    only("", body, _ASKED)
    if "max_tokens" not in body:
        raise RequestError("max_tokens: Field required")
    if whole("max_tokens", body["max_tokens"], 0) > MOST_OUTPUT:
        raise RequestError(
            f"max_tokens: {body['max_tokens']} > {MOST_OUTPUT}, which is the maximum allowed number of output "
            f"tokens for {body.get('model')}"
        )
    if not isinstance(body.get("stream", False), bool):
        raise RequestError("stream: Input should be a valid boolean")
    stops = body.get("stop_sequences", [])
    if not isinstance(stops, list) or not all(isinstance(one, str) and one.strip() for one in stops):
        raise RequestError("stop_sequences: each stop sequence must contain non-whitespace")
    return _common(body, models)


def counted(body: Any, models: tuple[str, ...]) -> dict[str, Any]:
    """Return the body of a request for a count when the service would take it."""
    return _common(only("", body, _COUNTED), models)


def _common(body: dict[str, Any], models: tuple[str, ...]) -> dict[str, Any]:
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise RequestError(
            "model: Field required" if model is None else "model: Input should be a valid string"
        )
    conversation.check(body)
    _tools(body.get("tools") or [])
    _choice(body)
    _thinking(body)
    _output(body.get("output_config"))
    if models and model not in models:
        raise RequestError(f"model: {model}", 404, "not_found_error")
    return body


def _output(config: Any) -> None:
    if config is None:
        return
    only("output_config.", config, frozenset({"effort", "format"}))
    if config.get("effort") is not None:
        one_of("output_config.effort", config["effort"], EFFORTS)
    if config.get("format") is not None:
        form = only("output_config.format.", config["format"], frozenset({"type", "schema"}))
        one_of("output_config.format.type", form.get("type"), ("json_schema",))
        schemas.check("output_config.format.schema", form.get("schema"))


def _tools(tools: Any) -> None:
    if not isinstance(tools, list):
        raise RequestError("tools: Input should be a valid list")
    for number, tool in enumerate(tools):
        where = f"tools.{number}.custom"
        only(f"{where}.", tool, _TOOL)
        if not _TOOL_NAME.match(str(tool.get("name", ""))):
            raise RequestError(f"{where}.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        form = tool.get("input_schema")
        if not isinstance(form, dict) or form.get("type") != "object":
            raise RequestError(f"{where}.input_schema.type: Input should be 'object'")
        if tool.get("strict"):
            schemas.check(f"{where}.input_schema", form)
    if len({tool["name"] for tool in tools}) < len(tools):
        raise RequestError("tools: Tool names must be unique.")
    strict = sum(bool(tool.get("strict")) for tool in tools)
    if strict > MOST_STRICT_TOOLS:
        raise RequestError(f"tools: Too many strict tools ({strict}). The maximum is {MOST_STRICT_TOOLS}.")


def _choice(body: dict[str, Any]) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    if not isinstance(choice, dict) or choice.get("type") not in _CHOICES:
        raise RequestError("tool_choice: Input tag does not match any of 'auto', 'any', 'tool', 'none'")
    only("tool_choice.", choice, _CHOICES[choice["type"]])
    names = [tool["name"] for tool in body.get("tools") or ()]
    if not names and choice["type"] != "none":
        raise RequestError("tool_choice: tool_choice may only be specified while providing tools")
    if choice["type"] == "tool" and choice.get("name") not in names:
        raise RequestError(f"Tool '{choice.get('name')}' not found in provided tools")


def _thinking(body: dict[str, Any]) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    if not isinstance(thinking, dict) or thinking.get("type") not in _THINKING:
        raise RequestError("thinking: Input tag does not match any of 'adaptive', 'enabled', 'disabled'")
    only("thinking.", thinking, _THINKING[thinking["type"]])
    if thinking["type"] == "disabled":
        return
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        raise RequestError("Thinking may not be enabled when tool_choice forces tool use.")
    if thinking["type"] == "enabled":
        budget = whole("thinking.enabled.budget_tokens", thinking.get("budget_tokens"), 1024)
        if budget >= body.get("max_tokens", budget + 1):
            raise RequestError("`max_tokens` must be greater than `thinking.budget_tokens`.")
