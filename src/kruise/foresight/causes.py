"""Why a pod is not where it should be in the end of a forecast, where no plan tells it."""

from __future__ import annotations

from kruise.machinery.causes import Act, Meaning

NOT_AVAILABLE = Meaning(code="not-available", says="it does not serve in the end", act=Act.SOMEBODY)
REFUSED = Meaning(code="refused", says="a write was refused", act=Act.SOMEBODY)
OLD_REVISION = Meaning(code="old-revision", says="it keeps its revision, and no plan tells why", act=Act.SOMEBODY)
IMAGE_NAME = Meaning(code="image-name", says="no node can read the name of its image", act=Act.SOMEBODY)

OF_FORECASTS = (NOT_AVAILABLE, REFUSED, OLD_REVISION, IMAGE_NAME)
