"""No secret gets into a recording: known ones are masked, and what looks like one is not recorded at all."""

from __future__ import annotations

import base64
import html
import json
import secrets
import string
import urllib.parse
from typing import TYPE_CHECKING

import pytest

from planrun.llm.recordings import RecordingModel, ReplayModel
from planrun.model.keyshapes import find
from planrun.secrets.masker import Masker
from proofs.printing import PRINTERS
from proofs.treasure import SECRETS
from tests.llm.taping import ScriptedModel, asked, draft, one, recorded, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SLOW = ("jq", "node")
MASK = Masker({f"S{number}": value for number, value in enumerate(SECRETS)}).mask_text


def some(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Return so many letters by chance; a digit, a small and a capital letter are among them where they can be."""
    ends = "".join(part[-1] for part in (string.digits, "fedcba", "FEDCBA") if part[-1] in letters)
    return "".join(secrets.choice(letters) for _ in range(length - len(ends))) + ends


def pieces() -> list[str]:
    """Return each of forty secrets as each tool prints it."""
    printers = [printer for printer in PRINTERS if not printer.missing and printer.tool not in SLOW]
    found = []
    for printer in printers:
        for secret in SECRETS:
            data = printer.write(secret)
            try:
                found.append(data.decode("utf-8"))
            except UnicodeDecodeError:
                continue
    return found


def test_forty_secrets_in_every_encoding_never_land_in_a_recording(tmp_path: Path) -> None:
    """Prompts, system texts and answers that hold known secrets are recorded masked, whatever encoded them."""
    texts = pieces()
    assert len(texts) > 1500
    prompt = "\n--\n".join(texts)
    request = asked(f"Log:\n{prompt}", system=("You plan.", prompt))
    answers = recorded(
        tmp_path, [(request, said(prompt)), (request, said(draft("a", analysis=prompt)))], MASK
    )
    assert [answer.ending for answer in answers] == ["answered", "answered"]
    for path in tmp_path.iterdir():
        data = path.read_bytes()
        assert Masker({f"S{number}": value for number, value in enumerate(SECRETS)}).find(data) == []
        assert b"***" in data


def test_what_is_handed_on_is_what_was_recorded(tmp_path: Path) -> None:
    """A model that repeats a secret is heard masked, so that the replay goes the same way; and it is asked masked."""
    model = ScriptedModel([said(draft("a", analysis=f"I found {SECRETS[9]}."))])
    recorder = RecordingModel(model, str(tmp_path), MASK)
    request = asked(f"The password is {SECRETS[9]}.")
    answer = one(recorder, request)
    assert "***" in answer.text
    assert json.loads(answer.text)["analysis"] == "I found ***."
    assert SECRETS[9] not in str(model.asked[0].messages)
    assert one(ReplayModel(str(tmp_path), MASK), request).text == answer.text


KEYS = {
    "anthropic": f"sk-ant-api03-{some(80)}-{some(6)}AA",
    "openai": f"sk-proj-{some(60)}",
    "aws": "AKIA" + some(16, string.ascii_uppercase + string.digits),
    "github": f"ghp_{some(36)}",
    "github, fine": f"github_pat_{some(22)}_{some(59)}",
    "gitlab": f"glpat-{some(20)}",
    "slack": f"xoxb-{some(12, string.digits)}-{some(24)}",
    "google": f"AIza{some(35)}",
    "huggingface": f"hf_{some(34)}",
    "npm": f"npm_{some(36)}",
    "pypi": f"pypi-AgEIcHlwaS5vcmc{some(120)}",
    "stripe": f"sk_live_{some(24)}",
    "sendgrid": f"SG.{some(22)}.{some(43)}",
    "jwt": f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{some(43)}",
    "pem": "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n-----END OPENSSH PRIVATE KEY-----",
    "named": f"export DEPLOY_TOKEN={some(30)}",
    "named in JSON": json.dumps({"client_secret": some(40)}),
    "header": f"Authorization: Bearer {some(40)}",
    "address": f"postgres://app:{some(14)}@db.internal:5432/app",
}
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "in JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps({"k": text})),
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 behind 1": lambda text: base64.b64encode(f"u{text}".encode()).decode(),
    "base64 behind 2": lambda text: base64.b64encode(f"u:{text}".encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(f"name and more words: {text}".encode()).decode(),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "base64 of UTF-16": lambda text: base64.b64encode(text.encode("utf-16-le")).decode(),
    "hex": lambda text: text.encode().hex(),
    "hex with colons": lambda text: text.encode().hex(":"),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in text.encode()),
    "quoted": lambda text: urllib.parse.quote(text, safe=""),
    "escapes of C": lambda text: "".join(f"\\x{byte:02x}" for byte in text.encode()),
    "escapes of JSON": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "HTML": html.escape,
    "in two lines": lambda text: f"{text[:9]}\\\n{text[9:]}",
}
ENCODED = ("named", "named in JSON", "header", "address")
"""Kinds that are told by what stands before them; they are looked for as they are."""


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_services_are_known_by_their_shape(name: str) -> None:
    """A key is found in the middle of a text, with its line, as it is and in every encoding."""
    for encoding, encode in ENCODINGS.items():
        if name in ENCODED and encoding != "plain":
            continue
        text = f"first line\nsecond: {encode(KEYS[name])} and more\nthird\n"
        assert find(text), f"{name}, {encoding}: {text}"
    assert find(f"first\n{KEYS[name]}\n")[0][0] == 2


HARMLESS = (
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    '"integrity": "sha512-oRx5p0mUDBpmyMkOrM4Yj4RrVZfuHsOOpeUm1YHFTOUm4SnsyRkBKBmMs4ITgYpHuFsn/rBQRZjrNkRMcPQ8Zw=="',
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "export TOKEN=$(cat /run/secrets/token)",
    "password: ${{ secrets.X }}",
    "secret_key_base_generator_configuration = load_configuration()",
    "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE",
    "ANTHROPIC_API_KEY=sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxx",
    "https://user:***@host/path",
    "https://user:$PASSWORD@host/path",
    "task-risk-desk-learn-something-rather-long-and-plain",
    "tokens: 200000, max_tokens: 8000",
    "api_key: str | None = None",
    "token = os.environ['GITHUB_TOKEN']",
    "-----BEGIN CERTIFICATE-----",
    "x" * 100000,
    base64.b64encode(b"nothing but words, and enough of them to be a file " * 40).decode(),
)


@pytest.mark.parametrize("text", HARMLESS, ids=range(len(HARMLESS)))
def test_what_is_no_key_is_recorded(text: str) -> None:
    """Hashes, names of keys, placeholders and references to secrets stand in most repositories, and may."""
    assert find(text) == []


def test_planruns_own_sources_hold_no_key() -> None:
    """The rules do not see keys everywhere: none in the files of this project."""
    from pathlib import Path

    root = Path(__file__).parents[2]
    files = [*root.glob("planrun/**/*.py"), *root.glob("docs/*"), *root.glob("schemas/*"), root / "README.md"]
    found = {str(path): hits for path in files if path.is_file() and (hits := find(path.read_text("utf-8")))}
    assert found == {}


@pytest.mark.parametrize("name", KEYS)
def test_a_question_with_a_key_is_not_asked(name: str, tmp_path: Path) -> None:
    """What could not be recorded is not sent either; it is told where the key stands, and not what it is."""
    model = ScriptedModel([])
    answer = one(RecordingModel(model, str(tmp_path)), asked(f"one\ntwo\n{KEYS[name]}\n"))
    assert (answer.ending, answer.rule, answer.usage.total) == ("unrecorded", "recording:secret", 0)
    assert "messages[0].content, line 3" in answer.message
    assert KEYS[name] not in answer.message
    assert model.asked == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", KEYS)
def test_an_answer_with_a_key_is_not_recorded(name: str, tmp_path: Path) -> None:
    """Nothing of it is written or used; what it cost counts."""
    for text in (f"ok\n{KEYS[name]}", json.dumps(draft("a", analysis=KEYS[name]))):
        model = ScriptedModel([said(text)])
        answer = one(RecordingModel(model, str(tmp_path)), asked())
        assert (answer.ending, answer.text, answer.usage.total) == ("unrecorded", "", 154)
        assert "the answer holds what looks like" in answer.message
        assert KEYS[name] not in answer.message
    assert list(tmp_path.iterdir()) == []
