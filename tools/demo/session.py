"""The demo's session: a copy of the stacks, a box of its own, and the commands that run on them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from corral.box import client as box_client
from corral.box.daemon.daemon_process import send_request

RESOURCE_LINE = re.compile(r"  (created|updated|deleted) ")
TIMEOUT_S = 240  # many times what any step takes on an idle machine
CHECKOUT = Path(__file__).resolve().parents[2]


class Unexpected(Exception):
    """A step had another result than it should; the text is one sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceRun:
    """A training run without interruption: its job, and a line of losses for each step."""

    job: int
    losses: str


class DemoSession:
    """One directory with everything that the demo creates."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.project, self.box = directory / "project", directory / "box"
        self.initial_inventory: Mapping[str, list[str]] = {}  # what the box holds before the first up
        self.reference_run: ReferenceRun | None = None
        self.interrupted_node = ""  # the node that gets the spot notice
        self.events: frozenset[tuple[str, str, str]] = frozenset()  # what the head's timeline marks: row, kind, time
        shutil.copytree(CHECKOUT / "stacks", self.project / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
        self._bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")

    def title(self, text: str) -> None:
        """Print the title of a step."""
        print(f"\n\033[1m{text}\033[0m" if self._bold else f"\n{text}\n{'-' * len(text)}", flush=True)

    def explain(self, text: str) -> None:
        """Print a sentence."""
        print(text, flush=True)

    def corral(self, *arguments: str, briefly: bool = False, offline: bool = False) -> str:
        """Run a corral command on the copy and the box, show it, and return its output.

        `briefly` omits the line for each resource. `offline` runs it in a network namespace without any interface.
        """
        print(f"$ corral {shlex.join(arguments)}", flush=True)
        prefix = ("unshare", "--net", *(() if os.geteuid() == 0 else ("--map-root-user",))) if offline else ()
        command = [*prefix, sys.executable, "-m", "corral.cli", *arguments]
        return self._run(command, omit=RESOURCE_LINE if briefly else None)

    def query(self, *arguments: str) -> str:
        """The output of a corral command, which is not shown; empty if the command fails."""
        done = subprocess.run(
            [sys.executable, "-m", "corral.cli", *arguments],
            cwd=self.project, env=self.environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else ""

    def query_json(self, *arguments: str) -> Any:
        """The JSON document of a corral command, which is not shown."""
        return json.loads(self.query(*arguments, "--json"))

    def wait_for(self, *arguments: str, text: str = "") -> None:
        """Wait until the command prints something that contains the text."""

        def is_printed() -> bool:
            return bool(output := self.query(*arguments)) and text in output

        self.wait_until(is_printed, f"corral {shlex.join(arguments)} prints {text.strip() or 'something'}")

    def wait_until(self, condition: Callable[[], bool], claim: str) -> None:
        """Wait until the condition holds. Raises Unexpected after TIMEOUT_S."""
        deadline = monotonic() + TIMEOUT_S
        while not condition():
            if monotonic() > deadline:
                raise Unexpected(f"timed out after {TIMEOUT_S} s, waiting until {claim}")
            sleep(0.2)

    def shell(self, line: str, *, omit: re.Pattern[str] | None = None) -> str:
        """Run a shell line as a user would after `eval "$(corral box env)"`; show and return its output."""
        print(f"$ {line}", flush=True)
        variables = subprocess.run(
            [sys.executable, "-m", "corral.cli", "box", "env"],
            env=self.environment(), cwd=self.project, check=True, capture_output=True, text=True,
        ).stdout  # fmt: skip
        return self._run(["bash", "-c", f"{variables}\n{line}"], omit=omit)

    def environment(self) -> dict[str, str]:
        """The variables of every command: the box's directory, and the tools of this environment first on PATH."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        return {**os.environ, "CORRAL_BOX_DIR": str(self.box), "PATH": path, "COLUMNS": "100"}

    def client(self, service: str) -> Any:
        """A boto3 client of the box."""
        import boto3

        variables = box_client.environment(self.box)
        return boto3.client(
            service,
            endpoint_url=variables["AWS_ENDPOINT_URL"],
            region_name=variables["AWS_REGION"],
            aws_access_key_id=variables["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=variables["AWS_SECRET_ACCESS_KEY"],
        )

    def inventory(self) -> Mapping[str, list[str]]:
        """Everything that the box holds, by kind."""
        address = box_client.running_address(self.box)
        return {kind: list(ids) for kind, ids in send_request(address, "GET", "/_box/inventory").items()}

    def stop(self) -> None:
        """Stop the box."""
        box_client.stop(self.box)

    def _run(self, command: list[str], *, omit: re.Pattern[str] | None) -> str:
        process = subprocess.Popen(
            command, cwd=self.project, env=self.environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert process.stdout is not None  # it is a pipe
        output = ""
        for line in process.stdout:
            output += line
            if omit is None or not omit.match(line):
                print(line, end="", flush=True)
        if process.wait() != 0:
            raise Unexpected(f"the last command exited with {process.returncode}")
        return output


def expect(claims: Mapping[str, object]) -> None:
    """Raise Unexpected with the claims that are false."""
    if failed := [claim for claim, holds in claims.items() if not holds]:
        raise Unexpected(f"expected, but false: {'; '.join(failed)}")
