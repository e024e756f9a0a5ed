"""`make vm-life`: run a cluster on virtual machines, from bare images to nothing left, and write docs/vm-life.md.

A head and two nodes boot Debian 13 from nothing but their user data. Each step prints its seconds and what it found;
one that finds something else is a failure, and the later ones are taken all the same, because a run takes an hour.
Needs root, 4 GiB of free memory and a Debian mirror. With ARGS='--keep DIRECTORY' the box stays there, and another run
with it takes the steps that are missing. With ARGS='--only WORD' only those are taken whose title has the word, and
those without which no other can be; their rows on the page are replaced, and the cluster is not deleted.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic

from tools.vm_life.boot_times import record
from tools.vm_life.cluster import CHECKOUT, ENVIRONMENT, Failed, VirtualCluster, expect, new_cluster
from tools.vm_life.page import RunResult, boot_picture, page, with_steps
from tools.vm_life.progress import MachineResult, Progress, StepResult
from tools.vm_life.recordings import LOGINS_FILE, record_outputs
from tools.vm_life.steps import STEPS, Step, down

from corral.box import client, control
from corral.box.switches import Machines
from corral.box.vm.preparation import read_support

PAGE = CHECKOUT / "docs" / "vm-life.md"
RECORDED = CHECKOUT / "tests" / "agent" / "recorded_vm"
_DOWN = "`corral down --delete-data`"
_MIB = 2**20


def main() -> int:
    """Return 0 if each step found what it should, 1 if one did not."""
    arguments = argparse.ArgumentParser(prog="make vm-life")
    arguments.add_argument(
        "--keep",
        metavar="DIRECTORY",
        type=Path,
        help="keep the box in this directory, and continue there",
    )
    arguments.add_argument(
        "--only",
        metavar="WORD",
        action="append",
        help="take the steps whose title has this word, and those that they need; may be repeated",
    )
    chosen = arguments.parse_args()
    steps = chosen_steps(STEPS, chosen.only or ())
    with _directory(chosen.keep) as directory:
        is_new = not (directory / "stacks").exists()
        people = (ENVIRONMENT / "people.yaml").read_text(encoding="utf-8")
        cluster = new_cluster(directory, people) if is_new else VirtualCluster(directory=directory)
        try:
            client.start(cluster.box, machines=Machines.VM, report=print)
            if not is_new and cluster.instances("head"):
                cluster.await_slurmctld()  # a box that starts again boots its machines from their disks
            write = _write_page(run(cluster)) if steps == STEPS else _write_rows(run_some(cluster, steps))
        except Failed as error:
            print(f"\nstopped: {error}", file=sys.stderr)
            return 1
        finally:
            client.stop(cluster.box)
    print(f"\nwritten: {write}")
    return 0


def chosen_steps(steps: Sequence[Step], words: Sequence[str]) -> Sequence[Step]:
    """The steps whose title has one of the words, and those that they need; all if there is no word."""
    return tuple(step for step in steps if not words or step.is_needed or any(word in step.title for word in words))


def _write_page(result: RunResult) -> str:
    picture = PAGE.with_suffix(".svg")
    picture.write_text(boot_picture([machine.boot for machine in result.found.machines]), encoding="utf-8")
    PAGE.write_text("\n".join(page(result, picture.name)) + "\n", encoding="utf-8")
    return f"{PAGE.relative_to(CHECKOUT)}, {picture.relative_to(CHECKOUT)}"


def _write_rows(taken: Sequence[StepResult]) -> str:
    order = [*(step.title for step in STEPS), _DOWN]
    PAGE.write_text(with_steps(PAGE.read_text(encoding="utf-8"), taken, order), encoding="utf-8")
    return f"{len(taken)} rows of {PAGE.relative_to(CHECKOUT)}"


def run_some(cluster: VirtualCluster, steps: Sequence[Step]) -> Sequence[StepResult]:
    """Take these steps but those that an earlier run in this directory took; their results. Raises Failed at the end.

    The page keeps the rows of those that others need, which are of a whole run.
    """
    progress = Progress(file=cluster.directory / "results.json")
    failures = [failure for step in steps if (failure := _failure_of(step, cluster, progress))]
    if failures:
        raise Failed(f"{len(failures)} of {len(steps)} steps failed:\n" + "\n".join(failures))
    titles = {step.title for step in steps if not step.is_needed}
    return [result for result in progress.found.steps if result.title in titles]


def run(cluster: VirtualCluster) -> RunResult:
    """Take all steps, in order, but those that an earlier run in this directory took. Raises Failed at the end."""
    first = cluster.directory / "inventory.json"
    if not first.exists():
        first.write_text(json.dumps(cluster.inventory()), encoding="utf-8")
    before = json.loads(first.read_text(encoding="utf-8"))
    progress = Progress(file=cluster.directory / "results.json")
    support = read_support(cluster.box / "virtual-support.json")
    failures = [failure for step in STEPS if (failure := _failure_of(step, cluster, progress))]
    slurm = cluster.head("scontrol", "--version")
    _record_outputs(cluster, support.image.disk.parent.name)
    if failures:
        raise Failed(f"{len(failures)} of {len(STEPS)} steps failed:\n" + "\n".join(failures))

    def delete(cluster: VirtualCluster) -> str:
        down(cluster)
        cluster.wait_until(lambda: not control.machines(cluster.box), "all machines have ended")
        left = left_over(before, cluster.inventory())
        expect(not left, f"nothing is left: {left}")
        return "the inventory is that before `corral up`, but for keys that KMS deletes later and the region's boundary"

    progress.add(take(Step(title=_DOWN, act=delete), cluster), ())
    return RunResult(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        cores=os.cpu_count() or 1,
        accelerator=support.accelerator,
        packages=dict(line.split() for line in support.image.packages.read_text(encoding="utf-8").splitlines()),
        slurm=slurm,
        found=progress.found,
    )


def left_over(before: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """What is there and was not before, by kind, but for what stays by intention.

    KMS deletes a key after a week, and `corral bootstrap` makes the boundary of all deployers of a region.
    """
    new = {kind: [one for one in ids if one not in before.get(kind, ())] for kind, ids in after.items()}
    stays = ("(scheduled for deletion)", "/guards-boundary-us-east-1")
    return {kind: left for kind, ids in new.items() if (left := [one for one in ids if not one.endswith(stays)])}


def _failure_of(step: Step, cluster: VirtualCluster, progress: Progress) -> str:
    """Take the step unless an earlier run took it; what failed, or nothing. Raises Failed if later ones need it."""
    if progress.has(step.title):
        return ""
    try:
        progress.add(take(step, cluster), [_machine(cluster, name) for name in step.booted])
    except Failed as error:
        if step.is_needed:
            raise
        print(f"  failed: {error}", flush=True)
        return f"{step.title}: {error}"
    return ""


def _record_outputs(cluster: VirtualCluster, image: str) -> None:
    """Write what commands print on the head and on a node that runs a job, as test data."""
    job = cluster.submit("sleep 600", "-n1")
    name = cluster.runs_on(job)
    head, node = (cluster.instance(one) for one in ("head", name))
    files = record_outputs(
        RECORDED,
        partial(cluster.root_output, head),
        partial(cluster.root_output, node),
        name,
        image,
        cluster.directory / LOGINS_FILE,
    )
    cluster.head("scancel", job)
    print(f"written: {len(files)} files in {RECORDED.relative_to(CHECKOUT)}", flush=True)


def take(step: Step, cluster: VirtualCluster) -> StepResult:
    """Take one step, and print its seconds and what it found. Raises Failed."""
    began = monotonic()
    print(f"{step.title} ...", flush=True)
    found = step.act(cluster)
    seconds = monotonic() - began
    result = StepResult(title=step.title, seconds=seconds, found=found, date=f"{datetime.now(UTC):%Y-%m-%d}")
    print(f"  {result.seconds:5.0f} s  {found}", flush=True)
    return result


def _machine(cluster: VirtualCluster, name: str) -> MachineResult:
    """How a machine has booted, and what it uses of memory."""
    instance = cluster.instance(name)
    boot = record(name, lambda *command: cluster.root_output(instance, *command))
    guest = int(cluster.root_output(instance, "sh", "-c", "free -m | awk '/^Mem/ {print $3}'"))
    return MachineResult(boot=boot, guest_mib=guest, process_mib=_resident(instance))


def _resident(instance: str) -> int:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            pages = int((process / "statm").read_text().split()[1])
        except OSError:
            continue
        if words[1:] and b"-name" in words and words[words.index(b"-name") + 1] == instance.encode():
            return pages * os.sysconf("SC_PAGE_SIZE") // _MIB
    return 0


@contextmanager
def _directory(kept: Path | None) -> Iterator[Path]:
    if kept:
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
        return
    with tempfile.TemporaryDirectory(prefix="corral-vm-") as temporary:
        yield Path(temporary)


if __name__ == "__main__":
    sys.exit(main())
