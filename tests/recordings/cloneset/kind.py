"""CloneSet, as the player knows it: recorded in v1alpha1."""

from __future__ import annotations

import dataclasses

from kruise.api.apps.cloneset import CLONE_SETS
from tests.recordings.invariants import Invariants
from tests.recordings.kinds import RecordedKind
from tests.recordings.versions import manifest_in_v1beta1, patch_in_v1beta1

KIND = RecordedKind(
    resource=dataclasses.replace(CLONE_SETS, version="v1alpha1"),
    promises=Invariants,
    manifest_in_other=manifest_in_v1beta1,
    patch_in_other=patch_in_v1beta1,
)
