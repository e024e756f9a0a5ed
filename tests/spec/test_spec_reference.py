"""docs/spec.md says what the schema says."""

from corral.spec.reference import reference
from environments import PROJECT


def test_the_reference_in_docs_is_current() -> None:
    assert (PROJECT / "docs/spec.md").read_text() == reference()
