"""The line primitive: what it writes, and that nothing which Slurm would misread gets through."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.render.conf_line import slurm_line

HARMLESS = st.text(st.characters(categories=["L", "N"]) | st.sampled_from("-_./:=[]()*"), min_size=1)
HARMFUL = st.sampled_from(" \t\n\r\v\f\"'`#\\\0\x7f\x85\u00a0\u2028")


def test_fields_keep_their_order() -> None:
    assert slurm_line({"NodeName": "train-[1-4]", "Sockets": 2}) == "NodeName=train-[1-4] Sockets=2"


def test_none_and_an_empty_list_are_left_out() -> None:
    assert slurm_line({"NodeName": "a", "Gres": None, "Feature": []}) == "NodeName=a"


def test_no_field_with_a_value_is_no_line() -> None:
    assert slurm_line({"Gres": None}) == ""


def test_a_list_is_joined_by_commas() -> None:
    assert slurm_line({"TaskPlugin": ["task/affinity", "task/cgroup"]}) == "TaskPlugin=task/affinity,task/cgroup"


def test_truth_values_are_yes_and_no() -> None:
    assert slurm_line({"Default": True, "Hidden": False}) == "Default=YES Hidden=NO"


@given(before=HARMLESS, harm=HARMFUL, after=HARMLESS)
def test_a_value_that_slurm_would_misread_is_refused(before: str, harm: str, after: str) -> None:
    with pytest.raises(ValueError, match="Feature: "):
        slurm_line({"Feature": before + harm + after})


@given(value=st.text())
def test_what_is_written_is_one_word_with_the_value_unchanged(value: str) -> None:
    try:
        line = slurm_line({"Feature": value})
    except ValueError:
        return
    assert (line.split(), line) == ([line], f"Feature={value}")


@given(key=st.text(max_size=8).filter(lambda text: not (text.isascii() and text.isalnum() and text[0].isalpha())))
def test_a_key_that_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="is not a Slurm key"):
        slurm_line({key: "value"})


def test_a_comma_inside_one_value_of_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match="Slurm would read two"):
        slurm_line({"Feature": ["a,b"]})


def test_an_empty_value_is_refused() -> None:
    with pytest.raises(ValueError, match="Feature: ''"):
        slurm_line({"Feature": ""})
