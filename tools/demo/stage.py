"""Where the demo plays: a copy of the stacks, a box of its own, and how commands are run and shown."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from corral.box import control

EACH_RESOURCE = re.compile(r"  (created|updated|deleted) ")
PATIENCE_S = 120  # many times what anything here takes
CHECKOUT = Path(__file__).resolve().parents[2]


class Unexpected(Exception):
    """A step that did not do what it should; the text is one sentence."""


class Stage:
    """One directory with everything that the demo makes."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.project, self.box = directory / "project", directory / "box"
        self.before: Mapping[str, list[str]] = {}
        shutil.copytree(CHECKOUT / "stacks", self.project / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
        self._bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def title(self, text: str) -> None:
        """Prints the title of a step."""
        print(f"\n\033[1m{text}\033[0m" if self._bold else f"\n{text}\n{'-' * len(text)}", flush=True)

    def say(self, text: str) -> None:
        """Prints a sentence."""
        print(text, flush=True)

    def corral(self, *arguments: str, briefly: bool = False) -> None:
        """Runs a corral command on the copy and the box, and shows it; `briefly` leaves out the line per resource."""
        print(f"$ corral {shlex.join(arguments)}", flush=True)
        self._run([sys.executable, "-m", "corral.cli", *arguments], leave_out=EACH_RESOURCE if briefly else None)

    def ask(self, *arguments: str) -> str:
        """What a corral command prints; nothing where it fails."""
        done = subprocess.run(
            [sys.executable, "-m", "corral.cli", *arguments],
            cwd=self.project, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else ""

    def wait_for(self, *arguments: str, what: str = "") -> None:
        """Returns when the command prints something, and this in it."""

        def answers() -> bool:
            return bool(answer := self.ask(*arguments)) and what in answer

        self.wait_until(answers, f"corral {shlex.join(arguments)} answers{what and ' '}{what.strip()}")

    def wait_until(self, is_so: Callable[[], bool], claim: str) -> None:
        """Returns when it is so."""
        deadline = monotonic() + PATIENCE_S
        while not is_so():
            if monotonic() > deadline:
                raise Unexpected(f"waited {PATIENCE_S} s in vain until {claim}")
            sleep(0.2)

    def shell(self, line: str, *, leave_out: re.Pattern[str] | None = None) -> None:
        """Runs a shell line as a person would after `eval "$(corral box env)"`, and shows what it prints."""
        print(f"$ {line}", flush=True)
        variables = subprocess.run(
            [sys.executable, "-m", "corral.cli", "box", "env"],
            env=self.environment(), cwd=self.project, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        self._run(["bash", "-c", f"{variables}\n{line}"], leave_out=leave_out)

    def environment(self) -> dict[str, str]:
        """The variables of every command: the box's directory, and the tools of this environment first on PATH."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        return {**os.environ, "CORRAL_BOX_DIR": str(self.box), "PATH": path, "COLUMNS": "100"}

    def client(self, service: str) -> Any:
        """A boto3 client of the box."""
        import boto3

        found = control.environment(self.box)
        return boto3.client(
            service,
            endpoint_url=found["AWS_ENDPOINT_URL"],
            region_name=found["AWS_REGION"],
            aws_access_key_id=found["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=found["AWS_SECRET_ACCESS_KEY"],
        )

    def inventory(self) -> Mapping[str, list[str]]:
        """All that the box holds, by kind."""
        return control.inventory(self.box)

    def stop(self) -> None:
        """Ends the box."""
        control.stop(self.box)

    def _run(self, command: list[str], *, leave_out: re.Pattern[str] | None) -> None:
        shown = subprocess.Popen(
            command, cwd=self.project, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert shown.stdout is not None  # it is a pipe
        for line in shown.stdout:
            if leave_out is None or not leave_out.match(line):
                print(line, end="", flush=True)
        if shown.wait() != 0:
            raise Unexpected(f"the last command ended with {shown.returncode}")
