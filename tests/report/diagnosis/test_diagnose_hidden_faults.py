"""Faults hidden among healthy jobs: each is found, and nothing is said of the healthy ones.

Another seed hides other jobs: `CORRAL_DIAGNOSE_SEEDS=7,8 pytest tests/report/diagnosis`.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.report.diagnosis.diagnose import diagnose
from corral.report.diagnosis.findings import FindingKind
from report.diagnosis.synthetic_jobs import FAULTS, HEALTHY, evidence, faulty_job, healthy_job, hidden_jobs

SEEDS = [int(seed) for seed in os.environ.get("CORRAL_DIAGNOSE_SEEDS", "1,2").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_hidden_faults_are_found_and_healthy_jobs_are_left_alone(seed: int) -> None:
    jobs = hidden_jobs(seed)
    assert sum(kind is None for kind, _ in jobs) == HEALTHY
    found = [(kind, [one.kind for one in diagnose(seen).findings]) for kind, seen in jobs]
    assert found == [(kind, [kind] if kind else []) for kind, _ in jobs]


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_no_healthy_job_has_a_finding(seed: int) -> None:
    assert diagnose(evidence(healthy_job(seed))).findings == ()


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(kind=st.sampled_from([*FAULTS]), seed=st.integers(0, 10**9))
def test_any_fault_is_found_first(kind: FindingKind, seed: int) -> None:
    assert [one.kind for one in diagnose(evidence(faulty_job(kind, seed))).findings][:1] == [kind]


def test_every_kind_of_finding_has_a_fault_that_hides() -> None:
    assert {*FAULTS} == {*FindingKind}
