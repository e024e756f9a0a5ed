"""Wrong run files: what is changed in the good one, and every line that comes out, literally and in order."""

from __future__ import annotations

from typing import Any

import pytest
from runs import SHAPE, layout, outcome

LATENT = {"query_rank": 1536, "key_value_rank": 512, "rotary": 64}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"model": "lama3-8b"}, ("model: 'lama3-8b' is not in the catalog - did you mean 'llama3-8b'?",)),
        (
            {"model": ...},
            ("model: is missing - set a model of the catalog, such as llama3-8b, or a shape",),
        ),
        ({"shape": SHAPE}, ("shape: conflicts with model - keep one",)),
        (
            {"model": ..., "shape": {**SHAPE, "heads": 30, "kv_heads": 7}},
            (
                "shape.heads: 30 does not divide hidden 4096 - use a divisor, or set head_dim",
                "shape.kv_heads: 7 does not divide heads 30 - use a divisor",
            ),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "experts": 8, "top_k": 9}},
            ("shape.top_k: 9 of 8 experts - use 1 to 8",),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "top_k": 2}},
            ("shape.top_k: requires experts - remove it, or set experts",),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "shared": 2}},
            ("shape.shared: requires experts - remove it, or set experts",),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "dense_layers": 3}},
            (
                "shape.dense_layers: requires experts - remove it, or set experts",
                "shape.dense_ffn: requires dense_layers - set both, or neither",
            ),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "experts": 8, "top_k": 2, "dense_layers": 32, "dense_ffn": 9}},
            ("shape.dense_layers: 32 of 32 layers leave none for experts - use fewer",),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "kv_heads": 8, "latent": LATENT}},
            ("shape.kv_heads: does not apply to latent attention - remove it",),
        ),
        (
            {"model": ..., "shape": {**SHAPE, "latent": {**LATENT, "query_rank": 0}}},
            ("shape.latent.query_rank: 0 is too small - use 1 or more",),
        ),
        ({"tokens": "1.5"}, ("tokens: '1.5' is not an amount - write it like 15T, 300B, 4M or 4194304",)),
        ({"tokens": 0}, ("tokens: 0 is not an amount - write it like 15T, 300B, 4M or 4194304",)),
        ({"tokens": True}, ("tokens: true is not an amount - write it like 15T, 300B, 4M or 4194304",)),
        (
            {"tokens": "1M"},
            ("batch_sequences: a step of 4194304 tokens is more than the run's 1000000 - use fewer",),
        ),
        ({"batch_sequences": ...}, ("batch_sequences: is missing - set it, or batch_tokens",)),
        (
            {"batch_tokens": "4M"},
            ("batch_tokens: conflicts with batch_sequences - keep one",),
        ),
        (
            {"batch_sequences": ..., "batch_tokens": "4M", "layout": "choose"},
            ("batch_tokens: 4000000 is not a multiple of sequence_length 8192 - use 3997696 or 4005888",),
        ),
        ({"precision": "fp4"}, ("precision: invalid value 'fp4'; did you mean 'fp8'?",)),
        ({"queue": "trian"}, ("queue: 'trian' is not a queue of 'train' - did you mean 'train'?",)),
        (
            {"nodes": 17, "layout": "choose"},
            ("nodes: 17 is more than nodes.max of queue 'train' - use 16 or less, or raise nodes.max",),
        ),
        ({"layout": "chosen"}, ("layout: invalid value 'chosen'; write choose, or fields",)),
        ({"layout": None}, ("layout: has no value - set one, or remove the line",)),
        (
            {"layout": layout(tensor=3, data=...)},
            (
                "layout: tensor 3 x pipeline 4 x context 1 is 12, which does not divide 128 accelerators"
                " - use other degrees",
                "layout.tensor: 3 does not divide the 32 heads of llama3-8b - use a divisor",
            ),
        ),
        (
            {"layout": layout(data=8)},
            (
                "layout.data: tensor 2 x pipeline 4 x context 1 x data 8 is 64, but there are 128 accelerators"
                " - use data 16, or remove it",
            ),
        ),
        (
            {"layout": layout(pipeline=64, data=1)},
            ("layout.pipeline: 64 stages do not divide 32 layers - use a divisor of 32, or of up to 3 more",),
        ),
        (
            {"layout": layout(virtual_stages=3)},
            ("layout.virtual_stages: 3 parts do not divide a stage of 8 layers - use a divisor of 8",),
        ),
        (
            {"layout": layout(pipeline=1, data=64)},
            ("layout.virtual_stages: requires a pipeline, and this layout has none - remove it",),
        ),
        (
            {"layout": layout(), "batch_sequences": 64},
            (
                "layout.virtual_stages: interleaving needs micro-batches in groups of 4, but a data rank has 2"
                " - use a multiple of 4, or 1 virtual stage",
            ),
        ),
        (
            {"layout": layout(context=16, data=1), "sequence_length": 8200},
            ("layout.context: 16 does not divide sequence_length 8200 - use a divisor",),
        ),
        ({"layout": layout(expert=2)}, ("layout.expert: llama3-8b has no experts - remove it",)),
        (
            {"model": "mixtral-8x7b", "layout": layout(expert=3)},
            ("layout.expert: 3 must divide 8 experts and tensor x context x data = 32 - use a divisor of both",),
        ),
        (
            {"layout": layout(micro_batch=3)},
            ("layout.micro_batch: 3 does not divide the 32 sequences of a data rank - use a divisor",),
        ),
        (
            {"batch_sequences": 100},
            (
                "layout: a batch of 100 sequences cannot be shared by 16 data ranks"
                " - use a multiple of 16, or fewer ranks",
            ),
        ),
        (
            {"checkpoint": {"interval": "0s"}},
            ("checkpoint.interval: '0s' is not an interval - write it like 30m, or choose",),
        ),
        (
            {"checkpoint": {"interval": "often", "to": "lustre"}},
            (
                "checkpoint.interval: 'often' is not a duration - write it like 30m or 1h30m, or choose",
                "checkpoint.to: 'lustre' is not a file system of 'train' or its base - expected one of data, home",
            ),
        ),
        ({"usd_total_max": 0}, ("usd_total_max: 0 is too small - use more than 0",)),
        (
            {"loader": {"from": "hom"}},
            ("loader.from: 'hom' is not a file system of 'train' or its base - did you mean 'home'?",),
        ),
    ],
)
def test_a_wrong_run_states_all_that_is_wrong(changes: dict[str, Any], expected: tuple[str, ...]) -> None:
    assert [str(error) for error in outcome(**changes).errors] == [f"run.yaml: {line}" for line in expected]
