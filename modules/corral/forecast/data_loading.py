"""The data of a training run: bytes per token, and the servers needed to tokenize text."""

from __future__ import annotations

from corral.catalog.aws.storage import text_rates
from corral.spec.models.run import WHILE_TRAINING, LoaderSpec

_SECONDS_PER_HOUR = 3600
_SHORT_TOKENS = 2**16  # vocabularies up to this size fit into two bytes


def token_bytes(vocabulary: int) -> int:
    """Bytes of a stored token: 2 if the vocabulary fits, otherwise 4."""
    return 2 if vocabulary <= _SHORT_TOKENS else 4


def read_bytes_per_token(loader: LoaderSpec | None, vocabulary: int) -> float:
    """Bytes read per token: as declared, those of text if the run reads text, otherwise those of the token."""
    if loader and loader.bytes_per_token:
        return loader.bytes_per_token
    if loader and loader.tokenize == WHILE_TRAINING:
        return text_rates().bytes_per_token
    return token_bytes(vocabulary)


def text_bytes(tokens: float) -> float:
    """Bytes of the English text of so many tokens."""
    return tokens * text_rates().bytes_per_token


def tokenizer_hours(tokens: float) -> float:
    """Hours that one server takes to tokenize English text into so many tokens."""
    return text_bytes(tokens) / text_rates().tokenizer_bytes_per_s / _SECONDS_PER_HOUR


def tokenizer_servers(tokens_per_s: float) -> float:
    """The servers needed to tokenize English text as fast as a run reads it."""
    rates = text_rates()
    return tokens_per_s * rates.bytes_per_token / rates.tokenizer_bytes_per_s
