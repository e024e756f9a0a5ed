"""Rules about tags: what AWS accepts as a tag, and what must never become one."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping

from corral.model.tags import TAG_PREFIX
from corral.spec.spec_errors import SpecFinding, SpecProblem

_KEY = re.compile(r"[A-Za-z0-9+\-=._:@]+")  # instance metadata does not show keys with other characters
# Every service accepts these, and letters, digits and spaces of any language. Source: the pattern of tag values in IAM,
# EFS, FSx, SSM and CloudWatch Logs, [\p{L}\p{Z}\p{N}_.:/=+\-@]* (API references, Tag); KMS's states none.
_PUNCTUATION = frozenset("_.:/=+-@")
_LONGEST_KEY, _LONGEST_VALUE = 128, 256
_MAX = 40  # of AWS's 50 per resource; the rest are corral's own
_OURS = ("aws:", TAG_PREFIX)
_TOKENS = (
    re.compile(r"(AKIA|ASIA)[A-Z0-9]{16}"),
    re.compile(r"(hf|ghp|gho|ghs|glpat|sk|xox[abp])[_-][A-Za-z0-9_-]{16,}"),
    re.compile(r"github_pat_[A-Za-z0-9_]{22,}"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY"),
)
# A key that ends in these words, however joined (db-password, WandbApiKey), names a secret. A key that has them
# elsewhere only mentions one (secret-owner, token-budget); models are trained on tokens.
_SECRETS = (
    *(("password",), ("passwd",), ("passphrase",), ("secret",), ("token",), ("credential",), ("credentials",)),
    *(("api", "key"), ("apikey",), ("access", "key"), ("secret", "key"), ("private", "key")),
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ANSWERS = frozenset(
    {"", "true", "false", "yes", "no", "on", "off", "none", "required"}
)  # say whether there is a secret
_RUN = re.compile(r"[A-Za-z0-9+/_=]{32,}")
_HEXADECIMAL = re.compile(r"(?=.*[0-9])(?=.*[a-f])[0-9a-f]+", re.IGNORECASE)
_BASE64 = re.compile(r"(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z]).+")
_RANDOM_BITS = 3.5  # of Shannon entropy a character; hexadecimal keys come close to 4, base64 to 5


def check(tags: Mapping[str, str]) -> Iterator[SpecFinding]:
    """Yield findings about these tags."""
    if len(tags) > _MAX:
        yield SpecFinding(("tags",), f"has {len(tags)} tags", f"AWS allows {_MAX} in addition to corral's")
    seen: dict[str, str] = {}  # IAM ignores the case of keys
    for key, value in tags.items():
        if (first := seen.setdefault(key.lower(), key)) != key:
            yield SpecFinding(("tags", key), f"equals {first!r} for IAM, which ignores case", "keep one")
        elif problem := _key_problem(key) or _value_problem(value) or _secret_problem(key, value):
            yield problem.at(("tags", key))


def looks_secret(value: str) -> bool:
    """Return whether this text is likely a token, a key or a password: it has a known prefix, or looks random."""
    return any(token.search(value) for token in _TOKENS) or any(_is_random(run) for run in _RUN.findall(value))


def names_secret(key: str) -> bool:
    """Return whether the value of a tag with this key would be a secret, by the last words of the key."""
    words = tuple(word.lower() for word in _WORD.findall(key))
    return any(words[-len(secret) :] == secret for secret in _SECRETS)


def _is_random(run: str) -> bool:
    """Return whether these characters look random, in hexadecimal or base64."""
    counts = Counter(run)
    entropy = -sum(n / len(run) * math.log2(n / len(run)) for n in counts.values())
    return entropy >= _RANDOM_BITS and bool(_HEXADECIMAL.fullmatch(run) or _BASE64.fullmatch(run))


def _key_problem(key: str) -> SpecProblem | None:
    if not _KEY.fullmatch(key):
        return SpecProblem("invalid tag key", "use letters, digits and + - = . _ : @ only")
    if len(key) > _LONGEST_KEY:
        return SpecProblem(f"the tag's key has {len(key)} characters", f"use {_LONGEST_KEY} or fewer")
    if key.lower().startswith(_OURS) or key.lower() == "name":
        return SpecProblem(f"{key!r} is reserved", "corral and AWS use Name, corral: and aws:")
    return None


def _value_problem(value: str) -> SpecProblem | None:
    if len(value) > _LONGEST_VALUE:
        return SpecProblem(f"the tag's value has {len(value)} characters", f"use {_LONGEST_VALUE} or fewer")
    if looks_secret(value):
        return SpecProblem(
            "looks like a secret; everyone who may list resources reads tags", "store it in Secrets Manager"
        )
    if refused := [letter for letter in dict.fromkeys(value) if not _is_taken(letter)]:
        found = " and ".join(map(repr, refused))
        return SpecProblem(f"the tag's value contains {found}", "use letters, digits, spaces and _ . : / = + - @ only")
    return None


def _is_taken(letter: str) -> bool:
    """Return whether a tag's value may contain this character: a Unicode letter, number or space, or a known sign."""
    return letter in _PUNCTUATION or unicodedata.category(letter)[0] in "LNZ"


def _secret_problem(key: str, value: str) -> SpecProblem | None:
    if not names_secret(key) or value.lower() in _ANSWERS:
        return None
    return SpecProblem(
        f"{key!r} names a secret; everyone who may list resources reads tags", "store it in Secrets Manager"
    )
