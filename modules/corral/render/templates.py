"""Fill the package's templates with finished values, which the calling modules compute."""

from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined


def fill(template: str, **values: object) -> str:
    """The text of templates/<template> with these values. Raises jinja2.UndefinedError if one is missing."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    # Plain text, not HTML: nothing is escaped; Slurm's lines are checked by slurm_line instead.
    return Environment(
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def _source(name: str) -> str:
    return files("corral").joinpath("templates", *name.split("/")).read_text(encoding="utf-8")
