"""The head of an environment as it is now: what `connect` and `ssh-config` lead to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from corral.cli.account import box_state, mean_account
from corral.cli.failure import ExitCode, Failure
from corral.cli.on_head import Head, head_at
from corral.cli.outlines import Outline, read_outline
from corral.forecast.catalogue import catalogue_prices
from corral.inventory.account import open_session
from corral.inventory.status import read_status
from corral.inventory.things import Thing


def find_head(env: str, project: Path | None, *, in_box: bool, box_directory: Path | None) -> tuple[Outline, Thing]:
    """The environment and the instance that is its head. Raises Failure where it has none."""
    seen = read_outline(project, env, in_box=in_box, box_directory=box_directory)
    mean_account(in_box=in_box, box_directory=box_directory)
    prices = catalogue_prices(seen.region, seen.catalogue)
    found = read_status(open_session(seen.region, quick=True), seen.name, seen.base, prices)
    if found.head is None:
        raise Failure(f"{env} has no head now - bring it up: corral up {env}{seen.account_option}", ExitCode.FAILED)
    return seen, found.head


def reach(head: Thing | None, session: Any, box_directory: Path | None) -> Head | None:
    """How this head is asked, in the account that this process means; None where there is none."""
    if head is None:
        return None
    return head_at(head.id, session, os.environ.get("AWS_ENDPOINT_URL"), box_state(box_directory))
