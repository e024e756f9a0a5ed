"""Models that a run file can name."""

from corral.catalog.accelerators.transformer_models import models


def test_every_model_has_a_source() -> None:
    assert [model.name for model in models().values() if not model.source] == []
