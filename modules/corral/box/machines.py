"""Machines for the instances of the cloud: what runs there is started here, and what ended here is ended there.

The cloud decides; this follows. After every change it compares the instances that should run with the machines that do,
so nothing is lost when a call, a machine or the daemon dies in between.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from moto.ec2.models import ec2_backends
from moto.ec2.models.instances import StateReason
from werkzeug.serving import BaseWSGIServer

from corral.box import ec2_console, ec2_machines
from corral.box.cloud import Cloud
from corral.box.control import ACCOUNT
from corral.box.first_boot import INIT, UserDataError, lay_down, read_user_data
from corral.box.image_system import lay_image_settings, settle_sshd
from corral.box.inside import Application, serve_inside
from corral.box.instance_metadata import describe
from corral.box.machine_wishes import Existing, Wanted, existing, names_in, running_instances, wanted_machines
from corral.box.metadata import Described, Service
from corral.box.one_user import settle_one_user
from corral.box.process import BoxError
from corral.box.system import THIS_SYSTEM, image_profile
from corral.box.vpc.network import Keeper, MachineError, Vpc, copy_settings, furnish, open_vpc
from corral.box.vpc.probe import Ground, Users
from corral.catalog.images import find_image_profile

LAUNCH_S = 2.0  # from RunInstances to a node's first process; slurmctld wants a boot that is later than its request
_AT_ONCE = 4  # machines that are started side by side
_SHUT_DOWN = "Client.InstanceInitiatedShutdown: Instance initiated shutdown"
_SOCKETS = "corral-"  # how the directories of sockets begin, in the system's place for what passes

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Site:
    """A VPC that runs, and the server of what its machines reach outside.

    `plugged`: volumes by machine. `stopped`, `cut_off`: machines whose processes stand still, or that have no network.
    """

    region: str
    keeper: Keeper
    server: BaseWSGIServer
    plugged: dict[str, set[str]] = field(default_factory=dict)
    stopped: set[str] = field(default_factory=set)
    cut_off: set[str] = field(default_factory=set)

    @property
    def vpc(self) -> Vpc:
        """The VPC itself."""
        return self.keeper.vpc

    def close(self) -> None:
        """Ends its machines and itself, as a power cut does."""
        self.keeper.close()
        self.server.shutdown()
        self.server.server_close()


class Machines:
    """All machines of a box. Nothing runs before `open`, and nothing is left after `close`.

    `system`: the root directory of the system that they are. `_begun`: the instances that are machines or will be
    within seconds, with their VPCs. `_boots`: how often each of them had been rebooted when it was started. `_ended`:
    machines that were ended from here.
    """

    def __init__(
        self, cloud: Cloud, front: Application, ground: Ground, directory: Path, system: Path = THIS_SYSTEM
    ) -> None:
        self._cloud = cloud
        self._front = front
        self._ground = ground
        self._directory = directory
        self._system = system
        self._sites: dict[str, _Site] = {}
        self._begun: dict[str, str] = {}
        self._boots: dict[str, int] = {}
        self._starting: set[str] = set()
        self._ended: set[str] = set()
        self._changed = threading.Event()
        self._closed = threading.Event()
        self._pool = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="machine")
        self._follower = threading.Thread(target=self._follow, name="machines", daemon=True)

    def open(self) -> None:
        """Starts the machines of all running instances, and from now on follows the cloud."""
        for name in ("disks", "volumes", "file-systems", "consoles"):
            (self._directory / name).mkdir(parents=True, exist_ok=True)
        self._link_sockets()
        ec2_console.directory = self._directory / "consoles"
        ec2_machines.follow = True
        self._cloud.watchers.append(self._changed.set)
        self._changed.set()
        self._follower.start()

    def close(self) -> None:
        """Ends every machine, as a power cut does."""
        self._closed.set()
        self._changed.set()
        self._follower.join()
        self._pool.shutdown(cancel_futures=True)
        for site in self._sites.values():
            site.close()
        self._remove_sockets()

    def places(self) -> Mapping[str, Path]:
        """Where the VPC of each machine is reached, by the ids of the instances."""
        sites = list(self._sites.values())
        return {name: site.vpc.directory for site in sites if site.keeper.runs() for name in site.vpc.machines()}

    def _link_sockets(self) -> None:
        """A directory for sockets: its path is short, as a state directory's need not be; its link survives a kill."""
        self._remove_sockets()
        (self._directory / "sockets").symlink_to(tempfile.mkdtemp(prefix=_SOCKETS))

    def _remove_sockets(self) -> None:
        link = self._directory / "sockets"
        if link.is_symlink():
            if link.readlink().name.startswith(_SOCKETS):
                shutil.rmtree(link.readlink(), ignore_errors=True)
            link.unlink()

    def _follow(self) -> None:
        try:
            self._prepare()
        except (OSError, BoxError) as error:
            log.error("no machine can start: %s", error)  # each says so itself when it does not
        while self._changed.wait() and not self._closed.is_set():
            self._changed.clear()
            try:
                self._compare()
            except Exception:  # the next change is another chance
                log.exception("the machines could not follow the cloud")

    def _prepare(self) -> None:
        """What all machines have in common; it takes a moment, for which nobody has to wait."""
        settings = self._directory / "etc"
        shutil.rmtree(settings, ignore_errors=True)
        copy_settings(settings, self._system)
        lay_image_settings(settings, find_image_profile(image_profile(self._system)).default_user)

    def _compare(self) -> None:
        with self._cloud.lock:
            wanted = {one.instance_id: one for one in wanted_machines()}
            exists, leaving = existing(), ec2_machines.leaving()
            names = {vpc_id: names_in(vpc_id) for vpc_id in exists.vpcs}
        for vpc_id, site in list(self._sites.items()):
            if not site.keeper.runs() or vpc_id not in exists.vpcs:
                self._close_site(vpc_id)
            else:
                site.vpc.tell_names(names[vpc_id])
                self._compare_site(site, wanted)
        self._begun = {name: vpc_id for name, vpc_id in self._begun.items() if name in wanted}
        for one in wanted.values():
            if one.instance_id not in self._begun:
                self._begin(one, names[one.vpc_id])
        there = self._there()
        if gone := leaving - there:
            with self._cloud.lock:
                ec2_machines.let_go(gone)
                self._cloud.changed()
        self._sweep(exists, there)

    def _there(self) -> frozenset[str]:
        """The machines of which there are processes, or are about to be: what is not begun by now is not started."""
        starting = frozenset(self._starting)  # first: what has started meanwhile runs
        return starting.union(*(site.vpc.machines() for site in self._sites.values() if site.keeper.runs()))

    def _compare_site(self, site: _Site, wanted: Mapping[str, Wanted]) -> None:
        running = site.vpc.machines()
        for name in running:
            if name not in wanted:
                self._end(site, name)
            elif name in self._begun and wanted[name].boots != self._boots.get(name):
                self._end(site, name)
                del self._begun[name]  # it begins anew, with the disk that it has
            else:
                _trouble(site, wanted[name])
        for name in {*running, *site.plugged}:
            self._plug(site, name, wanted[name].volumes if name in wanted else ())

    def _end(self, site: _Site, name: str) -> None:
        self._ended.add(name)
        site.stopped.discard(name)
        site.cut_off.discard(name)
        with contextlib.suppress(MachineError):  # it has ended meanwhile
            site.vpc.end(name)

    def _plug(self, site: _Site, name: str, volumes: Collection[str]) -> None:
        has = site.plugged.setdefault(name, set())
        for volume in sorted(set(volumes) - has):
            place = self._directory / "volumes" / volume
            place.mkdir(parents=True, exist_ok=True)
            site.vpc.plug(name, volume, place)
            has.add(volume)
        for volume in sorted(has - set(volumes)):
            site.vpc.unplug(name, volume)
            has.discard(volume)
        if not has:
            del site.plugged[name]

    def _begin(self, one: Wanted, names: Mapping[str, list[str]]) -> None:
        try:
            self._open_site(one, names)
        except (MachineError, OSError) as error:
            self._refuse(one, error)
            return
        self._begun[one.instance_id] = one.vpc_id
        self._boots[one.instance_id] = one.boots
        waits = one.is_node or one.boots  # a rebooted machine has to be gone first
        threading.Timer(LAUNCH_S if waits else 0, self._start_later, (one,)).start()

    def _start_later(self, one: Wanted) -> None:
        if not self._closed.is_set():
            self._pool.submit(self._start, one)

    def _start(self, one: Wanted) -> None:
        self._starting.add(one.instance_id)  # first: who ends it either hinders it or sees it
        try:
            if self._closed.is_set() or one.instance_id not in self._begun:
                return
            self._furnish(one)
            self._ended.discard(one.instance_id)
            mounts = {"box/file-systems": self._directory / "file-systems"}
            disk, vpc = self._disk(one.instance_id), self._sites[one.vpc_id].vpc
            vpc.start(one.instance_id, one.host_name, one.address, disk, INIT, mounts, self._system)
            self._has_come(one)
        except Exception as error:  # whatever it is, an instance that is no machine must not seem to run
            if not self._closed.is_set():
                self._refuse(one, error)
        finally:
            self._starting.discard(one.instance_id)
            self._changed.set()  # for what was attached or ended meanwhile

    def _has_come(self, one: Wanted) -> None:
        with self._cloud.lock:
            instance = ec2_backends[ACCOUNT][one.region].instances_by_id.get(one.instance_id)
            if instance is not None and instance.is_coming:
                instance.has_come()
                self._cloud.changed()

    def _refuse(self, one: Wanted, error: Exception) -> None:
        known = isinstance(error, (MachineError, UserDataError, OSError))
        log.error("instance %s does not become a machine: %s", one.instance_id, error, exc_info=not known)
        self._end_instance(one.instance_id, one.region, f"Server.InternalError: {error}")

    def _disk(self, instance_id: str) -> Path:
        return self._directory / "disks" / instance_id

    def _furnish(self, one: Wanted) -> None:
        """The machine's disk, unless it has one; a machine finds the box's AWS as every tool finds an endpoint."""
        disk = self._disk(one.instance_id)
        if disk.exists():
            return
        boot = read_user_data(one.user_data)
        draft = disk.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        furnish(draft, self._directory / "etc")
        lay_down(boot, draft)
        if self._ground.users is Users.ONE:
            settle_one_user(draft)
        else:
            settle_sshd(draft)
        console = self._directory / "consoles" / one.instance_id
        console.touch()
        (draft / "console").unlink()
        (draft / "console").symlink_to(console)  # it is read after the machine is gone
        (draft / "box" / "wait").write_text(one.boot_wait, encoding="utf-8")
        (draft / "box" / "devices").write_text("".join(f"{name}\n" for name in one.devices), encoding="utf-8")
        sick_at_boot = self._directory / "health"  # outputs of tools, as corral.agent.health.readings.BoxProbe has them
        if sick_at_boot.is_dir():
            shutil.copytree(sick_at_boot, draft / "box" / "health")
        config = draft / "root" / ".aws" / "config"
        config.parent.mkdir()
        text = f"[default]\nregion = {one.region}\nendpoint_url = http://{one.network[1]}\n"
        config.write_text(text, encoding="utf-8")
        profile = draft / "etc" / "profile.d" / "box.sh"  # for users, who have homes of their own
        profile.parent.mkdir(exist_ok=True)
        told = f"export AWS_ENDPOINT_URL=http://{one.network[1]} AWS_DEFAULT_REGION={one.region}\n"
        profile.write_text(told, encoding="utf-8")
        draft.rename(disk)

    def _sweep(self, exists: Existing, there: Collection[str]) -> None:
        """Deletes the data of instances, volumes and file systems that were deleted."""
        kinds = {
            "disks": exists.instances.union(there),
            "volumes": exists.volumes,
            "file-systems": exists.file_systems,
            "consoles": exists.listed,
        }
        for kind, kept in kinds.items():
            for place in (self._directory / kind).iterdir():
                if place.stem not in kept:
                    _remove(place, self._ground)

    def _open_site(self, one: Wanted, names: Mapping[str, list[str]]) -> None:
        if one.vpc_id in self._sites:
            return
        sockets = (self._directory / "sockets").readlink() / one.vpc_id
        keeper = open_vpc(sockets, one.network, self._ground)
        keeper.vpc.tell_names(names)
        server = serve_inside(sockets, Service(find=self._finder(one.region, one.vpc_id)), self._front)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = _Site(region=one.region, keeper=keeper, server=server)
        self._sites[one.vpc_id] = site
        threading.Thread(target=self._hear, args=(site,), daemon=True).start()

    def _close_site(self, vpc_id: str) -> None:
        """A VPC that was deleted, or whose keeper died: what should run there is started again."""
        site = self._sites.pop(vpc_id)
        self._begun = {name: held for name, held in self._begun.items() if held != vpc_id}
        site.close()
        shutil.rmtree(site.vpc.directory, ignore_errors=True)
        self._changed.set()

    def _finder(self, region: str, vpc_id: str) -> Callable[[str], Described | None]:
        def find(address: str) -> Described | None:
            with self._cloud.lock:
                backend = ec2_backends[ACCOUNT][region]
                for instance in running_instances(backend):
                    if instance.private_ip == address and instance.vpc_id == vpc_id:
                        return describe(backend, instance)
            return None

        return find

    def _hear(self, site: _Site) -> None:
        """Of machines that end: those that nobody here ended shut down by themselves."""
        with contextlib.suppress(MachineError, OSError):
            for name in site.vpc.ends():
                if self._closed.is_set():
                    return
                site.stopped.discard(name)
                site.cut_off.discard(name)
                if name not in self._ended:
                    self._end_instance(name, site.region, _SHUT_DOWN)
                self._ended.discard(name)
                self._changed.set()
        self._changed.set()  # the keeper has ended, and perhaps nobody wanted that

    def _end_instance(self, instance_id: str, region: str, reason: str) -> None:
        """Terminates or stops an instance that runs no more, as was asked for at its launch."""
        with self._cloud.lock:
            instance = ec2_backends[ACCOUNT][region].instances_by_id.get(instance_id)
            if instance is None or not instance.is_on:
                return
            stays = instance.instance_initiated_shutdown_behavior == "stop" and instance.lifecycle != "spot"
            stops = stays and reason.startswith("Client.")
            (instance.stop if stops else instance.terminate)()
            instance.state_reason = StateReason(reason, reason.partition(":")[0])
            instance.has_gone()
            self._cloud.changed()


def _trouble(site: _Site, one: Wanted) -> None:
    """Lets a machine stand still or lose its network, or ends that, as is wanted."""
    name, vpc = one.instance_id, site.vpc
    with contextlib.suppress(MachineError):  # it has ended meanwhile
        if one.hangs != (name in site.stopped):
            (vpc.freeze if one.hangs else vpc.thaw)(name)
            (site.stopped.add if one.hangs else site.stopped.discard)(name)
        if one.is_cut_off != (name in site.cut_off):
            vpc.link(name, up=not one.is_cut_off)
            (site.cut_off.add if one.is_cut_off else site.cut_off.discard)(name)


def _remove(place: Path, ground: Ground) -> None:
    """As root of the machines, since their users have files that are not this one's."""
    subprocess.run([*ground.as_root, "rm", "-rf", "--", str(place)], check=False, capture_output=True)
