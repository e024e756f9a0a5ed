"""The autoscaler's process, one per head: its lock, wake socket and background tasks. `corral-agent autoscaler`."""

import contextlib
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from corral.agent import slurm
from corral.agent.accounting.backup import back_up_if_due
from corral.agent.accounting.history_upload import began
from corral.agent.alert_topic import AlertTopic
from corral.agent.alertmanager import POLL_EVERY_S as ALERT_SECRETS_EVERY_S
from corral.agent.alertmanager import AlertSecretsTask
from corral.agent.autoscaler.control_loop import ControlLoop
from corral.agent.autoscaler.liveness import heartbeat_of, lock_of
from corral.agent.autoscaler.machine_tasks import NodeSwitches, ZoneCleanup
from corral.agent.autoscaler.reconciler import Autoscaler, ClusterSnapshot
from corral.agent.autoscaler.request_queue import SPOOL, WAKE_SOCKET
from corral.agent.background_tasks import BackgroundTask, start_tasks
from corral.agent.cluster import partition_state
from corral.agent.cluster.ec2_client import Ec2
from corral.agent.cluster.launch_errors import BACKOFF_POLICIES, LaunchErrorKind, backoff_policies
from corral.agent.cluster.state import STATE_FILE, load_state, save_state
from corral.agent.config.poller import POLL_EVERY_S as CONFIGURATION_EVERY_S
from corral.agent.config.poller import ConfigPoller
from corral.agent.config.topology_sync import MIN_INTERVAL_S as TREE_MIN_INTERVAL_S
from corral.agent.config.topology_sync import POLL_EVERY_S as TREE_EVERY_S
from corral.agent.config.topology_sync import TopologySync
from corral.agent.config.watcher import RecordsWatcher
from corral.agent.dns import Zone
from corral.agent.events import EVENTS, Event, EventLog
from corral.agent.log_shipper import SHIP_EVERY_S, LogShipper
from corral.agent.metrics.endpoint import serve_metrics
from corral.agent.metrics.exporter import HeadExporter
from corral.agent.metrics.file_systems import EVERY_S as FILE_SYSTEMS_EVERY_S
from corral.agent.metrics.node_targets import NodeTargets
from corral.agent.process_lock import exclusive
from corral.agent.remote_write import RemoteWriter
from corral.agent.shutdown.cluster_shutdown import POLL_EVERY_S as ENDING_EVERY_S
from corral.agent.shutdown.cluster_shutdown import ClusterShutdown
from corral.agent.topology.ec2_topology import Ec2Topology
from corral.agent.topology.rank_order import update_switches
from corral.agent.users.directory_people import POLL_EVERY_S as DIRECTORY_EVERY_S
from corral.agent.users.directory_people import DirectoryPeopleTask
from corral.agent.users.logins import POLL_EVERY_S as LOGINS_EVERY_S
from corral.agent.users.logins import LoginsTask
from corral.agent.users.removed_jobs import POLL_EVERY_S as REMOVED_JOBS_EVERY_S
from corral.agent.users.removed_jobs import RemovedJobsTask
from corral.model.cluster import ClusterPlan
from corral.model.deployed import Deployed
from corral.model.enums import Market

INTERVAL_S = 30.0  # how long a request may wait if its wake-up is lost
BACKOFF_S = BACKOFF_POLICIES[LaunchErrorKind.CAPACITY].first_s
STATE_DIR = SPOOL.parent
_BLOCKS_EVERY_S = 120.0  # the times of a capacity block may change, and are known ten minutes ahead
_BACKUP_EVERY_S = 600.0  # a backup is due once a day
_SERVE_AGAIN_S = 30.0  # after an error, such as a port that another process holds

log = logging.getLogger("corral.agent")


class StopSignal(BaseException):
    """SIGTERM. Not an Exception: botocore would take it for a network error and retry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The services that background tasks use. None: the task does not run. `exporter`: makes that of an autoscaler.

    `alert_topic`: where the exporter sends Alertmanager's messages; `post_series`: how it sends Prometheus's series.
    """

    zone: Zone
    topology: Ec2Topology
    configuration: ConfigPoller | None = None
    shutdown: ClusterShutdown | None = None
    tree: TopologySync | None = None
    shipping: LogShipper | None = None
    removed_jobs: RemovedJobsTask | None = None
    directory: DirectoryPeopleTask | None = None
    logins: LoginsTask | None = None
    exporter: Callable[[Autoscaler], HeadExporter] | None = None
    alert_topic: AlertTopic | None = None
    alert_secrets: AlertSecretsTask | None = None
    post_series: Callable[[str, bytes], tuple[int, str]] | None = None


def run_autoscaler(
    plan: ClusterPlan,
    deployed: Deployed,
    ec2: Ec2,
    spool: Path = SPOOL,
    wake_socket: Path = WAKE_SOCKET,
    interval_s: float = INTERVAL_S,
    state_dir: Path = STATE_DIR,
    services: Services | None = None,
    backoff_s: float = BACKOFF_S,
    records: RecordsWatcher | None = None,
) -> None:
    """Run the autoscaler until SIGTERM. Returns at once if another one runs."""
    wake_socket.parent.mkdir(parents=True, exist_ok=True)  # /run is empty after a reboot
    with exclusive(lock_of(wake_socket)) as first:
        if not first:
            log.info("autoscaler: another one is already running")
            return
        signal.signal(signal.SIGTERM, _stop)
        state_file, journal = state_dir / STATE_FILE.name, EventLog(state_dir / EVENTS.name)
        journal.log_event(Event.AUTOSCALER_STARTED, f"the autoscaler of {plan.name} has started")
        began(state_dir, time.time())  # recorded now, because events are rotated away
        autoscaler = Autoscaler(
            plan,
            deployed,
            ec2,
            slurm,
            partial(save_state, file=state_file),
            time.time,
            journal,
            known=load_state(state_file),
            dns_names=services.zone if services else None,
            policies=backoff_policies(backoff_s),
            stopped_queues=partition_state.stopped,
        )
        start_tasks(tasks_of(autoscaler, ec2, services, interval_s) if services else ())
        loop = ControlLoop(
            autoscaler=autoscaler,
            journal=journal,
            spool=spool,
            interval_s=interval_s,
            heartbeat=heartbeat_of(wake_socket),
            records=records,
        )
        with contextlib.suppress(StopSignal), _listening(wake_socket, spool) as receiver:
            loop.run(receiver)


def tasks_of(autoscaler: Autoscaler, ec2: Ec2, services: Services, interval_s: float) -> tuple[BackgroundTask, ...]:
    """The background tasks for these services."""

    def read_blocks() -> None:
        blocks = _blocks_of(autoscaler.plan)  # a later `corral up` may add some
        found = ec2.blocks(sorted(set(blocks.values()))) if blocks else {}
        held = {offer: found[block] for offer, block in blocks.items() if block in found}
        autoscaler.block_begins = {offer: one.begins for offer, one in held.items()}
        autoscaler.block_ends = {offer: one.ends for offer, one in held.items()}

    def snapshot() -> ClusterSnapshot | None:
        return autoscaler.snapshot

    write = partial(update_switches, switches=services.topology.switches)
    configuration, shutdown = services.configuration, services.shutdown
    exporter = services.exporter(autoscaler) if services.exporter else None
    tasks = (
        configuration
        and BackgroundTask(
            name="configuration poll", every_s=CONFIGURATION_EVERY_S, act=configuration.poll, first_s=INTERVAL_S
        ),
        shutdown
        and BackgroundTask(
            name="cluster shutdown",
            every_s=ENDING_EVERY_S,
            act=partial(shutdown.check, autoscaler),
            first_s=ENDING_EVERY_S,
        ),
        BackgroundTask(
            name="node names", every_s=INTERVAL_S, act=ZoneCleanup(snapshot=snapshot, prune=services.zone.prune)
        ),
        BackgroundTask(name="node switches", every_s=INTERVAL_S, act=NodeSwitches(snapshot=snapshot, write=write)),
        # Late, so that the first tree contains more than a few machines.
        services.tree
        and BackgroundTask(name="topology.conf", every_s=TREE_EVERY_S, act=services.tree, first_s=TREE_MIN_INTERVAL_S),
        services.removed_jobs
        and BackgroundTask(name="jobs of removed people", every_s=REMOVED_JOBS_EVERY_S, act=services.removed_jobs),
        services.directory
        and BackgroundTask(name="people of the directory", every_s=DIRECTORY_EVERY_S, act=services.directory),
        services.logins and BackgroundTask(name="logins", every_s=LOGINS_EVERY_S, act=services.logins),
        exporter
        and BackgroundTask(
            name="metrics",
            every_s=_SERVE_AGAIN_S,
            act=partial(serve_metrics, exporter.text, services.alert_topic, _writer_of(autoscaler, services)),
        ),
        exporter and BackgroundTask(name="node targets", every_s=INTERVAL_S, act=_targets_of(autoscaler)),
        services.alert_secrets
        and BackgroundTask(name="secrets of alerts", every_s=ALERT_SECRETS_EVERY_S, act=services.alert_secrets),
        exporter and BackgroundTask(name="file systems", every_s=FILE_SYSTEMS_EVERY_S, act=exporter.file_systems),
        services.shipping and BackgroundTask(name="event shipping", every_s=SHIP_EVERY_S, act=services.shipping),
        BackgroundTask(name="capacity block times", every_s=min(_BLOCKS_EVERY_S, 4 * interval_s), act=read_blocks),
        BackgroundTask(name="accounting backup", every_s=_BACKUP_EVERY_S, act=back_up_if_due, first_s=_BACKUP_EVERY_S),
    )
    return tuple(task for task in tasks if task)


def _writer_of(autoscaler: Autoscaler, services: Services) -> RemoteWriter | None:
    post = services.post_series
    return RemoteWriter(target=lambda: autoscaler.plan.monitoring.remote_write, post=post) if post else None


def _targets_of(autoscaler: Autoscaler) -> NodeTargets:
    return NodeTargets(nodes=lambda: autoscaler.nodes, is_needed=lambda: autoscaler.plan.monitoring.prometheus)


def _blocks_of(plan: ClusterPlan) -> Mapping[str, str]:
    """The capacity block of each offer that has one."""
    return {
        offer.key: offer.reservation
        for queue in plan.queues
        for offer in queue.offers
        if offer.market is Market.CAPACITY_BLOCK and offer.reservation
    }


def _stop(*_: object) -> None:
    raise StopSignal


@contextlib.contextmanager
def _listening(wake_socket: Path, spool: Path) -> Iterator[socket.socket]:
    """A socket for wake-ups, owned by the user who writes requests."""
    wake_socket.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(wake_socket))
        owner = spool.stat()
        os.chown(wake_socket, owner.st_uid, owner.st_gid)
        yield receiver
