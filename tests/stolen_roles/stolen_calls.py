"""All that a thief tries, on the resources of a neighbour and of others in the account."""

from __future__ import annotations

from calls_on_account import calls_on_account
from calls_on_data import calls_on_data
from calls_on_ec2 import calls_on_ec2
from stolen_call import StolenCall

# What is made by who may, too, and takes something away from the calls after it.
ENDINGS = ("Delete", "Terminate", "Release", "ScheduleKeyDeletion", "ModifyBudget")


def stolen_calls() -> tuple[StolenCall, ...]:
    """All calls; those that end something come last."""
    calls = (*calls_on_ec2(), *calls_on_account(), *calls_on_data())
    return tuple(sorted(calls, key=lambda call: call.action.partition(":")[2].startswith(ENDINGS)))
