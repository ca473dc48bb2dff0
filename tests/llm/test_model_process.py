"""The process that calls a model: it is asked and stopped without anybody waiting, and never outlives its use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from planrun.llm import process
from planrun.llm.budget import estimate
from planrun.llm.process import ModelProcess
from planrun.model.call import Usage
from tests.fakes.messages import KEY, FakeMessages, broken, draft, say, status
from tests.fakes.messages.counting import Tokens
from tests.llm.asking import ENVIRON, PATIENCE, answer_of, answer_to, calling, is_gone, question, until

ROOT = Path(__file__).parents[2]


def test_a_question_is_answered_by_one_process_and_another_one_as_well() -> None:
    """The text comes back whole with its usage, and the process stays for the next question."""
    with FakeMessages([draft([{"id": "a", "run": "make"}]), "second"]) as api, calling(api.url) as model:
        first = answer_to(model, question("one"))
        pid = model.pid
        second = answer_to(model, question("two"))
        assert (first.ending, second.ending, model.pid) == ("answered", "answered", pid)
        assert ('"run": "make"' in first.text, second.text) == (True, "second")
        assert first.usage.total + second.usage.total == api.journal.told.total
        assert not first.is_estimate
        assert api.journal.verdicts() == []
    assert is_gone(pid)


def test_nobody_has_to_wait() -> None:
    """While no answer is there, a wait of no time returns None; nothing asked is None, too."""
    with FakeMessages([say("yes", first_byte=0.2)]) as api, calling(api.url) as model:
        assert model.wait(None) is None
        model.ask(question())
        assert model.wait(0) is None
        assert answer_of(model).text == "yes"
        assert model.wait(None) is None


def test_a_descriptor_ends_the_wait() -> None:
    """What comes on `wake`, such as a signal, ends a wait without limit; the call goes on."""
    heard, say_it = os.pipe()
    try:
        with FakeMessages([broken("stall", "head"), "yes"]) as api, calling(api.url, wake=heard) as model:
            model.ask(question())
            os.write(say_it, b"!")
            assert model.wait(None) is None
            os.read(heard, 1)
            model.stop()
            assert answer_of(model).ending == "stopped"
    finally:
        os.close(heard)
        os.close(say_it)


def test_a_stopped_call_is_counted() -> None:
    """A stop in the middle of an answer ends the call at the service, too, and counts what came so far."""
    with FakeMessages([broken("stall")]) as api, calling(api.url) as model:
        model.ask(question())
        until(lambda: model.wait(0.02) or (api.journal.asked and api.journal.asked[0].text), "the text came")
        model.stop()
        answer = answer_of(model)
        api.journal.settle()
        entry = api.journal.asked[0]
    assert (answer.ending, answer.rule, answer.text) == ("stopped", "process:stopped", "")
    assert (entry.ended, answer.is_estimate, answer.attempts) == ("left", True, 1)
    assert answer.usage.total >= entry.due.total


def test_a_library_that_cannot_be_loaded_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broken installation ends the call with what Python says of it, and costs nothing."""
    venv.create(tmp_path, with_pip=False, symlinks=True)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python"))
    with FakeMessages([]) as api, calling(api.url) as model:
        answer = answer_to(model, question())
        assert api.journal.asked == []
    assert (answer.ending, answer.usage.total) == ("unavailable", 0)
    assert "the anthropic package cannot be loaded: No module named 'anthropic'" in answer.message


def test_a_call_is_stopped_before_it_was_made() -> None:
    """A stop while the process still loads what it needs ends it, and nothing is sent or counted."""
    with FakeMessages([]) as api, calling(api.url) as model:
        model.ask(question())
        model.stop()
        answer = answer_of(model)
        assert (answer.ending, answer.usage, answer.is_estimate) == ("stopped", Usage(), False)
        assert (model.pid, api.journal.entries) == (0, [])


def test_after_a_stop_there_is_another_process() -> None:
    """The next question starts one; a stop of nothing does nothing."""
    with FakeMessages([broken("stall", "head"), "yes"]) as api, calling(api.url) as model:
        model.stop()
        model.ask(question("one"))
        until(lambda: api.journal.asked or model.wait(0.02), "the question came")
        model.stop()
        assert answer_of(model).ending == "stopped"
        assert answer_to(model, question("two")).text == "yes"


@pytest.mark.parametrize("at", ["head", "text"])
def test_a_process_that_dies_is_told_with_what_it_may_have_cost(at: str) -> None:
    """A killed process is `unavailable`, by name of the signal, with an upper bound; the next question is answered."""
    with FakeMessages([broken("stall", at), "yes"]) as api, calling(api.url) as model:
        model.ask(question("one"))
        until(lambda: model.wait(0.02) or api.journal.asked, "the question came")
        if at == "text":
            until(lambda: model.wait(0.02) or api.journal.asked[0].text, "the text came")
        model.wait(0.5)  # so that the process has told of it
        os.kill(model.pid, signal.SIGKILL)
        answer = answer_of(model)
        assert (answer.ending, answer.rule, answer.is_estimate) == ("unavailable", "process:lost", True)
        assert answer.message == "the process that calls the model ended unexpectedly (signal 9)"
        assert answer.usage.total >= api.journal.asked[0].told.total
        assert answer.usage.total <= estimate(question("one")) + question().max_tokens
        assert answer_to(model, question("two")).text == "yes"


def test_a_process_that_hears_nothing_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop that is not answered ends the process by force."""
    monkeypatch.setattr(process, "_STOP_GRACE", 0.2)
    with FakeMessages([broken("stall", "head")]) as api, calling(api.url) as model:
        model.ask(question())
        until(lambda: api.journal.asked or model.wait(0.02), "the question came")
        pid = model.pid
        os.kill(pid, signal.SIGSTOP)
        os.waitpid(pid, os.WUNTRACED)  # until it stands still
        model.stop()
        answer = answer_of(model)
        assert (answer.ending, answer.rule) == ("stopped", "process:overdue")
        assert is_gone(pid)


def test_a_long_question_blocks_nobody() -> None:
    """A question of 4 MiB, more than a pipe holds, is taken at once and answered."""
    with FakeMessages(["yes"]) as api, calling(api.url) as model:
        text = "x" * (4 << 20)
        model.ask(question(text))
        assert model.wait(0) is None
        assert answer_of(model).text == "yes"
        assert api.journal.asked[0].body["messages"][0]["content"][0]["text"] == text


def test_an_answer_without_end_is_cut_off_where_it_arrives() -> None:
    """What is longer than any draft is not handed on, and what that cost counts as the most it can be."""
    with (
        FakeMessages(say("é" * ((1 << 20) + 1)).but(usage=Tokens(output=7))) as api,
        calling(api.url) as model,
    ):
        answer = answer_to(model, question())
    assert (answer.ending, answer.rule, answer.text) == ("malformed", "size", "")
    assert answer.usage.output_tokens > 0


def test_odd_texts_arrive_as_they_are() -> None:
    """Letters of all planes and line ends of all kinds pass both ways."""
    text = "äöü €   🔑 \x85 \\n \n end"
    with FakeMessages([say(text)]) as api, calling(api.url) as model:
        assert answer_to(model, question(text)).text == text
        assert api.journal.asked[0].body["messages"][0]["content"][0]["text"] == text


def test_without_credentials_nothing_is_started() -> None:
    """The answer is there at once, `unauthorized`, with the line that says what to set."""
    with FakeMessages([]) as api, calling(api.url, {"PATH": "/bin"}) as model:
        model.start()
        answer = answer_to(model, question())
        assert (answer.ending, answer.rule) == ("unauthorized", "credentials:none")
        assert answer.message == "there are no credentials for a language model: set ANTHROPIC_API_KEY"
        assert (answer.attempts, model.pid, api.journal.entries) == (0, 0, [])


def test_a_process_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where Python is gone the answer says so."""
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with calling("http://127.0.0.1:9") as model:
        model.start()
        answer = answer_to(model, question())
    assert (answer.ending, answer.rule) == ("unavailable", "process:not_started")
    assert "No such file" in answer.message


def test_nothing_of_the_folder_and_the_environment_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Modules that lie in the workspace, or that PYTHONPATH names, do not run in the process with the key."""
    for name in ("anthropic", "httpx2", "sitecustomize", "usercustomize", "json"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'canary')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "json.py"))
    with FakeMessages(["yes"]) as api, calling(api.url, {**os.environ, **ENVIRON}) as model:
        assert answer_to(model, question()).text == "yes"
    assert not (tmp_path / "canary").exists()


def test_a_proxy_is_asked_for_what_is_elsewhere_only() -> None:
    """With HTTP_PROXY set, a service on this machine is asked directly, and another one through the proxy."""
    with FakeMessages([]) as proxy, FakeMessages(["yes"]) as api:
        environ = {**ENVIRON, "HTTP_PROXY": proxy.url}
        with calling(api.url, environ) as model:
            assert answer_to(model, question()).text == "yes"
        assert proxy.journal.entries == []
        with calling("http://service.invalid", environ) as model:
            assert answer_to(model, question()).ending == "rejected"
        assert len(proxy.journal.entries) == 1


@pytest.mark.parametrize(
    ("code", "message", "ending", "rule"),
    [
        (
            400,
            "You have reached your specified API usage limits. You will regain access on 2027-01-01.",
            "limited",
            "text:quota",
        ),
        (400, "This workspace has exceeded its spend limit.", "limited", "text:quota"),
        (403, "Monthly quota exceeded for this project", "limited", "text:quota"),
        (400, "insufficient_quota", "limited", "text:quota"),
        (400, "Your credit balance is too low to access the API.", "unpaid", "text:credit"),
        (400, "max_tokens: 99 exceeds the limit of the model", "rejected", "type:invalid_request_error"),
        (400, "prompt is too long: 9 tokens > 8 maximum", "rejected", "type:invalid_request_error"),
        (404, "model: quota exceeded", "rejected", "type:not_found_error"),
    ],
)
def test_a_quota_that_is_used_up_is_no_wrong_request(code: int, message: str, ending: str, rule: str) -> None:
    """A service may say it with 400 or 403; the question is not asked again."""
    with (
        FakeMessages([status(code, message=message, x_should_retry="true")]) as api,
        calling(api.url) as model,
    ):
        answer = answer_to(model, question())
        assert len(api.journal.entries) == 1
    assert (answer.ending, answer.rule) == (ending, rule)
    assert message in answer.message


def test_the_beginning_of_questions_is_kept_by_the_service() -> None:
    """Two questions have the same system text byte for byte, and the second one reads it from the cache."""
    system = ("What never changes. " * 500, "Nor does this.")
    with FakeMessages(["one", "two"]) as api, calling(api.url) as model:
        first = answer_to(model, question("a", system=system))
        second = answer_to(model, question("b", system=system))
        bodies = [entry.body for entry in api.journal.asked]
    assert bodies[0]["system"] == bodies[1]["system"]
    assert [("cache_control" in block) for block in bodies[0]["system"]] == [False, True]
    assert (
        first.usage.cache_write_tokens - second.usage.cache_write_tokens
        == second.usage.cache_read_tokens
        > 1000
    )
    assert second.usage.cache_write_tokens == 1, "the question"


DRIVER = """
import os, sys, time
sys.path.insert(0, {root!r})
from tests.llm.asking import question
from planrun.planner.models import open_model
from planrun.settings import Settings
model = open_model(Settings(llm_model="m"))
model.ask(question())
print(model.pid, flush=True)
model.wait(None)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("when", ["at once", "in the call"])
def test_no_process_outlives_planrun(how: signal.Signals, when: str) -> None:
    """Whatever ends planrun while a model is asked, the process that asks is gone, and so is its connection."""
    with FakeMessages([broken("trickle")]) as api:
        env = {**os.environ, **api.env}
        argv = [sys.executable, "-c", DRIVER.format(root=str(ROOT))]
        with subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, text=True) as planrun:
            assert planrun.stdout is not None
            pid = int(planrun.stdout.readline())
            if when == "in the call":
                until(lambda: api.journal.asked, "the question came")
            planrun.send_signal(how)
            assert planrun.wait(PATIENCE) == -how
        until(lambda: is_gone(pid), "the process has ended")
        api.journal.settle()
        assert {entry.ended for entry in api.journal.asked} <= {"left"}


def test_asking_loads_no_library_into_planrun() -> None:
    """Neither Anthropic's library nor an HTTP client is loaded by the program that asks."""
    with FakeMessages(["yes"]) as api:
        text = DRIVER.format(root=str(ROOT)) + (
            "slow = {'anthropic', 'httpx2', 'pydantic', 'ssl', 'socket', 'asyncio', 'subprocess'}\n"
            "assert not slow & set(sys.modules)\n"
        )
        argv = [sys.executable, "-S", "-c", text.replace("from tests.llm.asking import question", QUESTION)]
        done = subprocess.run(
            argv, env={**os.environ, **api.env}, capture_output=True, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(api.journal.asked) == 1


QUESTION = """
from planrun.model.call import Request
def question():
    said = {"role": "user", "content": "x"}
    return Request(purpose="generate", model="m", system=("s",), messages=(said,), max_tokens=9)
"""


def test_the_key_is_in_no_message() -> None:
    """A service that repeats the key in what it says does not get it shown, and says what it says in one line."""
    echo = status(401, message=f"the key\r\n{KEY}\x1b[31m is revoked\n" + "x" * 5000)
    with FakeMessages([echo]) as api, calling(api.url) as model:
        answer = answer_to(model, question())
    assert (answer.ending, KEY in repr(answer)) == ("unauthorized", False)
    assert "the key *** [31m is revoked xxx" in answer.message
    assert len(answer.message) <= 400


def test_close_is_final() -> None:
    """After close nothing is left, also when a call was under way; a second close does nothing."""
    with FakeMessages([broken("stall", "head")]) as api:
        with calling(api.url) as model:
            model.ask(question())
            pid = model.pid
            model.close()
            assert is_gone(pid)
        assert isinstance(model, ModelProcess)
