"""Dagu files with chains, repetitions and executors that become plans by the command line, and run."""

from __future__ import annotations

import http.server
import os
import shutil
import threading
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Command


def run(planrun: Command, folder: Path, text: str, code: int = 0) -> str:
    """Convert a Dagu file, execute the plan, and return what the conversion reported."""
    (folder / "dag.yaml").write_text(dedent(text), "utf-8")
    done = planrun("convert", "dag.yaml", "-o", "plan.yml", "--force")
    assert done.returncode == 0, done.stderr
    ran = planrun("execute", "plan.yml", "--jobs", "4")
    assert ran.returncode == code, ran.stdout
    return done.stderr


def test_steps_without_type_and_depends_are_a_chain(planrun: Command, tmp_path: Path) -> None:
    """Dagu runs them one after the other, and so does the plan; `type: graph` lets them overlap."""
    said = run(planrun, tmp_path, "steps: [sleep 0.2; echo one >> said, echo two >> said]\n")
    assert "differs[type]: steps run one after the other" in said
    assert (tmp_path / "said").read_text("utf-8") == "one\ntwo\n"
    meet = "timeoutSec: 60\ntype: graph\nsteps: [until test -e second; do sleep 0.1; done, touch second]\n"
    run(planrun, tmp_path, meet)


@pytest.mark.parametrize(
    ("policy", "times", "code"),
    [
        ("{repeat: until, condition: 'test $(wc -l < said) -ge 3'}", 3, 0),
        ("{repeat: while, condition: 'test $(wc -l < said) -lt 4'}", 4, 0),
        ("{condition: '`wc -l < said | tr -d [:space:]`', expected: '2'}", 2, 0),
        ("{repeat: while, limit: 5}", 5, 0),
        ("{repeat: true, exitCode: [0], limit: 2}", 2, 0),
        ("{limit: 3}", 1, 0),
    ],
)
def test_a_step_repeats_itself_as_its_policy_says(
    planrun: Command, tmp_path: Path, policy: str, times: int, code: int
) -> None:
    """`while`, `until`, conditions, exit codes and limits count as in Dagu."""
    run(planrun, tmp_path, f"steps:\n  - {{command: echo x >> said, repeatPolicy: {policy}}}\n", code)
    assert (tmp_path / "said").read_text("utf-8") == "x\n" * times


def test_a_step_that_never_gets_there_fails_with_its_own_exit_code(planrun: Command, tmp_path: Path) -> None:
    """`until` a success, at most three times: the last failure is that of the step."""
    text = "steps:\n  - {command: echo x >> said && exit 9, repeatPolicy: {repeat: until, limit: 3}}\n"
    run(planrun, tmp_path, text, 1)
    assert (tmp_path / "said").read_text("utf-8") == "x\n" * 3
    assert '"exit_code":9' in (tmp_path / "planrun-out" / "ledger.json").read_text("utf-8").replace(" ", "")


class _Echo(http.server.BaseHTTPRequestHandler):
    """Answers with what it was sent; /bad is an error."""

    def do_POST(self) -> None:
        """Send method, path, one header and the body back."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.send_response(500 if self.path == "/bad" else 200)
        self.end_headers()
        self.wfile.write(f"{self.command} {self.path} {self.headers['X-Who']} {body}".encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that http.server has
        """Print nothing."""


@pytest.fixture
def service() -> Iterator[str]:
    """Give the test the address of a server on loopback."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl to make requests with")
def test_http_requests_are_made_by_curl(planrun: Command, tmp_path: Path, service: str) -> None:
    """Method, address, headers, body and variables arrive; an error of the server fails the step."""
    said = run(
        planrun,
        tmp_path,
        f"""\
        env: [{{WHO: me}}]
        steps:
          - type: http
            command: POST {service}/data
            with: {{headers: {{X-Who: "${{WHO}}"}}, body: '{{"key": "a b"}}', timeout: 30}}
            stdout: answer
        """,
    )
    assert "differs[executor:http]: the program curl does it" in said
    assert (tmp_path / "answer").read_text("utf-8") == 'POST /data me {"key": "a b"}'
    run(planrun, tmp_path, f"steps:\n  - {{type: http, command: POST {service}/bad}}\n", 1)


def test_jq_and_ssh_are_programs_of_that_name(planrun: Command, tmp_path: Path) -> None:
    """The command lines are those that a person would type."""
    text = """\
        steps:
          - type: jq
            command: ".items[] | .name"
            script: '{"items": [{"name": "a"}]}'
            with: {raw: true}
          - type: ssh
            command: systemctl restart app
            with: {user: deploy, host: server.example, key: ~/.ssh/id, port: 2222}
        """
    (tmp_path / "dag.yaml").write_text(dedent(text), "utf-8")
    plan = planrun("convert", "dag.yaml").stdout
    assert "jq --raw-output '.items[] | .name' <<'PLANRUN_INPUT_END'" in plan
    expected = (
        'ssh -o BatchMode=yes -p "2222" -i "$HOME"/".ssh/id" "deploy@server.example" "systemctl restart app"'
    )
    assert expected in plan


FAMILY = """\
    name: main
    consts: {place: here}
    params: [WHO: bob]
    steps:
      - {name: json, command: "echo '{\\"a\\": {\\"b\\": 5}}'", output: J}
      - - echo one >> said
        - echo two >> said
      - {name: sub, call: child, params: "X=7"}
      - {name: codes, command: "sh -c 'exit 3'", continueOn: {exitCode: [3]}}
      - {name: words, command: "sh -c 'echo WARN; exit 4'", continueOn: {output: ["re:^WARN"]}}
      - echo "${J.a.b} ${params.WHO} ${consts.place}" >> said
    ---
    name: child
    params: [X: 1, Y: 2]
    env: [Z: zed]
    steps:
      - echo "a $X" >> said
      - echo "b $Y $Z" >> said
    """


def test_documents_references_and_counted_failures(planrun: Command, tmp_path: Path) -> None:
    """A DAG of the same file is steps of the plan; failures that are named by code or output do not count."""
    (tmp_path / "bin").mkdir()
    jq = tmp_path / "bin" / "jq"  # stands for jq, which need not be installed
    jq.write_text("#!/usr/bin/env python3\nimport json, sys\nprint(json.load(sys.stdin)['a']['b'])\n")
    jq.chmod(0o755)
    (tmp_path / "dag.yaml").write_text(dedent(FAMILY))
    done = planrun("convert", "dag.yaml", "-o", "plan.yml")
    assert done.returncode == 0, done.stderr
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    assert planrun("execute", "plan.yml", "--jobs", "1", env={"PATH": path}).returncode == 0
    said = (tmp_path / "said").read_text().splitlines()
    assert (sorted(said[:2]), said[2:]) == (["one", "two"], ["a 7", "b 2 zed", "5 bob here"])


def test_a_dag_in_another_file_is_run_by_dagu(planrun: Command, tmp_path: Path) -> None:
    """Where the file is not beside this one, the step is the command that runs it."""
    (tmp_path / "dag.yaml").write_text("steps: [{name: a, call: other, params: X=1}]\n")
    done = planrun("convert", "dag.yaml", "--from", "dagu")
    assert "run: dagu start other -- X=1" in done.stdout
    assert "differs[sub-dag]: the DAG other is not in this folder: Dagu runs it" in done.stderr
