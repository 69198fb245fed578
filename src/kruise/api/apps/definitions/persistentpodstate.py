"""The CustomResourceDefinition of PersistentPodState."""

from __future__ import annotations

from kruise.api.apps import persistentpodstate, persistentpodstate_v1alpha1
from kruise.api.apps.shared import GROUP
from kruise.api.definitions import Definition, Version, definition

DEFINITION: Definition = definition(
    group=GROUP,
    kind="PersistentPodState",
    plural="persistentpodstates",
    versions=(
        Version(name="v1alpha1", type=persistentpodstate_v1alpha1.PersistentPodState),
        Version(name="v1beta1", type=persistentpodstate.PersistentPodState, is_stored=True),
    ),
    is_converted=True,
)
"""PPS section 1."""
