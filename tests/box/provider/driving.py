"""Run the real Pulumi CLI against a box: a copy of a program, its own backend, and the CLI's output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import boxes
from corral.box import provider
from corral.box.client import BoxStatus
from corral.engine.pulumi import language_host

PROGRAMS = Path(__file__).parent / "programs"
TIMEOUT_S = 180


def pulumi_binary() -> Path:
    """The Pulumi CLI to test with."""
    cached = sorted((Path.home() / ".cache/corral").glob("pulumi-*/pulumi"))
    named, found = os.environ.get("CORRAL_PULUMI"), shutil.which("pulumi")
    for candidate in (named, found, *cached[-1:]):
        if candidate:
            return Path(candidate)
    raise AssertionError("no Pulumi CLI: set CORRAL_PULUMI, put pulumi on PATH, or run `make test`, which builds one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A copy of a program with a stack `dev` of its own."""

    folder: Path
    environment: Mapping[str, str]

    def with_settings(self, **environment: object) -> Project:
        """The same project with these variables in its environment; other values than text as JSON."""
        given = {name: value if isinstance(value, str) else json.dumps(value) for name, value in environment.items()}
        return replace(self, environment={**self.environment, **given})

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """The output and exit code of a pulumi command."""
        return subprocess.run(
            ["pulumi", *arguments, "--non-interactive", "--color=never"],
            cwd=self.folder,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )

    def succeed(self, *arguments: str) -> str:
        """The output of a pulumi command, which must succeed."""
        done = self.run(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def up(self, **settings: object) -> str:
        """The output of `pulumi up --refresh`."""
        return self.with_settings(WIDE=settings).succeed("up", "--yes", "--skip-preview", "--refresh", "--diff")

    def preview(self, **settings: object) -> str:
        """The output of `pulumi preview --refresh`."""
        return self.with_settings(WIDE=settings).succeed("preview", "--refresh", "--diff")

    def planned(self, **settings: object) -> dict[str, str]:
        """What an up would do to which resource as it is now, by `Type name`; unchanged ones left out."""
        steps = json.loads(self.with_settings(WIDE=settings).succeed("preview", "--refresh", "--json"))["steps"]
        return {_short(step["urn"]): step["op"] for step in steps if step["op"] not in ("same", "refresh")}

    def outputs(self) -> dict[str, Any]:
        """The stack's outputs."""
        found: dict[str, Any] = json.loads(self.succeed("stack", "output", "--json"))
        return found

    def states(self) -> dict[str, dict[str, Any]]:
        """The state of each resource by `Type name`."""
        resources = json.loads(self.succeed("stack", "export"))["deployment"]["resources"]
        return {_short(one["urn"]): one for one in resources}


def _short(urn: str) -> str:
    kind, _, name = urn.rpartition("::")
    return f"{kind.rpartition(':')[2]} {name}"


def project(name: str, folder: Path, box: BoxStatus) -> Project:
    """A copy of tests/box/provider/programs/NAME in the folder, ready for `pulumi up` against the box."""
    shutil.copytree(PROGRAMS / name, folder / name)
    home, tools, backend = folder / "home", folder / "tools", folder / "backend"
    backend.mkdir()
    tools.mkdir()
    provider.install(home)
    (tools / "pulumi").symlink_to(pulumi_binary())
    if not (pulumi_binary().parent / "pulumi-language-python").exists():
        language_host.install(tools)
    environment = {
        **boxes.process_environment(box),
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_HOME": str(home),
        "PULUMI_BACKEND_URL": f"file://{backend}",
    }
    made = Project(folder=folder / name, environment=environment)
    made.succeed("stack", "init", "dev")
    return made
