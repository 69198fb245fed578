"""Image kinds, as far as the workloads that create them look at them."""

from __future__ import annotations

from kruise.api.apps.shared import GROUP
from kruise.api.meta import PartialObject
from kruise.api.resource import Resource

IMAGE_PULL_JOBS = Resource(GROUP, "v1beta1", "imagepulljobs", "ImagePullJob", True, PartialObject)
