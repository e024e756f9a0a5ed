"""What the AWS in a box boots in place of the images of one's own, in a sentence."""

from __future__ import annotations

from corral.catalog.images import BOX_PROFILE
from corral.spec.cluster import ClusterWishes


def replaced_images(wishes: ClusterWishes, profile: str = BOX_PROFILE) -> str | None:
    """The sentence that names the declared image ids which the box does not boot; None where there are none."""
    own = [("the cluster", wishes.image), *((f"queue {queue.name}", queue.image) for queue in wishes.queues)]
    named = [f"{image.id} of {whose}" for whose, image in own if image is not None and image.id is not None]
    return f"the box boots its own image, {profile}, in place of {', '.join(named)}" if named else None
