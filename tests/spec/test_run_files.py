"""Run files: what a good one means, what comes out of any other."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from runs import GOOD, SHAPE, outcome, run, train
from test_spec_fuzz import EDITS, mutated

from corral.spec.models.queues import NodesSpec
from corral.spec.models.run import LayoutSpec
from corral.spec.schema import run_schema
from corral.spec.spec_errors import SpecErrors
from corral.spec.yaml.environment import Environment
from corral.spec.yaml.run_files import read_run, try_parse_run
from environments import PROJECT

EXAMPLES = PROJECT / "examples/runs"


def frontier() -> Environment:
    """`train` with as many machines as Llama 3 405B took."""
    cluster = train().cluster
    queue = cluster.queues[0].model_copy(update={"nodes": NodesSpec(min=0, max=2048)})
    return replace(train(), cluster=cluster.model_copy(update={"queues": (queue,)}))


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_is_right(file: Path) -> None:
    assert read_run(file, frontier()).file == str(file)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_names_its_schema_to_editors(file: Path) -> None:
    assert file.read_text().splitlines()[0] == "# yaml-language-server: $schema=run.schema.json"


def test_the_schema_next_to_the_examples_is_current() -> None:
    assert json.loads((EXAMPLES / "run.schema.json").read_text()) == run_schema()


def test_the_schema_is_as_reviewed(golden: Callable[[str, str], None]) -> None:
    golden("spec/run.schema.json", json.dumps(run_schema(), indent=2) + "\n")


def test_405b_runs_on_16384() -> None:
    assert read_run(EXAMPLES / "llama3-405b.yaml", frontier()).accelerators == 16384


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("15T", 15 * 10**12),
        ("15.6T", 15_600_000_000_000),
        ("300B", 3 * 10**11),
        (10**10, 10**10),
        (1.5e13, 15 * 10**12),
    ],
)
def test_amounts_are_read_as_people_write_them(written: Any, means: int) -> None:
    assert run(tokens=written).tokens == means


def test_a_batch_in_tokens_is_one_in_sequences() -> None:
    assert run(batch_sequences=..., batch_tokens=4194304).batch_sequences == 512


def test_a_layout_to_be_chosen_is_none() -> None:
    assert run(layout="choose").layout is None


def test_a_layout_that_is_not_given_is_chosen() -> None:
    assert run(layout=...).layout is None


def test_a_layout_of_no_fields_is_data_parallel() -> None:
    assert run(layout={}).layout == LayoutSpec()


def test_without_a_queue_it_is_the_first_one_and_all_of_its_nodes() -> None:
    found = run(queue=..., nodes=...)
    assert (found.queue, found.machine.name, found.nodes) == ("train", "p5.48xlarge", 16)


def test_an_interval_to_be_chosen_is_none() -> None:
    checkpoint = run(checkpoint={"interval": "choose"}).checkpoint
    assert checkpoint is not None and checkpoint.interval is None


def test_an_interval_is_a_duration() -> None:
    checkpoint = run().checkpoint
    assert checkpoint is not None and checkpoint.interval == timedelta(minutes=30)


def test_checkpoints_go_to_the_first_file_system_by_default() -> None:
    checkpoint = run(checkpoint={}).checkpoint
    assert checkpoint is not None and checkpoint.to == "data"


def test_a_shape_has_heads_of_its_width_divided() -> None:
    model = run(model=..., shape=SHAPE).model
    assert (model.kv_heads, model.head_dim) == (32, 128)


def test_the_first_and_last_stage_may_have_a_layer_less() -> None:
    layout = {"tensor": 8, "pipeline": 16, "virtual_stages": 8}
    assert outcome(model="llama3-405b", layout=layout).errors == ()


@pytest.mark.parametrize(
    ("queue", "precision", "expected"),
    [
        ("p4d.24xlarge", "fp8", "A100-40 of p4d.24xlarge has no fp8 - use fp32 or fp16 or bf16"),
        ("p3dn.24xlarge", "bf16", "V100-32 of p3dn.24xlarge has no bf16 - use fp16 or fp32"),
    ],
)
def test_a_precision_that_the_machine_has_not_is_reported(queue: str, precision: str, expected: str) -> None:
    errors = try_parse_run({**GOOD, "precision": precision}, where="run.yaml", environment=with_machines(queue)).errors
    assert [str(error) for error in errors] == [f"run.yaml: precision: {expected}"]


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ("c7i.large", "'train' uses c7i.large, which has no accelerators - no queue has accelerators with figures"),
        (
            "g6.48xlarge",
            "'train' uses g6.48xlarge; the catalog has no figures for its L4 - no queue has accelerators with figures",
        ),
    ],
)
def test_machines_of_which_nothing_is_known_are_reported(queue: str, expected: str) -> None:
    errors = try_parse_run(GOOD, where="run.yaml", environment=with_machines(queue)).errors
    assert [str(error) for error in errors] == [f"run.yaml: queue: {expected}"]


def with_machines(name: str) -> Environment:
    cluster = train().cluster
    queue = cluster.queues[0].model_copy(update={"instance_type": name})
    return replace(train(), cluster=cluster.model_copy(update={"queues": (queue,)}))


def test_a_file_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SpecErrors, match=r"run\.yaml: cannot be read: No such file or directory - use a run file"):
        read_run(tmp_path / "run.yaml", train())


@pytest.mark.parametrize(("text", "found"), [("", "is empty"), ("- 1", "expected fields, found a list")])
def test_a_file_without_fields_is_reported(text: str, found: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(SpecErrors) as caught:
        read_run(file, train())
    assert str(caught.value) == f"{file}: {found} - a run file has fields such as model, tokens and sequence_length"


def test_a_torn_file_has_its_other_mistakes_reported(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("model: lama3-8b\ntokens: [1\nsequence_length: 8192\nbatch_sequences: x\n")
    with pytest.raises(SpecErrors) as caught:
        read_run(file, train())
    assert [error.path for error in caught.value.errors] == ["", "model", "batch_sequences"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1,2", "line 1, column 1: unclosed bracket"),
        ("a: b: c", "line 1, column 5: mapping values are not allowed here"),
        ("model: llama3-8b\ntokens: 1T\nsequence_length: [8192\n", "line 3, column 18: unclosed bracket"),
    ],
)
def test_a_torn_file_without_another_mistake_is_reported(text: str, expected: str, tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text(text)
    with pytest.raises(SpecErrors) as caught:
        read_run(file, train())
    assert str(caught.value) == f"{file}: {expected}"


@settings(max_examples=200, deadline=None)
@given(EDITS)
def test_a_mutated_run_is_accepted_or_refused(edits: list[tuple[int, str, Any]]) -> None:
    raw = mutated(dict(GOOD), edits)
    found = try_parse_run(raw, where="run.yaml", environment=train())
    assert (found.spec is None) == bool(found.errors)
