"""Language models: `chat` by curl, `harness` by the program of an agent, `agent` as a step with `agent:`."""

from __future__ import annotations

import re

from planrun.convert.dagu.calls import Call
from planrun.convert.dagu.variables import Keys
from planrun.convert.reader import text_of, truth_of
from planrun.plan.yaml.node import MAPPING, SCALAR, SEQUENCE, Node

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# Variable of the key, address, and whether requests have the form of Anthropic instead of that of OpenAI.
_PROVIDERS = {
    "openai": ("OPENAI_API_KEY", "https://api.openai.com/v1", False),
    "anthropic": ("ANTHROPIC_API_KEY", "https://api.anthropic.com", True),
    "openrouter": ("OPENROUTER_API_KEY", "https://openrouter.ai/api/v1", False),
    "gemini": ("GOOGLE_API_KEY", "https://generativelanguage.googleapis.com/v1beta/openai", False),
    "zai": ("ZAI_API_KEY", "https://api.z.ai/api/paas/v4", False),
    "local": ("", "http://localhost:11434/v1", False),
}
_LOCAL = ("ollama", "vllm", "llama")
_LLM = frozenset((
    "provider", "model", "system", "temperature", "maxtokens", "topp", "baseurl", "apikeyname", "stream", "thinking",
    "messages",
))  # fmt: skip


def _chat(call: Call) -> str:
    """Return a request to a model, whose answer is printed."""
    settings = call.settings
    settings.refuse_unknown(_LLM | {"prompt"})
    model = settings.get("model")
    if model is None or model.kind != SCALAR:
        raise call.refuse("several models, or none")
    provider = settings.text("provider")
    provider = "local" if provider in _LOCAL else provider
    if provider not in _PROVIDERS:
        raise call.refuse(f"the provider {provider}" if provider else "a provider is missing")
    if truth_of(settings.below("thinking").get("enabled")):
        raise call.refuse("`thinking`")
    secret, address, is_anthropic = _PROVIDERS[provider]
    secret = settings.text("apikeyname") or secret
    if secret:
        call.secrets.append(secret)
    messages = _messages(settings.get("messages"), call)
    if settings.has("system") and not any(role == "system" for role, _ in messages):
        messages.insert(0, ("system", settings.text("system")))
    given, body = _body(call, messages, is_anthropic=is_anthropic)
    base = call.word(settings.text("baseurl").rstrip("/") or address)[:-1]
    heads = ["--header 'content-type: application/json'"]
    if is_anthropic:
        heads += [f'--header "x-api-key: ${{{secret}}}"', "--header 'anthropic-version: 2023-06-01'"]
        base += '/v1/messages"'
    else:
        heads += [f'--header "authorization: Bearer ${{{secret}}}"'] if secret else []
        base += '/chat/completions"'
    answer = (
        '[.content[] | select(.type == "text").text] | join("")'
        if is_anthropic
        else ".choices[0].message.content"
    )
    return "\n".join([
        f"request=\"$(jq -n {given} '{body}')\"",
        f'answer="$(curl --silent --show-error --fail-with-body {" ".join(heads)} --data-raw "$request" {base})"',
        f"printf '%s' \"$answer\" | jq -r '{answer}'",
    ])  # fmt: skip


def _messages(node: Node | None, call: Call) -> list[tuple[str, str]]:
    found = []
    for item in call.reader.items(node, "`messages`"):
        keys = Keys(item, "a message", call.reader)
        role = keys.text("role") or "user"
        if role not in ("system", "user", "assistant"):
            raise call.refuse(f"a message of the role {role}")
        found.append((role, keys.text("content")))
    text = call.settings.text("prompt") or call.command or call.script
    if text:
        found.append(("user", text))
    if not found:
        raise call.refuse("a message is missing")
    return found


def _body(call: Call, messages: list[tuple[str, str]], *, is_anthropic: bool) -> tuple[str, str]:
    """Return the options of jq and the object that it builds."""
    options = [f"--arg model {call.word(call.settings.text('model'))}"]
    parts, listed, system = ["model: $model"], [], []
    for at, (role, text) in enumerate(messages):
        options.append(f"--arg m{at} {call.prose(text)}")
        if role == "system" and is_anthropic:
            system.append(f"$m{at}")
        else:
            listed.append(f'{{role: "{role}", content: $m{at}}}')
    if system:
        joined = ' + "\\n" + '.join(system)
        parts.append(f"system: ({joined})")
    parts.append(f"messages: [{', '.join(listed)}]")
    for key, name in (("temperature", "temperature"), ("topp", "top_p"), ("maxtokens", "max_tokens")):
        text = call.settings.text(key)
        if text and not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", text):
            raise call.refuse(f"`{name}` that is worked out")
        if text or (name == "max_tokens" and is_anthropic):
            parts.append(f"{name}: {text or 4096}")
    return " ".join(options), "{" + ", ".join(parts) + "}"


# Program and words before the prompt.
_HARNESSES = {
    "claude": ("claude", "-p"),
    "codex": ("codex", "exec"),
    "copilot": ("copilot", "-p"),
    "opencode": ("opencode", "run"),
    "pi": ("pi", "-p"),
    "gemini": ("gemini", "-p"),
    "qwen": ("qwen", "-p"),
    "cursor": ("cursor-agent", "-p"),
}
_CUSTOM = frozenset((
    "binary", "prefixargs", "promptmode", "promptflag", "promptposition", "flagstyle", "optionflags",
))  # fmt: skip
_OWN = frozenset(("provider", "prompt", "stdin", "fallback", "harnesses"))


def _harness(call: Call) -> str:
    """Return the command line of an agent's program; alternatives follow when it fails."""
    settings = call.settings
    prompt = settings.text("prompt") or call.command
    if not prompt:
        raise call.refuse("a prompt is missing")
    others = [
        Keys(item, "`fallback`", call.reader)
        for item in call.reader.items(settings.get("fallback"), "`fallback`")
    ]
    attempts = [_attempt(each, prompt, call) for each in (settings, *others)]
    stdin = settings.text("stdin") or call.script
    lines = [f"{line} <<{call.document(stdin)}\n" if stdin else line for line in attempts]
    if len(lines) == 1:
        return lines[0].rstrip("\n")
    tries = [f"if {line.rstrip(chr(10))}\nthen exit 0; fi" for line in lines[:-1]]
    return "\n".join([*tries, lines[-1].rstrip("\n")])


def _attempt(keys: Keys, prompt: str, call: Call) -> str:
    provider = keys.text("provider")
    own = call.settings.below("harnesses")
    if own.node.get(provider) is not None:
        return _custom(Keys(own.node.get(provider), "a harness", call.reader), keys, prompt, call)
    if provider not in _HARNESSES:
        raise call.refuse(f"the provider {provider}" if provider else "a provider is missing")
    binary, option = _HARNESSES[provider]
    return " ".join([binary, option, call.prose(prompt), *_flags(keys, call)])


def _custom(harness: Keys, keys: Keys, prompt: str, call: Call) -> str:
    harness.refuse_unknown(_CUSTOM)
    mode, binary = harness.text("promptmode") or "arg", harness.text("binary")
    if mode == "stdin" or not binary:
        raise call.refuse("a prompt on standard input, or no program")
    words = [binary if re.fullmatch(r"[\w./-]+", binary) else call.word(binary)]
    words += map(call.word, call.reader.texts(harness.get("prefixargs"), "`prefix_args`"))
    told = [*([harness.text("promptflag")] if mode == "flag" else []), call.prose(prompt)]
    options = call.reader.mapping(harness.get("optionflags"), "`option_flags`")
    named = {name: text_of(value) for name, value in options.items()}
    flags = _flags(keys, call, "-" if harness.text("flagstyle") == "single_dash" else "--", named)
    order = [*flags, *told] if harness.text("promptposition") == "after_flags" else [*told, *flags]
    return " ".join([*words, *order])


def _flags(keys: Keys, call: Call, dash: str = "--", named: dict[str, str] | None = None) -> list[str]:
    words: list[str] = []
    for name, value in keys.members():
        if re.sub(r"_", "", name).lower() in _OWN:
            continue
        flag = (named or {}).get(name) or dash + name.replace("_", "-")
        if truth_of(value) is True:
            words.append(flag)
        elif value.kind == SCALAR and truth_of(value) is None:
            words.append(f"{flag} {call.word(text_of(value))}")
        elif value.kind == SEQUENCE:
            words += [f"{flag} {call.word(text_of(item))}" for item in value.value]
        elif value.kind == MAPPING:
            raise call.refuse(f"the option {name}")
    return words


MODELS: dict[str, Callable[[Call], str]] = {"chat": _chat, "harness": _harness}
AGENT_KEYS = frozenset((
    "model", "prompt", "maxiterations", "tools", "safemode", "memory", "soul", "skills", "messages", "task", "webtools",
))  # fmt: skip


def agent_of(call: Call) -> dict[str, Any]:
    """Return the keys of a step with `agent` for an agent of Dagu; raises UntranslatableError."""
    settings, references = call.settings, call.references
    settings.refuse_unknown(AGENT_KEYS)
    messages = [
        text
        for role, text in _messages(settings.get("messages"), _with_task(call))
        if role != "assistant" and text
    ]
    keys: dict[str, Any] = {
        "type": "general",
        "prompt": "\n\n".join(map(references.template, messages)).strip(),
    }
    model = settings.text("model")
    if re.fullmatch(r"claude[\w.-]*", model):
        keys["model"] = model
    turns = settings.text("maxiterations")
    if turns.isdecimal() and int(turns):
        keys["max_turns"] = int(turns)
    message = (
        "an agent of planrun has its own tools, works on a copy of the workspace, and its patch waits for an approval; "
        "the plan names its model under `llm`"
    )
    call.reader.found.differs("agent", message, call.node)
    return keys


def _with_task(call: Call) -> Call:
    if call.settings.has("task") and not call.command:
        call.command = call.settings.text("task")
    return call
