"""Timelines: rows and bars from events and runs of jobs, the picture on a terminal, and the page."""

from __future__ import annotations

import io
import re
from datetime import timedelta
from xml.etree import ElementTree

from rich.console import Console

from corral.model.head import JobRun
from corral.report.events import Happened, event_lines, read_events
from corral.report.timeline import Bar, Row, State, Timeline, timeline
from corral.report.timeline_page import page
from corral.report.timeline_text import TimelineText, heading_of, scale
from small_life import T0, at, event
from small_life import run as job_run

LAUNCHED = event(10, "launched", nodes="train-[1-2]", instances={"train-1": "i-1", "train-2": "i-2"})
UP = event(20, "up", nodes="train-1")
NOTICE = event(60, "notice", nodes="train-1")
ENDED = event(70, "ended", nodes="train-1", verb="suspend", instances=["i-1"])


def run(
    started: int | None, ended: int | None, *, nodes: str = "train-1", submitted: int = 5, state: str = ""
) -> JobRun:
    return job_run(submitted, started, ended, state, nodes)


def life(*lines: str, runs: tuple[JobRun, ...] = (), start: int = 0) -> Timeline:
    events = read_events([event(0, "keeper-began"), *lines])
    return timeline("dev", events, runs, head_since=None, start=at(start), end=at(100))


def row(shown: Timeline, name: str) -> Row:
    (found,) = (one for one in shown.rows if one.name == name)
    return found


def bars(found: Row) -> list[tuple[str, int, int]]:
    return [(str(bar.state), int(bar.start.timestamp()) - T0, int(bar.end.timestamp()) - T0) for bar in found.bars]


def test_a_node_boots_idles_works_gets_a_notice_and_ends() -> None:
    shown = life(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55),))
    assert bars(row(shown, "train-1")) == [
        ("booting", 10, 20),
        ("idle", 20, 30),
        ("running", 30, 55),
        ("idle", 55, 60),
        ("notice", 60, 70),
    ]


def test_a_node_that_is_not_up_yet_boots_until_now() -> None:
    assert row(life(LAUNCHED), "train-2").bars == (
        Bar(start=at(10), end=at(100), state=State.BOOTING, text="launched it", goes_on=True),
    )


def test_a_node_that_is_launched_again_has_two_lives() -> None:
    again = event(80, "launched", nodes="train-1", instances={"train-1": "i-3"})
    assert bars(row(life(LAUNCHED, ENDED, again), "train-1")) == [("booting", 10, 70), ("booting", 80, 100)]


def test_an_instance_that_is_terminated_is_its_nodes() -> None:
    shown = life(LAUNCHED, event(40, "terminated", instances=["i-2"]))
    assert (bars(row(shown, "train-2")), bars(row(shown, "train-1"))) == ([("booting", 10, 40)], [("booting", 10, 100)])


def test_an_end_that_found_no_machine_makes_no_row() -> None:
    shown = life(event(40, "ended", nodes="train-9", verb="suspend", instances=[]))
    assert [one.name for one in shown.rows] == ["head"]


def test_a_forgotten_node_ends() -> None:
    assert bars(row(life(LAUNCHED, event(40, "forgotten", nodes="train-1")), "train-1")) == [("booting", 10, 40)]


def test_a_requeued_job_is_one_row_that_waits_and_runs_twice() -> None:
    runs = (run(30, 55, state="requeued"), run(65, 90, submitted=55, state="completed"))
    shown = life(runs=runs)
    assert (bars(row(shown, "7 fit")), row(shown, "7 fit").note) == (
        [("waiting", 5, 30), ("running", 30, 55), ("waiting", 55, 65), ("running", 65, 90)],
        "completed",
    )


BOTH_UP = (LAUNCHED, UP, event(40, "up", nodes="train-2"))


def both(shown: Timeline) -> dict[str, list[tuple[str, int, int]]]:
    return {name: bars(row(shown, name)) for name in ("train-1", "train-2", "7 fit")}


def test_a_node_boots_until_it_is_up_whatever_accounting_says_of_its_job() -> None:
    shown = life(*BOTH_UP, runs=(run(8, 90, nodes="train-[1-2]"),))
    assert both(shown) == {
        "train-1": [("booting", 10, 20), ("idle", 20, 40), ("running", 40, 90), ("idle", 90, 100)],
        "train-2": [("booting", 10, 40), ("running", 40, 90), ("idle", 90, 100)],
        "7 fit": [("waiting", 5, 40), ("running", 40, 90)],
    }


def test_a_run_that_ended_before_all_its_nodes_were_up_only_waited() -> None:
    shown = life(*BOTH_UP, runs=(run(8, 35, nodes="train-[1-2]", state="requeued"),))
    assert both(shown) == {
        "train-1": [("booting", 10, 20), ("idle", 20, 100)],
        "train-2": [("booting", 10, 40), ("idle", 40, 100)],
        "7 fit": [("waiting", 5, 35)],
    }


def test_a_run_on_a_node_that_never_was_up_only_waited() -> None:
    spot = event(15, "notice", nodes="train-1")
    shown = life(LAUNCHED, spot, event(30, "ended", nodes="train-1"), runs=(run(12, 25, state="requeued"),))
    assert (bars(row(shown, "train-1")), bars(row(shown, "7 fit"))) == (
        [("booting", 10, 15), ("notice", 15, 30)],
        [("waiting", 5, 25)],
    )


def test_a_node_that_comes_up_under_a_notice_runs_what_it_has() -> None:
    shown = life(LAUNCHED, event(15, "notice", nodes="train-1"), UP, runs=(run(12, 50, state="requeued"),))
    assert bars(row(shown, "7 fit")) == [("waiting", 5, 20), ("running", 20, 50)]


def test_a_run_waits_for_its_own_machine_and_not_for_a_former_one() -> None:
    again = event(30, "launched", nodes="train-1", instances={"train-1": "i-3"})
    machines = (LAUNCHED, UP, event(27, "ended", nodes="train-1"), again, event(45, "up", nodes="train-1"))
    shown = life(*machines, runs=(run(25, 90, submitted=24),))
    assert bars(row(shown, "7 fit")) == [("waiting", 24, 45), ("running", 45, 90)]


def test_a_completed_run_has_run_though_nobody_saw_its_node_come_up() -> None:
    shown = life(LAUNCHED, runs=(run(30, 55, state="completed"),))
    assert bars(row(shown, "7 fit")) == [("waiting", 5, 30), ("running", 30, 55)]


def test_a_job_that_was_cancelled_while_it_waited_only_waited() -> None:
    assert bars(row(life(runs=(run(None, 40),)), "7 fit")) == [("waiting", 5, 40)]


def test_jobs_of_an_earlier_cluster_are_not_shown() -> None:
    assert [one.name for one in life(runs=(run(-80, -50, submitted=-90),)).rows] == ["head"]


def test_what_was_before_the_start_is_cut() -> None:
    assert bars(row(life(LAUNCHED, UP, start=50), "train-1")) == [("idle", 50, 100)]


def test_rows_are_the_head_then_nodes_then_jobs() -> None:
    assert [one.kind for one in life(LAUNCHED, runs=(run(30, 55),)).rows] == ["head", "node", "node", "job"]


def test_refusals_are_marks_of_the_head() -> None:
    assert [(mark.kind, mark.at) for mark in row(life(event(30, "refused", nodes="train-1")), "head").marks] == [
        ("refused", at(30))
    ]


GONE = event(40, "forgotten", nodes="train-2")


def marks(*lines: str) -> dict[str, list[tuple[str, int]]]:
    """Those of the nodes."""
    rows = [one for one in life(*lines).rows if one.kind == "node"]
    return {one.name: [(mark.kind, int(mark.at.timestamp()) - T0) for mark in one.marks] for one in rows}


def test_a_machine_that_is_gone_is_a_mark_of_its_node() -> None:
    assert marks(LAUNCHED, GONE) == {"train-1": [], "train-2": [("forgotten", 40)]}


def test_a_machine_that_is_gone_is_a_line_of_the_page() -> None:
    table = page(life(LAUNCHED, GONE)).partition("<caption>What went otherwise</caption>")[2]
    assert '<th scope="row">22:40:40</th><td>forgotten</td><td>forgotten it</td>' in table


def test_an_end_that_a_notice_has_foretold_is_marked_once() -> None:
    assert marks(LAUNCHED, NOTICE, event(70, "forgotten", nodes="train-1"))["train-1"] == [("notice", 60)]


def test_an_end_that_was_asked_for_is_no_mark() -> None:
    assert marks(LAUNCHED, ENDED, event(72, "forgotten", nodes="train-1"))["train-1"] == []


def test_a_machine_that_did_not_come_up_in_time_is_a_mark() -> None:
    late = event(50, "ended", nodes="train-2", verb="resume-failed", instances=["i-2"])
    assert marks(LAUNCHED, late) == {"train-1": [], "train-2": [("ended", 50)]}


def test_a_machine_that_booted_again_under_a_job_is_a_mark() -> None:
    assert marks(LAUNCHED, UP, event(50, "rebooted", nodes="train-1", jobs=["7"]))["train-1"] == [("rebooted", 50)]


def test_a_keeper_that_begins_again_is_a_mark() -> None:
    assert [mark.at for mark in row(life(event(50, "keeper-began")), "head").marks] == [at(50)]


def heads(*lines: str, launched: int, runs: tuple[JobRun, ...] = ()) -> list[tuple[str, int, int]]:
    """The bars of the head's row, where the present head was launched at this second."""
    shown = timeline("dev", read_events(lines), runs, head_since=at(launched), start=at(-100), end=at(100))
    return bars(row(shown, "head"))


def test_a_head_boots_from_its_launch_until_its_keeper_begins() -> None:
    assert heads(event(25, "keeper-began"), launched=5) == [("booting", 5, 25), ("up", 25, 100)]


def test_a_head_without_a_sign_yet_boots() -> None:
    assert heads(launched=60) == [("booting", 60, 100)]


def test_a_head_that_was_replaced_is_up_until_its_last_sign_and_then_silent() -> None:
    former = (event(0, "keeper-began"), LAUNCHED, event(20, "ended", nodes="train-1"))
    assert heads(*former, event(85, "keeper-began"), launched=60) == [
        ("up", 0, 20),
        ("silent", 20, 60),
        ("booting", 60, 85),
        ("up", 85, 100),
    ]


def test_the_start_of_a_job_is_a_sign_of_a_head() -> None:
    begun = heads(event(0, "keeper-began"), event(85, "keeper-began"), launched=60, runs=(run(30, 70),))
    assert begun[:2] == [("up", 0, 30), ("silent", 30, 60)]


def test_what_a_later_head_learns_of_a_node_is_no_sign_of_the_former() -> None:
    begun = heads(event(0, "keeper-began"), LAUNCHED, event(40, "up", nodes="train-1"), launched=60)
    assert begun[:2] == [("up", 0, 10), ("silent", 10, 60)]


def test_a_head_whose_first_events_are_lost_is_up() -> None:
    assert heads(LAUNCHED, launched=-50) == [("up", -50, 100)]


def test_events_are_sorted_by_when_they_happened() -> None:
    assert [one.kind for one in read_events([NOTICE, UP, "{broken", '{"at": 1}'])] == ["up", "notice"]


def test_an_event_line_names_the_code_of_no_capacity_and_not_all_that_ec2_says_of_it() -> None:
    text = (
        "train-1 by a: InsufficientInstanceCapacity: There is no Spot capacity.; b: UnauthorizedOperation: You may not"
    )
    assert printed(*event_lines([Happened(at=at(0), kind="refused", text=text)])) == [
        "2026-11-21 22:40:00  refused       train-1 by a: InsufficientInstanceCapacity; b: UnauthorizedOperation:"
        " You may not"
    ]


def test_the_picture_has_a_line_a_row_and_a_cell_for_each_stretch_of_time() -> None:
    shown = life(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55, state="completed"),))
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
    assert printed(TimelineText(life(), ""))[-1] == "  ── up"


def test_times_of_the_scale_are_round_and_do_not_touch() -> None:
    assert scale(at(7), at(307), 60) == "          22:41       22:42       22:43       22:44         "


def long(hours: int) -> Timeline:
    """A cluster whose head is up so long."""
    events = read_events([event(0, "keeper-began"), event(3600, "keeper-began")])
    return timeline("dev", events, (), head_since=None, start=at(0), end=at(0) + timedelta(hours=hours))


def test_midnight_is_named_by_its_day() -> None:
    assert scale(at(0), at(0) + timedelta(hours=6), 60).split() == [
        "23:00",
        "11-22",
        "01:00",
        "02:00",
        "03:00",
        "04:00",
    ]


def test_days_of_a_long_life_do_not_touch() -> None:
    assert (
        scale(at(0), at(0) + timedelta(days=60), 60) == "           12-03         12-17         12-31         01-14  "
    )


def test_a_life_over_midnight_ends_with_its_day() -> None:
    assert heading_of(long(hours=12)) == "2026-11-21 22:40:00 to 2026-11-22 10:40:00 UTC, 12 h"


def test_the_page_of_a_life_over_midnight_has_the_day_of_each_event() -> None:
    assert '<th scope="row">2026-11-21 23:40:00</th>' in page(long(hours=12))


def test_the_page_is_one_file_that_fetches_nothing() -> None:
    text = page(life(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55),)))
    assert re.findall(r"https?://|<script|src=|@import|url\(", text) == []


def test_the_picture_of_the_page_has_a_bar_with_a_tip_for_each_bar() -> None:
    shown = life(LAUNCHED, UP, NOTICE, ENDED, runs=(run(30, 55),))
    picture = ElementTree.fromstring(re.search(r"<svg class=\"life\".*?</svg>", page(shown), re.DOTALL)[0])
    tips = [one.findtext("title") for one in picture.iter("rect") if one.get("class", "").startswith("bar")]
    assert tips[3] == "running: job 7 (fit) of ada\n22:40:30 to 22:40:55, 25 s"


def test_a_jobs_name_is_no_html() -> None:
    named = JobRun(
        job_id="7", user="a", name="<b>&", queue="q", state="x", nodes="", submitted=T0, started=None, ended=None
    )
    assert "7 &lt;b&gt;&amp;" in page(life(runs=(named,)))


def printed(*parts: object, columns: int = 140) -> list[str]:
    console = Console(file=io.StringIO(), width=columns, color_system=None, highlight=False)
    with console.capture() as captured:
        for part in parts:
            console.print(part, crop=False, soft_wrap=True)
    return [line.rstrip() for line in captured.get().rstrip("\n").split("\n")]
