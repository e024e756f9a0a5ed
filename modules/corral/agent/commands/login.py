"""`corral-agent login-watch`, the daemon of a login node, and the boot of one."""

import argparse
import os
import sys
import time
from functools import partial
from ipaddress import IPv4Address

from corral.agent import imds_client
from corral.agent.background_tasks import BackgroundTask, run_task, start_tasks
from corral.agent.boot.login import boot_login
from corral.agent.boot.sequence import fetch
from corral.agent.config.followed_config import POLL_EVERY_S, FollowedConfig
from corral.agent.config.self_update import update_agent
from corral.agent.config.signed_manifest import seen_version
from corral.agent.config_store import ManifestStore
from corral.agent.directory import restart_directory
from corral.agent.events import EVENTS, EventLog
from corral.agent.host_key import sync_host_key
from corral.agent.log_shipper import SHIP_EVERY_S, LogShipper
from corral.agent.node_identity import IdentityError
from corral.agent.runtime_context import (
    add_facts,
    add_records,
    boot_facts,
    client,
    client_without_retries,
    host_in,
    plan_in,
    records_in,
    store_of,
)
from corral.agent.s3 import BucketStore
from corral.agent.users import directory_sessions, logins
from corral.model.enums import Role
from corral.model.manifest import MANIFEST
from corral.model.tags import LOGIN_TAG, login_name


def add_arguments(parser: argparse.ArgumentParser, _: str) -> None:
    """Add the options of the command."""
    add_facts(parser)
    add_records(parser)
    parser.set_defaults(act=_watch)


def boot(chosen: argparse.Namespace) -> None:
    """Boot this machine as a login node of its cluster."""
    name = _name()
    plan, deployed = fetch(store_of(chosen, seen_version()), Role.LOGIN, None, host_in=host_in)
    address = IPv4Address(imds_client.read("local-ipv4") or "")
    secrets = client("secretsmanager", deployed.region)
    boot_login(plan, deployed, name, address, host_in(deployed.region), secrets)


def _watch(chosen: argparse.Namespace) -> None:
    _, deployed = records_in(chosen.records)
    host, journal = host_in(deployed.region), EventLog(EVENTS)
    secrets = client("secretsmanager", deployed.region)
    bucket = BucketStore(boot_facts(chosen.facts), deployed.account)

    def update(store: ManifestStore) -> bool:
        return update_agent(store, boot_facts(chosen.facts), store.manifest())

    follow = FollowedConfig(
        tag=partial(bucket.tag, MANIFEST),
        store=lambda: store_of(chosen, seen_version()),
        update=update,
        sync_directory=partial(restart_directory, host=host, secrets=secrets),
        sync_host_key=partial(sync_host_key, secrets=secrets),
        restart=lambda: os.execv(sys.executable, sys.orig_argv),
        host=host,
        journal=journal,
    )
    task = logins.LoginsTask(read=partial(host.journal, logins.PROGRAMS, logins.FIELDS), journal=journal)
    sessions = directory_sessions.DirectorySessionsTask(plan=partial(plan_in, chosen.records), journal=journal)
    shipper = LogShipper(
        client=client_without_retries("logs", deployed.region), group=deployed.log_group, stream=_name()
    )
    start_tasks(
        (
            BackgroundTask(name="logins", every_s=logins.POLL_EVERY_S, act=task),
            BackgroundTask(name="sessions", every_s=directory_sessions.POLL_EVERY_S, act=sessions),
            BackgroundTask(name="events", every_s=SHIP_EVERY_S, act=shipper),
        )
    )
    configuration = BackgroundTask(name="configuration", every_s=POLL_EVERY_S, act=follow.poll)
    while True:
        run_task(configuration)
        time.sleep(configuration.every_s)


def _name() -> str:
    """The name of this login node. Raises IdentityError."""
    if name := login_name({LOGIN_TAG: imds_client.instance_tag(LOGIN_TAG) or ""}):
        return name
    raise IdentityError(f"this machine was not launched as a login node: no tag {LOGIN_TAG} with such a name")
