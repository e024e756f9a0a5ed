"""docs/cli.md against the commands: every command, every option, and the keys of every JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from calls import REPOSITORY, corral

from corral.box.faults.listing import documents
from corral.box.faults.records import NoCapacity
from corral.box.quotas import row
from corral.catalog.quotas import find_quota
from corral.cli.app import build
from corral.cli.box_quota import quotas_document
from corral.cli.front_page import ENTRIES
from corral.engine.extend import ExtendResult
from corral.engine.stack import StackResult
from corral.engine.up import UpResult
from corral.engine.upgrade import Move, UpgradeResult
from corral.forecast.buy import rent_or_buy
from corral.forecast.capacity import Supply
from corral.forecast.cost import forecast_cost
from corral.forecast.limits import Limit
from corral.forecast.money import Sum, Usd
from corral.forecast.notes import notes
from corral.forecast.training.validation import Table, compare, shipped_runs
from corral.inventory.findings import Findings
from corral.inventory.leftovers import Leftover
from corral.inventory.status import find_status
from corral.inventory.things import Kind, Thing
from corral.model.head import HeadJob, HeadState, Keeping, NodeGroup, RestingOffer
from corral.model.markets import Market
from corral.render.directory import FileChange
from corral.report.accelerators import accelerators_document
from corral.report.buy import buy_document
from corral.report.changes import changes_document
from corral.report.doctor import Finding, Purpose, doctor_document
from corral.report.documents import plan_document
from corral.report.leftovers import leftovers_document
from corral.report.spent.compared import Beside, Comparison
from corral.report.spent.document import timeline_document
from corral.report.status import status_document
from corral.report.validation import validation_document
from corral.spec.buy_files import read_purchase
from corral.spec.files import read_environment
from small_life import drawn, took
from worked_example import BASE, CLUSTER, RoundPrices

PAGE = (REPOSITORY / "docs" / "cli.md").read_text()
SHAPES = dict(re.findall(r"<!-- shape: (\S+) -->\n```json\n(.*?)\n```", PAGE, re.DOTALL))
OWN = {"corral:base": "dev", "corral:cluster": "dev", "Name": "x"}
NODE = Thing(kind=Kind.INSTANCE, id="i-1", tags={**OWN, "corral:queue": "train", "corral:nodes": "train-1"})
HEAD = Thing(kind=Kind.INSTANCE, id="i-0", tags=OWN, since=datetime(2026, 11, 21, tzinfo=UTC))
SLURM = HeadState(
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
            why="",
            until=9,
        ),
    ),
    running=0,
    waiting=1,
    resting=(RestingOffer(offer="train-spot", until=9, kind="no capacity", why="x"),),
    stopped=(),
    nodes=(NodeGroup(queue="train", state="idle", nodes="train-1", count=1),),
    keeper=Keeping(runs=False, turned=0, start="x", log="x"),
)
HOME = Thing(kind=Kind.HOME, id="fs-1", tags=OWN, size_gib=1)


def plan() -> Any:
    prices = RoundPrices()
    limit = Limit(field="usd_per_hour_max", usd=50.0, cost=Sum(usd=Usd(1, 80)), refusal="x")
    cost = forecast_cost(BASE, CLUSTER, prices)
    return plan_document(BASE, CLUSTER, cost, notes(BASE, CLUSTER, prices), [limit], bought())


def bought() -> Any:
    environment = read_environment(REPOSITORY, "train")
    purchase = read_purchase(REPOSITORY / "examples/buy/h100.yaml", environment)
    supply = Supply(market=Market.ON_DEMAND, most=16, usd_per_node_hour=Usd(50, 50), source="x")
    return buy_document(rent_or_buy(purchase, (supply,)))


def status() -> Any:
    priced = [replace(thing, type="p4d.24xlarge", market="spot") for thing in (HEAD, NODE)]
    ends = datetime(2026, 11, 22, tzinfo=UTC)
    return status_document(find_status([*priced, HOME], "dev", "dev", "us-east-1", ends, RoundPrices()), SLURM)


def lived() -> Any:
    row = Beside(what="days", low=9.6, high=11.8, least=0.1, most=0.1)
    against = Comparison(job_id="7", name="fit", done=True, nodes=2, planned=16, markets=("spot",), rows=(row,))
    return timeline_document(drawn(), took(), against)


def sweep() -> Any:
    left = (Leftover(thing=replace(HOME, kind=Kind.VOLUME), reason="cluster dev is not up"),)
    found = Findings(region="us-east-1", backend="file:///", leftovers=left, foreign=(), kept=(HOME,))
    return leftovers_document([found], lambda region: RoundPrices())


def render() -> Any:
    return changes_document([FileChange(path="slurm/slurm.conf", before=None, after="x")], "out")


def doctor() -> Any:
    return doctor_document([Finding(name="Pulumi", found=None, needed_for=(Purpose.AWS,), fix="get it")])


def box() -> Any:
    return json.loads(corral("box", "status", "--json").stdout)


def faults() -> Any:
    now = datetime(2026, 11, 21, 12)
    shown = documents([NoCapacity(room=1)], (), now)
    return {"schema": "corral.faults/1", "faults": shown}


def quotas() -> Any:
    quota = find_quota("L-417A185B")
    return quotas_document({"region": "us-east-1", "quotas": [row(quota, 4608.0)]})


def upgrade() -> Any:
    move = Move(key="image", profile="ubuntu-24.04-dlami", pinned="ami-1", newest="ami-2")
    return UpgradeResult(
        moved=(move,), up=UpResult(stacks={"base": StackResult(), "cluster": StackResult()})
    ).to_document()


def extend() -> Any:
    end = datetime(2026, 11, 22, tzinfo=UTC)
    return ExtendResult(cluster="dev", former=end, ends_at=end, head=None).to_document()


def validation() -> Any:
    return validation_document(compare(shipped_runs()), Table.FIRST.file)


def accelerators() -> Any:
    return accelerators_document()


REAL: dict[str, Callable[[], Any]] = {
    "corral.plan/1": plan,
    "corral.render/1": render,
    "corral.status/1": status,
    "corral.timeline/1": lived,
    "corral.extend/1": extend,
    "corral.sweep/1": sweep,
    "corral.box/1": box,
    "corral.faults/1": faults,
    "corral.quotas/1": quotas,
    "corral.doctor/1": doctor,
    "corral.upgrade-image/1": upgrade,
    "corral.forecast-validation/1": validation,
    "corral.accelerators/1": accelerators,
}


def keys(shown: Any, real: Any, where: str = "") -> Iterator[str]:
    """Where the keys differ. An empty list or object on the page stands for one that is described elsewhere."""
    if isinstance(shown, dict) and shown and isinstance(real, dict):
        yield from (f"{where}.{key}" for key in sorted(shown.keys() ^ real.keys()))
        for key in shown.keys() & real.keys():
            yield from keys(shown[key], real[key], f"{where}.{key}")
    elif isinstance(shown, list) and shown and isinstance(real, list) and real:
        yield from keys(shown[0], real[0], f"{where}[0]")


@pytest.mark.parametrize("shape", REAL)
def test_document_on_the_page_has_the_keys_of_the_real_one(shape: str) -> None:
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


@pytest.mark.parametrize("command", ENTRIES)
def test_every_command_is_in_the_table_of_the_page(command: str) -> None:
    assert f"\n| `corral {command}" in PAGE


@pytest.mark.parametrize("command", [name for name, _ in COMMANDS])
def test_every_command_is_on_the_page(command: str) -> None:
    assert f"`corral {command}" in PAGE or f"## corral {command}" in PAGE


@pytest.mark.parametrize(("name", "command"), COMMANDS, ids=lambda value: value if isinstance(value, str) else "")
def test_every_option_of_a_command_is_in_its_section(name: str, command: Any) -> None:
    section = PAGE.partition(f"\n## corral {name.split()[0]}\n")[2].partition("\n## ")[0]
    options = {option for parameter in command.params for option in parameter.opts if option.startswith("--")}
    assert {option for option in options if f"`{option}" not in section} == set()


def test_exit_codes_of_the_page_are_those_of_the_commands() -> None:
    from corral.cli.failure import ExitCode

    assert {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)} == {int(code) for code in ExitCode}


def test_real_plan_is_what_the_page_says(tmp_path: Path) -> None:
    real = json.loads(corral("plan", "dev", "--json").stdout)
    assert list(keys(json.loads(SHAPES["corral.plan/1"]), real)) == []
