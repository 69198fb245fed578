"""CloneSet admission without a server: requests as values, the order of the API server, recorded answers read."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from kruise.admission.decisions import Allow, Answer, Change, Deny, HandlerView, Invalid, NeedsReads
from kruise.admission.review import AdmissionRequest, decode_admission
from kruise.api.native.pod import PODS, Pod
from kruise.machinery import codec
from kruise.machinery.patches import merge
from kruise.machinery.plan import Target
from kruise.workloads.cloneset import admission

DATA = Path(__file__).parent / "data"
NAMESPACE = "obs"
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

Json = dict[str, Any]


def load(name: str) -> Any:
    return yaml.safe_load((DATA / f"{name}.yaml").read_text(encoding="utf-8"))


def cloneset(spec: Mapping[str, Any] | None = None, *, version: str = "v1beta1", **metadata: Any) -> Json:
    """A small sound CloneSet, with parts of its spec replaced by a JSON merge patch."""
    base = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "cs"}},
        "template": {
            "metadata": {"labels": {"app": "cs"}},
            "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]},
        },
    }
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": "cs", **metadata},
        "spec": merge.apply(base, dict(spec or {})),
    }


def request(
    obj: Any = None,
    old: Any = None,
    *,
    version: str = "v1beta1",
    operation: str = "",
    subresource: str = "",
    dry_run: bool = False,
) -> AdmissionRequest:
    kind = {"group": "apps.kruise.io", "version": version, "kind": "CloneSet"}
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "1",
            "kind": kind,
            "resource": {"group": "apps.kruise.io", "version": version, "resource": "clonesets"},
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


def pod(name: str, *, controller_uid: str = "", terminating: bool = False) -> Pod:
    metadata: Json = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}"}
    if controller_uid:
        reference = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "cs", "uid": controller_uid}
        metadata["ownerReferences"] = [{**reference, "controller": True}]
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return codec.convert({"metadata": metadata}, Pod)


@dataclasses.dataclass(frozen=True)
class Server:
    """Asks the handlers in the API server's order: defaults first, then judgement of what came out."""

    gates: Mapping[str, bool] = dataclasses.field(default_factory=dict)
    pods: tuple[Pod, ...] = ()
    allow_privileged: bool = True

    @property
    def view(self) -> HandlerView:
        return HandlerView(now=NOW, seed=1, gates=self.gates)

    def defaults(self, obj: Json, old: Json | None = None, *, version: str = "v1beta1") -> Json:
        """The object after the mutating handler, which must accept it."""
        said = admission.default(request(obj, old, version=version), self.view)
        assert isinstance(said, Change), said
        return dict(said.object)

    def judge(self, asked: AdmissionRequest) -> Answer:
        there = {one.metadata.name: one for one in self.pods}
        view = self.view
        for _ in range(3):
            said = admission.judge(asked, view, allow_privileged=self.allow_privileged)
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
        said = admission.default(request(obj, old, version=version), self.view)
        if isinstance(said, Deny):
            return said
        assert isinstance(said, Change), said
        changed = dict(said.object)
        if old is None:
            changed = stored(changed, uid="new-uid")
        verdict = self.judge(request(changed, old, version=version))
        return dataclasses.replace(verdict, warnings=said.warnings) if isinstance(verdict, Allow) else verdict

    def update(self, old: Json, patch: Json, *, version: str = "v1beta1") -> Answer:
        """Send a JSON merge patch."""
        return self.send(merge.apply(old, patch), old, version=version)


_REASONS = {
    "Required value": "FieldValueRequired",
    "Invalid value": "FieldValueInvalid",
    "Unsupported value": "FieldValueNotSupported",
    "Duplicate value": "FieldValueDuplicate",
    "Forbidden": "FieldValueForbidden",
    "Not found": "FieldValueNotFound",
}
_COMPLAINT = re.compile(rf"(?:^|\[|, |: )\.?((?:spec|metadata)[\w.\[\]]*): ({'|'.join(_REASONS)})")


def recorded_causes(message: str) -> set[tuple[str, str]]:
    """Field and reason of everything that a recorded message complains about."""
    return {(field, _REASONS[words]) for field, words in _COMPLAINT.findall(message)}


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
