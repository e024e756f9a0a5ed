"""Synthetic jobs, healthy and with a fault, as the files that their processes would have left. All series are made up.

A seed decides the job: its shape, its noise, and how bad the fault is. In each step, all processes end together: a
process waits in communication for the slowest one. What is healthy stays below the limits that docs/diagnose.md names,
waits for the slowest process included. `hidden_jobs` hides one job of each fault among healthy ones.
Only the lines of NCCL and PyTorch have real forms: NVIDIA/nccl#1597 (github.com/NVIDIA/nccl/issues/1597), #226, and
aws-ofi-nccl's since 1.14; pytorch/pytorch#16417 (github.com/pytorch/pytorch/issues/16417).
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from corral.agent.job_evidence.output_lines import kept_lines
from corral.agent.job_evidence.step_summary import read_rank
from corral.agent.metrics.efa_counters import EfaCounters
from corral.agent.metrics.gpu_load import GpuLoad
from corral.agent.metrics.node_history import node_samples
from corral.agent.metrics.node_samples import joined_samples
from corral.catalog.aws.instance_types import find_instance_type
from corral.model.job_evidence import JobEvidencePage, JobNodes, JobRecord, NodeSamples, StepPage
from corral.report.diagnosis.evidence import JobEvidence, Machine, joined
from corral.report.diagnosis.findings import FindingKind

GIB = 2**30
HEALTHY = 24
_OTHERS: Mapping[str, int] = {"received_bytes": 0, "dropped": 0, "resent": 0}
_EFA = {"p4d.24xlarge": 4, "p5.48xlarge": 32}


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a job is like. Shares are of a step without them; `slow`: factors by node. `lines`: of each process.

    `idle`: the part of a step in which its GPUs wait for the program. `efa`: whether it uses EFA between nodes.
    """

    seed: int
    instance_type: str
    nodes: int
    gpus: int
    lines: int
    step_s: float
    jitter: float
    data: float
    data_nodes: tuple[int, ...]
    exchange: float
    stages: Sequence[float]
    slow: Mapping[int, float] = field(default_factory=dict)
    knows_communication: bool = True
    knows_memory: bool = True
    save_every_s: float = 1200.0
    save_s: float = 4.0
    write_s: float = 0.01
    memory: float = 0.8
    retries: float = 0.0
    variables: Mapping[str, str] = field(default_factory=dict)
    network: str = "efa"
    nics: int = 0
    ended_by: str = ""
    hot: tuple[int, ...] = ()
    idle: float = 0.0
    efa: bool = True
    restarts: int = 0


def healthy_job(seed: int) -> Job:
    """A job without a fault."""
    chance = random.Random(seed)
    instance_type = chance.choice([*_EFA])
    nodes = chance.choice([1, 2, 2, 4, 4, 8, 16])
    return Job(
        seed=seed,
        instance_type=instance_type,
        nodes=nodes,
        gpus=chance.choice([1, 2, 8]) if nodes == 1 else chance.choice([2, 4]) if nodes > 4 else 8,
        lines=chance.randrange(40, 120),
        step_s=chance.lognormvariate(0.5, 1.0),
        jitter=chance.uniform(0.002, 0.02),
        data=chance.choice([0.0, 0.001, chance.uniform(0, 0.05)]),
        data_nodes=tuple(range(nodes)),
        exchange=chance.uniform(0.01, 0.1) if nodes > 1 else chance.uniform(0, 0.04),
        stages=chance.choice([[1.0], [1.0], [1.0, 0.95, 0.95, 1.04]]),
        knows_communication=chance.random() < 0.7,
        knows_memory=chance.random() < 0.8,
        save_every_s=chance.uniform(300, 3600),
        save_s=chance.uniform(0.2, 6.0),
        write_s=min(0.2, chance.lognormvariate(-4, 1)),
        memory=chance.uniform(0.4, 0.95),
        retries=chance.choice([0.0, 0.0, 0.002]),
        variables=chance.choice([{}, {"NCCL_DEBUG": "INFO"}, {"FI_PROVIDER": "efa", "NCCL_DEBUG": "WARN"}]),
        nics=_EFA[instance_type],
        restarts=chance.choice([0, 0, 1, 3]),
    )


def _several(job: Job, chance: random.Random) -> Job:
    """The same job on several nodes, recording what its fault shows in."""
    nodes = job.nodes if job.nodes > 1 else chance.choice([2, 4, 8])
    return replace(job, nodes=nodes, gpus=min(job.gpus, 4), data_nodes=tuple(range(nodes)), knows_communication=True)


def _straggler(job: Job, chance: random.Random) -> Job:
    job = _several(job, chance)
    return replace(job, slow={chance.randrange(job.nodes): chance.uniform(1.25, 2.0)}, stages=[1.0])


def _data_loader(job: Job, chance: random.Random) -> Job:
    one = (chance.randrange(job.nodes),)
    return replace(job, data=chance.uniform(0.15, 1.5), data_nodes=chance.choice([job.data_nodes, one]))


def _communication(job: Job, chance: random.Random) -> Job:
    return replace(_several(job, chance), exchange=chance.uniform(0.32, 1.5))


def _checkpoints(job: Job, chance: random.Random) -> Job:
    every = chance.uniform(60, 300)
    return replace(job, lines=120, step_s=8.0, save_every_s=every, save_s=every * chance.uniform(0.08, 0.4))


def _throttled(job: Job, chance: random.Random) -> Job:
    node = chance.randrange(job.nodes)
    return replace(job, hot=(node,), slow={node: chance.uniform(1.05, 1.8)}, stages=[1.0])


def _slow_files(job: Job, chance: random.Random) -> Job:
    slow = replace(job, write_s=chance.uniform(0.8, 10), lines=120, step_s=8.0)
    return chance.choice(
        [replace(slow, data=chance.uniform(0.12, 0.6)), replace(slow, save_every_s=120, save_s=chance.uniform(15, 60))]
    )


def _wrong_network(job: Job, chance: random.Random) -> Job:
    job = replace(_several(job, chance), exchange=chance.uniform(0.3, 2.0))
    return chance.choice(
        [
            replace(job, network="Socket", efa=False),
            replace(job, network="", efa=False),
            replace(job, nics=1),
            replace(job, variables={"NCCL_IB_DISABLE": "1", "FI_PROVIDER": "tcp"}, efa=False),
        ]
    )


def _out_of_memory(job: Job, chance: random.Random) -> Job:
    return replace(job, ended_by=chance.choice(["gpu", "node", "output"]), lines=chance.choice([0, 3, job.lines]))


def _memory_bound(job: Job, chance: random.Random) -> Job:
    return replace(job, knows_memory=True, memory=0.96, retries=chance.uniform(0.1, 0.9), lines=120)


def _idle_gpus(job: Job, chance: random.Random) -> Job:
    return replace(job, idle=chance.uniform(0.2, 0.8))


FAULTS: Mapping[FindingKind, Callable[[Job, random.Random], Job]] = {
    FindingKind.STRAGGLER: _straggler,
    FindingKind.DATA_LOADER: _data_loader,
    FindingKind.COMMUNICATION: _communication,
    FindingKind.CHECKPOINTS: _checkpoints,
    FindingKind.THROTTLED_GPU: _throttled,
    FindingKind.SLOW_FILE_SYSTEM: _slow_files,
    FindingKind.WRONG_NETWORK: _wrong_network,
    FindingKind.OUT_OF_MEMORY: _out_of_memory,
    FindingKind.MEMORY_BOUND: _memory_bound,
    FindingKind.IDLE_GPUS: _idle_gpus,
}


def faulty_job(kind: FindingKind, seed: int) -> Job:
    """The healthy job of this seed with this fault."""
    return FAULTS[kind](healthy_job(seed), random.Random(seed + 1))


def hidden_jobs(seed: int, healthy: int = HEALTHY) -> list[tuple[FindingKind | None, JobEvidence]]:
    """A job of each fault among healthy ones, in an order that the seed decides; with what is wrong, None: nothing."""
    chance = random.Random(seed)
    jobs: list[tuple[FindingKind | None, Job]] = [(None, healthy_job(chance.randrange(10**9))) for _ in range(healthy)]
    jobs += [(kind, faulty_job(kind, chance.randrange(10**9))) for kind in FAULTS]
    chance.shuffle(jobs)
    return [(kind, evidence(job)) for kind, job in jobs]


def evidence(job: Job) -> JobEvidence:
    """The evidence of the job, read from the files that it has left."""
    texts = step_texts(job)
    found = [read_rank(rank, text) for rank, text in enumerate(texts)]
    instance_type = find_instance_type(job.instance_type)
    page = JobEvidencePage(
        job=JobRecord(
            job_id="17",
            user="ada",
            name="synthetic",
            queue="train",
            state="failed" if job.ended_by else "running",
            exit_code="1:0" if job.ended_by else "0:0",
            nodes=f"train-[1-{job.nodes}]" if job.nodes > 1 else "train-1",
            node_count=job.nodes,
            gpus=job.nodes * job.gpus,
            runs=job.restarts + 1,
            started=1_795_000_000,
            ended=None,
            step_states=("out_of_memory",) if job.ended_by == "node" else ("running",),
        ),
        steps=StepPage(
            ranks=tuple(one.steps for one in found),
            next=None,
            variables=found[0].variables,
            output=kept_lines(output(job)),
            curve=found[0].curve,
        ),
        node_reasons={},
        nodes=measured(job, max(one.steps.last_at for one in found)),
    )
    return joined([page], Machine(instance_type=instance_type, efa_devices=_EFA[job.instance_type]))


def step_texts(job: Job) -> list[str]:
    """The file of each process."""
    chance = random.Random(job.seed)
    ranks = job.nodes * job.gpus
    lines: list[list[dict[str, Any]]] = [_beginning(job, rank) for rank in range(ranks)]
    now, saved, retries = 1_795_000_000.0, 0.0, 0
    per_line = max(1, round(1.0 / job.step_s))
    for number in range(job.lines):
        own, data = [], []
        for rank in range(ranks):
            node = rank // job.gpus
            factor = job.slow.get(node, 1.0) * job.stages[node % len(job.stages)]
            work = job.step_s * factor * chance.lognormvariate(0, job.jitter) * (10 if number < 2 else 1)
            own.append(work * (chance.uniform(1.5, 4) if chance.random() < 0.0005 else 1))
            waits = job.data if node in job.data_nodes else 0.001
            data.append(job.step_s * waits * chance.uniform(0.5, 1.5))
        exchange = job.step_s * job.exchange * chance.uniform(0.8, 1.2)
        step = max(a + b for a, b in zip(own, data, strict=True)) + exchange
        seconds = step * per_line
        now += seconds
        saves = (now - 1_795_000_000.0) // job.save_every_s > saved
        saved += saves
        checkpoint = job.save_s * chance.uniform(0.8, 1.3) if saves else 0.0
        now += checkpoint
        retries += chance.random() < job.retries * per_line
        for rank in range(ranks):
            record: dict[str, Any] = {
                "at": now,
                "step": (number + 1) * per_line,
                "steps": per_line,
                "seconds": seconds,
                "data_s": data[rank] * per_line,
                "checkpoint_s": checkpoint,
                "tokens": 8192 * per_line,
            }
            if job.knows_communication:
                record["communication_s"] = (step - own[rank] - data[rank]) * per_line
            if number % max(1, round(5 / seconds)) == 0:
                record["write_s"] = job.write_s * chance.lognormvariate(0, 0.8)
                record["loss"] = 3.0 + chance.gauss(0, 0.1)
                if job.knows_memory:
                    record |= {"memory_total": 80 * GIB, "memory_retries": retries}
                    record |= {"memory_peak": int(job.memory * 80 * GIB), "memory_reserved": int(78 * GIB)}
            lines[rank].append(record)
    if job.ended_by == "gpu":
        lines[-1].append({"error": "OutOfMemoryError", "message": OUT_OF_MEMORY, "at": now})
    return ["".join(f"{json.dumps(line)}\n" for line in one) for one in lines]


OUT_OF_MEMORY = (
    "CUDA out of memory. Tried to allocate 22.00 MiB. GPU 0 has a total capacity of 23.65 GiB of which 11.06 MiB is"
    " free. Including non-PyTorch memory, this process has 23.60 GiB memory in use. Of the allocated memory 22.90 GiB"
    " is allocated by PyTorch, and 194.87 MiB is reserved by PyTorch but unallocated."
)


def output(job: Job) -> list[str]:
    """Lines of the job's output."""
    lines = []
    for node in range(job.nodes):
        for gpu in range(job.gpus):
            start = f"train-{node + 1}:{6310 + gpu}:{6838 + gpu} [{gpu}] NCCL INFO"
            if not job.network:
                continue
            if job.network == "Socket":
                lines += [f"{start} NET/Plugin : No plugin found (libnccl-net.so).", f"{start} Using network Socket"]
            else:
                lines.append(f"{start} NET/OFI Selected provider is efa, fabric is efa (found {job.nics} nics)")
                lines.append(f"{start} Using network Libfabric")
    lines += [f"step {number}: loss 2.5" for number in range(100)]
    if job.ended_by == "output":
        lines.append(f"[rank0]: torch.OutOfMemoryError: {OUT_OF_MEMORY}")
    return lines


def measured(job: Job, now: float) -> JobNodes:
    """What the job's nodes measured in the last minutes; nothing of a job that has ended."""
    if job.ended_by:
        return JobNodes(at=int(now), problem="the job does not run now")
    chance = random.Random(job.seed)
    answers = {f"train-{node + 1}": _node_samples(job, node, chance) for node in range(job.nodes)}
    return joined_samples(answers, dict.fromkeys(answers, frozenset(range(job.gpus))), now)


def _node_samples(job: Job, node: int, chance: random.Random) -> NodeSamples:
    """Readings of a node with eight GPUs, half a minute apart. At full load, a software power cap is usual."""
    number, capped = chance.randrange(8, 20), chance.random() < 0.5
    readings = []
    for _ in range(number):
        gpus = []
        for gpu in range(8):
            hot = node in job.hot and gpu == 0 and chance.random() < 0.8
            reasons = ["hw_thermal_slowdown"] * hot + ["sw_power_cap"] * capped
            reasons += ["sw_thermal_slowdown"] * (chance.random() < 0.003)
            gpus.append(_gpu_load(job, gpu, reasons, chance))
        readings.append(gpus)
    sent = [10**12 + (10**10 * number if job.efa and job.nodes > 1 else 0) for number in range(number)]
    efa = [
        (30.0 * (number - at), [EfaCounters(device="rdmap16s27", sent_bytes=sent[at], **_OTHERS)])
        for at in range(number)
    ]
    return node_samples("of itself", readings, efa)


def _gpu_load(job: Job, gpu: int, reasons: Sequence[str], chance: random.Random) -> GpuLoad:
    """One of the job's GPUs, or an idle one. It waits for data, and while a file system or an allocator lets it."""
    works = 1.0 / (1.0 + max(0.0, job.data - 0.05)) * (1.0 - job.idle)
    hot = "hw_thermal_slowdown" in reasons
    return GpuLoad(
        index=gpu,
        bus_id=f"0000:{gpu:02x}:00.0",
        utilization=works * chance.uniform(0.93, 1.0) if gpu < job.gpus else 0.0,
        memory_used=job.memory * 80 * GIB,
        memory_total=80.0 * GIB,
        temperature_c=chance.uniform(84, 92) if hot else chance.uniform(45, 78),
        power_w=600.0,
        clock_hz=1e6 * (chance.uniform(900, 1200) if hot else chance.uniform(1350, 1410)),
        slowed_by=frozenset(reasons),
        corrected=0.0,
        uncorrected=0.0,
    )


def _beginning(job: Job, rank: int) -> list[dict[str, Any]]:
    """The header; before it, if the job was requeued, an earlier run that was slow in every way."""
    header = {
        "corral_step": 1,
        "at": 1.0,
        "rank": rank,
        "size": job.nodes * job.gpus,
        "node": f"train-{rank // job.gpus + 1}",
        "restarts": job.restarts,
        "variables": job.variables,
    }
    bad = {"at": 1.0, "step": 1, "steps": 1, "seconds": 90.0, "data_s": 80.0, "checkpoint_s": 80.0, "tokens": 1}
    return [{**header, "at": 0.5}, *([bad] * 30), header] if job.restarts else [header]
