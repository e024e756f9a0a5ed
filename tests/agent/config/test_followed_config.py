"""A login node follows the configuration: what it installs, what it reloads, and what it does not believe."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from agent.stores import VERSION, uploaded
from corral.agent.config.followed_config import FollowedConfig
from corral.agent.config.signed_manifest import ManifestError, seen_version
from corral.agent.config_store import ManifestStore
from corral.agent.errors import AgentError
from corral.agent.events import EventLog
from corral.agent.host.base import Daemon
from corral.agent.users.accounts import AccountAction, AccountChange
from corral.agent.users.sync import AccountsError
from corral.model.cluster import ClusterPlan
from corral.model.users import HOMES, AccessPlan, UserPlan
from corral.render import cluster_files, deployed_json
from render.plans import DIRECTORY, LOGIN, deployed, dev

PEOPLE = AccessPlan(users=(UserPlan(name="ada", uid=2000), UserPlan(name="bob", uid=2001)))
PLAN = replace(dev(), login=LOGIN, access=PEOPLE)
SEEN = Path("var/lib/corral/manifest-version")


@dataclass(kw_only=True)
class Node:
    """A login node's host, bucket and agent, which record their calls. `tag`: of the manifest."""

    root: Path
    tag: str = "1"
    is_newer: bool = False
    is_rekeyed: bool = False
    steps: list[str] = field(default_factory=list)
    error: Exception | None = None
    directory_error: Exception | None = None
    locked: bool = False

    def followed(self) -> FollowedConfig:
        return FollowedConfig(
            tag=lambda: self.tag,
            store=self.store,
            update=lambda _: self.is_newer,
            restart=lambda: self.steps.append("start again"),
            sync_directory=self.sync_directory,
            sync_host_key=lambda _: self.is_rekeyed,
            host=self,  # type: ignore[arg-type]
            journal=EventLog(self.root / "events.jsonl"),
            root=self.root,
        )

    def sync_directory(self, _: ClusterPlan) -> None:
        self.steps.append("directory")
        if self.directory_error:
            raise self.directory_error

    def upload(self, plan: ClusterPlan) -> None:
        """What `corral up` writes."""
        texts: Mapping[str, str] = {**cluster_files(plan), "deployed.json": deployed_json(deployed())}
        for name, text in texts.items():
            file = self.root / "bucket" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        self.tag += "1"

    def store(self) -> ManifestStore:
        if self.error:
            raise self.error
        return uploaded(self.root / "bucket")

    def sync_users(self, access: AccessPlan, admin_homes: str = HOMES) -> tuple[AccountChange, ...]:
        self.steps.append(" ".join(("accounts", *(user.name for user in access.users))))
        gone = {"ada", "bob"} - {user.name for user in access.users}
        if self.locked:
            command, reason = ("usermod", "ada"), "cannot lock /etc/passwd"
            return (AccountChange(action=AccountAction.REFUSE, name="ada", commands=(command,), reason=reason),)
        return tuple(AccountChange(action=AccountAction.LOCK, name=name, uid=2000) for name in gone)

    def limit_people(self) -> None:
        self.steps.append("limit people")

    def stop(self, daemon: Daemon) -> None:
        self.steps.append(f"stop {daemon.unit}")

    def reload_sshd(self) -> None:
        self.steps.append("reload sshd")

    def restart(self, daemon: Daemon, mark: Any = None) -> None:
        self.steps.append(f"restart {daemon.unit}")


@pytest.fixture
def node(tmp_path: Path) -> Node:
    found = Node(root=tmp_path)
    found.upload(PLAN)
    return found


def test_a_login_node_installs_what_slurms_commands_and_sshd_read(node: Node) -> None:
    node.followed().poll()
    files = {str(file.relative_to(node.root)) for file in (node.root / "etc").rglob("*") if file.is_file()}
    assert {name for name in files if name.startswith(("etc/slurm/", "etc/ssh/corral"))} == {
        *(f"etc/slurm/{name}.conf" for name in ("slurm", "host", "gres", "cgroup", "plugstack", "users")),
        *(f"etc/slurm/{name}.conf" for name in ("own", "first-job", "topology-plugin")),
        *("etc/ssh/corral_authorized_keys", "etc/ssh/corral_users/ada", "etc/ssh/corral_users/bob"),
    }
    assert node.steps == ["reload sshd", "accounts ada bob", "limit people"]


def test_the_accounting_of_the_head_is_not_even_read(node: Node) -> None:
    store = node.store()
    node.store = lambda: store  # type: ignore[method-assign]
    node.followed().poll()
    assert [name for name in store._store.reads if name.startswith(("accounting/", "hooks/", "nccl/"))] == []  # type: ignore[attr-defined]


def test_without_a_new_manifest_nothing_is_read(node: Node) -> None:
    follow = node.followed()
    follow.poll()
    node.steps.clear()
    follow.poll()
    assert node.steps == []


def test_who_is_removed_loses_account_and_key_at_the_next_look(node: Node) -> None:
    follow = node.followed()
    follow.poll()
    node.steps.clear()
    node.upload(replace(PLAN, access=AccessPlan(users=PEOPLE.users[1:])))
    follow.poll()
    assert node.steps == ["accounts bob", "limit people"]
    assert [file.name for file in (node.root / "etc/ssh/corral_users").iterdir()] == ["bob"]
    assert '"event": "user-removed"' in (node.root / "events.jsonl").read_text()


def test_an_account_that_could_not_be_locked_is_at_the_next_look(node: Node) -> None:
    follow = node.followed()
    follow.poll()
    node.upload(replace(PLAN, access=AccessPlan(users=PEOPLE.users[1:])))
    node.locked = True
    with pytest.raises(AccountsError, match="ada: cannot lock /etc/passwd"):
        follow.poll()
    node.steps.clear()
    node.locked = False
    follow.poll()
    assert node.steps == ["accounts bob", "limit people"]


def test_a_directory_begins_and_ends_at_the_next_look(node: Node) -> None:
    follow = node.followed()
    follow.poll()
    node.steps.clear()
    node.upload(replace(PLAN, access=AccessPlan(directory=DIRECTORY)))
    follow.poll()
    assert node.steps == ["reload sshd", "accounts", "directory", "limit people"]
    assert (node.root / "etc/sssd/sssd.conf").stat().st_mode & 0o777 == 0o600
    (node.root / "etc/sssd/conf.d").mkdir()
    (node.root / "etc/sssd/conf.d/60-corral.conf").write_text("secret")
    node.steps.clear()
    node.upload(PLAN)
    follow.poll()
    assert "stop sssd" in node.steps
    assert [file.name for file in (node.root / "etc/sssd").rglob("*")] == ["conf.d"]


def test_what_follows_a_file_and_fails_is_done_at_the_next_look(node: Node) -> None:
    node.upload(replace(PLAN, access=AccessPlan(directory=DIRECTORY)))
    node.directory_error = AgentError("no password")
    follow = node.followed()
    with pytest.raises(AgentError):
        follow.poll()
    node.directory_error = None
    node.steps.clear()
    follow.poll()
    follow.poll()
    assert node.steps == ["reload sshd", "accounts", "directory", "limit people"]


def test_a_new_host_key_is_shown_after_people_are_as_declared(node: Node) -> None:
    node.is_rekeyed = True
    node.followed().poll()
    assert node.steps[1:] == ["accounts ada bob", "limit people", "reload sshd"]


def test_the_version_of_what_was_installed_is_remembered(node: Node) -> None:
    node.followed().poll()
    assert seen_version(node.root / SEEN) == VERSION


def test_what_is_not_believed_changes_nothing_and_is_looked_at_again(node: Node) -> None:
    follow = node.followed()
    node.error = ManifestError("an older one")
    with pytest.raises(ManifestError):
        follow.poll()
    assert node.steps == []
    node.error = None
    follow.poll()
    assert node.steps[-1] == "limit people"


def test_a_newer_agent_starts_again_before_it_reads_newer_files(node: Node) -> None:
    node.is_newer = True
    node.followed().poll()
    assert node.steps == ["restart corral-credentials", "start again"]
    assert not (node.root / "etc").exists()
