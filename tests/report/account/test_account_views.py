"""Views of an account: status, orphans, changes, and the findings of doctor."""

from __future__ import annotations

import io
from collections.abc import Iterable
from datetime import UTC, datetime

import pytest
from rich.console import Console, RenderableType

from corral.inventory.cleanup_report import CleanupFindings
from corral.inventory.orphans import Orphan
from corral.inventory.resources import AwsResource, ResourceKind
from corral.inventory.status import find_status
from corral.render.output_dir import FileChange
from corral.report.account.cleanup_view import cleanup_document, cleanup_view
from corral.report.account.status_view import status_document, status_view
from corral.report.doctor_view import DoctorFinding, Purpose, doctor_view, possible
from corral.report.plan.render_changes import changes_view, difference_view
from worked_example import UNPRICED_LUSTRE, RoundPrices

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
OWN = {"corral:base": "dev", "corral:cluster": "dev"}
VPC = AwsResource(kind=ResourceKind.VPC, id="vpc-1", tags={"corral:base": "dev"})
HEAD = AwsResource(
    kind=ResourceKind.INSTANCE,
    id="i-0",
    tags=OWN,
    state="running",
    type="m7i.2xlarge",
    market="on-demand",
    address="10.64.0.23",
    since=datetime(2026, 11, 21, 10, 30, tzinfo=UTC),
)
VOLUME = AwsResource(kind=ResourceKind.VOLUME, id="vol-1", tags={**OWN, "Name": "corral-dev-state"}, size_gib=50)


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


def status(*things: AwsResource, ends_at: datetime | None = None) -> list[str]:
    return lines(status_view(find_status(things, "dev", "dev", "us-east-1", ends_at, RoundPrices()), NOW))


def test_running_environment_shows_head_end_and_cost() -> None:
    assert status(VPC, HEAD, ends_at=datetime(2026, 11, 21, 21, 30, tzinfo=UTC)) == [
        "dev on base dev, us-east-1: up",
        "head i-0 (m7i.2xlarge) is running at 10.64.0.23, for 1 h 30 min",
        "ends in 9 h 30 min, 2026-11-21 21:30 UTC",
        "nodes none running",
        "costs 0.40 USD an hour now: base 0.00, cluster 0.40",
        "plus traffic and stored data; `corral plan` shows the sources of prices",
    ]


def test_environment_that_is_not_up_is_shown_as_such() -> None:
    assert status()[0] == "dev on base dev, us-east-1: not up"


def test_base_without_cluster_is_shown_as_such() -> None:
    assert status(VPC)[0] == "dev on base dev, us-east-1: not up; its base is up"


def test_missing_head_is_shown_with_the_command_that_creates_one() -> None:
    assert status(VPC, VOLUME)[0] == "dev on base dev, us-east-1: up, but without a head - `corral up dev` creates one"


def test_expired_lifetime_shows_its_end_and_no_remaining_time() -> None:
    over = status(VPC, HEAD, ends_at=datetime(2026, 11, 21, 11, tzinfo=UTC))
    assert over[2] == "ends expired at 2026-11-21 11:00 UTC"


def test_orphans_are_listed_with_reason_and_cost() -> None:
    left = (Orphan(resource=VOLUME, reason="cluster dev is not up"),)
    found = CleanupFindings(region="us-east-1", backend="s3://state", orphans=left, foreign=(), retained=())
    view = lines(cleanup_view(found, RoundPrices()))
    assert [line for line in view if "─" not in line] == [
        "Orphans in us-east-1",
        "compared with the stacks in s3://state",
        "cluster dev is not up:",
        "name USD/month id",
        "volume corral-dev-state 5.00 vol-1",
        "total: 1 5.00",
    ]


def test_no_orphans_is_one_word() -> None:
    found = CleanupFindings(region="us-east-1", backend="s3://state", orphans=(), foreign=(), retained=())
    assert lines(cleanup_view(found, RoundPrices()))[0] == "Orphans in us-east-1 none"


def test_changes_are_listed_and_counted() -> None:
    changes = [FileChange(path="a", before=None, after="1"), FileChange(path="b", before="1", after="1")]
    assert lines(changes_view(changes, "out")) == ["new a", "same b", "out: 1 new, 1 same"]


def test_differences_are_unified_diffs() -> None:
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
    DoctorFinding(name="Python", found="3.11", needed_for=(Purpose.PLAN,), fix=""),
    DoctorFinding(name="Pulumi", found=None, needed_for=(Purpose.AWS, Purpose.BOX), fix="get it"),
)


def test_missing_tool_is_shown_with_its_purposes_and_fix() -> None:
    assert lines(doctor_view(LACKING)) == [
        "Found",
        "Python 3.11",
        "Missing",
        "Pulumi needed for up on AWS, up in the box",
        "get it",
        "Possible",
        "plan and render yes",
        "up on AWS no, missing Pulumi",
        "up in the box no, missing Pulumi",
        "tests with real Slurm yes",
        "a shell on the head yes",
    ]


def test_purpose_without_missing_tools_is_possible() -> None:
    assert [purpose.name for purpose in Purpose if possible(LACKING, purpose)] == ["PLAN", "SLURM", "CONNECT"]


ARN = "arn:aws:cloudwatch:us-east-1:123456789012:alarm:corral-development-cluster-head-unreachable"
ALARM = AwsResource(kind=ResourceKind.ALARM, id=ARN, tags={**OWN, "Name": "corral-development-cluster-head-alarm"})
GROUP = AwsResource(
    kind=ResourceKind.SECURITY_GROUP, id="sg-0123456789abcdef0", tags={**OWN, "Name": "corral-dev-group"}
)
TINY = AwsResource(
    kind=ResourceKind.HOME, id="fs-0123456789abcdef0", tags={**OWN, "Name": "corral-dev-home"}, size_gib=0.000006
)


def cleanup_findings(*things: AwsResource, retained: tuple[AwsResource, ...] = ()) -> CleanupFindings:
    orphans = tuple(Orphan(resource=thing, reason="cluster dev is not up") for thing in things)
    return CleanupFindings(region="us-east-1", backend="s3://state", orphans=orphans, foreign=(), retained=retained)


@pytest.mark.parametrize("terminal", [True, False], ids=["terminal", "pipe"])
@pytest.mark.parametrize("width", [40, 80])
def test_a_long_id_is_never_broken(width: int, terminal: bool) -> None:
    text = shown(cleanup_view(cleanup_findings(ALARM, VOLUME), RoundPrices()), width=width, terminal=terminal)
    assert [line.split()[-1] for line in text.splitlines() if line.lstrip().startswith("alarm")] == [ARN]


def test_rows_have_no_trailing_blanks() -> None:
    text = shown(cleanup_view(cleanup_findings(ALARM, VOLUME), RoundPrices()), width=80, terminal=True)
    assert [line for line in text.splitlines() if "volume" in line and line.endswith("vol-1")] != []


def test_table_rule_is_no_wider_than_the_terminal() -> None:
    text = shown(cleanup_view(cleanup_findings(ALARM), RoundPrices()), width=80)
    assert max(len(line) for line in text.splitlines() if "─" in line) == 80


def test_file_system_ids_fit_into_80_columns() -> None:
    long = AwsResource(
        kind=ResourceKind.HOME, id="fs-0123456789abcdef0", tags={**OWN, "Name": "corral-a-rather-long-name-of-a-home"}
    )
    found = find_status([VPC, long], "dev", "dev", "us-east-1", None, RoundPrices())
    assert "  fs-0123456789abcdef0\n" in shown(status_view(found, NOW), width=80)


def test_zero_cost_is_shown_as_free() -> None:
    view = lines(cleanup_view(cleanup_findings(GROUP), RoundPrices()))
    assert [line for line in view if "sg-" in line or "total" in line] == [
        "security group corral-dev-group free sg-0123456789abcdef0",
        "total: 1 free",
    ]


def test_cost_that_rounds_to_zero_is_shown_as_free() -> None:
    view = lines(cleanup_view(cleanup_findings(retained=(TINY,)), RoundPrices()))
    assert view[-1] == "dev home file system free fs-0123456789abcdef0"


def test_resource_without_a_name_shows_its_id_once() -> None:
    nameless = AwsResource(kind=ResourceKind.VOLUME, id="vol-1", tags=OWN, size_gib=50)
    view = lines(cleanup_view(cleanup_findings(nameless), RoundPrices()))
    assert [line for line in view if "vol-1" in line] == ["volume 5.00 vol-1"]


def test_no_retained_data_shows_no_cost() -> None:
    assert status() == ["dev on base dev, us-east-1: not up"]


def test_retained_data_is_shown_with_its_cost() -> None:
    key = AwsResource(kind=ResourceKind.KEY, id="1234", tags={"corral:base": "dev"})
    assert status(key)[1].endswith(" USD an hour for retained data")


def test_status_names_resources_without_a_known_price() -> None:
    lacks = "(no known price for lustre file system data (19,200 GiB))"
    costs = "costs at least 0.40 USD an hour now: base ?, cluster 0.40"
    assert f"{costs} {lacks}" in " ".join(status(VPC, UNPRICED_LUSTRE, HEAD))


def test_status_document_names_resources_without_a_known_price() -> None:
    found = find_status([VPC, UNPRICED_LUSTRE, HEAD], "dev", "dev", "us-east-1", None, RoundPrices())
    missing = ["lustre file system data (19,200 GiB)"]
    assert status_document(found)["incomplete"] == {"usd_per_hour": missing, "base_usd_per_hour": missing}


def test_retained_lustre_without_a_price_is_shown_if_nothing_else_is_up() -> None:
    assert "costs ? USD an hour for retained data (no known price for" in " ".join(status(UNPRICED_LUSTRE))


def test_orphans_without_a_price_make_the_sum_incomplete() -> None:
    found = cleanup_findings(VOLUME, UNPRICED_LUSTRE)
    view = lines(cleanup_view(found, RoundPrices()))
    assert "total: 2 at least 5.00" in view
    (region,) = cleanup_document([found], lambda region: RoundPrices())["regions"]
    assert region["incomplete"] == {"usd_per_month": ["lustre file system data (19,200 GiB)"]}


def test_retained_data_heading_names_bases_that_are_not_up() -> None:
    view = lines(cleanup_view(cleanup_findings(retained=(TINY,)), RoundPrices()))
    assert "Retained data of bases that are not up; `corral down ENV --delete-data BASE` deletes it" in view
