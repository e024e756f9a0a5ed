"""The session of a command with the engine: CLI, projects, state backend, locks, logs, display; and stack recovery."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

from corral.engine.backend.backend_space import free_space_text, require_space
from corral.engine.backend.stack_locks import hold_lock, state_directory
from corral.engine.engine_errors import EngineError
from corral.engine.progress.progress_display import ProgressDisplay
from corral.engine.pulumi.binary import find_pulumi
from corral.engine.pulumi.engine_account import Account
from corral.engine.pulumi.environment import (
    engine_environment,
    require_credentials,
    require_same_secrets,
    require_secrets,
)
from corral.engine.pulumi.projects import box_image, region_of
from corral.engine.pulumi.pulumi_cli import PulumiCli, UpdateFiles
from corral.engine.pulumi.stack import Stack
from corral.engine.recovery.resource_lookup import candidates, finish_creation
from corral.engine.recovery.state_recovery import is_unfinished, recover, with_creations

BASE, CLUSTER = "corral-base", "corral-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSession:
    """What all stacks of a command share. `wait`: wait for other corral processes on the same stack.

    `owner`: in the box, the variables of the account's owner. `account_option`: the end of suggested command lines, see
    `Stack`.
    """

    engine: PulumiCli
    stacks: Path
    state: Path
    display: ProgressDisplay
    wait: bool = False
    in_box: bool = False
    owner: Mapping[str, str] = field(default_factory=dict)
    account_option: str = ""

    @property
    def image_profile(self) -> str | None:
        """The image profile that all machines of the box boot; None outside the box."""
        return box_image(self.engine.environment) if self.in_box else None

    @contextmanager
    def stack(self, project: str, name: str) -> Iterator[Stack]:
        """The stack, locked against other corral processes for the block and as long as its engine runs."""
        directory = self.state / f"{project}.{name}"
        title = f"{project.removeprefix('corral-')} {name}"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_space(directory)
            lock = hold_lock(directory / "lock", title, wait=self.wait, write=self.display.write)
            with lock as handle:
                yield Stack(
                    engine=self.engine,
                    project=project,
                    name=name,
                    directory=self.stacks / project.removeprefix("corral-"),
                    files=UpdateFiles(events=directory / "events.jsonl", log=directory / "engine.log"),
                    display=self.display,
                    locks=(handle,),
                    account_option=self.account_option,
                )
        except OSError as error:
            path = error.filename or directory
            if error.errno == ENOSPC:
                raise EngineError(free_space_text(next(one for one in directory.parents if one.is_dir()))) from None
            hints = ("corral keeps the locks and logs of stacks there",)
            raise EngineError(f"{title}: {path}: {error.strerror or error}", hints) from None

    def without_lock(self, stack: Stack, project: str, name: str) -> Stack:
        """Another stack, for reading only."""
        return replace(stack, project=project, name=name, directory=self.stacks / project.removeprefix("corral-"))


def open_engine_session(
    stacks: Path,
    display: ProgressDisplay,
    *,
    environ: Mapping[str, str] = os.environ,
    box: Mapping[str, str] | None = None,
    owner: Mapping[str, str] | None = None,
    wait: bool = False,
    account_option: str = "",
) -> EngineSession:
    """A session for these projects: in the box if its variables are given, otherwise in the account of `environ`.

    Raises EngineError if Pulumi, the state backend or the credentials are missing.
    """
    binary = find_pulumi(environ)
    environment = engine_environment(environ, binary, stacks, box)
    if box is None:
        require_credentials(environment)
    state = state_directory(environment["PULUMI_BACKEND_URL"], environment)
    engine = PulumiCli(binary=binary, environment=environment)
    return EngineSession(
        engine=engine,
        stacks=stacks,
        state=state,
        display=display,
        wait=wait,
        in_box=box is not None,
        owner=owner or {},
        account_option=account_option,
    )


def recover_stack(stack: Stack) -> dict[str, Any] | None:
    """The stack's state, recovered if an engine was killed on it; None if the stack does not exist."""
    state = stack.state()
    require_same_secrets(state, stack.directory / f"Pulumi.{stack.name}.yaml")
    if state is None:
        return None
    lost = stack.lost_creations()
    if not lost and not is_unfinished(state):
        return state
    stack.require_unlocked()
    account = stack_account(stack)
    recovered = recover(
        with_creations(state, lost), lambda resource: candidates(resource, account.client, account.region_name)
    )
    if stack.state() != state:
        raise EngineError(f"{stack.title}: another Pulumi works on this stack", ("wait until it has finished",))
    for resource, ids in recovered.inserted:
        finish_creation(resource, ids, account.client)
    stack.write_state(recovered.state)
    if lost:
        stack.clear_lost_creations()
    stack.display.write(
        f"{stack.title}: an earlier command was interrupted during {recovered.unfinished} operations;"
        f" checking {recovered.found} resources that they may have created"
    )
    return stack.state()


def stack_account(stack: Stack, caller: Mapping[str, str] | None = None) -> Account:
    """The account and region of the stack. `caller`: the variables of another caller than the engine."""
    region = region_of(stack.directory / f"Pulumi.{stack.name}.yaml")
    environment = caller or stack.engine.environment
    return Account(environment, region or environment.get("AWS_REGION") or "us-east-1")


def ensure_secrets(stack: Stack) -> None:
    """Raises EngineError unless a secrets provider is configured for the stack."""
    require_secrets(stack.engine.environment, stack.directory / f"Pulumi.{stack.name}.yaml")
