"""Models and runs with published figures, for the tests of training forecasts."""

from __future__ import annotations

from corral.catalog.accelerators.transformer import TransformerModel


def llama(
    name: str, layers: int, hidden: int, ffn: int, heads: int, kv_heads: int, vocabulary: int
) -> TransformerModel:
    return TransformerModel(
        name=name,
        layers=layers,
        hidden=hidden,
        ffn=ffn,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=hidden // heads,
        vocabulary=vocabulary,
    )


LLAMA3_8B = llama("llama3-8b", 32, 4096, 14336, 32, 8, 128256)
LLAMA3_70B = llama("llama3-70b", 80, 8192, 28672, 64, 8, 128256)
LLAMA3_405B = llama("llama3.1-405b", 126, 16384, 53248, 128, 8, 128256)
LLAMA2_70B = llama("llama2-70b", 80, 8192, 28672, 64, 8, 32000)


def gpt(layers: int, hidden: int, heads: int) -> TransformerModel:
    """A GPT of Megatron's papers: s 2048, V 51200."""
    return TransformerModel(
        name="gpt",
        layers=layers,
        hidden=hidden,
        ffn=4 * hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        vocabulary=51200,
        gated=False,
        tied=True,
        biases=True,
        positions=2048,
    )


GPT3 = gpt(96, 12288, 96)
