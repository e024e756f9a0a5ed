"""Prometheus's text format: names, numbers, and labels that users write."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.metrics.promtool import check_metrics
from corral.agent.metrics.text_format import Family, Kind, Metric, Sample, exposition, histogram, label_value

JOBS = Metric(name="corral_jobs", kind=Kind.GAUGE, help="Jobs.")


def page(*samples: Sample) -> str:
    return exposition([Family(metric=JOBS, samples=samples)])


def test_a_family_has_its_help_its_type_and_its_samples() -> None:
    assert page(Sample(labels={"queue": "train"}, value=2), Sample(value=0.25)) == (
        '# HELP corral_jobs Jobs.\n# TYPE corral_jobs gauge\ncorral_jobs{queue="train"} 2\ncorral_jobs 0.25\n'
    )


def test_a_family_without_samples_is_left_out() -> None:
    assert page() == ""


def test_a_label_with_quotes_and_backslashes_is_escaped() -> None:
    assert page(Sample(labels={"account": 'a"b\\c'}, value=1)).splitlines()[-1] == r'corral_jobs{account="a\"b\\c"} 1'


def test_a_newline_in_an_account_is_shown_and_ends_no_line() -> None:
    assert label_value("a\ncorral_jobs 9") == r"a\ncorral_jobs 9"


def test_a_long_account_is_cut() -> None:
    assert len(label_value("x" * 1000)) == 64


@given(st.text(max_size=80))
def test_no_text_of_a_user_adds_a_line(text: str) -> None:
    assert len(page(Sample(labels={"account": label_value(text)}, value=1)).split("\n")) == 4


@pytest.mark.parametrize("text", ["", 'a"', "a\\", "a\nb", "\x00\x1b[31m", "‮abc", "{}=,", "é" * 90])
def test_promtool_reads_a_label_with_any_text(text: str) -> None:
    assert check_metrics(page(Sample(labels={"account": label_value(text)}, value=1))) == ""


def test_promtool_would_refuse_a_label_that_is_not_escaped() -> None:
    assert check_metrics('corral_jobs{account="a"b"} 1\n') != ""


def test_a_histogram_counts_each_value_in_all_larger_buckets() -> None:
    found = [(one.suffix, one.labels.get("le"), one.value) for one in histogram({}, [50, 100, 700], (60, 600))]
    assert found == [
        ("_bucket", "60", 1),
        ("_bucket", "600", 2),
        ("_bucket", "+Inf", 3),
        ("_sum", None, 850),
        ("_count", None, 3),
    ]
