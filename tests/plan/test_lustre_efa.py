"""How many EFA interfaces a node of each type of the catalog uses for Lustre."""

from __future__ import annotations

import pytest

from corral.catalog.aws.instance_types import find_instance_type
from corral.plan.lustre_efa import lustre_efa_interfaces


@pytest.mark.parametrize(
    ("name", "interfaces"),
    [
        ("c7i.48xlarge", 1),
        ("g5.48xlarge", 0),
        ("g6.48xlarge", 1),
        ("g6e.48xlarge", 2),
        ("m7i.2xlarge", 0),
        ("p3dn.24xlarge", 0),
        ("p4d.24xlarge", 0),
        ("p4de.24xlarge", 0),
        ("p5.4xlarge", 1),
        ("p5.48xlarge", 8),
        ("p5en.48xlarge", 8),
        ("p6-b200.48xlarge", 8),
        ("p6-b300.48xlarge", 2),
        ("trn1.32xlarge", 2),
        ("trn2.48xlarge", 0),
    ],
)
def test_a_type_has_awss_default_number(name: str, interfaces: int) -> None:
    assert lustre_efa_interfaces(find_instance_type(name)) == interfaces
