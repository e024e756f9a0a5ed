"""Find NCCL and EFA variables in YAML, JSON, TOML, make and Python: entries, arguments, items of `environ`.

Works line by line, with the neighbouring lines for a pod's `name:` and `value:`. `env_parser` reads shell text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from corral.plan.nccl_env.lint_env import PREFIXES

Found = tuple[str, str | None]
_QUOTED = r"\"(?:[^\"\\]|\\.)*+\"|'[^']*+'"
_OURS = rf"(?P<name>(?:{'|'.join(PREFIXES)})[A-Za-z0-9_]*+)"
_KEY = rf"(?P<mark>[\"']){_OURS}(?P=mark)"
_END = r"(?=\s*(?:[,;)}\]#]|$))"
# A literal value; without the group, only the program knows the value.
_LITERAL = rf"(?:(?:str\(\s*)?(?P<value>{_QUOTED}|-?\d+(?:\.\d+)?)(?:\s*\))?{_END})?"
_FLAT = rf"(?P<value>{_QUOTED}|[^\s,}}\]\"'][^,}}\]]*)"
_LITERALS = (
    re.compile(rf"\[{_KEY}\]\s*=(?!=)\s*{_LITERAL}"),  # os.environ["NAME"] = "value"
    re.compile(rf"\b(?:setdefault|putenv|setenv|pushenv)\(\s*{_KEY}\s*,\s*{_LITERAL}"),
    re.compile(rf"{_KEY}\s*:\s*{_LITERAL}"),  # {"NAME": "value"}
    re.compile(rf"(?:^|[{{,(]\s*){_OURS}\s+=\s+(?=[\"']){_LITERAL}"),  # TOML
)
_FLOWS = (
    re.compile(rf"(?<!\$)[{{,]\s*{_OURS}:\s+{_FLAT}"),
    re.compile(
        rf"\b(?i:name)[\"']?\s*[:=]\s*(?P<mark>[\"']?){_OURS}(?P=mark)\s*,\s*[\"']?(?i:value)[\"']?\s*[:=]\s*{_FLAT}"
    ),
)
_BLOCKS = (
    re.compile(rf"(?:-\s+)?{_OURS}:\s+(?P<value>[^\s{{\[].*)"),
    re.compile(rf"(?:export\s+)?{_OURS}\s*[:?]=\s*(?P<value>.*)"),  # make
    re.compile(rf"export\s+{_OURS}\s+=\s+(?P<value>.*)"),
)
_NAME_LINE = re.compile(rf"(?:-\s+)?(?P<of>[\"']?)(?i:name)(?P=of)\s*[:=]\s+(?P<mark>[\"']?){_OURS}(?P=mark),?")
_VALUE_BELOW = re.compile(r"([\"']?)(?i:value)\1\s*[:=]\s+(?P<value>\S.*)")
_VALUE_ABOVE = re.compile(rf"(?:-\s+)?{_VALUE_BELOW.pattern}")
_CODE = re.compile(rf"(?:{_QUOTED}|[^\"'#]++|(?<=\S)#|[\"'])*+")
_NOTHING = ("null", "~", "None")


def entries_of(line: str, above: str, below: str) -> Iterator[Found]:
    """Yield the checked variables that this line sets, with None for a value that a template or program decides."""
    code = _code(line)
    for block in _BLOCKS:
        if entry := block.fullmatch(code):
            yield entry["name"], _scalar(entry["value"])
            return
    if entry := _NAME_LINE.fullmatch(code):
        is_first = code.startswith("-")  # of a list entry: the line above belongs to another entry
        neighbour = _VALUE_BELOW.fullmatch(_code(below)) or (None if is_first else _VALUE_ABOVE.fullmatch(_code(above)))
        yield entry["name"], _scalar(neighbour["value"]) if neighbour else None
        return
    literals = ((one, _literal(one["value"])) for pattern in _LITERALS for one in pattern.finditer(code))
    flows = ((one, _scalar(one["value"])) for pattern in _FLOWS for one in pattern.finditer(code))
    for one, value in sorted((*literals, *flows), key=lambda found: found[0].start("name")):
        yield one["name"], value


def _code(line: str) -> str:
    """Return the line without surrounding spaces and trailing comment."""
    found = _CODE.match(line.strip())
    return found[0].rstrip() if found else ""


def _literal(text: str | None) -> str | None:
    return None if text is None else _unquoted(text)


def _scalar(text: str) -> str | None:
    """Return the value of a YAML scalar; None if a template, a tag or an alias decides it."""
    plain = re.sub(r"^&\S+\s+", "", text.strip().removesuffix(",").rstrip())
    if "$" in plain or "{{" in plain or plain[:1] in ("!", "*", "|", ">") or plain in _NOTHING:
        return None
    return _unquoted(plain)


def _unquoted(text: str) -> str:
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" else text
