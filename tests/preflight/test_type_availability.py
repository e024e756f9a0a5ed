"""Instance types in zones."""

from __future__ import annotations

from finding_lines import bad, dev, finding_lines

from corral.preflight.type_availability import AvailabilityFacts, evaluate

ZONES = frozenset({"use1-az1", "use1-az2", "us-east-1a", "us-east-1b"})
BOTH = frozenset({"use1-az1", "use1-az2"})
HEAD = {"m7i.2xlarge": BOTH}


def test_types_that_are_offered_everywhere_are_ok() -> None:
    assert finding_lines(evaluate(dev(), AvailabilityFacts(zones=ZONES, offered={**HEAD, "p4d.24xlarge": BOTH}))) == [
        "ok head: m7i.2xlarge is offered in use1-az1",
        "ok queue train: p4d.24xlarge is offered in use1-az1, use1-az2",
    ]


def test_a_queue_that_one_zone_does_not_offer_still_starts() -> None:
    facts = AvailabilityFacts(zones=ZONES, offered={**HEAD, "p4d.24xlarge": frozenset({"use1-az2"})})
    text = "p4d.24xlarge is not offered in use1-az1; these offers only waste time"
    assert bad(evaluate(dev(), facts)) == [f"warn queue train: {text}"]


def test_a_queue_that_no_zone_offers_does_not_start() -> None:
    facts = AvailabilityFacts(zones=ZONES, offered=HEAD)
    assert bad(evaluate(dev(), facts)) == ["fail queue train: p4d.24xlarge is not offered in use1-az1, use1-az2"]


def test_a_finding_names_the_zones_that_offer_the_type() -> None:
    facts = AvailabilityFacts(zones=ZONES, offered={**HEAD, "p4d.24xlarge": frozenset({"use1-az6", "us-east-1f"})})
    (finding,) = (one for one in evaluate(dev(), facts) if one.verdict == "fail")
    assert finding.fix == "change the zones of its capacity: it is in use1-az6"


def test_a_zone_missing_from_the_account_is_a_finding() -> None:
    facts = AvailabilityFacts(zones=ZONES - {"use1-az2"}, offered={**HEAD, "p4d.24xlarge": BOTH})
    assert bad(evaluate(dev(), facts)) == ["fail queue train: use1-az2: not a zone of this account"]
