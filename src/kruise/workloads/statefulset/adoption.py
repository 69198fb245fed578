"""Pods and revisions of nobody that a StatefulSet takes over (ST-49)."""

from __future__ import annotations

from typing import Any

from kruise.api.meta import Object, controller_of
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery import ownership
from kruise.machinery.plan import OnError, Phase
from kruise.machinery.selectors import from_label_selector
from kruise.workloads.statefulset.situation import Situation, has_ordinal_of

ADOPT = "adopt"


def adopt(situation: Situation) -> Phase:
    owner, metadata = situation.owner, situation.statefulset.metadata
    claimed = ownership.claim(
        owner,
        situation.snapshot.others,
        from_label_selector(situation.statefulset.spec.selector),
        belongs=lambda pod: has_ordinal_of(owner.name, pod),
    )
    orphans: list[tuple[Resource[Any], Object]] = [
        (CONTROLLER_REVISIONS, revision)
        for revision in situation.history
        if controller_of(revision) is None and revision.metadata.deletion_timestamp is None
    ]
    orphans += ((PODS, pod) for pod in claimed.to_adopt)
    chains = tuple(
        ownership.adoption(owner, resource, orphan, generation=metadata.generation) for resource, orphan in orphans
    )
    return Phase(name=ADOPT, chains=chains, on_error=OnError.CONTINUE)
