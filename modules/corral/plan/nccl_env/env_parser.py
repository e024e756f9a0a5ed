"""Find assignments to environment variables in text.

Reads `env` output, nccl.conf, scripts, #SBATCH --export, Dockerfiles, systemd units, YAML of pods and compose files,
Python; docs/lint-env.md lists all forms. Runs no shell or interpreter: a value that only those know stays unknown.
`shell_words` splits shell text, `structured_env` parses other languages.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from corral.plan.nccl_env.lint_env import PREFIXES, Assignment, is_ours
from corral.plan.nccl_env.shell_words import Command, Word, commands_of
from corral.plan.nccl_env.structured_env import entries_of

_NAME = r"[A-Za-z_][A-Za-z0-9_]*+"
_ASSIGNED = re.compile(rf"\[?(?P<name>{_NAME})\]?(?P<more>\+?)=")
_ANYWHERE = re.compile(rf"(?<![\w.$/{{-]){_NAME}=")
_LISTED = re.compile(rf"({_NAME})=(.*)")
_EXPORTED = re.compile(rf"(?:^|,)({_NAME})=(\"[^\"]*\"|'[^']*'|[^,]*)")
_NEXT_OF_LIST = re.compile(rf",(?={_NAME}=)")
_ASSIGNED_DEFAULT = re.compile(rf"\$\{{({_NAME}):?=([^}}]{{0,200}}+)\}}")
_OPTION_WITH = re.compile(rf"(?:--?[\w-]+=|-e)(?={_NAME}=)")
_FUNCTION = re.compile(r"BASH_FUNC_\S+=\(\) \{")
_SHELL_COMMENTS = ("#!", "#SBATCH")
_MARKERS = ("=", '"', "'", "<", *PREFIXES)  # text without any of these has no assignments
_COMMENTS = ("#", ";", "//", "-- ")
_KEYED = re.compile(r"\s*(?:-\s+)?[\w.-]+:\s+")
_DOCSTRING = re.compile(r"\s*[rRuU]?(\"\"\"|''')")
# Known variables whose values may contain spaces: network names (AWS Libfabric) and paths.
_WITH_BLANKS = re.compile(r"NCCL_NET|\w+_(FILE|PATH|DIR|LOCATION|PLUGIN)")
_COMMAND = re.compile(
    r"(\S*/)?(accelerate|bash|deepspeed|env|exec|horovodrun|mpiexec|mpirun|nohup|numactl|nice|python[\d.]*|sbatch|sh|srun"
    r"|sudo|time|timeout|torchrun|uv|xargs|zsh|\w+_perf)|\.{1,2}/\S+|\S+\.(py|sh|bash)|[|&<>()].*"
)
_BEFORE_COMMAND = re.compile(
    r"if|then|elif|else|do|while|until|!|\{|\}|-|\$|RUN|CMD|ENTRYPOINT|sudo|exec|time|nohup|command|builtin|eval"
)
_SETS = re.compile(r"export|declare|typeset|local|readonly|env|ENV")
_SETS_TWO = re.compile(r"setenv|pushenv|ENV|env|set")  # NAME and value are separate words
_TWO_WORDS = ("-genv", "-env")  # of mpiexec
_SETS_NEXT = ("-e", "-x", "-E", "-v", "--env", "--setenv", "--export")
_RUNS_TEXT = re.compile(r"-\w*c|eval|ssh|\S+@\S+")
_PRINTS = re.compile(
    r"[@-]*(?:\w+\.)*(?:echo|printf|print|puts|log\w*|die|fail\w*|warn\w*|err\w*|info|debug|exception|critical|fatal|note"
    r"|usage|help\w*|:|raise|assert|throw|test|\[\[?|e?grep|sed|awk|read|cat|unset|LABEL|add_argument|\w*(?:Error|Exception)"
    r"|Exit)"
)
_ONLY_PRINTS = re.compile(r"cat|:|read|echo")  # with a here-document whose output is not used
_TAKES_A_PIPE = re.compile(r"tee|sbatch|bash|sh|zsh|kubectl|docker|ssh|srun|python[\d.]*|xargs|crontab|patch")
_DEEPEST = 4  # quotes within quotes; limits recursion


def assignments_in(text: str) -> Iterator[Assignment]:
    """Yield every assignment in the text with its line; parts of continued lines have their own line numbers."""
    lines = text.splitlines()
    if _is_listing(lines):
        listed = (found for number, line in enumerate(lines, start=1) for found in _of_listing(line, number))
        yield from listed
        return
    for statement in _statements(lines):
        yield from sorted(dict.fromkeys(_of_statement(statement, lines)), key=lambda found: found.line)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Statement:
    """Lines that belong together, starting at `first`, and their commands as a shell splits them."""

    first: int
    text: str
    commands: Sequence[Command]


def _is_listing(lines: Sequence[str]) -> bool:
    """Return whether this is `env` output or nccl.conf: only NAME=value, comments and bash functions."""
    in_function = False
    for line in lines:
        if in_function or _FUNCTION.match(line):
            in_function = line != "}"
        elif (
            line.strip() and not _LISTED.match(line) and (not line.startswith("#") or line.startswith(_SHELL_COMMENTS))
        ):
            return False
    return True


def _of_listing(line: str, number: int) -> Iterator[Assignment]:
    listed = _LISTED.fullmatch(line.rstrip())
    if listed and _is_value(listed[1], listed[2]):
        yield Assignment(line=number, name=listed[1], value=listed[2])
    elif not line.startswith("#"):
        for command in commands_of(line)[0]:
            yield from (
                Assignment(line=number, name=name, value=value)
                for name, value, _ in _of_command(command, None, depth=0, is_text=False)
            )


def _is_value(name: str, text: str) -> bool:
    """Return whether the whole text after NAME= is its value, as in `env` output, rather than a value and a command."""
    if _ANYWHERE.search(text) or set(text) & set("\"'$`;#\\"):
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


def _statements(lines: Sequence[str]) -> Iterator[_Statement]:
    """Yield the statements of the text, without comments and text that is only for readers."""
    last = {line.strip(): number for number, line in enumerate(lines) if len(line) < 100}
    last_quote = {
        quote: max((number for number, line in enumerate(lines) if quote in line), default=-1)
        for quote in ('"', "'", '"""', "'''")
    }
    at = 0
    while at < len(lines):
        line = lines[at]
        if (opened := _DOCSTRING.match(line)) and opened[1] not in line[opened.end() :] and last_quote[opened[1]] > at:
            at = _line_with(lines, at + 1, opened[1]) + 1
            continue
        if line.lstrip().startswith(_COMMENTS):
            if line.lstrip().startswith("#SBATCH"):
                yield _Statement(first=at, text=line, commands=commands_of(line.lstrip()[len("#SBATCH") :])[0])
            at += 1
            continue
        end = _continued_to(lines, at)
        statement, end = _statement(lines, at, end, last_quote)
        yield statement
        at = end
        for word in (word for command in _only_printed(statement.commands) for word in command.here):
            at = _behind(lines, at, word) if last.get(word, -1) >= at else at


def _statement(lines: Sequence[str], first: int, end: int, last_quote: dict[str, int]) -> tuple[_Statement, int]:
    """Return the statement in these lines, extended to the end of quoted text that it prints."""
    text = "\n".join(lines[first:end])
    commands, unclosed = commands_of(text) if any(sign in text for sign in _MARKERS) else ((), "")
    if unclosed and last_quote[unclosed] >= end and any(_prints(command) for command in commands):
        end = _line_with(lines, end, unclosed) + 1
        text = "\n".join(lines[first:end])
        commands, _ = commands_of(text)
    return _Statement(first=first, text=text, commands=commands), end


def _continued_to(lines: Sequence[str], first: int) -> int:
    end = first + 1
    while end < len(lines) and (lines[end - 1].endswith("\\") or (end > first + 1 and _is_between(lines, end))):
        end += 1
    return end


def _is_between(lines: Sequence[str], end: int) -> bool:
    """Return whether the previous line is a comment within a continued Dockerfile instruction."""
    return lines[end - 1].lstrip().startswith("#") and lines[end - 2].endswith("\\")


def _line_with(lines: Sequence[str], at: int, text: str) -> int:
    while text not in lines[at]:
        at += 1
    return at


def _behind(lines: Sequence[str], at: int, word: str) -> int:
    while lines[at].strip() != word:
        at += 1
    return at + 1


def _only_printed(commands: Sequence[Command]) -> Iterator[Command]:
    for number, command in enumerate(commands):
        behind = commands[number + 1] if number + 1 < len(commands) else None
        head = _head(command)
        if command.here and head and _ONLY_PRINTS.fullmatch(head) and not _is_consumed(command, behind):
            yield command


def _of_statement(statement: _Statement, lines: Sequence[str]) -> Iterator[Assignment]:
    only_export = statement.text.lstrip().startswith("#SBATCH")
    ends = [found.start() for found in re.finditer("\n", statement.text)]
    for name, value, at in _of_commands(
        statement.commands, depth=0, is_text=_KEYED.match(statement.text) is not None, only_export=only_export
    ):
        yield Assignment(line=statement.first + 1 + bisect_left(ends, at), name=name, value=value)
    if only_export or (statement.commands and _prints(statement.commands[0])):
        return
    for number, line in enumerate(statement.text.split("\n"), start=statement.first):
        if not any(prefix in line for prefix in PREFIXES):
            continue
        above, below = _meaningful(lines, number, -1), _meaningful(lines, number, 1)
        for name, value in entries_of(line, above, below):
            yield Assignment(line=number + 1, name=name, value=value)


def _meaningful(lines: Sequence[str], number: int, step: int) -> str:
    """Return the nearest line above or below, of the next few, that is not only a comment."""
    near = (lines[at] for at in range(number + step, number + 6 * step, step) if 0 <= at < len(lines))
    return next((line for line in near if line.strip() and not line.lstrip().startswith(_COMMENTS)), "")


Placed = tuple[str, str | None, int]


def _of_commands(
    commands: Sequence[Command], *, depth: int, is_text: bool, only_export: bool = False
) -> Iterator[Placed]:
    """Yield the assignments in these commands; in text that may not be commands, only unambiguous ones."""
    for number, command in enumerate(commands):
        behind = commands[number + 1] if number + 1 < len(commands) else None
        if only_export:
            yield from _of_export(command.words)
        else:
            yield from _of_command(command, behind, depth=depth, is_text=is_text)


def _of_command(command: Command, behind: Command | None, *, depth: int, is_text: bool) -> Iterator[Placed]:
    for word in command.words:
        for found in _ASSIGNED_DEFAULT.finditer("".join(text for text, quote in word.parts if quote != "'")):
            yield found[1], None if "$" in found[2] else found[2], word.start
    if any(_PRINTS.fullmatch(call) for call in command.calls):
        return
    words = _without_keywords(command.words)
    if is_text and words and _KEYED.match(f"{words[0].text} "):
        words = words[1:]
    number = next((n for n, word in enumerate(words) if not _ASSIGNED.match(word.text) or word.is_quoted), len(words))
    rest = _without_keywords(words[number:])
    if not is_text or not rest or _looks_like_a_command(" ".join(word.text for word in rest)):
        for word in words[:number]:
            yield from _of_word(word, depth, in_program=bool(command.calls) or word.has_comma or _is_argument(words))
    if not rest:
        return
    if _PRINTS.fullmatch(rest[0].text):
        yield from _of_printed(rest, depth, is_consumed=_is_consumed(command, behind))
        return
    yield from _of_arguments(rest, depth, is_text=is_text, in_program=bool(command.calls))


def _without_keywords(words: Sequence[Word]) -> Sequence[Word]:
    number = next((n for n, word in enumerate(words) if not _BEFORE_COMMAND.fullmatch(word.text)), len(words))
    return words[number:]


def _of_arguments(words: Sequence[Word], depth: int, *, is_text: bool, in_program: bool) -> Iterator[Placed]:
    """Yield the assignments in the words of a command without special handling."""
    sets = _SETS.fullmatch(words[0].text) is not None
    if _SETS_TWO.fullmatch(words[0].text) and (found := _of_two(words)):
        yield found
        return
    yield from _of_export(words)
    for before, word, behind in zip(("", *(word.text for word in words)), words, (*words[1:], None), strict=False):
        is_set = sets or before in _SETS_NEXT
        if before in _TWO_WORDS and behind is not None and is_ours(word.text):
            yield word.text, behind.value(), word.start
        elif word.text.startswith("--export=") or before == "--export":
            continue
        elif word.is_quoted and not (is_set and _ASSIGNED.match(word.text)):
            yield from _of_text(word, depth, is_run=_RUNS_TEXT.fullmatch(before) is not None)
        elif option := _OPTION_WITH.match(word.text):
            yield from _of_list(word.without(option.end()), depth, in_program)
        elif is_set or not is_text:
            yield from _of_list(word, depth, in_program) if not sets else _of_word(word, depth, in_program=in_program)


def _of_two(words: Sequence[Word]) -> Placed | None:
    """Return the assignment of `setenv NAME value`, `set -x NAME value` or the old `ENV NAME value`."""
    number = next((n for n, word in enumerate(words[1:], start=1) if not word.text.startswith("-")), len(words))
    name, values = words[number:][:1], [word.value() for word in words[number + 1 :]]
    if (
        not name
        or not values
        or "=" in name[0].text
        or not is_ours(name[0].text)
        or (words[0].text == "set") != (number > 1)
    ):
        return None
    return name[0].text, None if None in values else " ".join(value for value in values if value), name[0].start


def _of_export(words: Sequence[Word]) -> Iterator[Placed]:
    """Yield the assignments of Slurm's --export: a list of names, some with values."""
    for before, word in zip(("", *(word.text for word in words)), words, strict=False):
        given = word.without(len("--export=")) if word.text.startswith("--export=") else word
        if given is word and before != "--export":
            continue
        for found in _EXPORTED.finditer(given.text if given.is_quoted else given.raw):
            value = found[2].strip("\"'")
            yield found[1], None if "$" in value or "`" in value else value, word.start


def _of_list(word: Word, depth: int, in_program: bool) -> Iterator[Placed]:
    """Yield the assignments of an argument: one or more NAME=value, separated by commas."""
    text = word.text
    if in_program or word.is_quoted or not _NEXT_OF_LIST.search(text):
        yield from _of_word(word, depth, in_program=in_program)
        return
    at = 0
    for end in (*(found.start() for found in _NEXT_OF_LIST.finditer(text)), len(text)):
        part = commands_of(text[at:end])[0]
        for one in part[0].words if part else ():
            yield from ((name, value, word.start) for name, value, _ in _of_word(one, depth, in_program=False))
        at = end + 1


def _of_word(word: Word, depth: int, *, in_program: bool) -> Iterator[Placed]:
    """Yield the assignment NAME=value; for other variables than NCCL's and EFA's, those within the value."""
    found = _ASSIGNED.match(word.text)
    if found is None:
        return
    given = word.without(found.end())
    yield found["name"], None if found["more"] else _literal(given) if in_program else given.value(), word.start
    if not is_ours(found["name"]) and "=" in given.text:
        yield from _of_text(given, depth, is_run=False)


def _literal(given: Word) -> str | None:
    """Return the value of a program's literal: a string or a number."""
    text = given.text.removesuffix(",")
    return text if given.is_quoted or text.isdigit() else None


def _is_argument(words: Sequence[Word]) -> bool:
    """Return whether this is a line of a multi-line call: `NAME=value,`."""
    return len(words) == 1 and not words[0].is_quoted and words[0].raw.endswith(",")


def _of_text(word: Word, depth: int, *, is_run: bool) -> Iterator[Placed]:
    """Yield the assignments in quoted text that is a command or a single assignment."""
    text = word.text
    if "=" not in text or depth >= _DEEPEST:
        return
    commands, _ = commands_of(text)
    ours = _ASSIGNED.match(text)
    if (
        ours
        and is_ours(ours["name"])
        and _WITH_BLANKS.fullmatch(ours["name"])
        and not _looks_like_a_command(text.partition(" ")[2])
    ):
        yield ours["name"], word.without(ours.end()).value(), word.start
        return
    for name, value, at in _of_commands(commands, depth=depth + 1, is_text=not is_run):
        yield name, value, word.start + at


def _of_printed(words: Sequence[Word], depth: int, *, is_consumed: bool) -> Iterator[Placed]:
    """Yield the assignments in printed text: all if a file or program consumes it, otherwise only `export NAME=value`.

    Slurm sets variables that a task prolog prints as `export NAME=value`.
    """
    text = " ".join(word.text for word in words[1:])
    if depth >= _DEEPEST:
        return
    if is_consumed:
        lines = text.replace("\\n", "\n")
        found = _of_commands(commands_of(lines)[0], depth=depth + 1, is_text=False)
        yield from ((name, value, words[0].start) for name, value, _ in found)
    elif re.fullmatch(rf"export {_NAME}=\S*", text) and words[0].text == "echo":
        found = _of_commands(commands_of(text)[0], depth=depth + 1, is_text=False)
        yield from ((name, value, words[0].start) for name, value, _ in found)


def _prints(command: Command) -> bool:
    head = _head(command)
    return any(_PRINTS.fullmatch(call) for call in command.calls) or bool(head and _PRINTS.fullmatch(head))


def _head(command: Command) -> str:
    """Return the name of the command, after keywords and assignments."""
    names = (word.text for word in command.words)
    return next((text for text in names if not _BEFORE_COMMAND.fullmatch(text) and not _ASSIGNED.match(text)), "")


def _is_consumed(command: Command, behind: Command | None) -> bool:
    """Return whether a file or a program consumes the output of this command."""
    return command.is_to_file or bool(command.is_piped and behind and _TAKES_A_PIPE.fullmatch(_head(behind)))
