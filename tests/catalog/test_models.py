"""Models that a run file can name."""

import pytest

from corral.catalog.models import find_model, models
from corral.catalog.names import UnknownName


def test_a_model_is_found_by_its_name() -> None:
    assert find_model("llama3-70b").layers == 80


def test_a_model_that_nobody_knows_has_a_hint() -> None:
    with pytest.raises(UnknownName, match="'llama3-7b' is not in the catalogue - did you mean 'llama3-70b'"):
        find_model("llama3-7b")


def test_every_model_has_a_source() -> None:
    assert [model.name for model in models().values() if not model.source] == []
