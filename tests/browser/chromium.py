"""Headless chromium, controlled by the DevTools protocol over two pipes, without a port or a library.

Source: https://chromedevtools.github.io/devtools-protocol/, and chromium's `--remote-debugging-pipe`: it reads commands
from file descriptor 3 and writes responses and events to 4, each as JSON with a trailing zero byte.
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

_RESPONSE_TIMEOUT_S = 60.0  # a page loads in under a second; a machine that runs other tests takes longer
_EXIT_TIMEOUT_S = 20.0
# The codes of keys: Windows's virtual key codes, which Input.dispatchKeyEvent takes.
_KEYS = {
    "Tab": 9,
    "Enter": 13,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
}
# No sandbox: it needs rights that containers lack, and the pages are corral's own. The others disable traffic.
_OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
    *("--no-first-run", "--disable-extensions", "--disable-component-update", "--disable-background-networking"),
)
# Moves the ends of the pipes to 3 and 4: redirections of a shell accept only single digits.
_LAUNCHER = """import fcntl, os, sys
ends = [fcntl.fcntl(int(word), fcntl.F_DUPFD, 5) for word in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])"""


class Browser:
    """A browser with one page. `events` are what it sent on its own."""

    def __init__(self, commands: int, responses: int) -> None:
        self.events: list[Mapping[str, Any]] = []
        self._commands, self._responses = commands, responses
        self._rest, self._last, self._session = b"", 0, ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "Accessibility"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result. Raises RuntimeError if it fails or times out."""
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
        raise AssertionError("unreachable: messages end only with an error")

    def open(self, page: Path | str, *, width: int, dark: bool = False) -> None:
        """Open the file or address at this width in CSS pixels; narrow ones as on a phone. Clears earlier events."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri() if isinstance(page, Path) else page)
        if not any(message["method"] == "Page.loadEventFired" for message in self.events):
            for message in self._messages():
                if message.get("method") == "Page.loadEventFired":
                    return

    def value(self, expression: str) -> Any:
        """The value of this JavaScript in the page, as JSON."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key, such as Tab."""
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown" if text else "rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=_KEYS[key], **text)

    def pdf(self) -> bytes:
        """The printed page."""
        return base64.b64decode(self.call("Page.printToPDF")["data"])

    def screenshot(self) -> bytes:
        """A screenshot of the whole page, as PNG."""
        return base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"])

    def parameters(self, method: str) -> list[Any]:
        """The parameters of all events of this method."""
        return [message["params"] for message in self.events if message.get("method") == method]

    def _messages(self) -> Iterator[Mapping[str, Any]]:
        """Incoming messages in order; keeps the events. Raises RuntimeError after a timeout."""
        deadline = time.monotonic() + _RESPONSE_TIMEOUT_S
        while True:
            whole, zero, rest = self._rest.partition(b"\0")
            if zero:
                self._rest = rest
                message = json.loads(whole)
                if "method" in message:
                    self.events.append(message)
                yield message
                continue
            if not select.select([self._responses], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise RuntimeError(f"the browser has not responded for {_RESPONSE_TIMEOUT_S:.0f} s")
            more = os.read(self._responses, 1 << 20)
            if not more:
                raise RuntimeError("the browser has exited")
            self._rest += more


def program() -> str:
    """The path of chromium. Raises RuntimeError if it is not installed."""
    found = shutil.which("chromium")
    if found is None:
        raise RuntimeError("chromium is not installed - `make browser` installs it")
    return found


@contextmanager
def running_browser(directory: Path) -> Iterator[Browser]:
    """Run a browser with its profile and log in this directory, and end it in any case."""
    command_end, commands = os.pipe()
    responses, response_end = os.pipe()
    words = [sys.executable, "-c", _LAUNCHER, str(command_end), str(response_end), program(), *_OPTIONS]
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(
            [*words, f"--user-data-dir={directory / 'profile'}"],
            pass_fds=(command_end, response_end),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    os.close(command_end)
    os.close(response_end)
    try:
        yield Browser(commands, responses)
    finally:
        os.close(commands)  # it exits when its command pipe closes
        os.close(responses)
        try:
            process.wait(_EXIT_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
