"""The eight runs that calculon is validated on (Isaev et al., SC 2023), of Korthikanti et al. 2022, Table 5.

The paper reports errors of 3.7 % on average and 8.9 % at most.
"""

from __future__ import annotations

from statistics import mean

from corral.forecast.published.speed_validation import PublishedTable, compare_speeds, shipped_runs

STEPS_S = {
    "kor22-22.1b-full": 1.42,
    "kor22-22.1b-selective": 1.10,
    "kor22-174.6b-full": 18.13,
    "kor22-174.6b-selective": 13.75,
    "kor22-529.6b-full": 49.05,
    "kor22-529.6b-selective": 37.83,
    "kor22-1008.0b-full": 94.42,
    "kor22-1008.0b-selective": 71.49,
}
PREDICTED_S = {
    one.run.run_id: one.speed.parts.total for table in PublishedTable for one in compare_speeds(shipped_runs(table))
}
ERRORS = [abs(PREDICTED_S[run_id] / seconds - 1) for run_id, seconds in STEPS_S.items()]


def test_mean_error_is_little_more_than_calculons() -> None:
    assert mean(ERRORS) < 0.045


def test_worst_error_is_little_more_than_calculons() -> None:
    assert max(ERRORS) < 0.10
