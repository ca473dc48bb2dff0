"""What was recorded is replayed, and nothing else."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

from planrun.cliutil.failure import problem_text
from planrun.errors import InvalidInput, InvalidPlan, RecordsLost
from planrun.llm.entries import ENDINGS, key_of
from planrun.llm.recordings import RecordingModel, ReplayModel
from planrun.llm.untrusted import data_block
from planrun.model.call import Answer, Request, Usage
from tests.llm.taping import ScriptedModel, asked, draft, one, recorded, said

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]
SCHEMA = jsonschema.Draft7Validator(json.loads((ROOT / "schemas" / "recording.schema.json").read_bytes()))
TEXTS = (
    json.dumps(draft("a", "b"), separators=(",", ":"), ensure_ascii=False),
    json.dumps(draft("é\u2028", "b"), ensure_ascii=True),
    json.dumps(draft("a"), indent=2, ensure_ascii=False),
    json.dumps(draft("a"), indent=3),
    '{"a": 1, "a": 2}',
    '{"a": 1e999, "b": NaN}',
    '{"a": -0, "b": 1.50, "c": 123456789012345678901234567890}',
    "```json\n{}\n```",
    "",
    "no JSON at all\n",
    "\n\n  blanks \t\r\nand more  \n\n",
    "- a: list\n# no comment\n...\n---\n",
    "[" * 5000,
    '{"a":' * 60 + "1" + "}" * 60,
    "invisible \u200b\u202e\x1b[31m\x7f\x85\ufeff\U000e0041 things",
    "true",
    "{}",
)


def written(folder: Path) -> dict[str, bytes]:
    """Return the files of a recording."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def told(answer: Answer) -> tuple[Any, ...]:
    """Return all of an answer but how long it took and where it comes from."""
    names = (
        "ending",
        "text",
        "usage",
        "is_estimate",
        "attempts",
        "model",
        "request_id",
        "stop_reason",
        "message",
    )
    return tuple([getattr(answer, name) for name in (*names, "rule")])


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_every_answer_comes_back_as_it_was(text: str, tmp_path: Path) -> None:
    """Whatever a model wrote, a replay gives the same text, usage and ending, and the file fits its schema."""
    request = asked(f"Ship it.\n{text}")
    [answer] = recorded(tmp_path, [(request, said(text, request_id="req_1", attempts=3))])
    replayed = one(ReplayModel(str(tmp_path)), request)
    assert answer.text == replayed.text == text
    assert told(replayed) == told(answer)
    assert replayed.replayed
    for data in written(tmp_path).values():
        SCHEMA.validate(yaml.safe_load(data))


@pytest.mark.parametrize("ending", ENDINGS)
def test_failures_are_recorded_too(ending: Any, tmp_path: Path) -> None:
    """A call that did not get an answer replays as the same failure."""
    failed = Answer(
        ending=ending, message="no luck", rule="status:529", attempts=6, usage=Usage(input_tokens=9)
    )
    recorded(tmp_path, [(asked(), failed)])
    assert told(one(ReplayModel(str(tmp_path)), asked())) == told(failed)


@pytest.mark.parametrize("ending", ["stopped", "unauthorized"])
def test_what_says_nothing_about_the_model_is_not_recorded(ending: Any, tmp_path: Path) -> None:
    """Nobody wants to replay a missing key or a cancelled run."""
    [answer] = recorded(tmp_path, [(asked(), Answer(ending=ending))])
    assert answer.ending == ending
    assert written(tmp_path) == {}


def test_an_entry_reads_line_by_line(tmp_path: Path) -> None:
    """What a model wrote and was asked stands in lines, the answer first, and its scripts as scripts."""
    request = asked("Goal: ship it.\n\nFiles:\n  a.py\nlast line ends in a blank: \n")
    recorded(tmp_path, [(request, said(draft("build")))])
    [(name, data)] = written(tmp_path).items()
    text = data.decode()
    assert name == f"0001-generate-{key_of(request)[:8]}.yml"
    assert "        run: |\n          make build\n\n          test -e build\n" in text
    assert '  - role: user\n    content: "Goal: ship it.\\n\\\n' in text
    assert "system:\n  - |\n    You write plans.\n    Short ones.\n" in text
    assert text.index("answer:") < text.index("messages:") < text.index("system:")


def test_the_same_question_has_its_answers_in_order(tmp_path: Path) -> None:
    """Asked twice it is answered twice, and a third time it is missing."""
    request, other = asked("again"), asked("other")
    recorded(tmp_path, [(request, said("1")), (other, said("2")), (request, said("3"))])
    player = ReplayModel(str(tmp_path))
    assert [one(player, each).text for each in (request, request, other)] == ["1", "3", "2"]
    missing = one(player, request)
    assert (missing.ending, missing.text) == ("missing", "")
    assert "2 times, and it is asked once more" in missing.message


def test_a_run_that_goes_on_gets_the_next_answer(tmp_path: Path) -> None:
    """Requests that were answered in an earlier process of the run are not answered from the beginning."""
    recorded(tmp_path, [(asked(), said("1")), (asked(), said("2"))])
    player = ReplayModel(str(tmp_path), served=[key_of(asked()), key_of(asked("unknown"))])
    assert one(player, asked()).text == "2"


def test_recording_again_adds(tmp_path: Path) -> None:
    """A second session goes on with the numbers of the first, and leaves its files alone."""
    recorded(tmp_path, [(asked(), said("1"))])
    before = written(tmp_path)
    recorded(tmp_path, [(asked(), said("2")), (asked("more"), said("3"))])
    after = written(tmp_path)
    assert [name[:4] for name in after] == ["0001", "0002", "0003"]
    assert before.items() <= after.items()


def test_recording_the_same_gives_the_same_bytes(tmp_path: Path) -> None:
    """No time, no path and nothing of this machine is in a recording."""
    for name in ("a", "b"):
        recorded(tmp_path / name, [(asked(), said(draft("x"))), (asked("2"), said("no"))])
    assert written(tmp_path / "a") == written(tmp_path / "b")


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"model": "model-b"}, "model"),
        ({"effort": "high"}, "effort"),
        ({"max_tokens": 16000}, "max_tokens"),
        ({"system": ("You write plans.\nLong ones.\n",)}, "system"),
        ({"schema": None}, "schema"),
        ({"messages": ({"role": "user", "content": "Ship it!"},)}, "messages[0]"),
    ],
)
def test_another_question_is_missing(changes: dict[str, Any], place: str, tmp_path: Path) -> None:
    """Whatever of a request differs, there is no answer; it is said where it differs from the nearest and how."""
    recorded(
        tmp_path, [(asked("Something else altogether,\nof two lines."), said("0")), (asked(), said("1"))]
    )
    answer = one(ReplayModel(str(tmp_path)), asked().but(**changes))
    assert (answer.ending, answer.rule, answer.text) == ("missing", "recording:missing", "")
    first, *lines = answer.message.split("\n")
    assert "0002-generate-" in first
    assert first.endswith(f"which differs in {place}:")
    assert any(line.startswith("-") for line in lines)
    assert len(lines) <= 13


def test_what_is_asked_is_told_without_teeth(tmp_path: Path) -> None:
    """A difference is cut to size, and steers no terminal."""
    recorded(tmp_path, [(asked("one"), said("1"))])
    answer = one(ReplayModel(str(tmp_path)), asked("\x1b[2J" + "x" * 5000 + "\n" * 500 + "y"))
    assert answer.message.replace("\n", "").isprintable()
    assert max(map(len, answer.message.split("\n"))) < 250
    assert len(answer.message) < 4000


def test_patience_and_purpose_change_nothing(tmp_path: Path) -> None:
    """How long planrun would wait, and how often it would try, is no part of a question."""
    recorded(tmp_path, [(asked(seconds=3.0), said("1"))])
    assert one(ReplayModel(str(tmp_path)), asked(seconds=77.0, retries=0)).text == "1"


FIRST = """\
============ test session starts at 2026-01-31 09:30:00.123 ============
rootdir: {cwd}
run 20260131-093000-1f2e3d, pid 4242, at 0x7f001122aabb, on http://127.0.0.1:38111/
FAILED tests/test_a.py::test_b - assert 3 == 4 in /tmp/pytest-17/x
bash: line 3:  4711 Killed                  sleep 100
1 failed, 2 passed in 0.12s; took 1m30s; 5 ms
"""
SECOND = """\
============ test session starts at 2027-11-01 23:59:59.999 ============
rootdir: {cwd}
run 20271101-235959-aabbcc, pid 17, at 0x7fff00000000, on http://127.0.0.1:5555/
FAILED tests/test_a.py::test_b - assert 3 == 4 in /tmp/pytest-3/x
bash: line 3:  9 Killed                  sleep 100
1 failed, 2 passed in 12.5s; took 2m; 80 ms
"""


def block(text: str, name: str = "log of test") -> Request:
    """Return a request with a text as data."""
    return asked(f"It failed.\n\n{data_block(name, text, 4096)}\n\nMend it.")


def test_what_differs_from_run_to_run_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Times, durations, ids and folders in what programs printed are left out of the key, and nothing else of it."""
    keys: list[str] = []
    for text in (FIRST, SECOND):
        folder = tmp_path / str(len(keys))
        folder.mkdir()
        monkeypatch.chdir(folder)
        keys.append(key_of(block(text.format(cwd=os.getcwd()))))
    assert keys[0] == keys[1]
    for old, new in (("3 == 4", "3 == 5"), ("1 failed", "2 failed"), ("test_b", "test_c")):
        assert key_of(block(SECOND.format(cwd=os.getcwd()).replace(old, new))) != keys[0]


def test_everything_counts_outside_of_what_programs_printed() -> None:
    """A goal of 5 s is not one of 10 s, and a file that names another time is another file."""
    assert key_of(asked("Time out after 5s.")) != key_of(asked("Time out after 10s."))
    assert key_of(block("sleep 5s", "file a.sh")) != key_of(block("sleep 6s", "file a.sh"))
    assert key_of(block("sleep 5s")) == key_of(block("sleep 6s"))


def test_a_recording_holds_no_folder_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder that planrun works in is left out of logs, and the entry is found from anywhere."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    request = block(FIRST.format(cwd=os.getcwd()))
    recorded(Path("tapes"), [(request, said("1"))])
    [data] = written(work / "tapes").values()
    assert str(work).encode() not in data
    assert b"rootdir: <workspace>" in data
    monkeypatch.chdir(tmp_path)
    assert one(ReplayModel("work/tapes"), block(SECOND.format(cwd=os.getcwd()))).text == "1"


BAD: dict[str, tuple[Callable[[str], str], str]] = {
    "cut": (lambda text: text[: len(text) // 2], "E"),
    "empty": (lambda _: "", "E006"),
    "no mapping": (lambda _: "- 1\n", "E101"),
    "binary": (lambda _: "\x00\x01", "E005"),
    "unknown key": (lambda text: text + "extra: 1\n", "E104"),
    "missing key": (lambda text: text.replace("purpose: generate\n", ""), "E102"),
    "version": (lambda text: text.replace("version: 1", "version: 2"), "E106"),
    "true for a number": (lambda text: text.replace("version: 1", "version: true"), "E106"),
    "ending": (lambda text: text.replace("ending: answered", "ending: stopped"), "E106"),
    "usage": (lambda text: text.replace("input_tokens: 120", "input_tokens: -1"), "E106"),
    "a byte of the question": (lambda text: text.replace("Ship it.", "Ship it!"), "E106"),
    "a byte of the key": (lambda text: text.replace("key: ", "key: 0", 1), "E106"),
    "model": (lambda text: text.replace("model: model-a\n", "model: model-b\n"), "E106"),
    "number": (lambda text: text.replace("number: 1", "number: 2"), "E106"),
    "form": (lambda text: text.replace("form: compact", "form: text"), "E106"),
    "no text": (lambda text: text[: text.index("  text:")] + text[text.index("messages:") :], "E106"),
    "schema": (lambda text: text.replace('schema: "{', 'schema: "['), "E106"),
    "plain": (lambda text: text.replace("effort: medium", "effort: some text"), "E106"),
    "duplicate": (lambda text: text + "version: 1\n", "E018"),
    "tag": (lambda text: text.replace("effort: medium", "effort: !!str medium"), "E014"),
}


@pytest.mark.parametrize("name", BAD)
def test_an_altered_entry_is_told_with_its_place(name: str, tmp_path: Path) -> None:
    """A recording that cannot be trusted to be one is refused as a whole, with file, line and column."""
    change, code = BAD[name]
    recorded(tmp_path, [(asked(), said(draft("a")))])
    [path] = tmp_path.iterdir()
    before = path.read_text("utf-8")
    path.write_text(change(before), "utf-8")
    assert path.read_text("utf-8") != before
    with pytest.raises(InvalidPlan) as caught:
        ReplayModel(str(tmp_path))
    [problem, *_] = caught.value.problems
    assert problem.code.startswith(code)
    assert problem_text(caught.value).startswith(
        f"{path}:{problem.line}:{problem.col}: error[{problem.code}]"
    )


def test_an_answer_may_be_edited(tmp_path: Path) -> None:
    """What a model wrote has no authority: whoever edits it gets what they wrote, through the same checks as ever."""
    recorded(tmp_path, [(asked(), said(draft("a")))])
    [path] = tmp_path.iterdir()
    path.write_text(path.read_text("utf-8").replace("make a", "make b"), "utf-8")
    assert "make b" in one(ReplayModel(str(tmp_path)), asked()).text


def test_a_folder_without_a_recording_is_refused(tmp_path: Path) -> None:
    """A folder that is not there, holds nothing, or is a link is an error before anything is asked."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("empty")
    for name, reason in (
        ("none", "No such file"),
        ("empty", "there is no recording"),
        ("link", "it is a link"),
    ):
        with pytest.raises(InvalidInput, match=reason):
            ReplayModel(str(tmp_path / name))


def test_an_entry_is_never_a_link_or_a_pipe(tmp_path: Path) -> None:
    """A checkout cannot have a replay read, and quote, any file of the machine, nor hang it."""
    secret = tmp_path / "secret"
    secret.write_text("password", "utf-8")
    makes: tuple[Callable[[Path], object], ...] = (
        lambda path: path.symlink_to(secret),
        os.mkfifo,
        Path.mkdir,
    )
    for number, make in enumerate(makes):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / "0001-x.yml")
        with pytest.raises(InvalidInput, match="cannot read the recording") as caught:
            ReplayModel(str(folder))
        assert "password" not in str(caught.value)


def test_a_recording_is_never_written_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither through a link at the end of its path nor, where it is relative, through one before."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("elsewhere")
    for path in ("link", "link/inner", str(tmp_path / "link"), "link/"):
        with pytest.raises(RecordsLost, match="is a link, or no folder"):
            RecordingModel(ScriptedModel([]), path)
    (tmp_path / "tapes").mkdir()
    target = tmp_path / "target"
    target.write_text("mine", "utf-8")
    (tmp_path / "tapes" / ".part").symlink_to(target)
    recorded(Path("tapes"), [(asked(), said("1"))])
    assert target.read_text("utf-8") == "mine"
    assert not list((tmp_path / "elsewhere" / "inner").iterdir())


def test_files_have_the_modes_that_people_expect(tmp_path: Path) -> None:
    """Recordings are committed: they follow the umask, and so do their folders."""
    old = os.umask(0o022)
    try:
        recorded(tmp_path / "a" / "b", [(asked(), said("1"))])
    finally:
        os.umask(old)
    [path] = (tmp_path / "a" / "b").iterdir()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o755


@pytest.mark.skipif(
    os.geteuid() == 0 and not Path("/proc/sys").exists(), reason="needs a folder nobody can write to"
)
def test_a_folder_that_cannot_be_written_to_is_told_first(tmp_path: Path) -> None:
    """Nothing is asked, and so nothing is paid, when the recording could not be kept."""
    (tmp_path / "file").write_text("", "utf-8")
    for path in ("/proc/sys/tapes", str(tmp_path / "file"), ""):
        with pytest.raises(RecordsLost, match="the recording cannot be written to"):
            RecordingModel(ScriptedModel([]), path)


def test_an_answer_that_was_not_recorded_is_not_used(tmp_path: Path) -> None:
    """When the folder goes away the answer is unrecorded, with what it cost, and no run goes its way unseen."""
    recorder = RecordingModel(ScriptedModel([said("1")]), str(tmp_path / "tapes"))
    (tmp_path / "tapes").rmdir()
    answer = one(recorder, asked())
    assert (answer.ending, answer.text, answer.usage.total) == ("unrecorded", "", 154)
    assert answer.message.startswith("the recording cannot be written to")


def test_a_call_that_is_stopped_is_stopped(tmp_path: Path) -> None:
    """Stopping reaches the model while recording, and ends a replay as well."""
    model = ScriptedModel([said("1")])
    recorder = RecordingModel(model, str(tmp_path / "tapes"))
    recorder.ask(asked())
    recorder.stop()
    answer = recorder.wait(None)
    assert answer is not None
    assert answer.ending == "stopped"
    recorder.close()
    assert model.closed
    recorded(tmp_path / "tapes", [(asked(), said("1"))])
    player = ReplayModel(str(tmp_path / "tapes"))
    player.ask(asked())
    player.stop()
    answer = player.wait(None)
    assert answer is not None
    assert answer.ending == "stopped"


_ENDLESS = """
import sys
from planrun.llm.recordings import RecordingModel
from tests.llm.taping import ScriptedModel, asked, draft, one, said
many = 100000
recorder = RecordingModel(ScriptedModel(said(draft(*map(str, range(200)))) for _ in range(many)), sys.argv[1])
for number in range(many):
    one(recorder, asked(str(number)))
    print(number, flush=True)
"""


def test_a_kill_leaves_no_half_of_an_entry(tmp_path: Path) -> None:
    """Killed while it records, at several moments: what is there is whole, what was handed on is there."""
    handed = 0
    for number in range(4):
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                _ENDLESS.replace("range(200)", f"range({50 + 100 * number})"),
                str(tmp_path),
            ],
            cwd=ROOT,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        for _ in range(3 + number):
            assert process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        handed += 3 + number + len(process.stdout.readlines())
        process.wait()
        process.stdout.close()
        names = [name for name in written(tmp_path) if name != ".part"]
        assert handed <= len(names) <= handed + number + 1
        ReplayModel(str(tmp_path))
    recorded(tmp_path, [(asked("after"), said("1"))])
    assert ".part" not in written(tmp_path)


def test_two_who_record_at_once_take_turns(tmp_path: Path) -> None:
    """Processes that record into one folder get numbers of their own, and lose nothing."""
    script = _ENDLESS.replace("many = 100000", "many = 8").replace(
        "asked(str(number))", "asked(sys.argv[2] + str(number))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path), name], cwd=ROOT, stdout=subprocess.DEVNULL
        )
        for name in "abc"
    ]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert [name[:4] for name in written(tmp_path)] == [f"{number:04}" for number in range(1, 25)]
    ReplayModel(str(tmp_path))


def test_the_schema_tells_the_same_as_the_reader(tmp_path: Path) -> None:
    """What the reader refuses by its shape the schema refuses, too."""
    recorded(tmp_path, [(asked(), said(draft("a")))])
    [path] = tmp_path.iterdir()
    good = path.read_text("utf-8")
    SCHEMA.validate(yaml.safe_load(good))
    for name in (
        "unknown key",
        "missing key",
        "version",
        "true for a number",
        "ending",
        "usage",
        "form",
        "no text",
    ):
        with pytest.raises(jsonschema.ValidationError):
            SCHEMA.validate(yaml.safe_load(BAD[name][0](good)))
