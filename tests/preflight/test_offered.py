"""Instance types in zones."""

from __future__ import annotations

from judging import bad, dev, said

from corral.preflight.offered import Facts, judge

ZONES = frozenset({"use1-az1", "use1-az2", "us-east-1a", "us-east-1b"})
BOTH = frozenset({"use1-az1", "use1-az2"})
HEAD = {"m7i.2xlarge": BOTH}


def test_types_that_are_offered_everywhere_are_ok() -> None:
    assert said(judge(dev(), Facts(zones=ZONES, offered={**HEAD, "p4d.24xlarge": BOTH}))) == [
        "ok head: m7i.2xlarge is offered in use1-az1",
        "ok queue train: p4d.24xlarge is offered in use1-az1, use1-az2",
    ]


def test_a_queue_that_one_zone_does_not_offer_still_starts() -> None:
    facts = Facts(zones=ZONES, offered={**HEAD, "p4d.24xlarge": frozenset({"use1-az2"})})
    text = "p4d.24xlarge is not offered in use1-az1, and these offers only cost time"
    assert bad(judge(dev(), facts)) == [f"warn queue train: {text}"]


def test_a_queue_that_no_zone_offers_does_not_start() -> None:
    facts = Facts(zones=ZONES, offered=HEAD)
    assert bad(judge(dev(), facts)) == ["fail queue train: p4d.24xlarge is not offered in use1-az1, use1-az2"]


def test_where_it_is_offered_instead_is_told() -> None:
    facts = Facts(zones=ZONES, offered={**HEAD, "p4d.24xlarge": frozenset({"use1-az6", "us-east-1f"})})
    (finding,) = (one for one in judge(dev(), facts) if one.verdict == "fail")
    assert finding.fix == "change the zones of its capacity: it is in use1-az6"


def test_a_zone_that_the_account_does_not_have_is_told() -> None:
    facts = Facts(zones=ZONES - {"use1-az2"}, offered={**HEAD, "p4d.24xlarge": BOTH})
    assert bad(judge(dev(), facts)) == ["fail queue train: use1-az2: no zone that this account may use"]
