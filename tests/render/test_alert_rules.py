"""Each alert by Prometheus's own tool: it fires for what it is about, and is silent on a healthy cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.metrics.promtool import check_rules, run_cases
from corral.agent.metrics.head_metrics import head_metrics
from corral.agent.metrics.node_metrics import node_metrics
from corral.agent.metrics.text_format import Kind
from corral.render.alerts import ALERTS, RECORDINGS, Alert
from corral.render.templates import fill

ROOT = Path(__file__).parents[2]
TRAIN = '{queue="train"}'
RANKS = {"train-1": 0, "train-2": 8}


def of_rank(node: str) -> str:
    """The labels of the process on this node, of a job on both."""
    return f'{{node="{node}",job_id="17",user="ada",rank="{RANKS[node]}"}}'


# A cluster on which nothing is wrong, minute by minute for three hours, with jobs that wait because all nodes are busy.
HEALTHY: Mapping[str, str] = {
    'up{job="corral"}': "1x180",
    # train-3 boots twice: slurmd registers a minute before its metrics answer, and between them it is off.
    **{f'up{{job="nodes",node="{node}",queue="train"}}': "1x180" for node in ("train-1", "train-2")},
    'up{job="nodes",node="train-3",queue="train"}': "0x1 1x30 0x1 stale _x30 0x1 1x115",
    'up{job="nodes",node="train-4",queue="train"}': "0x180",  # it runs since before Prometheus was declared
    'alertmanager_notifications_failed_total{job="alertmanager",integration="slack"}': "3x180",
    'alertmanager_notifications_failed_total{job="alertmanager",integration="sns"}': "0x180",
    "corral_slurmctld_up": "1x180",
    "corral_autoscaler_cycle_age_seconds": "12x180",
    "corral_cluster_changing": "0x180",
    f"corral_node_boot_failures{TRAIN}": "0x60 1x5 0x120",
    'corral_job_wait_seconds{queue="train",account="vision"}': "0+60x180",
    'corral_nodes{queue="train",state="allocated"}': "4x180",
    'corral_nodes{queue="train",state="booting"}': "0x180",
    'corral_offer_backoff_seconds{queue="train",offer="train-0-spot"}': "300x180",
    'corral_offer_backoff_seconds{queue="train",offer="train-1-on-demand"}': "0x180",
    'corral_gpus{queue="train",state="idle"}': "8x180",
    'corral_gpus{queue="train",state="allocated"}': "24x180",
    'corral_file_system_free_bytes{mount="/scratch"}': "200x180",
    'corral_file_system_size_bytes{mount="/scratch"}': "1000x180",
    'corral_cost_usd_per_hour{estimate="low"}': "10x180",
    'corral_cost_usd_per_hour{estimate="high"}': "30x180",
    "corral_budget_usd_per_month": "9000x180",
    "corral_cluster_time_left_seconds": "100000-60x180",
    'corral_block_time_left_seconds{offer="train-2-capacity-block"}': "100000-60x180",
    **{
        series: values
        for node in ("train-1", "train-2")
        for series, values in {
            f'corral_gpu_utilization_ratio{{node="{node}",gpu="0"}}': "0.97x180",
            f'corral_gpu_utilization_ratio{{node="{node}",gpu="1"}}': "0x180",  # of no job: its memory is free
            f'corral_gpu_memory_used_bytes{{node="{node}",gpu="0"}}': "90x180",
            f'corral_gpu_memory_used_bytes{{node="{node}",gpu="1"}}': "1x180",
            f'corral_gpu_memory_total_bytes{{node="{node}",gpu="0"}}': "100x180",
            f'corral_gpu_memory_total_bytes{{node="{node}",gpu="1"}}': "100x180",
            f'corral_gpu_memory_errors{{node="{node}",gpu="0",kind="uncorrected"}}': "0x180",
            f'corral_gpu_memory_errors{{node="{node}",gpu="0",kind="corrected"}}': "3x180",
            f'corral_gpu_slowed{{node="{node}",gpu="0",reason="sw_power_cap"}}': "1x180",
            f'corral_gpu_slowed{{node="{node}",gpu="0",reason="hw_thermal_slowdown"}}': "0x180",
            f'corral_gpu_xid{{node="{node}",gpu="0",xid="63",action="log"}}': "1x180",
            f'corral_node_gpus_allocated{{node="{node}"}}': "1x180",
            f'corral_efa_sent_bytes_total{{node="{node}",device="rdmap16s27"}}': "0+1000000x180",
            f"corral_job_step_seconds{of_rank(node)}": "2x180",
            f"corral_job_own_step_seconds{of_rank(node)}": "1.6x180",
            f"corral_job_communication_ratio{of_rank(node)}": "0.15x180",
            f"corral_job_step_age_seconds{of_rank(node)}": "2x180",
        }.items()
    },
    f"corral_job_checkpoint_age_seconds{of_rank('train-1')}": "0+60x29 0+60x29 0+60x29 0+60x29 0+60x29 0+60x30",
    f"corral_job_checkpoint_interval_seconds{of_rank('train-1')}": "1800x180",
    **{
        series: values
        for node in ("train-1", "train-2")
        for series, values in {
            f"corral_job_tokens_per_second{of_rank(node)}": "3800x180",
            f'corral_job_run_processes{{node="{node}",queue="train",job_id="17",user="ada",run="llama"}}': "16x180",
        }.items()
    },
    **{
        f'corral_forecast_{name}{{run="llama",queue="train"}}': f"{value}x180"
        for name, value in {
            "gpus": 16,
            "mfu_ratio": 0.4,
            "nodes": 2,
            "tokens_per_second_per_gpu": 4000,
            "uncertainty_ratio": 0.15,
        }.items()
    },
}
JOB = {"job_id": "17", "user": "ada"}
WAITS = 'corral_job_wait_seconds{queue="train",account="vision"}'
# From the 62nd minute on, all processes of the job wait: two minutes later nodes know only how old their last step is.
HANGS: Mapping[str, str] = {
    f"corral_job_{name}{of_rank(node)}": values
    for node in RANKS
    for name, values in {
        "step_seconds": "2x63 stale",
        "own_step_seconds": "1.6x63 stale",
        "communication_ratio": "0.15x63 stale",
        "tokens_per_second": "3800x63 stale",
        "step_age_seconds": "2x61 2+60x120",
    }.items()
}
STUCK = {'corral_nodes{queue="train",state="allocated"}': "0x180"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What goes wrong, when the alert fires, and the labels and summary that it then has."""

    series: Mapping[str, str]
    at: str
    labels: Mapping[str, str]
    summary: str


CASES: Mapping[str, Sequence[Case]] = {
    "CorralHeadUnwell": [
        Case(
            series={series: values},
            at="30m",
            labels=labels,
            summary="The head's autoscaler or slurmctld does not answer: no job starts, and no machine ends.",
        )
        for series, values, labels in (
            ('up{job="corral"}', "1x10 0x180", {"job": "corral"}),
            ("corral_slurmctld_up", "1x10 0x180", {}),
            ("corral_autoscaler_cycle_age_seconds", "12x10 12+60x180", {}),
        )
    ],
    "CorralNodesDoNotBoot": [
        Case(
            series={f"corral_node_boot_failures{TRAIN}": "0x10 1x5 2x2 0x180"},
            at="30m",
            labels={"queue": "train"},
            summary="Queue train: 2 machines in a row did not boot.",
        )
    ],
    "CorralQueueStuck": [
        Case(
            series=STUCK,
            at="25m",
            labels={"queue": "train"},
            summary="Queue train: a job waits 25m 0s, and no node runs or boots.",
        )
    ],
    "CorralOffersBackOff": [
        Case(
            series={'corral_offer_backoff_seconds{queue="train",offer="train-1-on-demand"}': "120x180"},
            at="20m",
            labels={"queue": "train"},
            summary="Queue train: EC2 refuses all offers, next try in 2m 0s.",
        )
    ],
    "CorralGpusIdle": [
        Case(
            series={
                'corral_gpus{queue="train",state="idle"}': "32x180",
                'corral_gpus{queue="train",state="allocated"}': "0x180",
            },
            at="130m",
            labels={"queue": "train"},
            summary="Queue train: 32 GPUs cost money, and no job had one for 2 h.",
        )
    ],
    "CorralFileSystemNearlyFull": [
        Case(
            series={'corral_file_system_free_bytes{mount="/scratch"}': "200x10 70x180"},
            at="30m",
            labels={"mount": "/scratch"},
            summary="/scratch has 7% free.",
        )
    ],
    "CorralSpendAboveBudget": [
        Case(
            series={'corral_cost_usd_per_hour{estimate="low"}': "20x180"},
            at="70m",
            labels={},
            summary="As in the last day, a month costs 14600 USD, more than the budget of the base.",
        )
    ],
    "CorralEndsSoon": [
        Case(
            series={"corral_cluster_time_left_seconds": "9000-60x180"},
            at="60m",
            labels={},
            summary="The cluster ends in 1h 30m 0s, and stops its jobs.",
        )
    ],
    "CorralBlockEndsSoon": [
        Case(
            series={'corral_block_time_left_seconds{offer="train-2-capacity-block"}': "9000-60x180"},
            at="60m",
            labels={"offer": "train-2-capacity-block"},
            summary="The capacity block of train-2-capacity-block ends in 1h 30m 0s.",
        )
    ],
    "CorralAllocatedGpusIdle": [
        # A job that records no steps, on a node of its own: it does nothing, or works on one of its two GPUs, or on
        # one of those two of its four that are not lost.
        Case(
            series={
                'corral_node_gpus_allocated{node="train-5"}': f"{allocated}x180",
                'corral_gpu_utilization_ratio{node="train-5",gpu="0"}': first,
                'corral_gpu_utilization_ratio{node="train-5",gpu="1"}': "0.9x30 0x150",
            },
            at="105m",
            labels={"node": "train-5"},
            summary=f"{number} GPUs of train-5 are in jobs and have done nothing for 1 h.",
        )
        for first, allocated, number in (("0.9x30 0x150", 2, 2), ("0.9x180", 2, 1), ("0.9x180", 4, 1))
    ],
    "CorralGpusUnderused": [
        Case(
            series={f'corral_gpu_utilization_ratio{{node="{node}",gpu="0"}}': "0.97x60 0.6x120" for node in RANKS},
            at="95m",
            labels=JOB,
            summary="Job 17 of ada uses its GPUs for 60%.",
        )
    ],
    "CorralCommunicationHigh": [
        Case(
            series={f"corral_job_communication_ratio{of_rank(node)}": "0.15x60 0.35x120" for node in RANKS},
            at="95m",
            labels=JOB,
            summary="Job 17 of ada communicates for 35% of its steps.",
        )
    ],
    "CorralStepsSlower": [
        Case(
            series={f"corral_job_step_seconds{of_rank(node)}": "2x120 3x60" for node in RANKS},
            at="150m",
            labels=JOB,
            summary="Steps of job 17 of ada take 1.5 times as long as before.",
        )
    ],
    "CorralJobHangs": [
        Case(
            series=HANGS,
            at="100m",
            labels=JOB,
            summary="Job 17 of ada runs, and has made no step for 38m 2s.",
        )
    ],
    "CorralSlowerThanForecast": [
        Case(
            series={f"corral_job_tokens_per_second{of_rank(node)}": "3800x60 2400x120" for node in RANKS},
            at="95m",
            labels={**JOB, "run": "llama", "queue": "train"},
            summary="Job 17 of ada reaches 60% of the speed that is forecast of llama.",
        )
    ],
    "CorralNodeSlow": [
        Case(
            series={f"corral_job_own_step_seconds{of_rank('train-2')}": "1.6x60 2.4x120"},
            at="95m",
            labels={**JOB, "node": "train-2"},
            summary="train-2 works 1.33 times as long on a step of job 17 as other nodes, which wait for it.",
        )
    ],
    "CorralGpuErrors": [
        Case(
            series={series: "1x180"},
            at="30m",
            labels={"node": "train-2", "gpu": "0"},
            summary="GPU 0 of train-2 is faulty: an Xid error, or its memory.",
        )
        for series in (
            'corral_gpu_xid{node="train-2",gpu="0",xid="79",action="replace"}',
            'corral_gpu_memory_errors{node="train-2",gpu="0",kind="uncorrected"}',
        )
    ],
    "CorralEfaStandsStill": [
        Case(
            series={'corral_efa_sent_bytes_total{node="train-2",device="rdmap16s27"}': "0+1000000x60 60000000x120"},
            at="90m",
            labels={"node": "train-2"},
            summary="A job of several nodes makes steps on train-2, and EFA there sends nothing.",
        )
    ],
    "CorralEfaFalls": [
        Case(
            series={
                'corral_efa_sent_bytes_total{node="train-2",device="rdmap16s27"}': "0+1000000x120 120200000+200000x60"
            },
            at="150m",
            labels=JOB,
            summary="A node of job 17 of ada sends 20% of what it sent over EFA in a step before.",
        )
    ],
    "CorralGpuSlowed": [
        Case(
            series={'corral_gpu_slowed{node="train-2",gpu="0",reason="hw_thermal_slowdown"}': "0x60 1x120"},
            at="90m",
            labels={"node": "train-2", "gpu": "0"},
            summary="Heat or the power brake holds back GPU 0 of train-2 for 100% of the time.",
        )
    ],
    "CorralCheckpointOld": [
        Case(
            series={f"corral_job_checkpoint_age_seconds{of_rank('train-1')}": "0+60x180"},
            at="75m",
            labels=JOB,
            summary="Job 17 of ada makes steps, and its last checkpoint is 2.5 intervals old.",
        )
    ],
    "CorralNodeSilent": [
        Case(
            series={'up{job="nodes",node="train-2",queue="train"}': "1x60 0x120"},
            at="75m",
            labels={"node": "train-2", "queue": "train"},
            summary="train-2 is up in Slurm and shows no metrics: alerts miss its GPUs, EFA and jobs.",
        )
    ],
    "CorralAlertsUndelivered": [
        Case(
            series={'alertmanager_notifications_failed_total{job="alertmanager",integration="slack"}': "3x60 4x120"},
            at="65m",
            labels={"integration": "slack"},
            summary="Alertmanager cannot deliver alerts to slack.",
        )
    ],
}
FIRING = [pytest.param(name, case, id=f"{name}-{number}") for name in CASES for number, case in enumerate(CASES[name])]


def alert(name: str) -> Alert:
    return next(one for one in ALERTS if one.name == name)


def rules(directory: Path) -> Path:
    file = directory / "alerts.yml"
    file.write_text(fill("monitoring/alerts.yml.j2", alerts=ALERTS, recordings=RECORDINGS, cluster="dev"))
    return file


def outcome(directory: Path, series: Mapping[str, str], at: str, expected: Mapping[str, Sequence[object]]) -> str:
    """What promtool finds wrong if these alerts are expected at this time."""
    document = {
        "rule_files": [str(rules(directory))],
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "alert_rule_test": [
                    {"eval_time": at, "alertname": name, "exp_alerts": list(expected.get(name, ()))} for name in CASES
                ],
            }
        ],
    }
    file = directory / "cases.yml"  # JSON is YAML
    file.write_text(json.dumps(document))
    return run_cases(file)


def first_command(name: str, labels: Mapping[str, str]) -> str:
    text = alert(name).first_command.replace("ENV", "dev")
    return re.sub(r"{{ \$labels\.(\w+) }}", lambda found: labels[found[1]], text)


def fired(name: str, case: Case) -> Mapping[str, Sequence[object]]:
    return {
        name: [
            {
                "exp_labels": {**case.labels, "severity": str(alert(name).severity)},
                "exp_annotations": {
                    "summary": case.summary,
                    "runbook": f"docs/runbooks/{name}.md, or: corral runbook {name}",
                    "command": first_command(name, case.labels),
                },
            }
        ]
    }


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    assert check_rules(rules(tmp_path)) == ""


def test_every_alert_has_a_case() -> None:
    assert [one.name for one in ALERTS] == list(CASES)


@pytest.mark.parametrize(("name", "case"), FIRING)
def test_an_alert_fires_alone_for_what_it_is_about(name: str, case: Case, tmp_path: Path) -> None:
    assert outcome(tmp_path, {**HEALTHY, **case.series}, case.at, fired(name, case)) == ""


@pytest.mark.parametrize("at", ["5m", "30m", "90m", "179m"])
def test_all_alerts_are_silent_on_a_healthy_cluster(at: str, tmp_path: Path) -> None:
    assert outcome(tmp_path, HEALTHY, at, {}) == ""


@pytest.mark.parametrize(("name", "case"), [one for one in FIRING if one.values[0] != "CorralHeadUnwell"])
def test_an_alert_is_silent_while_the_cluster_is_deployed(name: str, case: Case, tmp_path: Path) -> None:
    changing = {**HEALTHY, **case.series, "corral_cluster_changing": "1x180"}
    assert outcome(tmp_path, changing, case.at, {}) == ""


def test_a_restart_of_the_head_within_five_minutes_alerts_nobody(tmp_path: Path) -> None:
    restarted = {**HEALTHY, 'up{job="corral"}': "1x10 0x4 1x180", "corral_slurmctld_up": "1x10 0x4 1x180"}
    assert outcome(tmp_path, restarted, "14m", {}) == ""


def test_a_queue_whose_nodes_boot_is_not_stuck(tmp_path: Path) -> None:
    boots = {**HEALTHY, **STUCK, 'corral_nodes{queue="train",state="booting"}': "2x180"}
    assert outcome(tmp_path, boots, "25m", {}) == ""


def test_offers_that_back_off_while_no_job_waits_alert_nobody(tmp_path: Path) -> None:
    series = {**HEALTHY, **CASES["CorralOffersBackOff"][0].series, WAITS: "0x180"}
    assert outcome(tmp_path, series, "20m", {}) == ""


def test_a_job_that_has_ended_leaves_no_alert(tmp_path: Path) -> None:
    ended = {name: "2x60" for name in HEALTHY if name.startswith("corral_job_step_seconds")}
    series = {**HEALTHY, **ended, **CASES["CorralGpusUnderused"][0].series, **CASES["CorralCheckpointOld"][0].series}
    assert outcome(tmp_path, series, "95m", {}) == ""


def test_efa_of_a_job_on_one_node_may_stand_still(tmp_path: Path) -> None:
    alone = {f"corral_job_step_seconds{of_rank('train-1')}": "_x180"}
    series = {**HEALTHY, **alone, **CASES["CorralEfaStandsStill"][0].series}
    assert outcome(tmp_path, series, "90m", {}) == ""


ALLOCATED_IDLE = CASES["CorralAllocatedGpusIdle"][0].series


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({'corral_node_gpus_allocated{node="train-5"}': "_x180"}, id="no job has them"),
        pytest.param({name: "_x180" for name in ALLOCATED_IDLE if "ratio" in name}, id="they report nothing"),
        pytest.param(
            {name: "0.9x30 0x60 0.9x10 0x80" for name in ALLOCATED_IDLE if "ratio" in name}, id="only for an hour"
        ),
        pytest.param(
            {'corral_node_gpus_allocated{node="train-5"}': "2x60 stale _x1 2x120"}, id="another job has them since"
        ),
    ],
)
def test_allocated_gpus_may_rest_for_an_hour(changes: Mapping[str, str], tmp_path: Path) -> None:
    assert outcome(tmp_path, {**HEALTHY, **ALLOCATED_IDLE, **changes}, "105m", {}) == ""


def of_ranks(name: str, values: str, nodes: Sequence[str] = tuple(RANKS)) -> Mapping[str, str]:
    return {f"corral_job_{name}{of_rank(node)}": values for node in nodes}


@pytest.mark.parametrize(
    ("changes", "at"),
    [
        pytest.param(of_ranks("step_age_seconds", "2x61 2+60x33 2x90"), "95m", id="a checkpoint of 33 minutes"),
        pytest.param(
            {**of_ranks("step_seconds", "600x180"), **of_ranks("step_age_seconds", "0+60x98")}, "96m", id="long steps"
        ),
        pytest.param(of_ranks("step_age_seconds", "_x60 7200+60x28 2x90"), "88m", id="it was requeued and starts"),
        pytest.param(of_ranks("step_age_seconds", "2x61 stale"), "100m", id="its training has ended"),
        pytest.param(of_ranks("step_age_seconds", "2x180", ["train-1"]), "100m", id="a process makes steps"),
    ],
)
def test_a_job_may_pause_as_jobs_do(changes: Mapping[str, str], at: str, tmp_path: Path) -> None:
    assert outcome(tmp_path, {**HEALTHY, **HANGS, **changes}, at, {}) == ""


def test_a_job_hangs_also_when_its_steps_are_forgotten(tmp_path: Path) -> None:
    case = Case(
        series={**HANGS, **of_ranks("step_age_seconds", "2x61 2+60x500")},
        at="500m",
        labels=JOB,
        summary="Job 17 of ada runs, and has made no step for 7h 18m 2s.",
    )
    assert outcome(tmp_path, {**HEALTHY, **case.series}, case.at, fired("CorralJobHangs", case)) == ""


TRAFFIC = 'corral_efa_sent_bytes_total{node="train-2",device="rdmap16s27"}'


def test_slower_steps_that_send_as_much_are_no_fault_of_the_network(tmp_path: Path) -> None:
    slower = {
        f'corral_efa_sent_bytes_total{{node="{node}",device="rdmap16s27"}}': "0+1200000x120 144400000+400000x60"
        for node in RANKS
    }
    case = Case(
        series={**slower, **of_ranks("step_seconds", "2x120 6x60")},
        at="150m",
        labels=JOB,
        summary="Steps of job 17 of ada take 3.0 times as long as before.",
    )
    assert outcome(tmp_path, {**HEALTHY, **case.series}, case.at, fired("CorralStepsSlower", case)) == ""


@pytest.mark.parametrize(
    ("traffic", "at"),
    [
        pytest.param("0+1000000x25 25200000+200000x150", "50m", id="less than half an hour to compare with"),
        pytest.param("0+1000000x120 120000000x8 121000000+1000000x50", "133m", id="a pause of nine minutes"),
    ],
)
def test_efa_may_send_less_for_a_while(traffic: str, at: str, tmp_path: Path) -> None:
    assert outcome(tmp_path, {**HEALTHY, TRAFFIC: traffic}, at, {}) == ""


def test_a_node_whose_metrics_stop_for_nine_minutes_alerts_nobody(tmp_path: Path) -> None:
    series = {**HEALTHY, 'up{job="nodes",node="train-2",queue="train"}': "1x60 0x8 1x120"}
    assert outcome(tmp_path, series, "69m", {}) == ""


def test_a_node_that_is_off_is_not_silent(tmp_path: Path) -> None:
    series = {**HEALTHY, 'up{job="nodes",node="train-2",queue="train"}': "1x60 0x1 stale"}
    assert outcome(tmp_path, series, "90m", {}) == ""


def test_a_failed_delivery_is_forgotten_after_a_quarter_of_an_hour(tmp_path: Path) -> None:
    series = {**HEALTHY, **CASES["CorralAlertsUndelivered"][0].series}
    assert outcome(tmp_path, series, "80m", {}) == ""


def test_a_restart_of_alertmanager_is_no_failed_delivery(tmp_path: Path) -> None:
    slack = 'alertmanager_notifications_failed_total{job="alertmanager",integration="slack"}'
    assert outcome(tmp_path, {**HEALTHY, slack: "3x60 0x120"}, "65m", {}) == ""


SLOWER = CASES["CorralSlowerThanForecast"][0].series


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({f"corral_job_tokens_per_second{of_rank(node)}": "3420x180" for node in RANKS}, id="0.855"),
        pytest.param({f"corral_job_tokens_per_second{of_rank('train-2')}": "_x180"}, id="a process is missing"),
        pytest.param(
            {**SLOWER, 'corral_forecast_nodes{run="llama",queue="train"}': "4x180"}, id="another number of nodes"
        ),
        pytest.param(
            {**SLOWER, 'corral_forecast_gpus{run="llama",queue="train"}': "_x180"}, id="a run that is not declared"
        ),
        pytest.param({f"corral_job_tokens_per_second{of_rank(node)}": "0x180" for node in RANKS}, id="no tokens"),
        pytest.param(dict.fromkeys(SLOWER, "2400x88"), id="it has ended"),
    ],
)
def test_a_forecast_is_compared_with_its_own_run_alone(changes: Mapping[str, str], tmp_path: Path) -> None:
    assert outcome(tmp_path, {**HEALTHY, **changes}, "95m", {}) == ""


SENT = {"train-1": "0+1200000x180", "train-2": "0+600000x180"}  # 20 and 10 kB a second, and steps of two seconds
OF_RUN = 'job_id="17", queue="train", run="llama", user="ada"'


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("corral_job_tokens_per_second_per_gpu", {OF_RUN: 3800.0}),
        ("corral_job_forecast_ratio", {OF_RUN: 0.95}),
        ("corral_job_mfu_ratio", {OF_RUN: 0.38}),
        (
            "corral_job_efa_sent_bytes_per_step",
            {
                f'job_id="17", node="{node}", user="ada"': sent
                for node, sent in (("train-1", 40000), ("train-2", 20000))
            },
        ),
    ],
)
def test_what_prometheus_records_of_a_job(name: str, expected: Mapping[str, float], tmp_path: Path) -> None:
    efa = {f'corral_efa_sent_bytes_total{{node="{node}",device="rdmap16s27"}}': values for node, values in SENT.items()}
    series = [{"series": name, "values": values} for name, values in {**HEALTHY, **efa}.items()]
    samples = [{"labels": f"{name}{{{labels}}}", "value": value} for labels, value in expected.items()]
    query = {"expr": name, "eval_time": "30m", "exp_samples": samples}
    case = {"interval": "1m", "input_series": series, "promql_expr_test": [query]}
    file = tmp_path / "recorded.yml"
    file.write_text(json.dumps({"rule_files": [str(rules(tmp_path))], "evaluation_interval": "1m", "tests": [case]}))
    assert run_cases(file) == ""


def test_every_recorded_series_has_a_test() -> None:
    marks = test_what_prometheus_records_of_a_job.pytestmark  # type: ignore[attr-defined]
    assert [name for name, _ in marks[0].args[1]] == [one.name for one in RECORDINGS]


def test_promtool_would_find_an_alert_that_does_not_fire(tmp_path: Path) -> None:
    case = CASES["CorralQueueStuck"][0]
    assert "FAILED" in outcome(tmp_path, HEALTHY, case.at, fired("CorralQueueStuck", case))


@pytest.mark.parametrize("name", [one.name for one in ALERTS])
def test_an_alert_uses_only_metrics_that_head_or_nodes_have(name: str) -> None:
    used = set(re.findall(r"corral_\w+", alert(name).expression))
    assert used - {one.name for one in (*head_metrics(), *node_metrics(), *RECORDINGS)} == set()


def test_counters_are_read_as_increases() -> None:
    metrics = (*head_metrics(), *node_metrics())
    counters = {metric.name for metric in metrics if metric.kind is Kind.COUNTER}
    plain = [
        one.name
        for one in ALERTS
        for name in counters
        if name in one.expression and f"increase({name}[" not in one.expression
    ]
    assert plain == []


@pytest.mark.parametrize("name", [one.name for one in ALERTS])
def test_a_runbook_has_its_four_parts_on_one_screen(name: str) -> None:
    text = (ROOT / f"docs/runbooks/{name}.md").read_text()
    parts = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert (text.splitlines()[0], parts, len(text.splitlines()) <= 40) == (
        f"# {name}",
        ["Meaning", "Why it matters", "Look", "Do"],
        True,
    )


@pytest.mark.parametrize("name", [one.name for one in ALERTS])
def test_a_runbook_looks_first_where_the_alert_does(name: str) -> None:
    text = (ROOT / f"docs/runbooks/{name}.md").read_text()
    look = text.partition("## Look\n")[2].splitlines()[0].partition("  #")[0].strip()
    assert look == first_command(name, {"job_id": "17", "node": "train-2"})


def test_there_is_no_runbook_without_an_alert() -> None:
    pages = {file.stem for file in (ROOT / "docs/runbooks").glob("*.md")}
    assert pages - {one.name for one in ALERTS} == set()
