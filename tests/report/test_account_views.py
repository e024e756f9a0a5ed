"""What people see of an account: status, leftovers, and what a machine lacks."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from rich.console import Console, RenderableType

from corral.inventory.findings import Findings
from corral.inventory.leftovers import Leftover
from corral.inventory.status import find_status
from corral.inventory.things import Kind, Thing
from corral.render.directory import FileChange
from corral.report.changes import changes_view, difference_view
from corral.report.doctor import Finding, Purpose, doctor_view, possible
from corral.report.leftovers import leftovers_document, leftovers_view
from corral.report.status import status_document, status_view
from worked_example import UNPRICED_LUSTRE, RoundPrices

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OWN = {"corral:base": "dev", "corral:cluster": "dev"}
VPC = Thing(kind=Kind.VPC, id="vpc-1", tags={"corral:base": "dev"})
HEAD = Thing(
    kind=Kind.INSTANCE,
    id="i-0",
    tags=OWN,
    state="running",
    type="m7i.2xlarge",
    market="on-demand",
    address="10.64.0.23",
    since=datetime(2026, 11, 21, 10, 30, tzinfo=UTC),
)
VOLUME = Thing(kind=Kind.VOLUME, id="vol-1", tags={**OWN, "Name": "corral-dev-state"}, size_gib=50)


def lines(parts: Iterable[RenderableType]) -> list[str]:
    return [" ".join(line.split()) for line in shown(parts, width=120).splitlines() if line.strip()]


def shown(parts: Iterable[RenderableType], *, width: int, terminal: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=terminal, color_system=None, highlight=False, markup=False, emoji=False
    )
    for part in parts:
        console.print(part, crop=False)
    return out.getvalue()


def status(*things: Thing, ends_at: datetime | None = None) -> list[str]:
    return lines(status_view(find_status(things, "dev", "dev", "us-east-1", ends_at, RoundPrices()), NOW))


def test_running_environment_tells_head_end_and_cost() -> None:
    assert status(VPC, HEAD, ends_at=datetime(2026, 11, 21, 21, 30, tzinfo=UTC)) == [
        "dev on base dev, us-east-1: up",
        "head i-0 (m7i.2xlarge) is running at 10.64.0.23, for 1 h 30 min",
        "ends in 9 h 30 min, 2026-11-21 21:30 UTC",
        "nodes none runs",
        "costs 0.40 USD an hour now: base 0.00, cluster 0.40",
        "traffic and stored data come on top; `corral plan` says where prices are from",
    ]


def test_environment_that_is_not_up_is_told_so() -> None:
    assert status()[0] == "dev on base dev, us-east-1: not up"


def test_base_without_its_cluster_is_told_so() -> None:
    assert status(VPC)[0] == "dev on base dev, us-east-1: not up, only its base is"


def test_lost_head_is_told_with_what_brings_it_back() -> None:
    assert status(VPC, VOLUME)[0] == "dev on base dev, us-east-1: up, but without a head - `corral up dev` makes one"


def test_life_that_is_over_is_not_counted_on() -> None:
    over = status(VPC, HEAD, ends_at=datetime(2026, 11, 21, 11, tzinfo=UTC))
    assert over[2] == "ends ended its life at 2026-11-21 11:00 UTC"


def test_leftovers_are_told_with_their_reason_and_cost() -> None:
    left = (Leftover(thing=VOLUME, reason="cluster dev is not up"),)
    found = Findings(region="us-east-1", backend="s3://state", leftovers=left, foreign=(), kept=())
    told = lines(leftovers_view(found, RoundPrices()))
    assert [line for line in told if "─" not in line] == [
        "Left behind in us-east-1",
        "judged by the stacks in s3://state",
        "cluster dev is not up:",
        "name USD/month id",
        "volume corral-dev-state 5.00 vol-1",
        "1 in all 5.00",
    ]


def test_nothing_left_is_one_word() -> None:
    found = Findings(region="us-east-1", backend="s3://state", leftovers=(), foreign=(), kept=())
    assert lines(leftovers_view(found, RoundPrices()))[0] == "Left behind in us-east-1 nothing"


def test_changes_are_listed_and_counted() -> None:
    changes = [FileChange(path="a", before=None, after="1"), FileChange(path="b", before="1", after="1")]
    assert lines(changes_view(changes, "out")) == ["new a", "same b", "out: 1 new, 1 same"]


def test_difference_is_that_of_the_lines() -> None:
    changes = [FileChange(path="slurm.conf", before="a\nb\n", after="a\nc\n")]
    assert lines(difference_view(changes)) == [
        "--- before/slurm.conf",
        "+++ after/slurm.conf",
        "@@ -1,2 +1,2 @@",
        "a",
        "-b",
        "+c",
    ]


LACKING = (
    Finding(name="Python", found="3.11", needed_for=(Purpose.PLAN,), fix=""),
    Finding(name="Pulumi", found=None, needed_for=(Purpose.AWS, Purpose.BOX), fix="get it"),
)


def test_what_is_missing_is_told_with_what_needs_it_and_how_to_get_it() -> None:
    assert lines(doctor_view(LACKING)) == [
        "Found",
        "Python 3.11",
        "Missing",
        "Pulumi needed for up on AWS, up in the box",
        "get it",
        "Possible",
        "plan and render yes",
        "up on AWS no, for want of Pulumi",
        "up in the box no, for want of Pulumi",
        "tests with real Slurm yes",
        "a shell on the head yes",
    ]


def test_purpose_is_possible_if_it_lacks_nothing() -> None:
    assert [purpose.name for purpose in Purpose if possible(LACKING, purpose)] == ["PLAN", "SLURM", "CONNECT"]


ARN = "arn:aws:cloudwatch:us-east-1:123456789012:alarm:corral-development-cluster-head-unreachable"
ALARM = Thing(kind=Kind.ALARM, id=ARN, tags={**OWN, "Name": "corral-development-cluster-head-alarm"})
GROUP = Thing(kind=Kind.SECURITY_GROUP, id="sg-0123456789abcdef0", tags={**OWN, "Name": "corral-dev-group"})
TINY = Thing(kind=Kind.HOME, id="fs-0123456789abcdef0", tags={**OWN, "Name": "corral-dev-home"}, size_gib=0.000006)


def left(*things: Thing, kept: tuple[Thing, ...] = ()) -> Findings:
    leftovers = tuple(Leftover(thing=thing, reason="cluster dev is not up") for thing in things)
    return Findings(region="us-east-1", backend="s3://state", leftovers=leftovers, foreign=(), kept=kept)


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("width", [40, 80])
def test_a_long_id_is_never_broken(width: int, terminal: bool) -> None:
    text = shown(leftovers_view(left(ALARM, VOLUME), RoundPrices()), width=width, terminal=terminal)
    assert [line.split()[-1] for line in text.splitlines() if line.lstrip().startswith("alarm")] == [ARN]


def test_a_long_row_leaves_no_blanks_behind_the_short_ones() -> None:
    text = shown(leftovers_view(left(ALARM, VOLUME), RoundPrices()), width=80, terminal=True)
    assert [line for line in text.splitlines() if "volume" in line and line.endswith("vol-1")] != []


def test_the_rule_of_a_table_ends_with_the_terminal() -> None:
    text = shown(leftovers_view(left(ALARM), RoundPrices()), width=80)
    assert max(len(line) for line in text.splitlines() if "─" in line) == 80


def test_ids_of_file_systems_are_whole_in_eighty_columns() -> None:
    long = Thing(kind=Kind.HOME, id="fs-0123456789abcdef0", tags={**OWN, "Name": "corral-a-rather-long-name-of-a-home"})
    found = find_status([VPC, long], "dev", "dev", "us-east-1", None, RoundPrices())
    assert "  fs-0123456789abcdef0\n" in shown(status_view(found, NOW), width=80)


def test_what_is_free_is_told_in_a_word() -> None:
    told = lines(leftovers_view(left(GROUP), RoundPrices()))
    assert [line for line in told if "sg-" in line or "in all" in line] == [
        "security group corral-dev-group free sg-0123456789abcdef0",
        "1 in all free",
    ]


def test_what_no_bill_would_show_is_free_too() -> None:
    told = lines(leftovers_view(left(kept=(TINY,)), RoundPrices()))
    assert told[-1] == "dev home file system free fs-0123456789abcdef0"


def test_a_thing_without_a_name_has_its_id_once() -> None:
    nameless = Thing(kind=Kind.VOLUME, id="vol-1", tags=OWN, size_gib=50)
    told = lines(leftovers_view(left(nameless), RoundPrices()))
    assert [line for line in told if "vol-1" in line] == ["volume 5.00 vol-1"]


def test_nothing_kept_costs_nothing_worth_a_word() -> None:
    assert status() == ["dev on base dev, us-east-1: not up"]


def test_what_is_kept_is_told_with_its_cost() -> None:
    key = Thing(kind=Kind.KEY, id="1234", tags={"corral:base": "dev"})
    assert status(key)[1].endswith(" USD an hour for what is kept")


def test_status_says_what_its_costs_lack() -> None:
    lacks = "(no price is known for lustre file system data (19,200 GiB))"
    told = "costs at least 0.40 USD an hour now: base ?, cluster 0.40"
    assert f"{told} {lacks}" in " ".join(status(VPC, UNPRICED_LUSTRE, HEAD))


def test_the_document_of_a_status_says_what_its_costs_lack() -> None:
    found = find_status([VPC, UNPRICED_LUSTRE, HEAD], "dev", "dev", "us-east-1", None, RoundPrices())
    missing = ["lustre file system data (19,200 GiB)"]
    assert status_document(found)["incomplete"] == {"usd_per_hour": missing, "base_usd_per_hour": missing}


def test_kept_lustre_without_a_price_is_told_where_nothing_else_is() -> None:
    assert "costs ? USD an hour for what is kept (no price is known for" in " ".join(status(UNPRICED_LUSTRE))


def test_leftovers_without_a_price_make_their_sum_incomplete() -> None:
    found = left(VOLUME, UNPRICED_LUSTRE)
    told = lines(leftovers_view(found, RoundPrices()))
    assert "2 in all at least 5.00" in told
    (region,) = leftovers_document([found], lambda region: RoundPrices())["regions"]
    assert region["incomplete"] == {"usd_per_month": ["lustre file system data (19,200 GiB)"]}


def test_kept_data_is_told_to_be_of_bases_that_are_not_up() -> None:
    told = lines(leftovers_view(left(kept=(TINY,)), RoundPrices()))
    assert "Kept on purpose of bases that are not up; `corral down ENV --delete-data BASE` deletes it" in told
