"""The demo shows what README.md lists, and fails if what it says about an interruption is not true."""

from __future__ import annotations

import importlib
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from corral.render.alerts import ALERTS

DEMO = Path(__file__).parents[2] / "tools/demo"
ENDED = {"JobState": "COMPLETED", "Restarts": "1"}
LOG = """continues after step 0
process 0 agrees to a checkpoint after step 12
corral: requeue, the checkpoint is written and a machine is being reclaimed
continues after step 12
"""

MESSAGE = """train-2 works 2.00 times as long on a step of job 3 as other nodes, which wait for it.
Since 2026-11-28 19:12 UTC.
Look first: corral diagnose dev 3
Runbook: docs/runbooks/CorralNodeSlow.md"""


@pytest.fixture
def alerts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The step with the alert, as `make demo` imports it."""
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module("alert_steps")


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The steps on the running cluster, as `make demo` imports them."""
    monkeypatch.syspath_prepend(str(DEMO))
    return importlib.import_module("job_steps")


def test_the_demo_goes_from_plan_to_teardown_with_a_lost_head_and_an_interruption_in_between(steps: ModuleType) -> None:
    demo = importlib.import_module("stack_steps")
    order = (demo.plan, demo.up, steps.run_job, steps.train, steps.lose_head, steps.interrupt_training, demo.down)
    found = runpy.run_path(str(DEMO / "__main__.py"), run_name="demo")["STEPS"]
    assert [step for _, step in found if step in order] == list(order)


@pytest.mark.long
@pytest.mark.pulumi
@pytest.mark.box
@pytest.mark.slurm
def test_the_demo_succeeds(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, DEMO], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout[-5000:]
    assert [path.name for path in tmp_path.iterdir()] == ["corral-demo.html"]


def test_a_job_that_moved_after_its_checkpoint_is_what_the_demo_claims(steps: ModuleType) -> None:
    steps.expect_move("train-3", ["train-4", "train-5"], ENDED, LOG)


@pytest.mark.parametrize(
    ("after", "ended", "log", "claim"),
    [
        (["train-4", "train-5"], ENDED | {"Restarts": "0"}, LOG, "the notice interrupted it"),
        (["train-3", "train-4"], ENDED, LOG, "it left train-3 for another node"),
        (["train-4", "train-5"], ENDED, LOG.replace("corral: requeue", "requeue"), "it moved when its checkpoint was"),
        (["train-4", "train-5"], ENDED, LOG.replace("agrees", "objects"), "it continued after the step that it saved"),
        (
            ["train-4", "train-5"],
            ENDED,
            LOG.replace("after step 12\n", "after step 0\n"),
            "it continued after the step",
        ),
        (["train-4", "train-5"], ENDED | {"JobState": "FAILED"}, LOG, "the job completed"),
    ],
    ids=["no restart", "same node", "no request", "no agreement", "from the start", "failed"],
)
def test_an_interruption_that_did_not_happen_ends_the_demo(
    steps: ModuleType, after: list[str], ended: Mapping[str, str], log: str, claim: str
) -> None:
    with pytest.raises(importlib.import_module("session").Unexpected, match=f"expected, but false: {claim}"):
        steps.expect_move("train-3", after, ended, log)


def test_a_slow_node_that_is_not_found_ends_the_demo(alerts: ModuleType) -> None:
    alerts.expect_slow_node("train-2", [{"kind": "straggler", "nodes": ["train-2"]}])
    with pytest.raises(
        importlib.import_module("session").Unexpected, match="false: train-2 is found, and nothing else"
    ):
        alerts.expect_slow_node("train-2", [])


def test_the_demo_looks_first_where_the_alert_does(alerts: ModuleType) -> None:
    assert alerts.expect_alert("train-2", 3, [MESSAGE]) == ("diagnose", "dev", "3", "--box")


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([MESSAGE, MESSAGE], "false: one message arrived"),
        ([MESSAGE.replace("train-2", "train-1")], "false: it names train-2 and job 3"),
        ([MESSAGE.replace("job 3", "job 33")], "false: it names train-2 and job 3"),
        ([MESSAGE.replace("Look first", "Look")], "the message should name a command"),
    ],
    ids=["two", "another node", "another job", "no command"],
)
def test_another_alert_ends_the_demo(alerts: ModuleType, messages: list[str], problem: str) -> None:
    with pytest.raises(importlib.import_module("session").Unexpected, match=problem):
        alerts.expect_alert("train-2", 3, messages)


def test_the_demos_rule_is_the_shipped_one_without_its_minutes(alerts: ModuleType) -> None:
    (shipped,) = (one for one in ALERTS if one.name == "CorralNodeSlow")
    expression = re.sub(r"avg_over_time\((\w+)\[10m\]\)", r"\1", shipped.expression)
    ((rule,),) = (group["rules"] for group in yaml.safe_load(alerts.RULE.read_text())["groups"])
    assert rule == {
        "alert": "NodeSlowAtOnce",
        "expr": expression.removeprefix("(").removesuffix(") unless on () corral_cluster_changing == 1"),
        "labels": {"severity": shipped.severity},
        "annotations": {
            "summary": shipped.summary,
            "runbook": f"docs/runbooks/{shipped.name}.md",
            "command": shipped.first_command.replace("ENV", "dev"),
        },
    }
