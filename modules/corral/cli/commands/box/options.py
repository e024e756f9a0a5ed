"""The option that all commands of `corral box` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Directory = Annotated[
    Path | None,
    typer.Option(
        "--dir",
        "--box-dir",
        metavar="DIR",
        help="State directory of the box (default: $CORRAL_BOX_DIR, or one per user).",
    ),
]
