"""docs/cli.md against the commands: every command, every option, and the keys of every JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from calls import REPOSITORY, corral

from corral.box.api.service_quotas import row
from corral.box.fault_api.describe import fault_documents
from corral.box.faults.records import NoCapacity
from corral.catalog.aws.quota_defaults import find_quota
from corral.cli.app import build
from corral.cli.commands.bootstrap import bootstrap_document
from corral.cli.commands.box.quota import quotas_document
from corral.cli.help_page import ENTRIES
from corral.engine.bootstrap.bootstrap import StepOutcome, StepResult, bootstrap_steps
from corral.engine.bootstrap.step import BootstrapTarget
from corral.engine.lifecycle.down import DownResult
from corral.engine.lifecycle.extend import ExtendResult
from corral.engine.lifecycle.up import UpResult
from corral.engine.lifecycle.upgrade import ImageUpgrade, UpgradeResult
from corral.engine.pulumi.stack import StackResult
from corral.forecast.cost.budget_limits import CostLimit
from corral.forecast.cost.cost_range import Sum, Usd
from corral.forecast.cost.environment_cost import forecast_cost
from corral.forecast.cost.pool_capacity import MarketCapacity
from corral.forecast.cost.rent_vs_buy import compare_rent_vs_buy
from corral.forecast.published.speed_validation import PublishedTable, compare_speeds, shipped_runs
from corral.forecast.warnings import plan_warnings
from corral.inventory.cleanup_report import CleanupFindings
from corral.inventory.orphans import Orphan
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.retained_data import RetainedResource
from corral.inventory.status import find_status
from corral.model.enums import Market
from corral.model.head_report import AutoscalerStatus, DrainResult, HeadJob, HeadStatus, NodeGroup, OfferBackoff
from corral.preflight.preflight_findings import PreflightFinding, PreflightVerdict
from corral.render.output_dir import FileChange
from corral.report.account.check_view import check_document
from corral.report.account.cleanup_view import cleanup_document
from corral.report.account.status_view import status_document
from corral.report.dashboard.cluster_document import cluster_document
from corral.report.dashboard.job_document import job_document
from corral.report.diagnosis.diagnose import diagnose
from corral.report.diagnosis.diagnosis_view import diagnosis_document
from corral.report.diagnosis.findings import FindingKind
from corral.report.doctor_view import DoctorFinding, Purpose, doctor_document
from corral.report.plan.plan_json import plan_document
from corral.report.plan.render_changes import changes_document
from corral.report.run.accelerator_table import accelerators_document
from corral.report.run.rent_vs_buy_view import buy_document
from corral.report.run.validation_view import validation_document
from corral.report.usage.forecast_vs_actual import ForecastComparison, ForecastRow
from corral.report.usage.usage_by import GroupBy, usage_table
from corral.report.usage.usage_by_views import usage_table_document
from corral.report.usage.usage_json import timeline_document
from corral.spec.spec_errors import SpecError
from corral.spec.yaml.buy_files import read_purchase
from corral.spec.yaml.stack_files import read_environment
from report.dashboard.synthetic_views import AT, job_evidence, view
from report.diagnosis.synthetic_jobs import evidence, faulty_job
from small_history import RUNS, history_timeline, history_usage
from worked_example import BASE, CLUSTER, RoundPrices

PAGE = (REPOSITORY / "docs" / "cli.md").read_text()
SHAPES = dict(re.findall(r"<!-- shape: (\S+) -->\n```json\n(.*?)\n```", PAGE, re.DOTALL))
OWN = {"corral:base": "dev", "corral:cluster": "dev", "Name": "x"}
NODE = AwsResource(
    kind=ResourceKind.INSTANCE, id="i-1", tags={**OWN, "corral:queue": "train", "corral:nodes": "train-1"}
)
HEAD = AwsResource(kind=ResourceKind.INSTANCE, id="i-0", tags=OWN, since=datetime(2026, 11, 21, tzinfo=UTC))
SLURM = HeadStatus(
    at=0,
    jobs=(
        HeadJob(
            job_id="7",
            user="ada",
            name="x",
            queue="train",
            state="pending",
            nodes="",
            node_count=2,
            since=0,
            reason="",
            until=9,
        ),
    ),
    running=0,
    waiting=1,
    backoffs=(OfferBackoff(offer="train-spot", until=9, kind="no capacity", reason="x"),),
    disabled_queues=(),
    nodes=(NodeGroup(queue="train", state="idle", nodes="train-1", count=1),),
    autoscaler=AutoscalerStatus(is_running=False, last_cycle=0, start_command="x", log_command="x"),
)
HOME = AwsResource(kind=ResourceKind.HOME, id="fs-1", tags=OWN, size_gib=1)


def plan() -> Any:
    prices = RoundPrices()
    refusal = SpecError(file="x", path="usd_per_hour_max", message="x", fix="x")
    limit = CostLimit(field="usd_per_hour_max", usd=50.0, cost=Sum(usd=Usd(1, 80)), refusal=refusal)
    cost = forecast_cost(BASE, CLUSTER, prices)
    return plan_document(BASE, CLUSTER, cost, plan_warnings(BASE, CLUSTER, prices), [limit], rent_vs_buy())


def rent_vs_buy() -> Any:
    environment = read_environment(REPOSITORY, "train")
    purchase = read_purchase(REPOSITORY / "examples/buy/h100.yaml", environment)
    supply = MarketCapacity(market=Market.ON_DEMAND, most=16, usd_per_node_hour=Usd(50, 50), source="x")
    return buy_document(compare_rent_vs_buy(purchase, (supply,)))


def status() -> Any:
    priced = [replace(thing, type="p4d.24xlarge", market="spot") for thing in (HEAD, NODE)]
    ends = datetime(2026, 11, 22, tzinfo=UTC)
    return status_document(find_status([*priced, HOME], "dev", "dev", "us-east-1", ends, RoundPrices()), SLURM)


def timeline() -> Any:
    row = ForecastRow(what="days", low=9.6, high=11.8, least=0.1, most=0.1)
    against = ForecastComparison(
        job_id="7", name="fit", completed=True, nodes=2, planned=16, markets=("spot",), rows=(row,)
    )
    return timeline_document(history_timeline(), history_usage(), against)


def usage() -> Any:
    run = replace(RUNS[0], cpus=192, gpus=16)
    return usage_table_document("train", usage_table((history_usage(runs=(run,)),), GroupBy.JOB), [])


def cleanup() -> Any:
    left = (Orphan(resource=replace(HOME, kind=ResourceKind.VOLUME), reason="cluster dev is not up"),)
    found = CleanupFindings(region="us-east-1", backend="file:///", orphans=left, foreign=(), retained=(HOME,))
    return cleanup_document([found], lambda region: RoundPrices())


def render() -> Any:
    return changes_document([FileChange(path="slurm/slurm.conf", before=None, after="x")], "out")


def doctor() -> Any:
    return doctor_document([DoctorFinding(name="Pulumi", found=None, needed_for=(Purpose.AWS,), fix="get it")])


def box() -> Any:
    return json.loads(corral("box", "status", "--json").stdout)


def faults() -> Any:
    now = datetime(2026, 11, 21, 12)
    shown = fault_documents([NoCapacity(remaining=1)], (), now)
    return {"schema": "corral.faults/2", "faults": shown}


def quotas() -> Any:
    quota = find_quota("L-417A185B")
    return quotas_document({"region": "us-east-1", "quotas": [row(quota, 4608.0)]})


def upgrade() -> Any:
    move = ImageUpgrade(key="image", profile="ubuntu-24.04-dlami", pinned="ami-1", newest="ami-2")
    return UpgradeResult(
        moved=(move,), up=UpResult(stacks={"base": StackResult(), "cluster": StackResult()})
    ).to_document()


def check() -> Any:
    return check_document(
        "dev", [PreflightFinding(check="quotas", about="x", verdict=PreflightVerdict.OK, message="x")]
    )


def bootstrap() -> Any:
    target = BootstrapTarget(account="123456789012", region="us-east-1")
    return bootstrap_document(target, [StepResult(step=bootstrap_steps()[0], outcome=StepOutcome.CREATED)])


def up() -> Any:
    stacks = {"base": StackResult(outputs={"vpc": "x"}), "cluster": StackResult(outputs={"base": "x"})}
    return {**UpResult(stacks=stacks).to_document(), "applied": None}


def down() -> Any:
    bucket = RetainedResource(kind=ResourceKind.BUCKET, id="x", name="x", size_gib=1.5, usd_per_month=0.03)
    stacks = {"cluster": StackResult(), "base": StackResult()}
    return {
        **DownResult(stacks=stacks, retained=(bucket,)).to_document(),
        "drained": asdict(DrainResult(refused=False)),
    }


def extend() -> Any:
    end = datetime(2026, 11, 22, tzinfo=UTC)
    return ExtendResult(cluster="dev", former=end, ends_at=end, head=None).to_document()


def diagnosis() -> Any:
    seen = evidence(faulty_job(FindingKind.STRAGGLER, 1))
    return diagnosis_document(seen, diagnose(seen))


def validation() -> Any:
    return validation_document(compare_speeds(shipped_runs()), PublishedTable.FIRST.file)


def accelerators() -> Any:
    return accelerators_document()


REAL: dict[str, Callable[[], Any]] = {
    "corral.plan/3": plan,
    "corral.render/1": render,
    "corral.check/2": check,
    "corral.bootstrap/2": bootstrap,
    "corral.up/1": up,
    "corral.down/2": down,
    "corral.status/2": status,
    "corral.timeline/2": timeline,
    "corral.usage/1": usage,
    "corral.diagnose/1": diagnosis,
    "corral.dashboard/1": lambda: cluster_document(view()),
    "corral.dashboard-job/1": lambda: job_document(job_evidence(), diagnose(job_evidence()), AT),
    "corral.extend/1": extend,
    "corral.cleanup/2": cleanup,
    "corral.box/4": box,
    "corral.faults/2": faults,
    "corral.quotas/1": quotas,
    "corral.doctor/2": doctor,
    "corral.upgrade-image/1": upgrade,
    "corral.forecast-validation/1": validation,
    "corral.accelerators/2": accelerators,
}


def keys(shown: Any, real: Any, where: str = "") -> Iterator[str]:
    """The paths where keys differ. An empty list or object on the page is described elsewhere."""
    if isinstance(shown, dict) and shown and isinstance(real, dict):
        yield from (f"{where}.{key}" for key in sorted(shown.keys() ^ real.keys()))
        for key in shown.keys() & real.keys():
            yield from keys(shown[key], real[key], f"{where}.{key}")
    elif isinstance(shown, list) and shown and isinstance(real, list) and real:
        yield from keys(shown[0], real[0], f"{where}[0]")


@pytest.mark.parametrize("shape", REAL)
def test_document_on_the_page_has_the_keys_of_the_command(shape: str) -> None:
    real = REAL[shape]()
    assert (real["schema"], list(keys(json.loads(SHAPES[shape]), real))) == (shape, [])


def test_every_document_on_the_page_is_compared() -> None:
    assert set(SHAPES) == set(REAL)


def _commands() -> Iterator[tuple[str, Any]]:
    root: Any = typer.main.get_command(build())
    for name in ENTRIES:
        command = root.get_command(None, name)
        yield name, command
        for below, part in getattr(command, "commands", {}).items():
            yield f"{name} {below}", part


COMMANDS = tuple(_commands())


def test_table_and_sections_have_the_commands_in_the_order_of_the_help() -> None:
    table = re.findall(r"^\| `corral ([a-z-]+)", PAGE.partition("\n## ")[0], re.MULTILINE)
    sections = re.findall(r"^## corral ([a-z-]+)$", PAGE, re.MULTILINE)
    assert (table, sections) == ([*ENTRIES], [*ENTRIES])


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS if name not in ("box fault", "upgrade")])
def test_every_command_has_an_example_in_its_section(name: str) -> None:
    level, heading = ("###", f"corral {name}") if name.startswith("box ") else ("##", f"corral {name.split()[0]}")
    section = PAGE.partition(f"\n{level} {heading}\n")[2].partition("\n#")[0]
    assert re.search(rf"^    (.*[ (])?corral {name}( |\)|$)", section, re.MULTILINE)


@pytest.mark.parametrize("command", [name for name, _ in COMMANDS])
def test_every_command_is_on_the_page(command: str) -> None:
    assert f"`corral {command}" in PAGE or f"## corral {command}" in PAGE


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_option_of_a_command_is_in_its_section(name: str, command: Any) -> None:
    section = PAGE.partition(f"\n## corral {name.split()[0]}\n")[2].partition("\n## ")[0]
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if f"`{option}" not in section} == set()


def test_exit_codes_of_the_page_are_those_of_the_commands() -> None:
    from corral.cli.support.exit_codes import ExitCode

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == {int(code) for code in ExitCode}


def test_plan_document_matches_the_page(tmp_path: Path) -> None:
    real = json.loads(corral("plan", "dev", "--json").stdout)
    assert list(keys(json.loads(SHAPES["corral.plan/3"]), real)) == []


def test_a_usage_line_names_a_required_argument_without_braces() -> None:
    done = corral("extend", "--help")
    assert done.stdout.splitlines()[0] == "Usage: corral extend [OPTIONS] ENV TIME"
