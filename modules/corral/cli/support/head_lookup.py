"""Finds the current head and login nodes of an environment, for `connect` and `ssh-config`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from corral.cli.support.env_summary import EnvironmentSummary, read_summary
from corral.cli.support.exit_codes import ExitCode, Failure, print_error
from corral.cli.support.remote import HeadConnection, head_at
from corral.cli.support.target_account import resolve_box_dir, use_account
from corral.forecast.cost.catalog_prices import catalog_prices
from corral.inventory.resources import AwsResource
from corral.inventory.scan import open_session
from corral.inventory.status import read_status
from corral.model.tags import LOGIN_TAG

HEAD = "head"


def find_gates(
    env: str, project: Path | None, to: str | None, *, in_box: bool, box_directory: Path | None
) -> tuple[EnvironmentSummary, Mapping[str, AwsResource]]:
    """The environment, and the instances where people work, by name: its login nodes, or its head without any.

    `to`: the only one of this name, which may be the head. Raises Failure if there is none.
    """
    summary, gates, _ = find_ways(env, project, to, in_box=in_box, box_directory=box_directory)
    return summary, gates


def find_ways(
    env: str, project: Path | None, to: str | None, *, in_box: bool, box_directory: Path | None
) -> tuple[EnvironmentSummary, Mapping[str, AwsResource], AwsResource | None]:
    """The same, with the load balancer that leads to login nodes; None without one, or if `to` names a machine."""
    summary = read_summary(project, env, in_box=in_box, box_directory=box_directory)
    use_account(in_box=in_box, box_directory=box_directory)
    prices = catalog_prices(summary.region, summary.catalog)
    found = read_status(open_session(summary.region, quick=True), summary.name, summary.base, prices)
    for warning in found.warnings:
        print_error(warning)
    head = {HEAD: found.head} if found.head else {}
    login = {one.tags[LOGIN_TAG]: one for one in found.login}
    if to is None and (login or head):
        return summary, login or head, found.load_balancer if login else None
    if to in (every := {**login, **head}):
        return summary, {to: every[to]}, None
    if to in (None, HEAD):
        raise Failure(f"{env} has no head now - bring it up: corral up {env}{summary.account_option}", ExitCode.FAILED)
    raise Failure(f"{env} has no {to!r} now; it has {', '.join(every) or 'nothing'}", ExitCode.FAILED)


def open_head(head: AwsResource | None, session: Any, box_directory: Path | None) -> HeadConnection | None:
    """The connection to this head, in the account of this process; None without a head."""
    return connection_to(head, session, box_directory) if head else None


def connection_to(head: AwsResource, session: Any, box_directory: Path | None) -> HeadConnection:
    """The connection to this head, in the account of this process."""
    return head_at(head.id, session, os.environ.get("AWS_ENDPOINT_URL"), resolve_box_dir(box_directory))
