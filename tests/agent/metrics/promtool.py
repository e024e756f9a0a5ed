"""Prometheus's own tool as the reader of what corral writes."""

from __future__ import annotations

import subprocess
from pathlib import Path


def check_metrics(text: str) -> str:
    """What `promtool check metrics` finds wrong with a page of metrics; empty for nothing."""
    return _output(["promtool", "check", "metrics"], text)


def check_config(file: Path) -> str:
    """What `promtool check config` finds wrong with a configuration of Prometheus; empty for nothing."""
    return _output(["promtool", "check", "config", str(file)])


def check_rules(*files: Path) -> str:
    """What `promtool check rules` finds wrong with files of rules; empty for nothing."""
    return _output(["promtool", "check", "rules", *map(str, files)])


def run_cases(file: Path) -> str:
    """What `promtool test rules` finds wrong with a file of cases; empty for nothing."""
    return _output(["promtool", "test", "rules", str(file)])


def _output(command: list[str], text: str = "") -> str:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""
