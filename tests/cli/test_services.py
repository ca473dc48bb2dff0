"""Services beside servers that are not planrun's."""

from __future__ import annotations

import http.server
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Command

PLAN = """\
version: 1
params: {port: {type: integer, default: 0}}
steps:
  - id: server
    service: true
    exec: [python3, -m, http.server, "${{ params.port }}", --bind, 127.0.0.1]
    ready: {run: "exec 3<>/dev/tcp/127.0.0.1/${{ params.port }}", interval: 50ms, timeout: 20s}
    retries: {max: 2, backoff: {initial: 100ms, jitter: 0}}
  - {id: test, depends_on: [server], run: echo tested}
"""


def test_a_server_of_somebody_else_makes_no_service_ready(planrun: Command) -> None:
    """Red while it holds the port, without a start; green afterwards."""
    (planrun.folder / "plan.yml").write_text(PLAN, "utf-8")
    stranger = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
    serving = threading.Thread(target=stranger.serve_forever)
    serving.start()
    port = f"port={stranger.server_port}"
    try:
        said = planrun("execute", "plan.yml", "-p", port)
    finally:
        stranger.shutdown()
        serving.join()
        stranger.server_close()
    assert said.returncode == 1
    assert "`ready` passed before the service started: another server answers" in said.stderr
    assert "tested" not in said.stdout
    assert planrun("execute", "plan.yml", "-p", port).returncode == 0
