"""Parses a row of published runs: model shape, accelerator, precision, layout."""

from __future__ import annotations

from corral.catalog.accelerators.accelerators import AcceleratorModel, find_accelerator
from corral.catalog.accelerators.transformer import TransformerModel
from corral.catalog.accelerators.transformer_models import models
from corral.catalog.loader.suggestions import UnknownName, suggestion
from corral.forecast.published.csv_rows import CsvRow
from corral.forecast.training.job import Precision
from corral.forecast.training.layout import Layout, Recompute, Sharding

_PRECISIONS = {  # the first key in the cell: `bf16 + fp8` multiplies in 8 bits
    "fp4": Precision.FP4,
    "fp8": Precision.FP8,
    "float8": Precision.FP8,
    "e4m3": Precision.FP8,
    "bf16": Precision.BF16,
    "bfloat16": Precision.BF16,
    "fp16": Precision.FP16,
    "float16": Precision.FP16,
    "tf32": Precision.FP32,
    "fp32": Precision.FP32,
    "float32": Precision.FP32,
}
_SHARDINGS = {  # the first key in the cell, including PyTorch's words
    "not re-sharded": Sharding.ZERO2,
    "shard_grad_op": Sharding.ZERO2,
    "full_shard": Sharding.ZERO3,
    "hybrid_shard": Sharding.ZERO3,
    "stage 3": Sharding.DEEPSPEED_ZERO3,
    "fsdp": Sharding.ZERO3,
    "hsdp": Sharding.ZERO3,
    "2d": Sharding.ZERO3,
    "zero3": Sharding.DEEPSPEED_ZERO3,
    "zero2": Sharding.ZERO2,
    "zero1": Sharding.ZERO1,
    "distributed optimizer": Sharding.ZERO1,
    "ddp": Sharding.NONE,
    "none": Sharding.NONE,
}
_RECOMPUTES = {
    "": Recompute.NONE,
    "false": Recompute.NONE,
    "true": Recompute.FULL,
    **{mode.value: mode for mode in Recompute},
}
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no")


def parse_shape(row: CsvRow) -> TransformerModel:
    hidden, heads = row.whole("hidden", 1), row.whole("heads", 1)
    gated = row.text("gated_mlp").lower()
    if gated not in ("", *_YES, *_NO):
        row.wrong("gated_mlp", f"{gated!r} is neither 0 nor 1")
    active = row.number("active_params_b")
    experts, top_k = row.count("experts"), row.count("top_k")
    if experts and not 1 <= top_k <= experts:
        row.wrong("top_k", f"{top_k} of {experts} experts", f"use 1 to {experts}")
    plain = gated in _NO
    known = models().get(row.text("model"))  # latent attention and dense layers of a mixture have no column
    return TransformerModel(
        name=row.text("model"),
        layers=row.whole("layers", 1),
        hidden=hidden,
        ffn=row.whole("ffn_hidden", 1),
        heads=heads,
        kv_heads=row.whole("kv_heads", heads),
        head_dim=row.whole("head_dim", max(1, hidden // heads)),
        vocabulary=row.whole("vocab", 1),
        gated=not plain,
        tied=plain,
        biases=plain,
        experts=experts,
        top_k=top_k,
        shared=known.shared if known else 0,
        dense_layers=known.dense_layers if known else 0,
        dense_ffn=known.dense_ffn if known else 0,
        latent=known.latent if known else None,
        active=active * 1e9 if active and experts else None,
    )


def parse_accelerator(row: CsvRow) -> AcceleratorModel | None:
    if not (name := row.text("accelerator")):
        return None
    try:
        return find_accelerator(name)
    except UnknownName as error:
        row.wrong("accelerator", error.message, error.hint)
        return None


def parse_precision(row: CsvRow) -> Precision:
    text = row.text("precision").lower()
    if not text:
        return Precision.BF16
    for word, precision in _PRECISIONS.items():
        if word in text:
            return precision
    row.wrong("precision", f"{text!r} is unknown", suggestion(text, _PRECISIONS))
    return Precision.BF16


def _sharding(row: CsvRow) -> Sharding:
    text = row.text("sharding").lower()
    if not text:
        return Sharding.ZERO1
    for word, sharding in _SHARDINGS.items():
        if word in text.replace("-", "").replace("zero ", "zero") or word in text:
            return sharding
    row.wrong("sharding", f"{text!r} is unknown", f"use one of {', '.join(_SHARDINGS)}")
    return Sharding.NONE


def _recompute(row: CsvRow, sharding: Sharding) -> Recompute:
    text = row.text("recompute").lower()
    word = text.partition(" ")[0]
    if word not in _RECOMPUTES:
        row.wrong("recompute", f"{text!r} is unknown", suggestion(text, [mode.value for mode in Recompute]))
    mode = _RECOMPUTES.get(word, Recompute.NONE)
    return Recompute.OPERATORS if mode is Recompute.SELECTIVE and sharding is Sharding.ZERO3 else mode


def parse_layout(row: CsvRow, model: AcceleratorModel | None) -> Layout | None:
    devices = row.whole("accelerators", 1)
    sharding = _sharding(row)
    recompute = _recompute(row, sharding)
    tp, pp, cp = (row.whole(column, 1) for column in ("tp", "pp", "cp"))
    ep, virtual, micro = row.whole("ep", 1), row.whole("virtual_stages", 1), row.number("micro_batch")
    if row.errors or model is None:
        return None
    ranks = model.ranks if row.text("dp") and tp * pp * cp * row.whole("dp", 1) == model.ranks * devices else 1
    dp = row.whole("dp", max(1, devices // (tp * pp * cp)))
    if tp * pp * cp * dp != devices * ranks:
        row.wrong(
            "accelerators", f"{devices:,}, but tp x pp x cp x dp is {tp} x {pp} x {cp} x {dp} = {tp * pp * cp * dp:,}"
        )
        return None
    return Layout(
        tp=tp / ranks if ranks > 1 else tp,
        pp=pp,
        cp=cp,
        ep=ep,
        dp=dp,
        virtual_stages=virtual,
        sharding=sharding,
        micro_batch=micro or 1,
        recompute=recompute,
        sequence_parallel=tp > 1 and (recompute is not Recompute.FULL or sharding is Sharding.ZERO3),
    )
