"""`make vm-life`: live a cluster on virtual machines, from bare images to nothing left, and write docs/vm-life.md.

A head and two nodes boot Debian 13 from nothing but their user data. Each step prints its seconds and what it found;
a step that finds something else ends the run with 1. Needs root, 4 GiB of free memory and a Debian mirror.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from corral.box import client, control
from corral.box.daemon.daemon_process import send_request
from corral.box.switches import Machines
from corral.box.vm.preparation import read_support
from corral.box.vpc.virtual_network import Vpc

CHECKOUT = Path(__file__).resolve().parents[2]
PAGE = CHECKOUT / "docs" / "vm-life.md"
ENVIRONMENT = Path(__file__).with_name("environment")
LIMIT_S = 1800  # a head under emulation takes ten minutes on two busy cores
STEP_S = 2.0


class Failed(Exception):
    """A step found something else than it should; the text says what."""


@dataclass(kw_only=True)
class ClusterRun:
    """The run: its directories, and the seconds and findings of its steps."""

    directory: Path
    steps: list[tuple[str, float, str]] = field(default_factory=list)

    @property
    def box(self) -> Path:
        """The box's state directory."""
        return self.directory / "box"

    @contextmanager
    def step(self, title: str) -> Iterator[list[str]]:
        """Time a step; what it appends is its finding."""
        began, found = monotonic(), list[str]()
        print(f"{title} ...", flush=True)
        yield found
        seconds = monotonic() - began
        self.steps.append((title, seconds, "; ".join(found)))
        print(f"  {seconds:5.0f} s  {'; '.join(found)}", flush=True)

    def corral(self, *words: str) -> str:
        """The output of a corral command that succeeds. Raises Failed."""
        done = self._run(words)
        if done.returncode:
            raise Failed(f"corral {shlex.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout

    def head(self, *command: str, user: str = "admin", expects: int = 0) -> str:
        """The output of a command that a user runs on the head. Raises Failed for another exit code."""
        done = self.on_head(*command, user=user)
        if done.returncode != expects:
            raise Failed(f"{shlex.join(command)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done.stdout.strip()

    def on_head(self, *command: str, user: str = "admin") -> subprocess.CompletedProcess[str]:
        """A command that a user runs on the head."""
        return self.inside(self.head_id(), "runuser", "-u", user, "--", *command)

    def inside(self, instance: str, *command: str) -> subprocess.CompletedProcess[str]:
        """A command that root runs on an instance."""
        return Vpc(directory=control.machines(self.box)[instance]).run(instance, command)

    def head_id(self) -> str:
        """The id of the head's instance."""
        (head,) = self.instances("corral-vm-head")
        return head

    def instances(self, name: str) -> list[str]:
        """The ids of the running instances of this name, sorted."""
        filters = [
            {"Name": "instance-state-name", "Values": ["pending", "running"]},
            {"Name": "tag:Name", "Values": [name]},
        ]
        found = self._ec2().describe_instances(Filters=filters)["Reservations"]
        return sorted(one["InstanceId"] for held in found for one in held["Instances"])

    def wait_until(self, holds: Callable[[], bool], claim: str) -> None:
        """Wait until the condition holds. Raises Failed."""
        deadline = monotonic() + LIMIT_S
        while not holds():
            if monotonic() > deadline:
                raise Failed(f"not within {LIMIT_S} s: {claim}")
            sleep(STEP_S)

    def job_ends(self, job: str) -> Mapping[str, str]:
        """The fields of a job, once it has ended."""
        over = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY")

        def fields() -> Mapping[str, str]:
            line = self.on_head("scontrol", "--oneliner", "show", "job", job).stdout
            return {name: value for name, _, value in (word.partition("=") for word in line.split())}

        self.wait_until(lambda: fields().get("JobState") in over, f"job {job} ends")
        return fields()

    def inventory(self) -> Mapping[str, Any]:
        """Everything that the box holds, by kind."""
        return send_request(client.running_address(self.box), "GET", "/_box/inventory")

    def _run(self, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "CORRAL_BOX_DIR": str(self.box)}
        command = [sys.executable, "-m", "corral.cli", *words]
        return subprocess.run(command, cwd=self.directory, env=environment, capture_output=True, text=True, check=False)

    def _ec2(self) -> Any:
        import boto3

        names = client.environment(self.box)
        return boto3.client(
            "ec2",
            endpoint_url=names["AWS_ENDPOINT_URL"],
            region_name=names["AWS_REGION"],
            aws_access_key_id=names["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=names["AWS_SECRET_ACCESS_KEY"],
        )


def main() -> int:
    """Return 0 if each step found what it should, 1 if one did not."""
    with tempfile.TemporaryDirectory(prefix="corral-vm-life-") as directory:
        run = ClusterRun(directory=Path(directory))
        shutil.copytree(CHECKOUT / "stacks", run.directory / "stacks", ignore=shutil.ignore_patterns("__pycache__"))
        for project in ("base", "cluster"):
            file = f"Pulumi.{project}.yaml"
            shutil.copyfile(ENVIRONMENT / file, run.directory / "stacks" / project / "Pulumi.vm.yaml")
        try:
            client.start(run.box, machines=Machines.VM, report=print)
            take_steps(run)
        except Failed as error:
            print(f"\nstopped: {error}", file=sys.stderr)
            return 1
        finally:
            page = "\n".join(report(run))
            client.stop(run.box)
    print(f"\n{page}")
    PAGE.write_text(page + "\n", encoding="utf-8")
    return 0


def take_steps(run: ClusterRun) -> None:
    """All steps, in order."""
    before = run.inventory()
    with run.step("`corral up`"):
        run.corral("up", "vm", "--box", "--yes")
    with run.step("the head boots from its user data: packages, EBS, NFS, MariaDB, slurmctld") as found:
        run.wait_until(lambda: run.on_head("scontrol", "ping").returncode == 0, "slurmctld answers on the head")
        found.append(run.head("scontrol", "--version"))
    with run.step("srun over two nodes, which boot for it") as found:
        lines = run.head("srun", "--nodes=2", "hostname").split()
        _expect(sorted(lines) == ["cpu-1", "cpu-2"], f"two nodes answer: {lines}")
        found.append(" and ".join(sorted(lines)))
    with run.step("users cannot reach the metadata service") as found:
        code = run.on_head("srun", "curl", "--silent", "--max-time", "5", "http://169.254.169.254/").returncode
        _expect(code != 0, "curl in a job fails")
        found.append(f"curl in a job ends with {code}")
    with run.step("/home is shared") as found:
        run.head("srun", "--nodelist=cpu-1", "sh", "-c", "hostname > ~/shared")
        text = run.head("srun", "--nodelist=cpu-2", "cat", "/home/admin/shared")
        _expect(text == "cpu-1", f"cpu-2 reads what cpu-1 has written: {text!r}")
        found.append("cpu-2 and the head read what cpu-1 has written")
    with run.step("a job's memory is limited, and only that job is killed") as found:
        hog = "import time; held = bytearray(900 << 20); time.sleep(5)"
        quiet = run.head("sbatch", "--parsable", "--mem=300M", "-c1", "-wcpu-1", "--wrap", "sleep 30")
        greedy = run.head("sbatch", "--parsable", "--mem=300M", "-c1", "-wcpu-1", "--wrap", f"python3 -c '{hog}'")
        ends = run.job_ends(greedy)["JobState"], run.job_ends(quiet)["JobState"]
        _expect(ends == ("OUT_OF_MEMORY", "COMPLETED"), f"the hog and its neighbour end as {ends}")
        found.append("OUT_OF_MEMORY; its neighbour on the node: COMPLETED")
    with run.step("tasks of two jobs on a node never share a core") as found:
        show = "grep Cpus_allowed_list /proc/self/status; sleep 10"
        jobs = [
            run.head(
                "sbatch", "--parsable", "-n1", "-wcpu-1", "--mem=200M", "-o", f"/home/admin/cores-{n}", "--wrap", show
            )
            for n in range(2)
        ]
        for job in jobs:
            run.job_ends(job)
        cores = [run.head("cat", f"/home/admin/cores-{n}").split()[-1] for n in range(2)]
        found.append(f"cores {cores[0]} and {cores[1]}")
    with run.step("a node powers off from within, and its job is requeued") as found:
        job = run.head("sbatch", "--parsable", "--requeue", "-N1", "--wrap", "sleep 20")
        run.wait_until(lambda: run.on_head("squeue", "-h", "-j", job, "-tR", "-o%N").stdout.strip() != "", "it runs")
        node = run.head("squeue", "-h", "-j", job, "-o%N")
        run.inside(run.instances(f"corral-vm-{node}")[0], "systemctl", "poweroff")
        ended = run.job_ends(job)
        _expect((ended["JobState"], ended["Restarts"]) == ("COMPLETED", "1"), f"the job ends as {ended['JobState']}")
        found.append(f"{node} ended; the job completed after one restart")
    with run.step("the head reboots") as found:
        run.inside(run.head_id(), "systemctl", "reboot")
        sleep(30)
        run.wait_until(lambda: run.on_head("scontrol", "ping").returncode == 0, "slurmctld answers on the head")
        found.append("slurmctld answers, with " + run.head("sacct", "-nX", "-o", "jobid").splitlines()[0].strip())
    with run.step("`corral down --delete-data`") as found:
        run.corral("down", "vm", "--box", "--yes", "--delete-data")
        run.wait_until(lambda: not control.machines(run.box), "all machines have ended")
        left = {kind: ids for kind, ids in run.inventory().items() if ids != before.get(kind)}
        _expect(not left, f"nothing is left: {left}")
        found.append("the inventory is that before")


def report(run: ClusterRun) -> Iterator[str]:
    """The lines of the page."""
    support = read_support(run.box / "virtual-support.json")
    packages = dict(line.split() for line in support.image.packages.read_text(encoding="utf-8").splitlines())
    kernel = next(name for name in packages if re.fullmatch(r"linux-image-\d.*", name))
    yield "# A life on virtual machines"
    yield ""
    yield f"Written by `make vm-life` on {datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, accelerator"
    yield f"{support.accelerator}, image with {kernel}, systemd {packages['systemd']}, cloud-init"
    yield f"{packages['cloud-init']}. Slurm and MariaDB come from Debian 13 at boot."
    yield ""
    yield "| step | seconds | found |"
    yield "| --- | ---: | --- |"
    for title, seconds, finding in run.steps:
        yield f"| {title} | {seconds:.0f} | {finding} |"


def _expect(holds: bool, claim: str) -> None:
    if not holds:
        raise Failed(f"expected that {claim}")


if __name__ == "__main__":
    sys.exit(main())
