"""Alertmanager's own tool as the reader of what corral writes."""

from __future__ import annotations

import subprocess
from pathlib import Path


def check_alertmanager(file: Path) -> str:
    """What `amtool check-config` finds wrong with a configuration of Alertmanager; empty for nothing."""
    done = subprocess.run(["amtool", "check-config", str(file)], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def receivers(file: Path, *labels: str) -> str:
    """The receivers to which `amtool` routes an alert with these labels, with commas."""
    command = ["amtool", "config", "routes", "test", f"--config.file={file}", *labels]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
