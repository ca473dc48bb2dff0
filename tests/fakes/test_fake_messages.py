"""The fake Messages API as its users see it: scripts, faults, counts, journal, and the process."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from planrun.llm import drafts
from tests.fakes.messages import (
    Asked,
    FakeMessages,
    Reply,
    Rule,
    Script,
    Tokens,
    broken,
    draft,
    events,
    refuse,
    say,
    status,
    use,
)

ROOT = Path(__file__).parents[2]
LIMIT = 60.0


def ask(api: FakeMessages, user: str = "hello", **fields: Any) -> dict[str, Any]:
    """Ask without a stream and return the answer."""
    body = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": user}], **fields}
    return post(api.url, json.dumps(body).encode(), {"x-api-key": api.key})


def post(url: str, body: bytes, headers: dict[str, str], path: str = "/v1/messages") -> dict[str, Any]:
    """Send a request and return the data that comes."""
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=LIMIT)
    try:
        connection.request("POST", path, body, {"anthropic-version": "2023-06-01", **headers})
        found: dict[str, Any] = json.loads(connection.getresponse().read())
        return found
    finally:
        connection.close()


def stream(api: FakeMessages, most: int = -1) -> bytes:
    """Ask for a stream and return what comes, or so many bytes of it."""
    connection = http.client.HTTPConnection(api.url.removeprefix("http://"), timeout=LIMIT)
    body = {"model": "m", "max_tokens": 100, "stream": True, "messages": [{"role": "user", "content": "x"}]}
    headers = {"x-api-key": api.key, "anthropic-version": "2023-06-01"}
    connection.request("POST", "/v1/messages", json.dumps(body), headers)
    answer = connection.getresponse()
    try:
        return answer.read(most) if most > 0 else answer.read()
    finally:
        answer.close()
        connection.close()


def text(message: dict[str, Any]) -> str:
    """Return the text of an answer."""
    return "".join(block["text"] for block in message["content"])


def test_a_list_answers_by_turn_and_then_no_more() -> None:
    """Each entry answers one request; after the last one the service refuses and the journal says why."""
    with FakeMessages(["one", {"two": 2}]) as api:
        assert text(ask(api)) == "one"
        assert json.loads(text(ask(api))) == {"two": 2}
        assert ask(api)["error"]["message"] == "the script has no reply to this request"
    assert [verdict.name for verdict in api.journal.verdicts()] == ["unscripted"]


def test_a_rule_answers_what_its_patterns_are_found_in() -> None:
    """The first rule whose patterns are all found answers, up to its limit of uses; then `otherwise`."""
    rules = [
        Rule("a repair", {"system": "repair", "user": "build"}),
        Rule("any repair", {"system": "repair"}, None),
    ]
    with FakeMessages(Script(rules, otherwise="nothing")) as api:
        said = [text(ask(api, user, system="repair")) for user in ("build", "build", "test")]
        assert [*said, text(ask(api))] == ["a repair", "any repair", "any repair", "nothing"]


def test_a_function_computes_the_answer_from_the_request() -> None:
    """A policy model reads the failed step's id in the question and names it in its draft."""

    def policy(asked: Asked) -> Any:
        return draft([{"id": "again", "run": "true", "replaces": [asked.find(r"failed: (\w+)")]}])

    with FakeMessages(policy) as api:
        found = drafts.STEPS.read(text(ask(api, "failed: build", max_tokens=1000)), 10)
    assert isinstance(found, drafts.Draft)
    assert found.steps[0].replaces == ("build",)


def test_what_a_function_raises_fails_the_test() -> None:
    """A policy that finds nothing is answered with 400, and its error comes out at the end of the block."""
    with pytest.raises(LookupError, match="failed"), FakeMessages(lambda asked: asked.find("failed")) as api:
        assert "the script fails" in ask(api)["error"]["message"]


def test_an_answer_ends_where_max_tokens_say() -> None:
    """A reply that is longer than allowed is cut at that many tokens and says so."""
    with FakeMessages(say("x" * 100)) as api:
        message = ask(api, max_tokens=10)
    assert (len(text(message)), message["stop_reason"], message["usage"]["output_tokens"]) == (
        40,
        "max_tokens",
        10,
    )


def test_tokens_are_bytes_by_four() -> None:
    """Input and output are counted in bytes, not letters; the count asked for is the count billed."""
    with FakeMessages(say("äöü")) as api:
        message = ask(api, "€uro", system="12345")
        body = {"model": "m", "messages": [{"role": "user", "content": "€uro"}], "system": "12345"}
        count = post(api.url, json.dumps(body).encode(), {"x-api-key": api.key}, "/v1/messages/count_tokens")
    assert (message["usage"]["input_tokens"], message["usage"]["output_tokens"]) == (2 + 2, 2)
    assert count == {"input_tokens": 4}


def test_a_marked_beginning_is_written_once_and_then_read() -> None:
    """The same marked system text is charged as written, then as read, and as new when a byte differs."""
    system = [{"type": "text", "text": "s" * 4096, "cache_control": {"type": "ephemeral"}}]
    with FakeMessages(say("yes")) as api:
        ask(api, "one", system=system)
        ask(api, "two", system=system)
        ask(api, "two", system=[{**system[0], "text": "S" + "s" * 4095}])
    written = Tokens(input=1, output=1, cache_write=1024)
    assert [entry.told for entry in api.journal.asked] == [written, Tokens(1, 1, cache_read=1024), written]


def test_the_journal_tells_what_a_client_should_not_do() -> None:
    """Each misbehaviour has its verdict: too early, after a final status, too often, a cut answer used."""
    cut = say("half an answer", stop_reason="max_tokens")
    script: list[Reply] = [status(429, retry_after=60), status(400), *[status(529)] * 3, cut, say("fine")]
    with FakeMessages(script) as api:
        for _ in range(6):
            ask(api)
        turns = [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": "half an answer"},
            {"role": "user", "content": "go on"},
        ]
        ask(api, messages=turns)
    found = {verdict.name: verdict.number for verdict in api.journal.verdicts()}
    assert found.keys() >= {"retry-after ignored", "non-retryable retried", "truncated accepted"}
    assert found["truncated accepted"] == 6


def test_a_client_that_asks_anew_after_an_answer_repeats_nothing() -> None:
    """The same question after a whole answer is no repeat; three failures at once without a pause are a storm."""
    with FakeMessages(["a", "b", "c", "d", *[status(500)] * 4]) as api:
        for _ in range(4):
            ask(api)
        assert api.journal.verdicts() == []
        for _ in range(4):
            ask(api)
    slow = api.journal.asked[-1].arrived - api.journal.asked[4].arrived >= 1
    assert [verdict.name for verdict in api.journal.verdicts()] == ([] if slow else ["retry storm"])


def test_a_stall_ends_with_the_client_and_with_the_server() -> None:
    """Silence lasts until the client leaves, which the journal notes, and never longer than the server stands."""
    with FakeMessages([broken("stall"), broken("stall", "head")]) as api:
        assert stream(api, 20)
        api.journal.settle()
        assert api.journal.asked[0].ended == "left"
        waiting = threading.Thread(target=pytest.raises, args=(OSError, stream, api))
        waiting.start()
        while len(api.journal.asked) < 2:
            time.sleep(0.01)
    waiting.join(LIMIT)
    assert not waiting.is_alive()


def test_the_parts_of_an_answer_are_those_that_were_given() -> None:
    """Calls of tools and refusals come through with their stop reasons."""
    with FakeMessages([use(("a", {"x": 1}), ("b", {})), refuse("bio")]) as api:
        called, refused = ask(api), ask(api)
    assert [(block["name"], block["input"]) for block in called["content"]] == [("a", {"x": 1}), ("b", {})]
    assert (called["stop_reason"], refused["stop_reason"]) == ("tool_use", "refusal")
    assert refused["stop_details"]["category"] == "bio"


def test_events_are_sent_as_they_are_given() -> None:
    """A stream that no service sends comes through byte for byte, and counts what its own usage says."""
    odd = {"type": "message_delta", "usage": {"output_tokens": 7}}
    with FakeMessages([events(odd, b"data: odd\n\n")]) as api:
        sent = stream(api)
    assert (
        sent
        == b'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":7}}\n\ndata: odd\n\n'
    )
    assert (api.journal.asked[0].told, api.journal.asked[0].ended) == (Tokens(output=7), "given")


@pytest.mark.parametrize("kind", ["trickle", "flood"])
def test_a_stream_without_end_ends_with_the_client(kind: str) -> None:
    """Pings or text come until the client leaves, which the journal notes."""
    with FakeMessages([broken(kind)]) as api:
        assert len(stream(api, 2000)) == 2000
        api.journal.settle()
    assert api.journal.asked[0].ended == "left"


SCRIPT = """\
key: another-key
replies:
  - fault: {status: 529, retry_after: 0}
  - when: {user: "failed step: (?P<id>\\\\S+)"}
    draft:
      analysis: "<<id>> fails"
      steps: [{id: again, run: make, replaces: ["<<id>>"]}]
  - when: {user: long}
    file: long.txt
otherwise: {text: "attempt <<attempt>>"}
"""


def test_a_script_file_serves_as_a_process_until_it_is_told_to_end(tmp_path: Path) -> None:
    """The process answers by a YAML file, writes address and journal, and ends with 0 on SIGTERM."""
    (tmp_path / "script.yml").write_text(SCRIPT, "utf-8")
    (tmp_path / "long.txt").write_text("a file\n", "utf-8")
    words = ["script.yml", "--port-file", "port", "--journal", "journal"]
    service = subprocess.Popen(
        [sys.executable, "-m", "tests.fakes.messages", *words],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    with service:
        assert service.stdout
        url = service.stdout.readline().strip()
        said = []
        for user in ("x", "x", "failed step: build", "be long"):
            body = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": user}]}
            said.append(post(url, json.dumps(body).encode(), {"authorization": "Bearer another-key"}))
        service.send_signal(signal.SIGTERM)
        assert service.wait(LIMIT) == 0
    assert (tmp_path / "port").read_text() == url + "\n"
    assert said[0]["error"]["type"] == "overloaded_error"
    assert text(said[1]) == "attempt 2"
    assert json.loads(text(said[2]))["steps"][0]["replaces"] == ["build"]
    assert text(said[3]) == "a file"
    notes = [json.loads(line) for line in (tmp_path / "journal").read_text("utf-8").splitlines()]
    notes.sort(key=lambda note: note["number"])  # each exchange is noted when it has ended
    assert [(note["status"], note["ended"], note["credential"]) for note in notes] == [
        (529, "whole", "bearer"),
        *[(200, "whole", "bearer")] * 3,
    ]
    assert "another-key" not in json.dumps(notes)


@pytest.mark.parametrize(
    ("script", "words"),
    [
        ("{", "script.json"),
        ('{"replies": [{"draft": {}, "text": ""}]}', "needs one of"),
        ('{"replies": [{"fault": "explosion"}]}', "explosion"),
        ('{"replies": [{"text": "x", "wen": {}}]}', "'wen', which means nothing"),
        ('{"answers": []}', "'answers', which means nothing"),
    ],
)
def test_a_script_that_means_nothing_is_refused(tmp_path: Path, script: str, words: str) -> None:
    """A mistake in a script file ends the process with 2 and one line that names it."""
    (tmp_path / "script.json").write_text(script, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "tests.fakes.messages", tmp_path / "script.json"],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=LIMIT,
    )
    assert (done.returncode, done.stderr.count("\n"), words in done.stderr) == (2, 1, True)
