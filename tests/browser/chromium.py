"""Debian's headless chromium, spoken to by the DevTools protocol over two pipes: no port, no library.

Source: https://chromedevtools.github.io/devtools-protocol/, and chromium's `--remote-debugging-pipe`: it reads commands
from file descriptor 3 and writes answers and events to 4, each one JSON with a zero byte behind it.
"""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_ANSWER_S = 60.0  # a page is there in under a second; a machine that is busy with other tests takes longer
_END_S = 20.0
_TAB = {"key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9}
# No sandbox: it needs rights that containers lack, and the pages are our own. The rest keeps it from looking for news.
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
    *("--no-first-run", "--disable-extensions", "--disable-component-update", "--disable-background-networking"),
)
# The pipes' ends are moved to 3 and 4: a shell's redirection knows numbers of one digit alone.
_STARTER = """import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 5) for word in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])"""


class Browser:
    """A browser with one page. What it tells without being asked is in `told`, by its method."""

    def __init__(self, commands: int, answers: int) -> None:
        self.told: list[Mapping[str, Any]] = []
        self._commands, self._answers = commands, answers
        self._rest, self._last, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The answer to this command. Raises RuntimeError where it is refused or does not come."""
        self._last += 1
        command = {"id": self._last, "method": method, "params": parameters}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        for message in self._messages():
            if message.get("id") == self._last:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
        raise AssertionError("messages end by an error alone")

    def open(self, file: Path, *, width: int, dark: bool = False) -> None:
        """Shows the file at this width in CSS pixels, a narrow one as on a telephone. What was told before is gone."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.told.clear()
        self.call("Page.navigate", url=file.as_uri())
        if not any(message["method"] == "Page.loadEventFired" for message in self.told):
            for message in self._messages():
                if message.get("method") == "Page.loadEventFired":
                    return

    def value(self, expression: str) -> Any:
        """What this JavaScript gives in the page, as JSON."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def press_tab(self) -> None:
        """The key, pressed and let go."""
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **_TAB)

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def picture(self) -> bytes:
        """All of the page as a PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def parameters(self, method: str) -> list[Any]:
        """What was told by this method."""
        return [message["params"] for message in self.told if message.get("method") == method]

    def _messages(self) -> Iterator[Mapping[str, Any]]:
        """What comes, in its order; events are kept. Raises RuntimeError where nothing more comes."""
        until = time.monotonic() + _ANSWER_S
        while True:
            whole, zero, rest = self._rest.partition(b"\0")
            if zero:
                self._rest = rest
                message = json.loads(whole)
                if "method" in message:
                    self.told.append(message)
                yield message
                continue
            if not select.select([self._answers], [], [], max(0.0, until - time.monotonic()))[0]:
                raise RuntimeError(f"the browser has not answered for {_ANSWER_S:.0f} s")
            more = os.read(self._answers, 1 << 20)
            if not more:
                raise RuntimeError("the browser has ended")
            self._rest += more


def program() -> str:
    """The browser's path. Raises RuntimeError where there is none."""
    found = shutil.which("chromium")
    if found is None:
        raise RuntimeError("chromium is not installed - `make browser` installs it")
    return found


@contextmanager
def running_browser(directory: Path) -> Iterator[Browser]:
    """A browser whose profile and log are in this directory. It has ended afterwards, whatever has happened."""
    command_end, commands = os.pipe()
    answers, answer_end = os.pipe()
    words = [sys.executable, "-c", _STARTER, str(command_end), str(answer_end), program(), *_OPTIONS]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*words, f"--user-data-dir={directory / 'profile'}"],
            pass_fds=(command_end, answer_end),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(command_end)
    os.close(answer_end)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)  # it ends when nobody can command it any more
        os.close(answers)
        try:
            process.wait(_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
