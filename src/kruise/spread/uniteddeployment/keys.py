"""Labels and annotations of a UnitedDeployment's children and of their pods (UD section 7)."""

from __future__ import annotations

SUBSET = "apps.kruise.io/subset-name"
REVISION = "apps.kruise.io/controller-revision-hash"
"""On children and pods: the name of the revision that they are made from."""
PATCH = "apps.kruise.io/subset-patch"
RESERVED = "apps.kruise.io/united-deployment-reserved-pod"
