"""The values of secrets, as planrun's own environment has them: declared ones, and keys it knows by name."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

PROVIDER_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_IDENTITY_TOKEN",
    "AZURE_OPENAI_API_KEY",
    "CO_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GROQ_API_KEY",
    "HF_TOKEN",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
)
"""Keys of language models, by the names under which the makers' own libraries read them."""


def known_secrets(names: Iterable[str], environ: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the values of the secrets of these names, and the names that are not set or empty."""
    wanted = dict.fromkeys(names)
    values = {name: environ[name] for name in wanted if environ.get(name)}
    return values, tuple(name for name in wanted if name not in values)
