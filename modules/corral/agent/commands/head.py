"""`corral-agent autoscaler` and `corral-agent backup`, and the boot of a head."""

import argparse
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from corral.agent.accounting.backup import BackupError, BackupStore, BucketBackupStore, back_up
from corral.agent.accounting.database import Accounting, Database
from corral.agent.accounting.history_upload import BucketHistoryStore, upload_history
from corral.agent.accounting.slurm_accounts import SlurmAccounts
from corral.agent.alert_topic import topic_of
from corral.agent.alertmanager import AlertSecretsTask, read_secret
from corral.agent.autoscaler.liveness import heartbeat_of
from corral.agent.autoscaler.reconciler import Autoscaler
from corral.agent.autoscaler_daemon import BACKOFF_S, INTERVAL_S, STATE_DIR, Services, run_autoscaler
from corral.agent.boot.head import boot_head
from corral.agent.boot.sequence import fetch
from corral.agent.cluster.boto_parsing import parse_used_fields
from corral.agent.cluster.ec2_client import Ec2
from corral.agent.commands.slurm_hooks import add_queue_options
from corral.agent.config.apply import LOCK, await_slurmctld
from corral.agent.config.poller import ConfigPoller
from corral.agent.config.signed_manifest import remember_version, seen_version
from corral.agent.config.topology_sync import TopologySync
from corral.agent.config.watcher import RecordsWatcher
from corral.agent.dns import Zone
from corral.agent.errors import AgentError
from corral.agent.events import EVENTS, Event, EventLog
from corral.agent.host.base import Host, run
from corral.agent.log_shipper import SHIPPED, LogShipper
from corral.agent.metrics.event_counts import EventFollower
from corral.agent.metrics.exporter import HeadExporter
from corral.agent.metrics.file_systems import FileSystemWatch, mounts_of, size_and_free
from corral.agent.metrics.slurm_jobs import jobs_now
from corral.agent.metrics.spending import SPENDING, SpendingMeter
from corral.agent.process_lock import is_held
from corral.agent.remote_write import SignedPost
from corral.agent.runtime_context import (
    FACTS,
    RECORDS,
    add_records,
    boot_facts,
    client,
    client_without_retries,
    host_in,
    newest_end,
    own_credentials,
    plan_in,
    records_in,
    store_of,
)
from corral.agent.s3 import BucketStore, bucket_client
from corral.agent.shutdown.cluster_shutdown import ClusterShutdown
from corral.agent.shutdown.drain import is_draining
from corral.agent.shutdown.lifetime import MIN_UPTIME_S
from corral.agent.topology.ec2_topology import Ec2Topology
from corral.agent.users.directory_people import DirectoryPeopleTask
from corral.agent.users.logins import FIELDS, PROGRAMS, LoginsTask
from corral.agent.users.removed_jobs import RemovedJobsTask
from corral.agent.users.sync import lock_removed
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.enums import Role
from corral.model.head_report import ACCOUNTING_NOT_SAVED, HISTORY_NOT_SAVED
from corral.model.manifest import MANIFEST

_AGENT = "/opt/corral/bin/corral-agent"


def add_arguments(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of a command."""
    add_records(parser)
    parser.set_defaults(act=_autoscaler if command == "autoscaler" else backup)
    add_state_dir(parser)
    if command == "backup":
        return
    add_queue_options(parser)
    interval = "seconds between cycles without a wake-up (default: %(default)s)"
    parser.add_argument("--interval", type=float, default=INTERVAL_S, help=interval)
    backoff = "first backoff of an offer without capacity, in seconds (default: %(default)s)"
    parser.add_argument("--backoff", type=float, default=BACKOFF_S, help=backoff)
    uptime = "seconds that a new head of an expired cluster stays up (default: %(default)s)"
    parser.add_argument("--min-uptime", type=float, default=MIN_UPTIME_S, help=uptime)


def add_state_dir(parser: argparse.ArgumentParser) -> None:
    """Add the option for the directory of the autoscaler's state and the events."""
    text = "directory of the autoscaler's state and the events (default: %(default)s)"
    parser.add_argument("--state-dir", type=Path, default=STATE_DIR, help=text)


def boot(chosen: argparse.Namespace) -> None:
    """Boot this machine as the head of its cluster."""
    plan, deployed = fetch(store_of(chosen, seen_version()), Role.HEAD, None, host_in=host_in)

    def check_manifest() -> None:
        remember_version(store_of(chosen, seen_version()).manifest().version)

    secrets, accounting = client("secretsmanager", deployed.region), Accounting(run, _backup_store(plan, deployed))
    boot_head(plan, deployed, host_in(deployed.region), secrets, accounting.start, check_manifest, _sync_accounts)


def _sync_accounts(plan: ClusterPlan) -> None:
    """Bring slurmdbd's accounts to the plan once slurmctld runs. A head without them is better than none."""
    if not plan.accounts.accounts:
        return
    journal = EventLog(EVENTS)
    try:
        await_slurmctld(run)
        SlurmAccounts(run, journal).sync(plan)
    except AgentError as error:
        journal.log_event(Event.ACCOUNTS_REFUSED, str(error))


def _autoscaler(chosen: argparse.Namespace) -> None:
    records = RecordsWatcher(directory=chosen.records)  # before the first read, so that no change is missed
    plan, deployed = records_in(chosen.records)
    ec2_client = parse_used_fields(client_without_retries("ec2", deployed.region))
    ec2 = Ec2(ec2_client, plan.name, seen_version)
    booted = chosen.records == RECORDS and FACTS.exists()  # otherwise the records are not those of a booted head
    shipping = _shipping(deployed, chosen.state_dir)
    services = Services(
        zone=Zone(client_without_retries("route53", deployed.region), deployed.hosted_zone, plan.dns_zone),
        topology=Ec2Topology(ec2_client),
        configuration=_config_poller(deployed.account) if booted else None,
        shutdown=_shutdown(ec2, deployed, chosen, shipping),
        shipping=shipping,
        logins=_logins(host_in(deployed.region), chosen.state_dir) if booted else None,
        removed_jobs=_removed_jobs(chosen) if booted else None,
        directory=_directory(chosen, deployed) if booted else None,
        tree=TopologySync(plan=plan_in, host=host_in(deployed.region), run=run) if booted else None,
        exporter=partial(_exporter, chosen) if booted else None,
        alert_topic=topic_of(client_without_retries("sns", deployed.region), deployed.topic),
        alert_secrets=_alert_secrets(deployed.region, chosen.records) if booted else None,
        post_series=SignedPost(region=deployed.region, credentials=own_credentials()) if booted else None,
    )
    run_autoscaler(
        plan,
        deployed,
        ec2,
        chosen.spool,
        chosen.wake_socket,
        chosen.interval,
        chosen.state_dir,
        services,
        chosen.backoff,
        records,
    )


def _removed_jobs(chosen: argparse.Namespace) -> RemovedJobsTask:
    lock = partial(lock_removed, run=run, journal=EventLog(chosen.state_dir / EVENTS.name))
    return RemovedJobsTask(access=lambda: plan_in(chosen.records).access, run=run, lock=lock)


def backup(chosen: argparse.Namespace) -> None:
    """Write everything that outlives the cluster to the bucket. Raises BackupError after trying all of it."""
    if problems := save_to_bucket(chosen):
        raise BackupError("; ".join(problems))


def save_to_bucket(chosen: argparse.Namespace) -> tuple[str, ...]:
    """Write the history and the job records to the bucket. Return a sentence for each part that failed."""
    tried = (
        _tried(HISTORY_NOT_SAVED, _upload_history, chosen),
        _tried(ACCOUNTING_NOT_SAVED, _back_up_accounting, chosen),
    )
    return tuple(problem for problem in tried if problem)


def _tried(what: str, act: Callable[[argparse.Namespace], None], chosen: argparse.Namespace) -> str:
    try:
        act(chosen)
    except (AgentError, OSError) as error:
        return f"{what}: {error}"
    return ""


def _upload_history(chosen: argparse.Namespace) -> None:
    plan, deployed = records_in(chosen.records)
    ec2 = Ec2(client("ec2", deployed.region), plan.name)
    store = BucketHistoryStore(bucket_client(deployed.region, deployed.account), deployed.bucket)
    upload_history(store, plan.name, chosen.state_dir, partial(ec2.launched_at, str(plan.head.address)))


def _back_up_accounting(chosen: argparse.Namespace) -> None:
    back_up(_backup_store(*records_in(chosen.records)), run, Database(run).is_complete)


def _shutdown(ec2: Ec2, deployed: Deployed, chosen: argparse.Namespace, shipping: LogShipper) -> ClusterShutdown:
    topic: Any = client_without_retries("sns", deployed.region)

    def publish(subject: str, text: str) -> object:
        return topic.publish(TopicArn=deployed.topic, Subject=subject, Message=text)

    return ClusterShutdown(
        ec2=ec2,
        host=host_in(deployed.region),
        journal=EventLog(chosen.state_dir / EVENTS.name),
        publish=publish,
        save=partial(run, (_AGENT, "backup")),
        ship=shipping,
        newest=lambda: newest_end(boot_facts(), deployed.account, seen_version()),
        min_uptime_s=chosen.min_uptime,
    )


def _directory(chosen: argparse.Namespace, deployed: Deployed) -> DirectoryPeopleTask:
    journal = EventLog(chosen.state_dir / EVENTS.name)
    return DirectoryPeopleTask(
        plan=lambda: plan_in(chosen.records),
        run=run,
        make_home=host_in(deployed.region).make_home,
        add_accounts=SlurmAccounts(run, journal).sync,
        journal=journal,
    )


def _logins(host: Host, state: Path) -> LoginsTask:
    return LoginsTask(read=partial(host.journal, PROGRAMS, FIELDS), journal=EventLog(state / EVENTS.name))


def _alert_secrets(region: str, records: Path) -> AlertSecretsTask:
    return AlertSecretsTask(
        plan=partial(plan_in, records),
        read=partial(read_secret, client("secretsmanager", region)),
        clock=time.monotonic,
    )


def _exporter(chosen: argparse.Namespace, autoscaler: Autoscaler) -> HeadExporter:
    return HeadExporter(
        autoscaler=autoscaler,
        jobs=jobs_now,
        events=EventFollower(file=chosen.state_dir / EVENTS.name),
        file_systems=FileSystemWatch(
            mounts=lambda: mounts_of(autoscaler.plan), clock=time.monotonic, size_of=size_and_free
        ),
        meter=SpendingMeter(file=chosen.state_dir / SPENDING.name, clock=time.time),
        heartbeat=heartbeat_of(chosen.wake_socket),
        is_applied_or_drained=lambda: is_held(LOCK) or is_draining(),
    )


def _shipping(deployed: Deployed, state: Path) -> LogShipper:
    return LogShipper(
        client=client_without_retries("logs", deployed.region),
        group=deployed.log_group,
        events=state / EVENTS.name,
        shipped=state / SHIPPED.name,
    )


def _config_poller(account: str) -> ConfigPoller:
    tag = partial(BucketStore(boot_facts(), account).tag, MANIFEST)
    return ConfigPoller(tag=tag, apply=partial(run, (_AGENT, "apply")))


def _backup_store(plan: ClusterPlan, deployed: Deployed) -> BackupStore:
    return BucketBackupStore(bucket_client(deployed.region, deployed.account), deployed.bucket, plan.name)
