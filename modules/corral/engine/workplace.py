"""Where an up or a down works: the engine, the projects, the backend's locks and logs, and who shows progress."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from errno import ENOSPC
from pathlib import Path
from typing import Any

from corral.engine.account import Account
from corral.engine.binary import find_pulumi
from corral.engine.disk import require_space, room
from corral.engine.environment import (
    engine_environment,
    require_credentials,
    require_same_secrets,
    require_secrets,
)
from corral.engine.errors import EngineError
from corral.engine.finishing import finish
from corral.engine.locks import held, state_directory
from corral.engine.lookups import candidates
from corral.engine.printers import Printer
from corral.engine.process import Engine, Files
from corral.engine.projects import box_image, region_of
from corral.engine.recovery import is_unfinished, recover, with_creations
from corral.engine.stack import Stack

BASE, CLUSTER = "corral-base", "corral-cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Workplace:
    """Everything that all stacks of a command share. `wait`: for other corrals at work on a stack.

    `account_option`: what command lines that are told to somebody end with, as `Stack` has it.
    """

    engine: Engine
    stacks: Path
    state: Path
    printer: Printer
    wait: bool = False
    in_box: bool = False
    account_option: str = ""

    @property
    def image_profile(self) -> str | None:
        """What all machines boot in the box, whatever the spec says; None outside of it."""
        return box_image(self.engine.environment) if self.in_box else None

    @contextmanager
    def stack(self, project: str, name: str) -> Iterator[Stack]:
        """The stack, locked against other corrals for the block and as long as its engine runs."""
        directory = self.state / f"{project}.{name}"
        title = f"{project.removeprefix('corral-')} {name}"
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            require_space(directory)
            lock = held(directory / "lock", title, wait=self.wait, say=self.printer.say)
            with lock as handle:
                yield Stack(
                    engine=self.engine,
                    project=project,
                    name=name,
                    directory=self.stacks / project.removeprefix("corral-"),
                    files=Files(events=directory / "events.jsonl", log=directory / "engine.log"),
                    printer=self.printer,
                    locks=(handle,),
                    account_option=self.account_option,
                )
        except OSError as error:
            place = error.filename or directory
            if error.errno == ENOSPC:
                raise EngineError(room(next(one for one in directory.parents if one.is_dir()))) from None
            hints = ("it is where corral notes who works on a stack, and what the engine says",)
            raise EngineError(f"{title}: {place}: {error.strerror or error}", hints) from None

    def without_lock(self, stack: Stack, project: str, name: str) -> Stack:
        """Another stack, only to be looked at."""
        return replace(stack, project=project, name=name, directory=self.stacks / project.removeprefix("corral-"))


def open_workplace(
    stacks: Path,
    printer: Printer,
    *,
    environ: Mapping[str, str] = os.environ,
    box: Mapping[str, str] | None = None,
    wait: bool = False,
    account_option: str = "",
) -> Workplace:
    """The workplace for these projects: in the box where its variables are given, else in the account of `environ`.

    Raises EngineError where no engine, no state backend or no credentials are to be had.
    """
    binary = find_pulumi(environ)
    environment = engine_environment(environ, binary, stacks, box)
    if box is None:
        require_credentials(environment)
    state = state_directory(environment["PULUMI_BACKEND_URL"], environment)
    engine = Engine(binary=binary, environment=environment)
    return Workplace(
        engine=engine,
        stacks=stacks,
        state=state,
        printer=printer,
        wait=wait,
        in_box=box is not None,
        account_option=account_option,
    )


def made_whole(stack: Stack) -> dict[str, Any] | None:
    """The stack's state, after an engine that was killed on it has been tidied up after; None if there is no stack."""
    state = stack.state()
    require_same_secrets(state, stack.directory / f"Pulumi.{stack.name}.yaml")
    if state is None:
        return None
    lost = stack.unanswered()
    if not lost and not is_unfinished(state):
        return state
    stack.require_free()
    account = account_of(stack)
    recovered = recover(
        with_creations(state, lost), lambda resource: candidates(resource, account.client, account.region_name)
    )
    if stack.state() != state:
        raise EngineError(f"{stack.title}: another Pulumi is at work on this stack", ("wait until it has ended",))
    for resource, ids in recovered.entered:
        finish(resource, ids, account.client)
    stack.write_state(recovered.state)
    if lost:
        stack.forget_unanswered()
    stack.printer.say(
        f"{stack.title}: an earlier command was killed or cut off at work: {recovered.unfinished} operations were under"
        f" way, {recovered.found} things that they may have made are looked at"
    )
    return stack.state()


def account_of(stack: Stack) -> Account:
    """The account and region that the stack is in."""
    region = region_of(stack.directory / f"Pulumi.{stack.name}.yaml")
    environment = stack.engine.environment
    return Account(environment, region or environment.get("AWS_REGION") or "us-east-1")


def ensure_secrets(stack: Stack) -> None:
    """Raises EngineError unless the secrets of the stack can be encrypted."""
    require_secrets(stack.engine.environment, stack.directory / f"Pulumi.{stack.name}.yaml")
