"""Rules about tags: what AWS takes as a tag, and what must never become one."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping

from corral.spec.errors import Finding

_KEY = re.compile(r"[A-Za-z0-9+\-=._:@]+")  # more would be hidden in instance metadata
# What every service takes beside letters, digits and spaces of any language. Source: the pattern of tag values in IAM,
# EFS, FSx, SSM and CloudWatch Logs, [\p{L}\p{Z}\p{N}_.:/=+\-@]* (API references, Tag); KMS's states none.
_SIGNS = frozenset("_.:/=+-@")
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
_MOST = 40  # of AWS's 50 a resource; the rest is corral's own
_OURS = ("aws:", "corral:")
_TOKENS = (
    re.compile(r"(AKIA|ASIA)[A-Z0-9]{16}"),
    re.compile(r"(hf|ghp|gho|ghs|glpat|sk|xox[abp])[_-][A-Za-z0-9_-]{16,}"),
    re.compile(r"github_pat_[A-Za-z0-9_]{22,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
)
# A key that ends in these words, however they are joined (db-password, WandbApiKey), names what its value is. Where
# they do not end it, it speaks of a secret (secret-owner, token-budget); tokens are what models are trained on.
_SECRETS = (
    *(("password",), ("passwd",), ("passphrase",), ("secret",), ("token",), ("credential",), ("credentials",)),
    *(("api", "key"), ("apikey",), ("access", "key"), ("secret", "key"), ("private", "key")),
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ANSWERS = frozenset({"", "true", "false", "yes", "no", "on", "off", "none", "required"})  # whether there is a secret
_RUN = re.compile(r"[A-Za-z0-9+/_=]{32,}")
_HEXADECIMAL = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]+", re.IGNORECASE)
_BASE64 = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).+")
_RANDOM_BITS = 3.5  # of Shannon entropy a character; hexadecimal keys come close to 4, base64 to 5


def check(tags: Mapping[str, str]) -> Iterator[Finding]:
    """What is wrong with these tags."""
    if len(tags) > _MOST:
        yield Finding(("tags",), f"has {len(tags)} tags - AWS takes {_MOST} beside corral's own")
    seen: dict[str, str] = {}  # IAM does not tell upper from lower case in keys
    for key, value in tags.items():
        if (first := seen.setdefault(key.lower(), key)) != key:
            yield Finding(("tags", key), f"is the same as {first!r} to IAM, which does not tell cases apart - keep one")
        elif message := _key_problem(key) or _value_problem(value) or _secret_problem(key, value):
            yield Finding(("tags", key), message)


def looks_secret(value: str) -> bool:
    """Whether this text is likely a token, a key or a password: by its known beginning, or for being random."""
    return any(token.search(value) for token in _TOKENS) or any(_is_random(run) for run in _RUN.findall(value))


def names_secret(key: str) -> bool:
    """Whether a tag of this key would hold a secret, by the last words of the key."""
    words = tuple(word.lower() for word in _WORD.findall(key))
    return any(words[-len(secret) :] == secret for secret in _SECRETS)


def _is_random(run: str) -> bool:
    """Whether letters and digits are mixed as chance mixes them, in one of the two ways in which keys are written."""
    counts = Counter(run)
    entropy = -sum(n / len(run) * math.log2(n / len(run)) for n in counts.values())
    return entropy >= _RANDOM_BITS and bool(_HEXADECIMAL.fullmatch(run) or _BASE64.fullmatch(run))


def _key_problem(key: str) -> str | None:
    if not _KEY.fullmatch(key):
        return "a tag's key may have letters, digits and + - = . _ : @ only"
    if len(key) > _LONGEST_KEY:
        return f"a tag's key has at most {_LONGEST_KEY} characters, this one has {len(key)}"
    if key.lower().startswith(_OURS) or key.lower() == "name":
        return f"{key!r} is not yours to set - corral and AWS keep Name, corral: and aws: for themselves"
    return None


def _value_problem(value: str) -> str | None:
    if len(value) > _LONGEST_VALUE:
        return f"a tag's value has at most {_LONGEST_VALUE} characters, this one has {len(value)}"
    if looks_secret(value):
        return "looks like a secret, and everyone who may list resources reads tags - keep it in Secrets Manager"
    if refused := [sign for sign in dict.fromkeys(value) if not _is_taken(sign)]:
        found = " and ".join(map(repr, refused))
        return f"a tag's value may have letters, digits, spaces and _ . : / = + - @ only, this one has {found}"
    return None


def _is_taken(sign: str) -> bool:
    """Whether a tag's value may have this: a letter, number or space of Unicode, or one of the signs."""
    return sign in _SIGNS or unicodedata.category(sign)[0] in "LNZ"


def _secret_problem(key: str, value: str) -> str | None:
    if not names_secret(key) or value.lower() in _ANSWERS:
        return None
    return f"{key!r} names a secret, and everyone who may list resources reads tags - keep it in Secrets Manager"
