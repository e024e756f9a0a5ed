"""docs/spec.md says what the schema says."""

from environments import PROJECT

from corral.spec.reference import reference


def test_the_reference_in_docs_is_current() -> None:
    assert (PROJECT / "docs/spec.md").read_text() == reference()
