"""Scenarios: tests whose steps each continue from the one before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def step(claim: str) -> Iterator[None]:
    """A step of a scenario. A failure in it names the step."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in the step: {claim}")
        raise
