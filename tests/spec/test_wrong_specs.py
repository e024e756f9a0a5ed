"""Every kind of wrong spec: all mistakes at once, in the order of the files, word for word."""

from __future__ import annotations

from pathlib import Path

import pytest
from specs import BASE, CLUSTER, edited, project
from wrong_specs import WRONG, Wrong
from wrong_wide_specs import WIDE

from corral.spec.errors import SpecErrors
from corral.spec.files import read_environment


@pytest.mark.parametrize("wrong", (*WRONG, *WIDE), ids=lambda wrong: wrong.name.replace(" ", "_"))
def test_a_wrong_spec_says_all_that_is_wrong(wrong: Wrong, tmp_path: Path) -> None:
    directory = project(tmp_path, base=edited(BASE, wrong.base), cluster=edited(CLUSTER, wrong.cluster))
    with pytest.raises(SpecErrors) as caught:
        read_environment(directory, "dev")
    assert tuple(str(caught.value).split("\n")) == wrong.says
