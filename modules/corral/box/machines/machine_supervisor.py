"""The supervisor of machines: it makes the running machines match the cloud's instances, and reports their exits.

After every change it compares the desired machines with the running ones, so that nothing is lost if a call, a machine
or the daemon fails in between.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import StateReason

from corral.box.account import ACCOUNT
from corral.box.daemon.daemon_process import BoxError
from corral.box.ec2 import console as ec2_console
from corral.box.ec2 import instance_state
from corral.box.machines.cloud_init import UserDataError
from corral.box.machines.desired_machines import (
    DesiredMachine,
    desired_machines,
    dns_names,
    existing_resources,
    listeners,
    mount_targets,
    running_instances,
)
from corral.box.machines.imds import InstanceMetadata
from corral.box.machines.imds_data import instance_metadata
from corral.box.machines.machine_disks import MachineDisks
from corral.box.machines.machine_host import MachineHost
from corral.box.machines.running_vpc import RunningVpc, open_vpc
from corral.box.machines.vpc_endpoint import Application
from corral.box.secret import BoxSecret
from corral.box.state.backend import CloudState
from corral.box.vpc.capabilities import HostSupport
from corral.box.vpc.virtual_network import MachineError

LAUNCH_DELAY_S = 2.0  # from RunInstances to a node's boot; slurmctld requires a boot later than its request
_CONCURRENT_STARTS = 4
_SHUT_DOWN = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
_SOCKETS = "corral-"  # prefix of the directories of sockets in the system's temporary directory
# Characters of that directory: a socket's path has 107 at most (unix(7)), of which /corral-XXXXXXXX/vpc-ID/control.sock
# takes 51.
_MAX_TEMPORARY = 56

log = logging.getLogger(__name__)


class MachineSupervisor:
    """All machines of a box. They run between `open` and `close`.

    `host`: what kind of machines they are. `_claimed`: the instances that run or start as machines, with
    their VPCs. `_reboots`: the reboots of each when it was started. `_ended`: machines that the supervisor
    kills or shuts down; `_rebooting`: those among them that start again.
    """

    def __init__(
        self,
        cloud: CloudState,
        app: Application,
        secret: BoxSecret,
        support: HostSupport,
        disks: MachineDisks,
        host: MachineHost,
    ) -> None:
        self._cloud = cloud
        self._app = app
        self._secret = secret
        self._support = support
        self._disks = disks
        self._host = host
        self._sockets_link = disks.directory / "sockets"
        self._vpcs: dict[str, RunningVpc] = {}
        self._claimed: dict[str, str] = {}
        self._reboots: dict[str, int] = {}
        self._starting: set[str] = set()
        self._ended: set[str] = set()
        self._rebooting: set[str] = set()
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(_CONCURRENT_STARTS, thread_name_prefix="machine")
        self._thread = threading.Thread(target=self._run, name="machines", daemon=True)

    def open(self) -> None:
        """Start the machines of all running instances, and follow the cloud's changes."""
        self._disks.create_directories()
        self._link_sockets()
        ec2_console.directory = self._disks.consoles
        instance_state.bootable_images = self._host.bootable_images
        self._cloud.watchers.append(self._changed.set)
        self._changed.set()
        self._thread.start()

    def close(self) -> None:
        """Kill every machine, as a power cut does."""
        self._closed.set()
        self._changed.set()
        self._thread.join()
        self._pool.shutdown(cancel_futures=True)
        for vpc in self._vpcs.values():
            vpc.close()
        self._remove_sockets()

    def machine_directories(self) -> Mapping[str, Path]:
        """The directory of each machine's VPC, by instance id."""
        found: dict[str, Path] = {}
        for one in [one for one in list(self._vpcs.values()) if one.is_running()]:
            with contextlib.suppress(MachineError):  # it is ending
                found |= dict.fromkeys(one.vpc.machines(), one.vpc.directory)
        return found

    def _link_sockets(self) -> None:
        """Create a directory with a short path for sockets; its link survives a kill."""
        self._remove_sockets()
        short = len(tempfile.gettempdir()) <= _MAX_TEMPORARY
        self._sockets_link.symlink_to(tempfile.mkdtemp(prefix=_SOCKETS, dir=None if short else "/tmp"))  # noqa: S108

    def _remove_sockets(self) -> None:
        link = self._sockets_link
        if link.is_symlink():
            if link.readlink().name.startswith(_SOCKETS):
                shutil.rmtree(link.readlink(), ignore_errors=True)
            link.unlink()

    def _run(self) -> None:
        try:
            self._host.prepare()
        except (OSError, BoxError) as error:
            log.error("no machine can start: %s", error)  # each launch reports it
        while self._changed.wait() and not self._closed.is_set():
            self._changed.clear()
            try:
                self._reconcile()
            except Exception:  # the next change retries
                log.exception("the machines could not follow the cloud")

    def _reconcile(self) -> None:
        with self._cloud.lock:
            wanted = {one.instance_id: one for one in desired_machines()}
            exists, ending = existing_resources(), instance_state.ending_instances()
            shutting_down = instance_state.shutting_down_instances()
            names = {vpc_id: dns_names(vpc_id) for vpc_id in exists.vpcs}
            targets = {vpc_id: mount_targets(vpc_id) for vpc_id in exists.vpcs}
            balanced = {vpc_id: listeners(vpc_id) for vpc_id in exists.vpcs}
        for vpc_id, running in list(self._vpcs.items()):
            if not running.is_running() or vpc_id not in exists.vpcs:
                self._close_vpc(vpc_id)
            else:
                running.vpc.set_dns_names(names[vpc_id])
                running.set_listeners(balanced[vpc_id])
                self._host.serve_file_systems(running.vpc, targets[vpc_id])
                self._reconcile_vpc(running, wanted, shutting_down)
        if self._rebooting:  # who is present is asked of each VPC's process
            for name in self._rebooting - self._present():
                self._rebooting.discard(name)
                self._claimed.pop(name, None)  # it restarts with its disk
        self._claimed = {name: vpc_id for name, vpc_id in self._claimed.items() if name in wanted}
        for one in wanted.values():
            if one.instance_id not in self._claimed:
                self._claim(one, names[one.vpc_id])
        present = self._present()
        if ended := ending - present:
            with self._cloud.lock:
                instance_state.mark_ended(ended)
                self._cloud.changed()
        self._disks.delete_orphans(exists, present)

    def _present(self) -> frozenset[str]:
        """The machines that run or start."""
        starting = frozenset(self._starting)  # read first: a machine that starts meanwhile is in the other set
        return starting.union(*(one.vpc.machines() for one in self._vpcs.values() if one.is_running()))

    def _reconcile_vpc(
        self, running: RunningVpc, wanted: Mapping[str, DesiredMachine], shutting_down: frozenset[str]
    ) -> None:
        machines = running.vpc.machines()
        for name in machines:
            if name in shutting_down:
                self._shut_down(running, name)
            elif name not in wanted:
                self._kill(running, name)
            elif name in self._claimed and wanted[name].reboots != self._reboots.get(name):
                self._rebooting.add(name)
                self._shut_down(running, name)
            else:
                running.apply_faults(wanted[name])
        for name in {*machines, *running.volumes} - (machines.keys() & shutting_down):
            volumes = wanted[name].volumes if name in wanted else {}
            running.attach_volumes(name, volumes, self._host.volume)

    def _shut_down(self, running: RunningVpc, name: str) -> None:
        if name in running.frozen:  # it cannot
            self._kill(running, name)
        elif name not in self._ended:
            self._ended.add(name)
            running.forget_faults(name)
            with contextlib.suppress(MachineError):  # it has exited meanwhile
                running.vpc.shut_down(name)

    def _kill(self, running: RunningVpc, name: str) -> None:
        self._ended.add(name)
        running.forget_faults(name)
        with contextlib.suppress(MachineError):  # it has exited meanwhile
            running.vpc.kill(name)

    def _claim(self, one: DesiredMachine, names: Mapping[str, list[str]]) -> None:
        try:
            self._open_vpc(one, names)
        except (MachineError, OSError) as error:
            self._fail(one, error)
            return
        self._claimed[one.instance_id] = one.vpc_id
        self._reboots[one.instance_id] = one.reboots
        threading.Timer(LAUNCH_DELAY_S if one.is_node else 0, self._start_later, (one,)).start()

    def _start_later(self, one: DesiredMachine) -> None:
        if not self._closed.is_set():
            self._pool.submit(self._start, one)

    def _start(self, one: DesiredMachine) -> None:
        self._starting.add(one.instance_id)  # first, so that a concurrent end is not missed
        try:
            if self._closed.is_set() or one.instance_id not in self._claimed:
                return
            self._host.create_disk(one)
            self._ended.discard(one.instance_id)
            self._host.start(self._vpcs[one.vpc_id].vpc, one)
            self._mark_running(one)
        except Exception as error:  # an instance without its machine must not seem to run
            if not self._closed.is_set():
                self._fail(one, error)
        finally:
            self._starting.discard(one.instance_id)
            self._changed.set()  # for concurrent changes

    def _mark_running(self, one: DesiredMachine) -> None:
        with self._cloud.lock:
            instance = ec2_backends[ACCOUNT][one.region].instances_by_id.get(one.instance_id)
            if instance is not None and instance.is_starting:
                instance.mark_running()
                self._cloud.changed()

    def _fail(self, one: DesiredMachine, error: Exception) -> None:
        known = isinstance(error, (MachineError, UserDataError, OSError))
        log.error("instance %s cannot start as a machine: %s", one.instance_id, error, exc_info=not known)
        self._end_instance(one.instance_id, one.region, f"Server.InternalError: {error}")

    def _open_vpc(self, one: DesiredMachine, names: Mapping[str, list[str]]) -> None:
        if one.vpc_id in self._vpcs:
            return
        sockets = self._sockets_link.readlink() / one.vpc_id
        find_metadata = self._metadata_lookup(one.region, one.vpc_id)
        running = open_vpc(sockets, one, self._support, find_metadata, self._app, self._host)
        running.vpc.set_dns_names(names)
        self._vpcs[one.vpc_id] = running
        threading.Thread(target=self._watch_exits, args=(running,), daemon=True).start()

    def _close_vpc(self, vpc_id: str) -> None:
        """Close a VPC that was deleted or whose process ended; its remaining machines restart."""
        running = self._vpcs.pop(vpc_id)
        self._claimed = {name: held for name, held in self._claimed.items() if held != vpc_id}
        running.close()
        shutil.rmtree(running.vpc.directory, ignore_errors=True)
        self._changed.set()

    def _metadata_lookup(self, region: str, vpc_id: str) -> Callable[[str], InstanceMetadata | None]:
        def find(address: str) -> InstanceMetadata | None:
            with self._cloud.lock:
                backend = ec2_backends[ACCOUNT][region]
                for instance in running_instances(backend):
                    if instance.private_ip == address and instance.vpc_id == vpc_id:
                        return instance_metadata(backend, instance, self._secret)
            return None

        return find

    def _watch_exits(self, running: RunningVpc) -> None:
        """Report exits of machines; those that the supervisor did not kill shut down from within."""
        with contextlib.suppress(MachineError, OSError):
            for name in running.vpc.watch_exits():
                if self._closed.is_set():
                    return
                running.forget_faults(name)
                if name not in self._ended:
                    self._end_instance(name, running.region, _SHUT_DOWN)
                self._ended.discard(name)
                self._changed.set()
        # The connection ends before the process: in between, the VPC seems to run and does not answer.
        running.await_end()
        self._changed.set()

    def _end_instance(self, instance_id: str, region: str, reason: str) -> None:
        """Terminate or stop an instance whose machine has exited, as its launch requested."""
        with self._cloud.lock:
            instance = ec2_backends[ACCOUNT][region].instances_by_id.get(instance_id)
            if instance is None or not instance.is_active:
                return
            stays = instance.instance_initiated_shutdown_behavior == "stop" and instance.lifecycle != "spot"
            stops = stays and reason.startswith("Client.")
            (instance.stop if stops else instance.terminate)()
            instance.state_reason = StateReason(reason, reason.partition(":")[0])
            instance.mark_ended()
            self._cloud.changed()
