"""What a failed call to AWS raises: one list for every module of the agent that makes calls."""

from collections.abc import Iterator
from contextlib import contextmanager

from corral.agent.errors import AgentError


def unanswered() -> tuple[type[Exception], ...]:
    """The exceptions of a call without an answer: no route, no credentials yet, half an answer."""
    from botocore.exceptions import BotoCoreError
    from botocore.parsers import ResponseParserError  # not a BotoCoreError: the answer broke off

    return (BotoCoreError, ResponseParserError)


@contextmanager
def aws_errors_as(kind: type[AgentError], what: str) -> Iterator[None]:
    """Raise the errors of calls to AWS in the block as `kind`: "cannot {what}: ...". Not for calls with error codes."""
    from boto3.exceptions import Boto3Error  # of S3's transfers
    from botocore.exceptions import ClientError

    failures: tuple[type[Exception], ...] = (Boto3Error, ClientError, *unanswered())
    try:
        yield
    except failures as error:
        raise kind(f"cannot {what}: {error}") from error
