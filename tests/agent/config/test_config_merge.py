"""Nodes and queues in use keep their lines in slurm.conf under any newer configuration."""

from dataclasses import replace

from corral.agent.config.merge import ConfTexts, InUse, merge_conf
from corral.model.cluster import ClusterPlan
from corral.render import cluster_files
from render.plans import cpu, dev, train

P4D = (
    "Sockets=2 CoresPerSocket=24 ThreadsPerCore=2 RealMemory=1120665 Gres=gpu:a100:8 Feature=p4d.24xlarge,efa Weight=1"
)
NOTHING = InUse(nodes=frozenset(), queues=frozenset())


def texts(plan: ClusterPlan) -> ConfTexts:
    files = cluster_files(plan)
    return ConfTexts(slurm=files["slurm/slurm.conf"], gres=files["slurm/gres.conf"])


def used(*nodes: str, queues: str = "") -> InUse:
    return InUse(nodes=frozenset(nodes), queues=frozenset(queues.split()))


def lines(text: str, kind: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(kind)]


OLD = texts(dev(train(4), cpu()))


def test_without_use_the_new_configuration_is_unchanged() -> None:
    new = texts(dev(train(2)))
    assert merge_conf(OLD, new, NOTHING).texts == new


def test_a_removed_node_in_use_keeps_its_line() -> None:
    found = merge_conf(OLD, texts(dev(train(2), cpu())), used("train-3", "train-1"))
    assert (lines(found.texts.slurm, "NodeName=train"), found.nodes) == (
        [f"NodeName=train-[1-2] {P4D} State=CLOUD", f"NodeName=train-3 {P4D} State=CLOUD"],
        ("train-3",),
    )


def test_its_devices_stay_too() -> None:
    found = merge_conf(OLD, texts(dev(train(2), cpu())), used("train-3"))
    assert lines(found.texts.gres, "NodeName=") == [
        "NodeName=train-[1-2] Name=gpu Type=a100 File=/dev/nvidia[0-7]",
        "NodeName=train-3 Name=gpu Type=a100 File=/dev/nvidia[0-7]",
    ]


def test_a_node_in_use_keeps_its_cores_and_the_others_change() -> None:
    smaller = replace(train(4), node=replace(train().node, cores_per_socket=8))
    found = merge_conf(OLD, texts(dev(smaller, cpu())), used("train-3"))
    cores = {line.split()[0]: line.split()[2] for line in lines(found.texts.slurm, "NodeName=train")}
    assert cores == {"NodeName=train-[1-2,4]": "CoresPerSocket=8", "NodeName=train-3": "CoresPerSocket=24"}


def test_a_removed_queue_accepts_no_jobs_while_its_nodes_are_in_use() -> None:
    found = merge_conf(OLD, texts(dev(cpu())), used("train-3"))
    assert (lines(found.texts.slurm, "PartitionName=train"), found.queues) == (
        [
            "PartitionName=train Nodes=train-3 MaxTime=INFINITE SuspendTime=600"
            " DefMemPerCPU=11673 DefCpuPerGPU=12 State=DRAIN"
        ],
        ("train",),
    )


def test_a_removed_queue_stays_for_its_waiting_jobs() -> None:
    found = merge_conf(OLD, texts(dev(train(4))), used(queues="cpu"))
    assert lines(found.texts.slurm, "PartitionName=cpu") == [
        "PartitionName=cpu MaxTime=1-12:00:00 SuspendTime=600 DefMemPerCPU=3891 State=DRAIN"
    ]


def test_merging_again_changes_nothing() -> None:
    new, held = texts(dev(train(2))), used("train-3", "cpu-1", queues="cpu")
    once = merge_conf(OLD, new, held).texts
    assert merge_conf(once, new, held).texts == once


def test_free_nodes_and_queues_are_removed() -> None:
    new = texts(dev(train(2)))
    once = merge_conf(OLD, new, used("train-3", "cpu-1", queues="cpu")).texts
    assert merge_conf(once, new, NOTHING).texts == new


def test_if_use_is_unknown_everything_stays() -> None:
    found = merge_conf(OLD, texts(dev(train(2))), InUse(nodes=None, queues=None))
    assert (found.nodes, found.queues) == (("train-3", "train-4", "cpu-1"), ("cpu",))
