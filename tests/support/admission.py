"""Admission of workloads without a server: requests as values, the order of the API server, answers read."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kruise.admission.decisions import Allow, Answer, Change, Deny, HandlerView, Invalid, NeedsReads
from kruise.admission.review import AdmissionRequest, decode_admission
from kruise.api.native.pod import PODS, Pod
from kruise.api.resource import Resource
from kruise.machinery import codec
from kruise.machinery.patches import merge
from kruise.machinery.plan import Target
from kruise.machinery.store import Store
from kruise.workloads.shared.admission import Admission

NAMESPACE = "obs"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Json = dict[str, Any]


def request(
    obj: Any = None,
    old: Any = None,
    *,
    version: str = "v1beta1",
    operation: str = "",
    subresource: str = "",
    dry_run: bool = False,
    kind: str = "CloneSet",
) -> AdmissionRequest:
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": {"group": "apps.kruise.io", "version": version, "kind": kind},
            "resource": {"group": "apps.kruise.io", "version": version, "resource": f"{kind.lower()}s"},
            "subResource": subresource,
            "name": ((obj or old or {}).get("metadata") or {}).get("name", ""),
            "namespace": NAMESPACE,
            "operation": operation or ("CREATE" if old is None else "UPDATE"),
            "object": obj,
            "oldObject": old,
            "dryRun": dry_run,
        },
    }
    return decode_admission(json.dumps(review).encode())[1]


def stored(obj: Json, *, uid: str = "cs-uid") -> Json:
    """An object as the API server keeps it."""
    metadata = {
        **obj["metadata"],
        "namespace": NAMESPACE,
        "uid": uid,
        "resourceVersion": "7",
        "generation": 1,
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {**obj, "metadata": metadata}


def _no_store(resource: Resource[Any]) -> Store[Any]:
    raise LookupError(f"nobody gave a store of {resource}")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Server:
    """Asks the handlers of a kind in the API server's order: defaults first, then judgement of what came out."""

    admission: Admission[Any]
    gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    allow_privileged: bool = True
    stores: Callable[[Resource[Any]], Store[Any]] = _no_store

    @property
    def kind(self) -> str:
        return self.admission.convert.kind

    @property
    def view(self) -> HandlerView:
        return HandlerView(now=NOW, seed=1, gates=self.gates, stores=self.stores)

    def request(self, obj: Any = None, old: Any = None, **options: Any) -> AdmissionRequest:
        return request(obj, old, kind=self.kind, **options)

    def changed(self, obj: Json, old: Json | None = None, *, version: str = "v1beta1") -> Change:
        """What the mutating handler says, which must accept it."""
        said = self.admission.default(self.request(obj, old, version=version), self.view)
        assert isinstance(said, Change), said
        return said

    def defaults(self, obj: Json, old: Json | None = None, *, version: str = "v1beta1") -> Json:
        """The object after the mutating handler."""
        return dict(self.changed(obj, old, version=version).object)

    def judge(self, asked: AdmissionRequest) -> Answer:
        there = {one.metadata.name: one for one in self.pods}
        view = self.view
        for _ in range(3):
            said = self.admission.judge(asked, view, allow_privileged=self.allow_privileged)
            if not isinstance(said, NeedsReads):
                assert isinstance(said, Allow | Deny | Invalid)
                codec.encode(getattr(said, "causes", ()))  # it has to travel
                return said
            reads: dict[Target, Pod | None] = {}
            for target in said.targets:
                assert (target.resource, target.namespace) == (PODS, NAMESPACE)
                reads[target] = there.get(target.name)
            view = dataclasses.replace(view, reads={**view.reads, **reads})
        raise AssertionError("the handler never has enough")

    def send(self, obj: Json, old: Json | None = None, *, version: str = "v1beta1") -> Answer:
        said = self.admission.default(self.request(obj, old, version=version), self.view)
        if isinstance(said, Deny | Invalid):
            return said
        assert isinstance(said, Change), said
        changed = dict(said.object)
        if old is None:
            changed = stored(changed, uid="new-uid")
        verdict = self.judge(self.request(changed, old, version=version))
        return dataclasses.replace(verdict, warnings=said.warnings) if isinstance(verdict, Allow) else verdict

    def update(self, old: Json, patch: Json, *, version: str = "v1beta1") -> Answer:
        """Send a JSON merge patch."""
        return self.send(merge.apply(old, patch), old, version=version)


def causes_of(answer: Answer) -> set[tuple[str, str]]:
    causes = answer.causes if isinstance(answer, Deny | Invalid) else ()
    return {(cause.field, cause.reason) for cause in causes}


def messages_of(answer: Answer) -> str:
    causes = answer.causes if isinstance(answer, Deny | Invalid) else ()
    return ", ".join(f"{cause.field}: {cause.message}" for cause in causes)


def code_of(answer: Answer) -> int:
    if isinstance(answer, Deny):
        return answer.code
    return 422 if isinstance(answer, Invalid) else 200
