"""Assignments to environment variables in the texts that people have them in: what `env` prints, nccl.conf, scripts,
#SBATCH --export, Dockerfiles, YAML of pods and compose files, Python. Found line by line, without a shell or another
interpreter: what only those know stays unknown. What counts as what is told in docs/lint-env.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from corral.plan.lint_env import PREFIXES, Assignment

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_QUOTED = r"\"(?:[^\"\\]|\\.)*\"|'[^']*'"
# A word of a shell: quoted parts, ${...} and plain characters next to each other.
_WORD = rf"(?:{_QUOTED}|\$\{{[^}}]*\}}|\$\([^)]*\)|\\.|[^\s\"';|&()<>\\])*"
_ASSIGNMENT = re.compile(rf"(?<![\w.$/{{-])({_NAME})=({_WORD})")
_LISTED = re.compile(rf"({_NAME})=(.*)")
_EXPORT_OPTION = re.compile(rf"--export(?:=|\s+)({_WORD})")
_EXPORTED = re.compile(rf"(?:^|,)({_NAME})=({_QUOTED}|[^,]*)")
_OLD_ENV = re.compile(rf"\s*ENV\s+({_NAME})\s+(?!=)(.+)", re.IGNORECASE)
_SET = re.compile(rf"(?:setenv|set\s+-\w+)\s+({_NAME})\s+(.+)")  # csh, fish
_FUNCTION = re.compile(r"BASH_FUNC_\S+=\(\) \{")
_SHELL_COMMENTS = ("#!", "#SBATCH")
# Variables of ours whose values may have blanks: names of networks (AWS Libfabric), and paths.
_WITH_BLANKS = re.compile(r"NCCL_NET|\w+_(FILE|PATH|DIR|LOCATION|PLUGIN)")
_COMMAND = re.compile(
    r"(\S*/)?(accelerate|bash|deepspeed|env|exec|horovodrun|mpiexec|mpirun|nohup|numactl|nice|python[\d.]*|sbatch|sh|srun"
    r"|sudo|time|timeout|torchrun|uv|xargs|zsh|\w+_perf)|\.{1,2}/\S+|\S+\.(py|sh|bash)|[|&<>()].*"
)
_OURS = rf"(?P<name>(?:{'|'.join(PREFIXES)})[A-Za-z0-9_]*)"
_VALUE = rf"(?P<value>{_QUOTED}|[^\s,}}\]][^,}}\]]*)"
_ENTRY = re.compile(rf"(?:-\s+)?(?P<key>[\"']?){_OURS}(?P=key)\s*:\s+(?P<value>{_QUOTED},?|[^\s{{\[].*)")
_FLOW_ENTRY = re.compile(rf"(?<!\$)[{{,]\s*(?P<key>[\"']?){_OURS}(?P=key)\s*:(?:\s+|(?=[\"'])){_VALUE}")
_POD_NAME = re.compile(rf"(?:-\s+)?name:\s+(?P<key>[\"']?){_OURS}(?P=key)")
_POD_VALUE = re.compile(r"value:\s+(?P<value>\S.*)")
_POD_FLOW = re.compile(rf"name[\"']?:\s*(?P<key>[\"']?){_OURS}(?P=key)\s*,\s*[\"']?value[\"']?:\s*{_VALUE}")
_EXPRESSION = rf"(?P<value>str\({_QUOTED}\)|str\([^()]*\)|{_QUOTED}|[^\s,)]+)"
_ENVIRON_ITEM = re.compile(rf"\[(?P<key>[\"']){_OURS}(?P=key)\]\s*=(?!=)\s*{_EXPRESSION}")
_ENVIRON_CALL = re.compile(rf"(?:setdefault|putenv|setenv)\(\s*(?P<key>[\"']){_OURS}(?P=key)\s*,\s*{_EXPRESSION}")
_DEFAULT = re.compile(rf"\$\{{{_NAME}:?[-=](.*)\}}")


def assignments_in(text: str) -> Iterator[Assignment]:
    """Every assignment of the text, by line; of one that a backslash continues, each part has its own number."""
    lines = text.splitlines()
    is_listing = _is_listing(lines)
    for number, line in enumerate(lines, start=1):
        below = lines[number] if number < len(lines) else ""
        for name, value in _of_line(line, below, is_listing=is_listing):
            yield Assignment(line=number, name=name, value=value)


def _is_listing(lines: Sequence[str]) -> bool:
    """Whether this is what `env` prints, or nccl.conf: nothing but NAME=value, comments, and functions of bash."""
    in_function = False
    for line in lines:
        if in_function or _FUNCTION.match(line):
            in_function = line != "}"
        elif (
            line.strip() and not _LISTED.match(line) and (not line.startswith("#") or line.startswith(_SHELL_COMMENTS))
        ):
            return False
    return True


def _of_line(line: str, below: str, *, is_listing: bool) -> Iterator[tuple[str, str | None]]:
    stripped = line.strip()
    if stripped.startswith("#SBATCH") or _EXPORT_OPTION.search(_code(stripped)):
        for option in _EXPORT_OPTION.finditer(stripped):
            names = _EXPORTED.findall(_unquoted(option[1]) if option[1][:1] in "\"'" else option[1])
            yield from ((name, _known(value)) for name, value in names)
        stripped = _EXPORT_OPTION.sub("", stripped)
    if stripped.startswith("#"):
        return
    listed = _LISTED.fullmatch(line.rstrip())
    if listed and is_listing and _is_value(listed[1], listed[2]):
        yield listed[1], listed[2]
        return
    if "=" not in stripped and (old := _OLD_ENV.fullmatch(stripped) or _SET.fullmatch(stripped)):
        yield old[1], _known(old[2].strip())
        return
    code = _code(stripped)
    yield from ((name, _known(value)) for name, value in _ASSIGNMENT.findall(code))
    yield from _mapped(code, _code(below.strip()))


def _is_value(name: str, text: str) -> bool:
    """Whether all that follows NAME= is its value, as `env` prints it, and no shell's words with a command behind."""
    if _ASSIGNMENT.search(text) or set(text) & set("\"'$`;#\\"):
        return False
    first, blank, rest = text.partition(" ")
    if not blank or not name.startswith(PREFIXES):
        return True
    return _WITH_BLANKS.fullmatch(name) is not None and not _looks_like_a_command(rest) and not first.isdigit()


def _looks_like_a_command(text: str) -> bool:
    words = text.split()
    return bool(words) and (
        _COMMAND.fullmatch(words[0]) is not None or any(word.startswith("-") and len(word) > 1 for word in words)
    )


def _mapped(code: str, below: str) -> Iterator[tuple[str, str | None]]:
    """What YAML, JSON and Python give to a variable of a kind that is judged here."""
    if entry := _ENTRY.fullmatch(code):
        yield entry["name"], _scalar(entry["value"])
        return
    for pattern in (_FLOW_ENTRY, _POD_FLOW):
        yield from ((one["name"], _scalar(one["value"])) for one in pattern.finditer(code))
    if pod := _POD_NAME.fullmatch(code):
        value = _POD_VALUE.fullmatch(below)
        yield pod["name"], _scalar(value["value"]) if value else None
    for pattern in (_ENVIRON_ITEM, _ENVIRON_CALL):
        yield from ((one["name"], _literal(one["value"])) for one in pattern.finditer(code))


def _scalar(text: str) -> str | None:
    """The value of a YAML or JSON scalar; None where a template or a shell decides."""
    plain = text.strip().removesuffix(",").rstrip()
    if "$" in plain or "{{" in plain:
        return None
    return plain[1:-1] if plain[:1] in ('"', "'") and plain[-1:] == plain[:1] and len(plain) > 1 else plain


def _literal(text: str) -> str | None:
    """The value of a literal of Python; None where the program decides."""
    found = re.fullmatch(r"(?:str\()?(?P<quote>[\"']?)(?P<value>.*?)(?P=quote)\)?", text.strip())
    assert found
    return found["value"] if found["quote"] or found["value"].isdigit() else None


def _code(line: str) -> str:
    """The line without the comment at its end."""
    return re.sub(rf"((?:{_QUOTED}|[^\"'#]|(?<=\S)#)*)(?<!\S)#.*", r"\1", line)


def _known(value: str) -> str | None:
    """The value as the program gets it, a default where the variable may be set before; None where a shell decides."""
    if default := _DEFAULT.fullmatch(value.strip("\"'")):
        value = default[1]
    if "$" in value or "`" in value:
        return None if not value.startswith("'") else _unquoted(value)
    return _unquoted(value)


def _unquoted(value: str) -> str:
    parts = re.findall(rf"{_QUOTED}|[^\"']+|[\"']", value)
    plain = (part[1:-1] if len(part) > 1 and part[0] in "\"'" else part for part in parts)
    return re.sub(r"\\(.)", r"\1", "".join(plain))
