"""`corral runbook`: the page of an alert, from the package."""

from __future__ import annotations

from calls import REPOSITORY, corral

from corral.render.alerts import ALERTS


def test_the_page_of_an_alert_is_printed() -> None:
    page = (REPOSITORY / "docs/runbooks/CorralNodeSlow.md").read_text()
    assert corral("runbook", "CorralNodeSlow").stdout == page


def test_an_unknown_name_gets_the_nearest_one() -> None:
    done = corral("runbook", "CorralNodeslow")
    assert (done.returncode, done.stderr) == (
        2,
        "corral: CorralNodeslow: no such runbook - did you mean 'CorralNodeSlow'?\n",
    )


def test_a_name_that_resembles_none_gets_all() -> None:
    error = corral("runbook", "x").stderr
    assert [one.name for one in ALERTS if one.name not in error] == []
