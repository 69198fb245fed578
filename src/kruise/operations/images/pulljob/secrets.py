"""Copies of pull secrets where node daemons may read them (IPJ-33 to IPJ-40). Pure.

A daemon reads secrets in one namespace and nowhere else. Each secret that jobs name has one copy there, which all of
them share and which leaves with the last of them. Copies are looked after by their source, not by a job: so two jobs
never write to the same one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from kruise.api.apps.images import BATCH, MODE, REFERENCES, SOURCE_KEY
from kruise.api.native.config import SECRETS, Secret
from kruise.machinery import plan as plans
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import Struct, evolve, to_builtins
from kruise.machinery.names import SUBDOMAIN_MAX, child_name
from kruise.machinery.plan import Action, Conclusion, OnError, Outcomes, Plan, Target
from kruise.operations.images.watching import users_of

_SUFFIX = 6
_MARKS = (SOURCE_KEY, REFERENCES, MODE)
_OBJECTS = ("{", "[", "H4sI")
"""How an annotation begins that holds objects: as JSON, or packed (gzip in base64)."""


class Snapshot(Struct):
    """A secret that jobs name, and all that its copy depends on."""

    namespace: str
    name: str
    source: Secret | None
    copies: tuple[Secret, ...]
    """Those that are not about to go."""
    jobs: tuple[str, ...]
    """`namespace/name` of the jobs that need it, sorted."""
    exchange: str
    """The namespace of the copies."""

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"


def conceal(snapshot: Snapshot) -> Snapshot:
    """For the journal: each value is a number there, so that equal ones stay equal; and no annotation quotes one."""
    numbers: dict[bytes, bytes] = {}

    def hidden(secret: Secret) -> Secret:
        data = {
            name: numbers.setdefault(value, f"hidden-{len(numbers) + 1}".encode())
            for name, value in secret.data.items()
        }
        kept = {key: value for key, value in secret.metadata.annotations.items() if key in _MARKS}
        metadata = evolve(secret.metadata, annotations=kept)
        return evolve(secret, data=data, metadata=metadata)

    source = hidden(snapshot.source) if snapshot.source is not None else None
    return evolve(snapshot, source=source, copies=tuple(hidden(copy) for copy in snapshot.copies))


def decide(snapshot: Snapshot) -> Plan:
    return Plan(phases=(plans.single("copies", *_actions(snapshot), on_error=OnError.CONTINUE),))


def conclude(snapshot: Snapshot, plan: Plan, outcomes: Outcomes) -> Conclusion:
    return Conclusion()


def _actions(snapshot: Snapshot) -> Iterator[Action]:
    kept = chosen(snapshot.copies, snapshot.jobs) if snapshot.jobs else None
    if kept is not None and snapshot.source is not None and kept.type != snapshot.source.type:
        kept = None  # the type of a secret never changes: another one is needed
    for copy in snapshot.copies:
        if copy is not kept:
            reason = "no job needs it any more" if not snapshot.jobs else "another copy is used"
            yield plans.delete(Target.of(SECRETS, copy), uid=copy.metadata.uid, reason=reason)
    if not snapshot.jobs:
        return
    if kept is not None:
        yield from _refreshed(kept, snapshot)
    elif snapshot.source is not None:
        yield _created(snapshot.source, snapshot)


def chosen(copies: Sequence[Secret], jobs: Sequence[str]) -> Secret | None:
    """The copy that jobs share: one that they use already, otherwise the first by name (IPJ-37)."""
    ordered = sorted(copies, key=lambda copy: copy.metadata.name)
    used = (copy for copy in ordered if not set(jobs).isdisjoint(users_of(copy)))
    return next(used, ordered[0] if ordered else None)


def _refreshed(copy: Secret, snapshot: Snapshot) -> Iterator[Action]:
    body: dict[str, Any] = {}
    if list(users_of(copy)) != list(snapshot.jobs):
        body["metadata"] = {"annotations": {REFERENCES: ",".join(snapshot.jobs)}}
    source = snapshot.source
    if source is not None and source.data != copy.data:
        gone = {name: None for name in copy.data if name not in source.data}
        body["data"] = {**gone, **to_builtins(source.data)}
    if body:
        yield plans.patch(
            Target.of(SECRETS, copy),
            body,
            uid=copy.metadata.uid,
            reason="its source, or who needs it, has changed",
            patch_type=PatchType.MERGE,
            resource_version=copy.metadata.resource_version,
        )


def _created(source: Secret, snapshot: Snapshot) -> Action:
    digest = hashlib.blake2b(f"{snapshot.key}\n{source.metadata.uid}\n{source.type}".encode(), digest_size=3)
    marks = {SOURCE_KEY: snapshot.key, REFERENCES: ",".join(snapshot.jobs), MODE: BATCH}
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": child_name(snapshot.name, f"-{digest.hexdigest()[:_SUFFIX]}", limit=SUBDOMAIN_MAX),
            "namespace": snapshot.exchange,
            "labels": dict(source.metadata.labels),
            "annotations": {**_own_annotations(source), **marks},
        },
        "type": source.type,
        "data": to_builtins(source.data),
    }
    return plans.create(SECRETS, body, reason="nodes cannot read it where it is")


def _own_annotations(source: Secret) -> dict[str, str]:
    """Without what kubectl and other tools keep for themselves: the object as it was applied would hold the data once
    more, and stale."""
    return {
        key: value
        for key, value in source.metadata.annotations.items()
        if not key.startswith("kubectl.") and not value.lstrip().startswith(_OBJECTS)
    }
