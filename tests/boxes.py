"""Boxes for tests: a daemon in a directory of its own, stopped when the test is done with it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config

from corral.box import control
from corral.box.control import BoxStatus

PATIENT = Config(retries={"mode": "standard", "total_max_attempts": 8})  # outlasts the rates that EC2 allows


@contextmanager
def running_box(directory: Path, *, machines: bool = False, system: Path | None = None) -> Iterator[BoxStatus]:
    """A running box in the directory, whose instances are records or machines; it is stopped, whatever happens.

    `system`: the root directory of what machines are; else this system.
    """
    status = control.start(directory, machines=machines, system=system)
    try:
        yield status
    finally:
        control.stop(directory)


@cache
def _session() -> Any:
    return boto3.session.Session(aws_access_key_id=control.ACCESS_KEY, aws_secret_access_key="corral-box")


@cache
def _client(url: str, service: str, region: str) -> Any:
    return _session().client(service, endpoint_url=url, region_name=region, config=PATIENT)


def client(status: BoxStatus, service: str, region: str = "us-east-1") -> Any:
    """A boto3 client of the box that takes nothing from the environment."""
    return _client(str(status.url), service, region)


def process_environment(status: BoxStatus) -> Mapping[str, str]:
    """The environment of a child process that works with the box."""
    return {**os.environ, **control.environment(status.dir)}
