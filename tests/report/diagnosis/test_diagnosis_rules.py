"""The rules of a diagnosis, one by one: what a finding says, and what it does not report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from corral.agent.job_evidence.output_lines import kept_lines
from corral.catalog.diagnosis_limits import DiagnosisLimits, diagnosis_limits
from corral.catalog.loader.data_files import read_toml
from corral.model.job_evidence import GpuSamples, JobEvidencePage, JobNodes, RankSteps, StepPage
from corral.model.run_forecast import FoundForecast, RunForecastNumbers
from corral.report.diagnosis.diagnose import diagnose
from corral.report.diagnosis.evidence import ExpectedRun, JobEvidence, joined
from corral.report.diagnosis.findings import FindingKind, JobFinding
from corral.report.diagnosis.nccl_log import NodeNetwork, node_networks
from render.plans import LLAMA as LLAMA_ON_32_GPUS
from report.diagnosis.synthetic_jobs import evidence, healthy_job

EXPECTED = ExpectedRun(
    tokens_per_s_per_accelerator=4000.0,
    mfu=0.4,
    communication_share=0.05,
    memory_gib=90.0,
    memory_limit_gib=80.0,
    largest_micro_batch=None,
    change="a micro-batch of 1",
)
OUT_OF_MEMORY = "CUDA out of memory. Tried to allocate 2.00 GiB."
FRAGMENTED = f"{OUT_OF_MEMORY} 9.35 GiB is reserved by PyTorch but unallocated."


def rank(number: int, node: str, **changes: object) -> RankSteps:
    """A process with two hundred healthy steps."""
    healthy = RankSteps(
        rank=number,
        node=node,
        size=4,
        restarts=0,
        lines=200,
        steps=200,
        last_step=200,
        seconds=400.0,
        step_s=2.0,
        own_s=1.8,
        data_share=0.01,
        communication_share=0.1,
        tokens_per_s=2000.0,
        write_s=0.01,
    )
    return replace(healthy, **changes)  # type: ignore[arg-type]


def job(**changes: object) -> JobEvidence:
    """A healthy job of four nodes with one GPU each, on p4d.24xlarge."""
    base = evidence(replace(healthy_job(1), instance_type="p4d.24xlarge", nodes=1, gpus=1, lines=20))
    ranks = tuple(rank(number, f"train-{number + 1}") for number in range(4))
    healthy = replace(
        base, job=replace(base.job, node_count=4, gpus=4), ranks=ranks, variables={}, output=(), nodes=JobNodes()
    )
    return replace(healthy, **changes)  # type: ignore[arg-type]


def with_first(**changes: object) -> JobEvidence:
    """The job in which the process of train-1 differs."""
    return job(ranks=(rank(0, "train-1", **changes), *job().ranks[1:]))


def all_with(**changes: object) -> JobEvidence:
    """The job in which all processes differ."""
    return job(ranks=tuple(replace(one, **changes) for one in job().ranks))  # type: ignore[arg-type]


def only(seen: JobEvidence) -> JobFinding:
    (found,) = diagnose(seen).findings
    return found


def kinds(seen: JobEvidence) -> Sequence[str]:
    return [one.kind.value for one in diagnose(seen).findings]


def test_a_straggler_is_named_with_its_own_work_and_what_others_wait() -> None:
    found = only(with_first(own_s=2.7, communication_share=0.01))
    assert (found.kind, found.nodes, found.evidence) == (
        FindingKind.STRAGGLER,
        ("train-1",),
        ("train-1: 2.7 s of own work in a step, others 1.8 s", "the others wait 10% of the time"),
    )


def test_a_node_that_is_slower_by_a_tenth_is_no_straggler() -> None:
    assert kinds(with_first(own_s=1.98)) == []


def test_half_of_the_nodes_are_no_stragglers_but_uneven_work() -> None:
    seen = job(ranks=(*(rank(n, f"train-{n + 1}", own_s=2.7) for n in range(2)), *job().ranks[2:]))
    assert kinds(seen) == []


def eight(*slow: int) -> JobEvidence:
    """Two nodes with four processes each, of which these are slow."""
    ranks = (rank(n, f"train-{n // 4 + 1}", size=8, own_s=2.4 if n in slow else 1.8) for n in range(8))
    return job(ranks=tuple(ranks), job=replace(job().job, node_count=2, gpus=8))


def test_one_slow_process_of_eight_is_a_straggler() -> None:
    found = only(eight(5))
    assert (found.kind, found.nodes, found.evidence[0]) == (
        FindingKind.STRAGGLER,
        ("train-2",),
        "rank 5 on train-2: 2.4 s of own work in a step, others 1.8 s",
    )


def test_two_slow_processes_of_eight_are_uneven_work() -> None:
    assert kinds(eight(3, 7)) == []


def test_a_slow_process_of_three_is_uneven_work() -> None:
    ranks = tuple(rank(n, "train-1", size=3, own_s=2.4 if n == 1 else 1.8) for n in range(3))
    assert kinds(job(ranks=ranks, job=replace(job().job, node_count=1))) == []


def test_others_that_wait_for_a_straggler_are_not_bound_by_communication() -> None:
    waiting = tuple(replace(one, communication_share=0.5) for one in job().ranks[1:])
    seen = job(ranks=(rank(0, "train-1", own_s=3.6, communication_share=0.01), *waiting))
    assert kinds(seen) == ["straggler"]


def test_communication_of_all_is_a_finding() -> None:
    assert kinds(all_with(communication_share=0.25)) == ["communication"]


@pytest.mark.parametrize(("forecast", "expected"), [(0.05, ["communication"]), (0.3, [])])
def test_communication_that_the_forecast_has_too_is_no_finding(forecast: float, expected: list[str]) -> None:
    run = replace(EXPECTED, communication_share=forecast)
    assert kinds(replace(all_with(communication_share=0.3), expected=run)) == expected


def test_waiting_for_data_on_one_node_names_it() -> None:
    found = only(with_first(data_share=0.4))
    assert (found.kind, found.nodes) == (FindingKind.DATA_LOADER, ("train-1",))


def test_waiting_for_data_everywhere_names_no_node() -> None:
    assert only(all_with(data_share=0.4)).nodes == ()


def test_a_slow_file_system_explains_waits_for_data_and_for_checkpoints() -> None:
    seen = all_with(write_s=3.0, data_share=0.3, checkpoint_share=0.2, seconds=4000.0)
    assert kinds(seen) == ["slow-file-system"]


def test_a_slow_file_system_that_nobody_waits_for_is_no_finding() -> None:
    assert kinds(all_with(write_s=3.0)) == []


@pytest.mark.parametrize(("seconds", "expected"), [(400.0, []), (4000.0, ["checkpoint-stalls"])])
def test_one_checkpoint_in_a_short_time_is_chance(seconds: float, expected: list[str]) -> None:
    assert kinds(all_with(checkpoint_share=0.2, seconds=seconds)) == expected


@pytest.mark.parametrize(("checkpoints", "expected"), [(2, []), (3, ["checkpoint-stalls"])])
def test_three_checkpoints_in_a_short_time_are_no_chance(checkpoints: int, expected: list[str]) -> None:
    assert kinds(all_with(checkpoint_share=0.2, seconds=60.0, checkpoints=checkpoints)) == expected


def test_a_few_lines_are_too_few_for_shares_of_the_time() -> None:
    seen = all_with(lines=5, data_share=0.9)
    assert kinds(seen) == []
    assert "shares of the time (5 lines so far, 20 are needed)" in diagnose(seen).unknown


def test_memory_that_ran_out_is_explained_by_the_forecast() -> None:
    seen = replace(with_first(error="OutOfMemoryError", message=OUT_OF_MEMORY), expected=EXPECTED)
    found = only(seen)
    assert (found.evidence, found.first) == (
        (f"rank 0 on train-1: OutOfMemoryError: {OUT_OF_MEMORY}", "the forecast needs 90 of 80 GiB"),
        "a micro-batch of 1 (`corral plan ENV --run FILE` shows the layout)",
    )


def test_memory_in_fragments_is_another_matter() -> None:
    """The text has the form of pytorch/pytorch's message (github.com/murong-xu/CADS/issues/4)."""
    found = only(with_first(error="OutOfMemoryError", message=FRAGMENTED))
    assert found.first.startswith("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True")


def test_memory_of_a_node_differs_from_that_of_a_gpu() -> None:
    seen = job(job=replace(job().job, state="out_of_memory"))
    assert only(seen).title == "The memory of a node ran out"


@pytest.mark.parametrize(
    ("state", "expected"),
    [("completed", []), ("running", []), ("cancelled", []), ("failed", ["out-of-memory"])],
)
def test_a_batch_that_was_too_large_in_a_program_that_went_on_is_no_finding(state: str, expected: list[str]) -> None:
    assert kinds(job(job=replace(job().job, state=state), output=(f"batch 64: {OUT_OF_MEMORY}",))) == expected


def test_a_program_that_makes_no_steps_has_not_gone_on() -> None:
    assert kinds(job(ranks=(), output=(OUT_OF_MEMORY,))) == ["out-of-memory"]


@pytest.mark.parametrize(("recorded", "expected"), [(4, []), (3, ["out-of-memory"])])
def test_what_all_processes_have_recorded_as_their_end_counts_more_than_the_output(
    recorded: int, expected: list[str]
) -> None:
    ranks = tuple(replace(one, error="KeyError" if one.rank < recorded else "") for one in job().ranks)
    seen = job(ranks=ranks, job=replace(job().job, state="failed"), output=(f"batch 64: {OUT_OF_MEMORY}",))
    assert kinds(seen) == expected


@pytest.mark.parametrize("error", ["MemoryError", "_ArrayMemoryError"])
def test_a_process_without_memory_is_named(error: str) -> None:
    found = only(with_first(error=error))
    assert (found.title, found.nodes, found.evidence) == (
        "The memory of a node ran out",
        ("train-1",),
        (f"rank 0 on train-1: {error}",),
    )


@pytest.mark.parametrize(
    "line",
    [
        "slurmstepd-train-4: error: StepId=33.0 exceeded memory limit (183885824 > 157286400), being killed",
        "slurmstepd: error: Exceeded job memory limit",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] . DefaultCPUAllocator: can't allocate memory: you tried to"
        " allocate 68719476736 bytes. Error code 12 (Cannot allocate memory)",
        "RuntimeError: DataLoader worker (pid 108439) is killed by signal: Killed.",
        "RuntimeError: DataLoader worker (pid 3855) is killed by signal: Bus error. It is possible that dataloader's"
        " workers are out of shared memory.",
    ],
)
def test_what_slurm_and_pytorch_print_of_a_nodes_memory_is_found(line: str) -> None:
    """Slurm's as recorded in the box, without cgroups; PyTorch's of its c10/core/impl/alloc_cpu.cpp, Visual-AI/3DRS#7
    and ultralytics/yolov3#1151.
    """
    seen = job(output=kept_lines([line]), job=replace(job().job, state="failed"))
    assert only(seen).evidence == (line,)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", ["out-of-memory"]),
        ("RuntimeError: CUDA error: out of memory", ["out-of-memory"]),
        ("train-1:41:41 [0] enqueue.cc:1085 NCCL WARN Cuda failure 'out of memory'", ["out-of-memory"]),
        ("train-1:41:41 [0] enqueue.cc:1085 NCCL WARN Cuda failure 999 'unknown error'", []),
        ("    except torch.OutOfMemoryError:", []),
        ("If you see CUDA out of memory, reduce the batch size.", []),
        ("RuntimeError: DataLoader worker (pid 8102) is killed by signal: Terminated.", []),
    ],
)
def test_a_text_that_only_names_memory_is_no_lack_of_it(line: str, expected: list[str]) -> None:
    """NCCL's: PKU-YuanGroup/Open-Sora-Plan#386, NVIDIA/nccl#1935; the loader's: open-mmlab/mmsegmentation#2085."""
    assert kinds(job(ranks=(), output=kept_lines([line]), job=replace(job().job, state="failed"))) == expected


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("FI_PROVIDER", "tcp", ["wrong-network-settings"]),
        ("FI_PROVIDER", "efa", []),
        ("NCCL_DEBUG", "INFO", []),
        ("NCCL_SOCKET_NTHREADS", "4", []),
    ],
)
def test_only_variables_that_cost_speed_are_reported(name: str, value: str, expected: list[str]) -> None:
    assert kinds(job(variables={name: value})) == expected


@pytest.mark.parametrize("nics", [1, 3])
def test_fewer_efa_devices_than_the_machine_has_are_reported(nics: int) -> None:
    """The line has the form of aws-ofi-nccl 1.14.1, as printed on a p4d.24xlarge with one interface."""
    text = f"NCCL INFO NET/OFI Selected provider is efa, fabric is efa (found {nics} nics)"
    found = only(job(output=(f"ip-172-31-47-132:11749:11843 [3] {text}",)))
    assert found.evidence == (f"ip-172-31-47-132: NCCL found {nics} EFA devices, p4d.24xlarge has 4",)


def test_nccl_over_tcp_is_reported_on_machines_with_efa_and_several_nodes() -> None:
    """The line is that of NVIDIA/nccl#766 (github.com/NVIDIA/nccl/issues/766), with another host."""
    seen = job(output=("train-1:1379562:1379562 [0] NCCL INFO Using network Socket",))
    alone = replace(seen, job=replace(seen.job, node_count=1))
    assert (kinds(seen), kinds(alone)) == (["wrong-network-settings"], [])


def test_a_plugin_that_finds_efa_and_gives_up_is_no_network() -> None:
    """github.com/aws/aws-ofi-nccl/issues/889."""
    start = "ip-10-36-29-253:82:2548 [0] NCCL INFO"
    provider = f"{start} NET/OFI Selected provider is efa, fabric is efa (found 4 nics)"
    seen = job(output=(provider, f"{start} Using network Socket"))
    assert only(seen).evidence == ("ip-10-36-29-253: NCCL uses Socket, not EFA",)


def test_channels_over_tcp_are_found_without_nccls_first_lines() -> None:
    """github.com/awslabs/awsome-distributed-ai/issues/386."""
    line = "ini-worker-ray-worker-p5:944:3818 [0] NCCL INFO Channel {}/0 : 0[0] -> 8[0] [receive] via NET/Socket/0"
    kept = kept_lines(line.format(number) for number in (13, 14, 15))
    assert (len(kept), only(job(output=kept)).evidence) == (1, ("ini-worker-ray-worker-p5: NCCL uses Socket, not EFA",))


@pytest.mark.parametrize(
    "text", ["NET/Plugin : No plugin found (libnccl-net.so).", "NET/Socket : Using [0]ens3:172.31.5.237<0>"]
)
def test_nccl_without_its_plugin_uses_tcp(text: str) -> None:
    """github.com/NVIDIA/nccl/issues/226."""
    kept = kept_lines([f"ip-172-31-8-153:45343:45343 [0] NCCL INFO {text}"])
    assert only(job(output=kept)).evidence == ("ip-172-31-8-153: NCCL uses Socket, not EFA",)


def test_a_network_that_is_found_later_counts_more_than_a_plugin_that_is_not() -> None:
    start = "train-1:41:41 [0] NCCL INFO"
    assert kinds(job(output=(f"{start} NET/Plugin: No plugin found", f"{start} Using network Libfabric"))) == []


def test_nccls_lines_are_read_by_host() -> None:
    """github.com/NVIDIA/nccl/issues/1597."""
    lines = (
        "8h200-3:6310:6318 [0] NCCL INFO NET/OFI Selected Provider is efa (found 16 nics)",
        "8h200-2:6831:6840 [0] NCCL INFO Using network Libfabric",
    )
    assert node_networks(lines) == {
        "8h200-2": NodeNetwork(network="Libfabric"),
        "8h200-3": NodeNetwork(provider="efa", nics=16),
    }


def samples(reason: str, **changes: object) -> JobNodes:
    usual = GpuSamples(
        node="train-1",
        gpu=0,
        samples=20,
        utilization=0.98,
        throttled_share=0.0,
        reason="",
        clock_mhz=1400.0,
        temperature_c=60.0,
    )
    slow = replace(usual, node="train-2", throttled_share=0.6, reason=reason, clock_mhz=900.0, temperature_c=90.0)
    gpus = (replace(slow, **changes), usual, replace(usual, node="train-3"), replace(usual, node="train-4"))  # type: ignore[arg-type]
    return JobNodes(gpus=gpus, gpu_count=4, utilization=0.98, clock_mhz=1400.0, efa_nodes=4)


def test_a_gpu_that_heat_slows_down_is_named() -> None:
    found = only(job(nodes=samples("hw_thermal_slowdown")))
    assert found.evidence == ("train-2, GPU 0: hw_thermal_slowdown in 60% of samples, 900 MHz (others 1400), 90 C",)


def test_a_gpu_that_does_not_report_its_clock_is_named_all_the_same() -> None:
    found = only(job(nodes=samples("sw_thermal_slowdown", clock_mhz=None, temperature_c=None)))
    assert found.evidence == ("train-2, GPU 0: sw_thermal_slowdown in 60% of samples",)


def test_a_software_power_cap_is_usual_at_full_load() -> None:
    assert kinds(job(nodes=samples("sw_power_cap"))) == []


@pytest.mark.parametrize(("held_back", "expected"), [(2, []), (3, ["throttled-gpu"])])
def test_one_or_two_samples_are_chance(held_back: int, expected: list[str]) -> None:
    nodes = samples("hw_thermal_slowdown", samples=9, throttled_share=round(held_back / 9, 3))
    assert kinds(job(nodes=nodes)) == expected


def working(share: float, **changes: object) -> JobNodes:
    return replace(samples(""), utilization=share, **changes)  # type: ignore[arg-type]


def test_gpus_that_wait_for_nothing_that_is_recorded_are_a_finding() -> None:
    found = only(job(nodes=working(0.62)))
    assert (found.kind, found.evidence) == (
        FindingKind.IDLE_GPUS,
        (
            "the GPUs work 62% of the time, by 20 samples or more",
            "its processes record waits in 11% of the time",
        ),
    )


def test_a_few_samples_say_nothing_of_how_much_gpus_work() -> None:
    few = tuple(replace(one, samples=5) for one in working(0.62).gpus)
    assert kinds(job(nodes=working(0.62, gpus=few))) == []


@pytest.mark.parametrize(("share", "expected"), [(0.889, []), (0.778, ["idle-gpus"])])
def test_one_sample_of_nine_may_be_in_an_evaluation(share: float, expected: list[str]) -> None:
    gpus = tuple(replace(one, samples=9) for one in working(share).gpus)
    assert kinds(job(nodes=working(share, gpus=gpus))) == expected


def unused(*gpus: int, samples_of_each: int = 6) -> JobNodes:
    """A node with four GPUs, of which these do nothing."""
    usual = replace(samples("").gpus[1], samples=samples_of_each)
    four = tuple(replace(usual, gpu=gpu, utilization=0.0 if gpu in gpus else 0.99) for gpu in range(4))
    return replace(samples(""), gpus=four, utilization=1 - len(gpus) / 4)


def test_gpus_that_nothing_uses_are_named() -> None:
    found = only(job(nodes=unused(2, 3)))
    assert (found.kind, found.nodes, found.evidence) == (
        FindingKind.IDLE_GPUS,
        ("train-1",),
        ("train-1: nothing runs on GPUs 2, 3",),
    )


@pytest.mark.parametrize(("number", "expected"), [(5, []), (6, ["idle-gpus"])])
def test_a_job_that_records_nothing_and_uses_no_gpu_is_found_after_some_samples(
    number: int, expected: list[str]
) -> None:
    assert kinds(job(ranks=(), nodes=unused(0, 1, 2, 3, samples_of_each=number))) == expected


def test_gpus_of_a_job_that_stands_may_do_nothing() -> None:
    assert kinds(job(nodes=replace(unused(0, 1, 2, 3), at=200))) == []


def test_gpus_of_a_job_that_makes_no_steps_now_are_no_finding() -> None:
    assert kinds(job(nodes=working(0.62, at=200))) == []


def test_gpus_that_wait_for_data_are_evidence_of_that() -> None:
    found = only(replace(all_with(data_share=0.4), nodes=working(0.62)))
    assert (found.kind, found.evidence[-1]) == (
        FindingKind.DATA_LOADER,
        "the GPUs work 62% of the time, by 20 samples or more",
    )


def test_gpus_that_wait_for_communication_are_evidence_of_that() -> None:
    found = only(replace(all_with(communication_share=0.25), nodes=working(0.62)))
    assert found.evidence[-1] == "the GPUs work 62% of the time, by 20 samples or more"


def silent(**changes: object) -> JobNodes:
    return replace(samples(""), silent_nodes=("train-2",), efa_seconds=300.0, **changes)  # type: ignore[arg-type]


def test_efa_that_stands_still_while_the_job_communicates_is_the_wrong_network() -> None:
    found = only(job(nodes=silent()))
    assert (found.kind, found.evidence) == (
        FindingKind.WRONG_NETWORK,
        ("EFA of train-2 sent nothing in 5 min, and the job communicates between its nodes",),
    )


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(all_with(communication_share=None), id="communication is not recorded"),
        pytest.param(all_with(communication_share=0.0), id="no communication"),
        pytest.param(all_with(size=1), id="each node computes for itself"),
        pytest.param(all_with(last_at=-200), id="no steps now"),
    ],
)
def test_efa_may_stand_still_when_nothing_is_sent(seen: JobEvidence) -> None:
    assert kinds(replace(seen, nodes=silent())) == []


def unknown(nodes: JobNodes, **changes: object) -> Sequence[str]:
    """What is unknown about the GPUs and EFA of the job's four nodes."""
    base = job()
    seen = replace(base, nodes=nodes, job=replace(base.job, **changes))  # type: ignore[arg-type]
    return [one for one in diagnose(seen).unknown if one.startswith(("GPUs", "EFA")) or "nvidia-smi" in one]


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        (samples(""), []),
        (JobNodes(problem="the job does not run now"), ["GPUs and EFA (the job does not run now)"]),
        (
            replace(samples(""), gpu_count=2, efa_nodes=2, unread_nodes=("train-3", "train-4")),
            ["GPUs and EFA of train-[3-4] (no answer; docs/monitoring.md: `prometheus`)"],
        ),
        (replace(samples(""), gpu_count=3), ["1 of 4 GPUs (nvidia-smi did not report them)"]),
        (replace(samples(""), efa_nodes=3), ["EFA of 1 of 4 nodes (no two readings of its counters)"]),
    ],
)
def test_only_what_could_not_be_read_is_unknown(nodes: JobNodes, expected: list[str]) -> None:
    assert unknown(nodes) == expected


def test_nothing_of_gpus_is_unknown_of_a_job_without_them() -> None:
    assert unknown(JobNodes(problem="the job does not run now"), gpus=0, node_count=1) == []


def test_a_node_that_was_drained_for_heat_explains_that_it_is_a_straggler() -> None:
    slow = with_first(own_s=2.7)
    seen = replace(slow, node_reasons={"train-1": "corral: GPU 3: slowed down by heat at 91 C"})
    assert kinds(seen) == ["throttled-gpu"]


def test_speed_is_of_each_gpu_and_compared_with_the_forecast() -> None:
    seen = job(expected=EXPECTED)
    assert (seen.tokens_per_s_per_accelerator, seen.forecast_share, seen.mfu) == (2000.0, 0.5, 0.2)


def test_the_speed_of_a_part_of_the_processes_is_unknown() -> None:
    assert job(ranks=job().ranks[:3]).tokens_per_s_per_accelerator is None


def test_a_job_that_records_nothing_is_reported_as_that() -> None:
    found = diagnose(job(ranks=()))
    assert (found.findings, found.unknown[0]) == (
        (),
        "steps (the program does not import corral_step: docs/diagnose.md)",
    )


def test_every_limit_has_a_source() -> None:
    assert {name for name, row in read_toml("diagnosis.toml").items() if not row["source"]} == set()


def test_every_limit_of_the_table_is_used() -> None:
    assert {*read_toml("diagnosis.toml")} == {*DiagnosisLimits.__slots__}
    assert diagnosis_limits().straggler_ratio == 1.15


def page(numbers: RunForecastNumbers | None) -> JobEvidencePage:
    seen, steps = job(), StepPage(ranks=job().ranks, next=None, variables={})
    return JobEvidencePage(job=seen.job, steps=steps, node_reasons={}, forecast=FoundForecast(numbers=numbers))


LLAMA = replace(LLAMA_ON_32_GPUS, gpus=4, step_s=3.0, tokens_per_s_per_gpu=2500.0)


def test_the_forecast_of_the_run_that_a_job_names_counts() -> None:
    seen = joined([page(LLAMA)])
    assert seen.expected is not None
    assert (seen.expected.name, seen.forecast_share) == ("llama", 0.8)


def test_a_run_file_of_the_command_line_comes_before_it() -> None:
    assert joined([page(LLAMA)], expected=EXPECTED).forecast_share == 0.5


def test_a_job_that_names_no_run_has_no_forecast() -> None:
    assert joined([page(None)]).expected is None
