"""The documents of `corral dashboard`: nodes by kind, offers, answers, and a job's curves beside its forecast."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from corral.agent.cluster.models import SlurmNode
from corral.agent.metrics.head_metrics import node_state
from corral.model.job_evidence import NO_CURVES, JobNodes
from corral.report.dashboard.cluster_document import (
    NODE_KINDS,
    SHOWN_EVENTS,
    Answer,
    ClusterView,
    cluster_document,
    node_kind,
)
from corral.report.dashboard.job_document import SHOWN_PROCESSES, job_document
from corral.report.diagnosis.diagnose import diagnose
from report.dashboard.synthetic_views import AT, events, head_job, job_evidence, queues, slurm, view

STATES = (
    *("IDLE", "ALLOCATED", "MIXED", "COMPLETING", "DOWN", "DRAIN", "UNKNOWN", "POWERING_UP"),
    *("POWERED_DOWN", "POWERING_DOWN", "POWER_DOWN", "NOT_RESPONDING"),
)
EMPTY = ClusterView(environment="train", region="us-east-1", queues=queues())


def job(**changes: Any) -> Any:
    seen = replace(job_evidence(), **changes)
    return job_document(seen, diagnose(seen), AT)


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("idle", "idle"),
        ("allocated", "allocated"),
        ("idle+powered_down", "off"),
        ("idle+powering_down", "stopping"),
        ("allocated+power_down", "allocated"),
        ("allocated+powering_up", "booting"),
        ("idle+not_responding", "down"),
        ("drain+mixed", "draining"),
    ],
)
def test_kind_of_a_node(state: str, kind: str) -> None:
    assert node_kind(state) == kind


def test_nodes_are_counted_as_the_metrics_count_them() -> None:
    several = [frozenset(found) for number in (1, 2, 3) for found in combinations(STATES, number)]
    differing = {
        states
        for states in several
        if node_kind("+".join(sorted(states)).lower()) != node_state(SlurmNode(name="train-1", states=states))
    }
    assert differing == set()


def test_every_node_is_listed_in_the_order_of_its_number() -> None:
    (queue,) = cluster_document(view())["queues"]
    assert [one["name"] for one in queue["nodes"]] == [f"train-{number}" for number in range(1, 1001)]


def test_nodes_are_counted_by_kind_with_the_worst_first() -> None:
    (queue,) = cluster_document(view())["queues"]
    assert [*queue["counts"].items()] == [
        ("down", 1),
        ("draining", 1),
        ("allocated", 96),
        ("idle", 8),
        ("booting", 4),
        ("stopping", 2),
        ("off", 888),
    ]
    assert [*queue["counts"]] == [*NODE_KINDS]


def test_a_node_names_its_jobs() -> None:
    shared = replace(slurm(), jobs=(head_job("17", "train-[1-2]", count=2), head_job("18", "train-2")))
    (queue,) = cluster_document(replace(view(), slurm=shared))["queues"]
    assert [one["jobs"] for one in queue["nodes"][:3]] == [["17"], ["17", "18"], []]


def test_a_list_of_nodes_that_slurm_cut_off_names_none() -> None:
    cut = replace(slurm(), jobs=(head_job("17", "train-[1-2,4-"),))
    (queue,) = cluster_document(replace(view(), slurm=cut))["queues"]
    assert queue["nodes"][0]["jobs"] == []


def test_a_queue_that_only_slurm_knows_is_shown_without_a_type() -> None:
    (queue,) = cluster_document(replace(view(), queues=()))["queues"]
    assert (queue["name"], queue["instance_type"]) == ("train", None)


def test_offers_have_their_machines_and_backoff() -> None:
    offers = {one["offer"]: one for one in cluster_document(view())["offers"]}
    assert offers["train-spot-use1-az1"] == {
        "queue": "train",
        "offer": "train-spot-use1-az1",
        "market": "spot",
        "machines": 105,
        "backoff": {
            "until": "2026-11-28T12:15:00+00:00",
            "kind": "no capacity",
            "reason": "InsufficientInstanceCapacity",
        },
    }
    assert (offers["train-spot-use1-az2"]["machines"], offers["train-spot-use1-az2"]["backoff"]) == (0, None)


def test_an_offer_that_is_not_declared_any_more_is_shown_once() -> None:
    offers = cluster_document(replace(view(), queues=()))["offers"]
    assert [(one["queue"], one["offer"], one["market"]) for one in offers] == [("train", "train-spot-use1-az1", None)]


def test_without_any_answer_everything_is_unknown_and_nothing_is_zero() -> None:
    document = cluster_document(replace(EMPTY, of_head=Answer(problem="train has no head now", every_s=10)))
    assert (document["slurm"], document["queues"], document["usd_per_hour"], document["usd_so_far"]) == (
        None,
        [],
        None,
        None,
    )
    assert {one["machines"] for one in document["offers"]} == {None}
    assert document["answers"]["head"] == {"at": None, "problem": "train has no head now", "every_s": 10}


def test_costs_are_ranges_with_what_they_lack() -> None:
    document = cluster_document(view())
    assert document["usd_per_hour"] == {"usd": {"low": 900.5, "high": 1400.5}, "incomplete": []}
    assert document["usd_so_far"] == {
        "since": "2026-11-28T09:00:00+00:00",
        "usd": {"low": 2700.0, "high": 4200.0},
        "incomplete": [],
    }


def test_events_are_the_newest_first_and_bounded() -> None:
    document = cluster_document(replace(view(), events=events() * 100))
    assert (len(document["events"]), document["events"][0]["kind"]) == (SHOWN_EVENTS, "notice")


def test_curves_are_for_each_gpu_with_the_forecast() -> None:
    seen = job_evidence()
    tokens, mfu = job()["curves"][:2]
    assert seen.expected is not None
    assert tokens["forecast"] == pytest.approx(seen.expected.tokens_per_s_per_accelerator)
    assert tokens["points"][-1] == [seen.curve[-1].at, seen.curve[-1].tokens_per_s]
    assert mfu["points"][-1][1] == pytest.approx(0.42 * tokens["points"][-1][1] / tokens["forecast"])


def test_several_processes_of_one_gpu_are_added_up() -> None:
    seen = job_evidence()
    halved = job(job=replace(seen.job, gpus=seen.job.gpus // 2))["curves"][0]
    assert halved["points"][-1][1] == pytest.approx(2 * seen.curve[-1].tokens_per_s)


def test_without_a_run_file_there_is_no_forecast_and_no_mfu() -> None:
    document = job(expected=None)
    assert (document["forecast"], {one["forecast"] for one in document["curves"]}) == (None, {None})
    assert "MFU" not in [one["name"] for one in document["curves"]]
    assert (
        "the forecast: set CORRAL_RUN in the job (docs/diagnose.md), or start the dashboard with --run FILE"
        in document["missing"]
    )


def test_a_job_that_records_nothing_has_no_curves_and_the_page_names_why() -> None:
    document = job(ranks=(), curve=(), nodes=JobNodes())
    assert (document["curves"], document["gpu_utilization"], document["processes"]) == ([], None, [])
    assert document["missing"][0] == "curves of steps: the job records none (docs/diagnose.md shows how)"


def test_a_job_that_does_not_record_communication_lacks_that_curve_alone() -> None:
    seen = job_evidence()
    document = job(curve=tuple(replace(one, communication_share=None) for one in seen.curve))
    assert "communication: the job does not record it" in document["missing"]
    assert "communication" not in [one["name"] for one in document["curves"]]


def test_the_slowest_processes_come_first() -> None:
    nodes = [one["node"] for one in job()["processes"]]
    assert nodes[:4] == ["train-3"] * 4


def test_of_many_processes_only_the_slowest_are_sent() -> None:
    document = job(ranks=job_evidence().ranks * 10)
    assert (len(document["processes"]), document["process_count"]) == (SHOWN_PROCESSES, 160)


def test_a_pause_of_the_job_is_a_gap_in_its_curve() -> None:
    seen = job_evidence()
    later = [replace(one, at=one.at + 3000) if number > 20 else one for number, one in enumerate(seen.curve)]
    points = job(curve=tuple(later))["curves"][0]["points"]
    gaps = [number for number, (_, value) in enumerate(points) if value is None]
    assert (gaps, len(points)) == ([21], len(seen.curve) + 1)


def test_a_curve_without_a_pause_has_no_gap() -> None:
    assert [one for one in job()["curves"][0]["points"] if one[1] is None] == []


def history(**changes: Any) -> Any:
    return job(**changes)["history"]


def test_the_whole_run_has_speed_mfu_gpus_network_and_communication() -> None:
    shown = [(one["name"], one["unit"], one["forecast"] is None) for one in history()["curves"]]
    assert shown == [
        ("tokens/s for each GPU", "tokens/s", False),
        ("MFU", "share", False),
        ("GPUs at work", "share", True),
        ("sent by EFA, for each node", "B/s", True),
        ("communication", "share", False),
    ]


def test_a_minute_without_a_value_stays_one() -> None:
    seen = job_evidence()
    efa = history()["curves"][3]["points"]
    assert efa[38] == [(seen.job.started or 0) + 40 * 60, None]
    assert (len(efa), efa[-1][0]) == (89, history()["until"])


def test_mfu_follows_the_tokens_by_the_forecast() -> None:
    seen = job_evidence()
    assert seen.expected is not None
    tokens, mfu = (one["points"][0][1] for one in history()["curves"][:2])
    assert mfu / 0.42 == pytest.approx(tokens / seen.expected.tokens_per_s_per_accelerator)


def test_several_processes_of_one_gpu_are_added_up_in_the_whole_run_too() -> None:
    seen = job_evidence()
    halved = history(job=replace(seen.job, gpus=seen.job.gpus // 2))["curves"][0]["points"][0][1]
    assert halved == pytest.approx(2 * (seen.curves.tokens_per_s[0] or 0.0))


def test_gpus_and_efa_that_do_nothing_are_curves_too() -> None:
    idle = replace(job_evidence().curves, gpu_utilization=(0.0,) * 89, efa_sent_bytes_per_s=(0.0,) * 89)
    names = [one["name"] for one in history(curves=idle)["curves"]]
    assert ("GPUs at work" in names, "sent by EFA, for each node" in names) == (True, True)


KEPT = job_evidence().curves
NOTHING = replace(KEPT, tokens_per_s=(), communication_share=(), gpu_utilization=(), efa_sent_bytes_per_s=())


@pytest.mark.parametrize(
    ("curves", "missing"),
    [
        pytest.param(KEPT, [], id="all of it"),
        pytest.param(
            NO_CURVES,
            [
                "curves of the whole run, of its GPUs and of its network: nothing keeps them - declare"
                " `monitoring: {prometheus: true}` (docs/monitoring.md)"
            ],
            id="no Prometheus declared",
        ),
        pytest.param(
            replace(NOTHING, problem="Prometheus: it does not run"),
            [
                "complete curves of the run until Prometheus answers; the job's nodes keep ten minutes, whose mean is"
                " above as GPUs at work"
            ],
            id="it does not answer",
        ),
        pytest.param(
            replace(NOTHING, nodes=0), ["curves of the run yet: it has not run for two minutes"], id="too young"
        ),
        pytest.param(
            NOTHING,
            ["curves of the run: its nodes reported nothing (those that ran before Prometheus was declared never do)"],
            id="nodes without metrics",
        ),
        pytest.param(
            replace(KEPT, gpu_utilization=()),
            ["GPUs: they reported nothing, or the run shared its nodes' GPUs and has ended"],
            id="no GPUs",
        ),
        pytest.param(
            replace(KEPT, tokens_per_s=()),
            ["tokens: the job records none, or no steps (docs/diagnose.md shows how)"],
            id="no tokens",
        ),
    ],
)
def test_what_is_missing_of_the_whole_run_is_named_with_what_to_do(curves: Any, missing: list[str]) -> None:
    assert history(curves=curves)["missing"] == missing


def test_a_prometheus_that_does_not_answer_is_a_problem_and_what_did_arrive_is_shown() -> None:
    part = replace(KEPT, efa_sent_bytes_per_s=(), problem="Prometheus: no answer within 4 s")
    assert (history(curves=part)["problem"], len(history(curves=part)["curves"])) == (part.problem, 4)
