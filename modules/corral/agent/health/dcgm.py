"""The results of `dcgmi diag -j`: which tests failed, on which GPU.

Up to DCGM 3 the document is {"DCGM GPU Diagnostic": {"test_categories": [{"category", "tests": [{"name", "results":
[{"gpu_ids" or "gpu_id", "status", "warnings"}]}]}]}}; DCGM 4 names it "DCGM Diagnostic", and a result has an
"entity_id". So tests are recognised by their shape. Source: NVIDIA/DCGM, nvvs/include/NvvsCommon.h and
nvvs/src/tests/JsonResultTests.cpp; DCGM changelog, "Deprecations and Breaking Changes".
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from corral.agent.health.findings import FindingKind, HealthFinding, sick

_FAILED = frozenset({"fail", "failed"})


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """A failed test. `gpus`: by DCGM's numbers, empty if unknown. `reason`: its first warning."""

    test: str
    gpus: str
    reason: str


def read_diagnostic(text: str) -> tuple[FailedTest, ...]:
    """The failed tests, in their order. Raises ValueError for a text without results."""
    start = text.find("{")  # a warning line may precede the JSON
    if start < 0:
        raise ValueError(f"no results in {text.strip()[:80]!r}")
    document, _ = json.JSONDecoder().raw_decode(text[start:])
    tests = tuple(_tests(document))
    if not tests:
        raise ValueError(f"no test in {text.strip()[:80]!r}")
    return tuple(failed for test in tests for failed in _failed(test))


def evaluate_diagnostic(failed: Iterable[FailedTest]) -> Iterator[HealthFinding]:
    """The findings of failed tests: a machine that fails one is sick."""
    for one in failed:
        where = f"GPU {one.gpus}: " if one.gpus else ""
        reason = f" ({one.reason})" if one.reason else ""
        yield sick(FindingKind.DCGM, f"{where}DCGM's test {one.test} failed{reason}")


def _tests(part: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(part, dict):
        if "name" in part and isinstance(part.get("results"), list):
            yield part
        else:
            for inner in part.values():
                yield from _tests(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from _tests(inner)


def _failed(test: Mapping[str, Any]) -> Iterator[FailedTest]:
    for result in test["results"]:
        if str(result.get("status", "")).lower() in _FAILED:
            gpus = next((str(result[key]) for key in ("gpu_ids", "gpu_id", "entity_id") if key in result), "")
            yield FailedTest(test=str(test["name"]), gpus=gpus, reason=_reason(result.get("warnings")))


def _reason(warnings: Any) -> str:
    first = warnings[0] if isinstance(warnings, list) and warnings else warnings or ""
    return str(first.get("warning", "") if isinstance(first, dict) else first)
