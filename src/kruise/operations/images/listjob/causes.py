"""Causes that only jobs of several images know."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

IMAGE_FAILED = Meaning(
    code="image-failed", says="some node could not pull an image", act=Act.SOMEBODY, field="spec.images", patience=0
)
IMAGES_PULLED = Meaning(code="images-pulled", says="nodes pull its images", act=Act.NOBODY)
IMAGES_HELD = Meaning(
    code="images-held",
    says="parallelism is 0: no node begins to pull",
    act=Act.INTENDED,
    field="spec.parallelism",
    is_wanted=True,
)

CAUSES = (IMAGE_FAILED, IMAGES_PULLED, IMAGES_HELD)
