"""A node's metrics, from recorded outputs of a real GPU and of a real EFA interface."""

from __future__ import annotations

from typing import Any

import pytest

from agent.health_fixtures import RECORDED
from agent.metrics.promtool import check_metrics
from corral.agent.health.xids import Xid
from corral.agent.metrics.efa_counters import EfaCounters, read_counters
from corral.agent.metrics.gpu_load import GpuLoad, read_load
from corral.agent.metrics.job_steps import JobSteps
from corral.agent.metrics.node_metrics import NodeReading, node_families, node_metrics
from corral.agent.metrics.text_format import exposition
from corral.model.job_evidence import RankSteps

NOON = 1_790_000_000.0


def gpus(directory: str) -> tuple[GpuLoad, ...]:
    return read_load((RECORDED / directory / "gpu-load.csv").read_text())


def efa() -> tuple[EfaCounters, ...]:
    return read_counters((RECORDED / "efa-counters/efa-counters.txt").read_text())


def rank(**changes: Any) -> RankSteps:
    values: dict[str, Any] = {
        "rank": 8,
        "node": "train-2",
        "size": 16,
        "restarts": 0,
        "steps": 60,
        "last_at": int(NOON) - 4,
        "step_s": 1.5,
        "own_s": 1.2,
        "data_share": 0.05,
        "communication_share": 0.15,
        "tokens_per_s": 8192.0,
        "saved_at": int(NOON) - 600,
        "saved_after_s": 1800.0,
        **changes,
    }
    return RankSteps(**values)


def reading(*ranks: RankSteps, **parts: Any) -> NodeReading:
    jobs = (JobSteps(job_id="17", user="ada", ranks=ranks, run="llama"),)
    return NodeReading(now=NOON, jobs=jobs, **parts)


def of_run(*ranks: RankSteps, run: str = "llama") -> NodeReading:
    return NodeReading(now=NOON, jobs=(JobSteps(job_id="17", user="ada", ranks=ranks, run=run),))


def lines(name: str, read: NodeReading) -> list[str]:
    """The lines of a metric's samples, without its name."""
    page = exposition(node_families(read))
    return [line.removeprefix(name) for line in page.splitlines() if line.startswith((f"{name}{{", f"{name} "))]


WHOLE = reading(
    rank(), gpus=gpus("h200-loaded"), efa=efa(), xids=(Xid(bus_id="83:00", number=79, message="GPU has fallen off"),)
)


def test_promtool_finds_nothing_wrong_with_a_nodes_metrics() -> None:
    assert check_metrics(exposition(node_families(WHOLE))) == ""


def test_a_node_with_a_job_has_a_sample_of_every_metric() -> None:
    assert [one.metric.name for one in node_families(WHOLE) if not one.samples] == []


def test_the_metrics_are_in_the_order_of_their_names() -> None:
    names = [metric.name for metric in node_metrics()]
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("name", "idle", "loaded"),
    [
        ("corral_gpu_utilization_ratio", 0, 1),
        ("corral_gpu_memory_used_bytes", 0, 32362 * 2**20),
        ("corral_gpu_memory_total_bytes", 143771 * 2**20, 143771 * 2**20),
        ("corral_gpu_temperature_celsius", 28, 52),
        ("corral_gpu_power_watts", 77.71, 627.4),
        ("corral_gpu_clock_hertz", 345_000_000, 1_980_000_000),
    ],
)
def test_a_recorded_h200_has_its_values_in_base_units(name: str, idle: float, loaded: float) -> None:
    found = [lines(name, NodeReading(now=NOON, gpus=gpus(one))) for one in ("h200", "h200-loaded")]
    assert found == [[f'{{gpu="0"}} {idle}'], [f'{{gpu="0"}} {loaded}']]


def test_what_a_gpu_does_not_report_has_no_sample() -> None:
    text = (RECORDED / "h200/gpu-load.csv").read_text().replace("77.71 W", "[N/A]")
    assert lines("corral_gpu_power_watts", NodeReading(now=NOON, gpus=read_load(text))) == []


def test_each_reason_that_holds_a_clock_back_has_a_series() -> None:
    text = (RECORDED / "h200-loaded/gpu-load.csv").read_text().replace("1980 MHz, Not Active", "1980 MHz, Active")
    assert lines("corral_gpu_slowed", NodeReading(now=NOON, gpus=read_load(text))) == [
        '{gpu="0",reason="sw_power_cap"} 1',
        '{gpu="0",reason="hw_thermal_slowdown"} 0',
        '{gpu="0",reason="sw_thermal_slowdown"} 0',
        '{gpu="0",reason="hw_power_brake_slowdown"} 0',
    ]


def test_an_answer_to_another_query_is_refused() -> None:
    with pytest.raises(ValueError, match="no heading of 14 columns"):
        read_load((RECORDED / "h100/nvidia-smi.csv").read_text())


def test_an_xid_has_the_gpu_of_its_bus_and_what_corral_does_about_it() -> None:
    found = (Xid(bus_id="83:00", number=79, message=""), Xid(bus_id="9b:00", number=63, message=""))
    assert lines("corral_gpu_xid", NodeReading(now=NOON, gpus=gpus("h200"), xids=found)) == [
        '{gpu="0",xid="79",action="replace"} 1',
        '{gpu="9b:00",xid="63",action="log"} 1',
    ]


def test_an_xid_of_a_program_has_no_series() -> None:
    assert lines("corral_gpu_xid", NodeReading(now=NOON, xids=(Xid(bus_id="83:00", number=31, message=""),))) == []


def test_a_recorded_efa_interface_has_its_bytes() -> None:
    found = [lines(f"corral_efa_{way}_bytes_total", NodeReading(now=NOON, efa=efa())) for way in ("sent", "received")]
    assert found == [['{device="rdmap144s27"} 84417311044934'], ['{device="rdmap144s27"} 85466418782288']]


def test_the_bytes_of_an_interface_include_those_of_rdma() -> None:
    """What the alert on EFA relies on: NCCL over EFA writes and reads by RDMA."""
    text = (RECORDED / "efa-counters/efa-counters.txt").read_text()
    counters = {line.split()[1]: int(line.split()[2]) for line in text.splitlines()}
    assert counters["tx_bytes"] - counters["send_bytes"] - counters["rdma_read_resp_bytes"] < 10**7
    assert counters["rx_bytes"] - counters["recv_bytes"] - counters["rdma_read_bytes"] < 3 * 10**9


def test_a_device_of_another_make_is_left_out() -> None:
    assert read_counters("mlx5_0 rx_write_requests 5\nmlx5_0 lifespan 10\n") == ()


def test_a_process_of_a_job_has_its_job_its_user_and_its_rank() -> None:
    assert lines("corral_job_step_seconds", reading(rank())) == ['{job_id="17",user="ada",rank="8"} 1.5']


def test_a_process_that_makes_no_steps_has_no_speed_but_an_age() -> None:
    stands = reading(rank(last_at=int(NOON) - 300))
    found = [lines(f"corral_job_{name}", stands) for name in ("step_seconds", "communication_ratio")]
    assert (found, lines("corral_job_step_age_seconds", stands)) == (
        [[], []],
        ['{job_id="17",user="ada",rank="8"} 300'],
    )


def test_a_process_whose_training_has_ended_misses_no_step() -> None:
    ended = reading(rank(last_at=int(NOON) - 300, is_closed=True), rank(rank=9, last_at=int(NOON) - 300))
    assert lines("corral_job_step_age_seconds", ended) == ['{job_id="17",user="ada",rank="9"} 300']


def test_a_process_with_long_steps_still_makes_them() -> None:
    slow = reading(rank(last_at=int(NOON) - 300, step_s=200.0))
    assert lines("corral_job_step_seconds", slow) == ['{job_id="17",user="ada",rank="8"} 200']


def test_own_work_is_unknown_where_communication_is_not_recorded() -> None:
    unknown = reading(rank(communication_share=None))
    assert (lines("corral_job_own_step_seconds", unknown), lines("corral_job_communication_ratio", unknown)) == ([], [])


def test_a_checkpoint_has_an_age_and_after_the_second_an_interval() -> None:
    first, second = reading(rank(saved_after_s=None)), reading(rank())
    labels = '{job_id="17",user="ada",rank="8"}'
    assert lines("corral_job_checkpoint_interval_seconds", first) == []
    assert lines("corral_job_checkpoint_interval_seconds", second) == [f"{labels} 1800"]
    assert lines("corral_job_checkpoint_age_seconds", second) == [f"{labels} 600"]


def test_a_job_that_names_a_run_has_its_number_of_processes_once() -> None:
    found = lines("corral_job_run_processes", of_run(rank(), rank(rank=9)))
    assert found == ['{job_id="17",user="ada",run="llama"} 16']


def test_a_job_that_names_no_run_is_none() -> None:
    assert lines("corral_job_run_processes", of_run(rank(), run="")) == []
