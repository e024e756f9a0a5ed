"""Timelines: rows and bars from events and job runs, on a terminal and as a page."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from xml.etree import ElementTree

from rich.console import Console

from corral.model.head_report import JobRun
from corral.report.pages.timeline_page import timeline_page
from corral.report.timeline.event_lines import ClusterEvent, event_lines, read_events
from corral.report.timeline.timeline import Bar, State, Timeline, TimelineRow, build_timeline
from corral.report.timeline.timeline_text import TimelineText, heading_of, scale
from small_history import T0, at, event
from small_history import run as job_run

LAUNCHED = event(10, "launched", nodes="train-[1-2]", instances={"train-1": "i-1", "train-2": "i-2"})
UP = event(20, "up", nodes="train-1")
NOTICE = event(60, "notice", nodes="train-1")
ENDED = event(70, "ended", nodes="train-1", verb="suspend", instances=["i-1"])


def run(
    started: int | None, ended: int | None, *, nodes: str = "train-1", submitted: int = 5, state: str = ""
) -> JobRun:
    return job_run(submitted, started, ended, state, nodes)


def cluster_events(*lines: str, runs: tuple[JobRun, ...] = (), start: int = 0) -> Timeline:
    events = read_events([event(0, "autoscaler-started"), *lines])
    return build_timeline("dev", events, runs, head_since=None, start=at(start), end=at(100))


def row(shown: Timeline, name: str) -> TimelineRow:
    (found,) = (one for one in shown.rows if one.name == name)
    return found


def bars(found: TimelineRow) -> list[tuple[str, int, int]]:
    return [(str(bar.state), int(bar.start.timestamp()) - T0, int(bar.end.timestamp()) - T0) for bar in found.bars]


def test_node_has_a_bar_per_state_until_its_end() -> None:
    shown = cluster_events(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55),))
    assert bars(row(shown, "train-1")) == [
        ("booting", 10, 20),
        ("idle", 20, 30),
        ("running", 30, 55),
        ("idle", 55, 60),
        ("notice", 60, 70),
    ]


def test_node_that_is_not_up_yet_is_booting() -> None:
    assert row(cluster_events(LAUNCHED), "train-2").bars == (
        Bar(start=at(10), end=at(100), state=State.BOOTING, text="launched it", ongoing=True),
    )


def test_relaunched_node_has_the_bars_of_two_instances() -> None:
    again = event(80, "launched", nodes="train-1", instances={"train-1": "i-3"})
    assert bars(row(cluster_events(LAUNCHED, ENDED, again), "train-1")) == [("booting", 10, 70), ("booting", 80, 100)]


def test_terminated_instance_ends_its_node() -> None:
    shown = cluster_events(LAUNCHED, event(40, "terminated", instances=["i-2"]))
    assert (bars(row(shown, "train-2")), bars(row(shown, "train-1"))) == ([("booting", 10, 40)], [("booting", 10, 100)])


def test_end_without_an_instance_makes_no_row() -> None:
    shown = cluster_events(event(40, "ended", nodes="train-9", verb="suspend", instances=[]))
    assert [one.name for one in shown.rows] == ["head"]


def test_a_node_that_is_marked_down_ends() -> None:
    assert bars(row(cluster_events(LAUNCHED, event(40, "marked-down", nodes="train-1")), "train-1")) == [
        ("booting", 10, 40)
    ]


def test_requeued_job_is_one_row_with_two_runs() -> None:
    runs = (run(30, 55, state="requeued"), run(65, 90, submitted=55, state="completed"))
    shown = cluster_events(runs=runs)
    assert (bars(row(shown, "7 fit")), row(shown, "7 fit").final_state) == (
        [("waiting", 5, 30), ("running", 30, 55), ("waiting", 55, 65), ("running", 65, 90)],
        "completed",
    )


BOTH_UP = (LAUNCHED, UP, event(40, "up", nodes="train-2"))


def both(shown: Timeline) -> dict[str, list[tuple[str, int, int]]]:
    return {name: bars(row(shown, name)) for name in ("train-1", "train-2", "7 fit")}


def test_node_boots_until_its_up_event_even_if_accounting_starts_a_job_earlier() -> None:
    shown = cluster_events(*BOTH_UP, runs=(run(8, 90, nodes="train-[1-2]"),))
    assert both(shown) == {
        "train-1": [("booting", 10, 20), ("idle", 20, 40), ("running", 40, 90), ("idle", 90, 100)],
        "train-2": [("booting", 10, 40), ("running", 40, 90), ("idle", 90, 100)],
        "7 fit": [("waiting", 5, 40), ("running", 40, 90)],
    }


def test_run_that_ended_before_all_nodes_were_up_only_waited() -> None:
    shown = cluster_events(*BOTH_UP, runs=(run(8, 35, nodes="train-[1-2]", state="requeued"),))
    assert both(shown) == {
        "train-1": [("booting", 10, 20), ("idle", 20, 100)],
        "train-2": [("booting", 10, 40), ("idle", 40, 100)],
        "7 fit": [("waiting", 5, 35)],
    }


def test_run_on_a_node_that_was_never_up_only_waited() -> None:
    spot = event(15, "notice", nodes="train-1")
    shown = cluster_events(LAUNCHED, spot, event(30, "ended", nodes="train-1"), runs=(run(12, 25, state="requeued"),))
    assert (bars(row(shown, "train-1")), bars(row(shown, "7 fit"))) == (
        [("booting", 10, 15), ("notice", 15, 30)],
        [("waiting", 5, 25)],
    )


def test_node_that_comes_up_under_a_notice_runs_its_job() -> None:
    shown = cluster_events(LAUNCHED, event(15, "notice", nodes="train-1"), UP, runs=(run(12, 50, state="requeued"),))
    assert bars(row(shown, "7 fit")) == [("waiting", 5, 20), ("running", 20, 50)]


def test_run_waits_for_its_own_instance_not_for_an_earlier_one() -> None:
    again = event(30, "launched", nodes="train-1", instances={"train-1": "i-3"})
    machines = (LAUNCHED, UP, event(27, "ended", nodes="train-1"), again, event(45, "up", nodes="train-1"))
    shown = cluster_events(*machines, runs=(run(25, 90, submitted=24),))
    assert bars(row(shown, "7 fit")) == [("waiting", 24, 45), ("running", 45, 90)]


def test_completed_run_counts_as_run_without_an_up_event() -> None:
    shown = cluster_events(LAUNCHED, runs=(run(30, 55, state="completed"),))
    assert bars(row(shown, "7 fit")) == [("waiting", 5, 30), ("running", 30, 55)]


def test_job_cancelled_while_pending_only_waited() -> None:
    assert bars(row(cluster_events(runs=(run(None, 40),)), "7 fit")) == [("waiting", 5, 40)]


def test_jobs_of_an_earlier_cluster_are_not_shown() -> None:
    assert [one.name for one in cluster_events(runs=(run(-80, -50, submitted=-90),)).rows] == ["head"]


def test_rows_are_cut_at_the_start() -> None:
    assert bars(row(cluster_events(LAUNCHED, UP, start=50), "train-1")) == [("idle", 50, 100)]


def test_rows_are_the_head_then_nodes_then_jobs() -> None:
    assert [one.kind for one in cluster_events(LAUNCHED, runs=(run(30, 55),)).rows] == ["head", "node", "node", "job"]


def test_refusals_are_marks_of_the_head() -> None:
    assert [
        (mark.kind, mark.at) for mark in row(cluster_events(event(30, "refused", nodes="train-1")), "head").marks
    ] == [("refused", at(30))]


GONE = event(40, "marked-down", nodes="train-2")


def marks(*lines: str) -> dict[str, list[tuple[str, int]]]:
    """The marks of the nodes."""
    rows = [one for one in cluster_events(*lines).rows if one.kind == "node"]
    return {one.name: [(mark.kind, int(mark.at.timestamp()) - T0) for mark in one.marks] for one in rows}


def test_lost_instance_is_a_mark_of_its_node() -> None:
    assert marks(LAUNCHED, GONE) == {"train-1": [], "train-2": [("marked-down", 40)]}


def test_lost_instance_is_a_row_of_the_page() -> None:
    table = timeline_page(cluster_events(LAUNCHED, GONE)).partition("<caption>Unexpected events</caption>")[2]
    assert '<th scope="row">22:40:40</th><td>marked-down</td><td>marked-down it</td>' in table


def test_end_after_a_notice_is_marked_once() -> None:
    assert marks(LAUNCHED, NOTICE, event(70, "marked-down", nodes="train-1"))["train-1"] == [("notice", 60)]


def test_planned_end_is_no_mark() -> None:
    assert marks(LAUNCHED, ENDED, event(72, "marked-down", nodes="train-1"))["train-1"] == []


def test_boot_timeout_is_a_mark() -> None:
    late = event(50, "ended", nodes="train-2", verb="resume-failed", instances=["i-2"])
    assert marks(LAUNCHED, late) == {"train-1": [], "train-2": [("ended", 50)]}


def test_reboot_under_a_job_is_a_mark() -> None:
    assert marks(LAUNCHED, UP, event(50, "rebooted", nodes="train-1", jobs=["7"]))["train-1"] == [("rebooted", 50)]


def test_autoscaler_restart_is_a_mark() -> None:
    assert [mark.at for mark in row(cluster_events(event(50, "autoscaler-started")), "head").marks] == [at(50)]


def heads(*lines: str, launched: int, runs: tuple[JobRun, ...] = ()) -> list[tuple[str, int, int]]:
    """The bars of the head's row; the current head was launched at this second."""
    shown = build_timeline("dev", read_events(lines), runs, head_since=at(launched), start=at(-100), end=at(100))
    return bars(row(shown, "head"))


def test_head_boots_from_its_launch_until_its_autoscaler_starts() -> None:
    assert heads(event(25, "autoscaler-started"), launched=5) == [("booting", 5, 25), ("up", 25, 100)]


def test_head_without_events_is_booting() -> None:
    assert heads(launched=60) == [("booting", 60, 100)]


def test_replaced_head_is_up_until_its_last_event_then_silent() -> None:
    former = (event(0, "autoscaler-started"), LAUNCHED, event(20, "ended", nodes="train-1"))
    assert heads(*former, event(85, "autoscaler-started"), launched=60) == [
        ("up", 0, 20),
        ("silent", 20, 60),
        ("booting", 60, 85),
        ("up", 85, 100),
    ]


def test_start_of_a_job_proves_that_a_head_was_up() -> None:
    begun = heads(event(0, "autoscaler-started"), event(85, "autoscaler-started"), launched=60, runs=(run(30, 70),))
    assert begun[:2] == [("up", 0, 30), ("silent", 30, 60)]


def test_node_events_do_not_prove_that_an_earlier_head_was_up() -> None:
    begun = heads(event(0, "autoscaler-started"), LAUNCHED, event(40, "up", nodes="train-1"), launched=60)
    assert begun[:2] == [("up", 0, 10), ("silent", 10, 60)]


def test_a_head_whose_first_events_are_lost_is_up() -> None:
    assert heads(LAUNCHED, launched=-50) == [("up", -50, 100)]


def test_events_are_in_chronological_order() -> None:
    assert [one.kind for one in read_events([NOTICE, UP, "{broken", '{"at": 1}'])] == ["up", "notice"]


def test_event_line_has_the_capacity_code_without_the_message_of_ec2() -> None:
    text = (
        "train-1 by a: InsufficientInstanceCapacity: There is no Spot capacity.; b: UnauthorizedOperation: You may not"
    )
    assert printed(*event_lines([ClusterEvent(at=at(0), kind="refused", text=text)])) == [
        "2026-11-21 22:40:00  refused       train-1 by a: InsufficientInstanceCapacity; b: UnauthorizedOperation:"
        " You may not"
    ]


def test_picture_has_a_line_per_row_and_a_cell_per_period() -> None:
    shown = cluster_events(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55, state="completed"),))
    assert printed(TimelineText(shown, "corral status dev --events"), columns=41) == [
        "                      22:41",
        "  head    ────────────────────",
        "",
        "  train-1   ░░··█████·▼▒",
        "  train-2   ░░░░░░░░░░░░░░░░░░",
        "",
        "  7 fit    ┄┄┄┄┄█████          completed",
        "",
        "  ── up  ░░ booting  ·· idle  ██ running",
        "  ▒▒ notice  ┄┄ waiting",
        "  ▼ see `corral status dev --events`",
    ]


def test_the_legend_names_only_what_is_shown() -> None:
    assert printed(TimelineText(cluster_events(), ""))[-1] == "  ── up"


def test_scale_labels_are_round_and_do_not_touch() -> None:
    assert scale(at(7), at(307), 60) == "          22:41       22:42       22:43       22:44         "


def long(hours: int) -> Timeline:
    """The timeline of a cluster whose head is up for so long."""
    events = read_events([event(0, "autoscaler-started"), event(3600, "autoscaler-started")])
    return build_timeline("dev", events, (), head_since=None, start=at(0), end=at(0) + timedelta(hours=hours))


def test_midnight_is_labelled_with_its_date() -> None:
    assert scale(at(0), at(0) + timedelta(hours=6), 60).split() == [
        "23:00",
        "11-22",
        "01:00",
        "02:00",
        "03:00",
        "04:00",
    ]


def test_dates_of_a_long_timeline_do_not_touch() -> None:
    assert (
        scale(at(0), at(0) + timedelta(days=60), 60) == "           12-03         12-17         12-31         01-14  "
    )


def test_timeline_over_midnight_ends_with_its_date() -> None:
    assert heading_of(long(hours=12)) == "2026-11-21 22:40:00 to 2026-11-22 10:40:00 UTC, 12 h"


def test_page_of_a_timeline_over_midnight_dates_each_event() -> None:
    assert '<th scope="row">2026-11-21 23:40:00</th>' in timeline_page(long(hours=12))


def test_page_is_one_file_that_loads_nothing() -> None:
    text = timeline_page(cluster_events(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55),)))
    assert re.findall(r"https?://|<script|src=|@import|url\(", text) == []


def test_page_has_a_bar_with_a_tooltip_for_each_bar() -> None:
    shown = cluster_events(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55),))
    picture = ElementTree.fromstring(re.search(r"<svg class=\"timeline\".*?</svg>", timeline_page(shown), re.DOTALL)[0])
    tips = [one.findtext("title") for one in picture.iter("rect") if one.get("class", "").startswith("bar")]
    assert tips[3] == "running: job 7 (fit) of ada\n22:40:30 to 22:40:55, 25 s"


def test_job_names_are_escaped() -> None:
    named = JobRun(
        job_id="7", user="a", name="<b>&", queue="q", state="x", nodes="", submitted=T0, started=None, ended=None
    )
    assert "7 &lt;b&gt;&amp;" in timeline_page(cluster_events(runs=(named,)))


def printed(*parts: object, columns: int = 140) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, color_system=None, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, crop=False, soft_wrap=True)
    return [line.rstrip() for line in captured.get().rstrip("\n").split("\n")]
