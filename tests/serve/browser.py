"""A real browser that a test drives: Chromium without a window, by its own protocol over two pipes."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from tests.conftest import LIMIT

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
WORDS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--remote-debugging-pipe",
    "--disable-background-networking", "--disable-component-update", "--disable-extensions", "--no-proxy-server",
    "--disable-features=NetworkTimeServiceQuerying",
)  # fmt: skip


class Browser:
    """One page of a browser; `said`: what its console was told, errors of policies included."""

    def __init__(self, folder: Path) -> None:
        reads, self._writes = os.pipe()
        self._reads, writes = os.pipe()

        def place() -> None:
            # The protocol is on descriptors 3 and 4; both pipes are copied away first, since either may be one.
            one, two = os.dup(reads), os.dup(writes)
            os.dup2(one, 3)
            os.dup2(two, 4)

        self._process = subprocess.Popen(
            [CHROMIUM, *WORDS, f"--user-data-dir={folder / 'profile'}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=place,  # noqa: PLW1509 - no other thread runs here
        )
        os.close(reads)
        os.close(writes)
        self._number = 0
        self._data = b""
        self._session = ""
        self.said: list[str] = []

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_exception: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._reads)
        os.close(self._writes)

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the protocol, and return its result."""
        self._number += 1
        request = {"id": self._number, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        os.write(self._writes, json.dumps(request).encode() + b"\0")
        while True:
            reply = self._message()
            if reply.get("id") == self._number:
                assert "error" not in reply, reply
                return reply["result"]

    def _message(self) -> dict[str, Any]:
        while b"\0" not in self._data:
            data = os.read(self._reads, 1 << 16)
            assert data, "the browser is gone"
            self._data += data
        text, _, self._data = self._data.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.said.append(json.dumps(message["params"]))
        return message

    def look(self, width: int, height: int, scheme: str) -> None:
        """Make the page so large, in light or dark."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def go(self, url: str) -> None:
        """Open an address."""
        self.call("Page.navigate", url=url)

    def value(self, script: str) -> Any:
        """Return what an expression of JavaScript is in the page."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def until(self, script: str) -> Any:
        """Wait until an expression is true; return its value."""
        limit = time.monotonic() + LIMIT
        while not (found := self.value(script)):
            assert time.monotonic() < limit, (script, self.value("document.body.innerText"), self.said)
            time.sleep(0.05)
        return found

    def picture(self, path: Path) -> None:
        """Keep a picture of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))
