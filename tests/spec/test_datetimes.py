"""Moments as people write them."""

from datetime import UTC, datetime

import pytest

from corral.spec.models.datetimes import parse_datetime

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("4h", "2026-11-21T22:30:00+00:00"),
        ("+4h", "2026-11-21T22:30:00+00:00"),
        ("1d2h", "2026-11-22T20:30:00+00:00"),
        ("2026-11-22", "2026-11-22T00:00:00+00:00"),
        ("2026-11-22T18:00", "2026-11-22T18:00:00+00:00"),
        ("2026-11-22 18:00:30", "2026-11-22T18:00:30+00:00"),
        ("2026-11-22T18:00Z", "2026-11-22T18:00:00+00:00"),
        ("2026-11-22T18:00+01:00", "2026-11-22T17:00:00+00:00"),
    ],
)
def test_a_moment_is_read_in_utc(text: str, moment: str) -> None:
    assert parse_datetime(text, NOW).isoformat() == moment


@pytest.mark.parametrize("text", ["", "+", "soon", "-4h", "4", "18:00", "20261122", "2026-13-01", "2026-11-22T18"])
def test_what_is_no_moment_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_datetime(text, NOW)
