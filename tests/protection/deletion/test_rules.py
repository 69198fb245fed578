"""What the rules of deletion protection say of a request (DP section 3 and 4)."""

from __future__ import annotations

import types
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from kruise.admission.decisions import Allow, Deny, Failure, HandlerView, Listing, NeedsReads, Protected, Verdict
from kruise.admission.inventory import VALIDATING
from kruise.admission.review import AdmissionRequest, GroupVersionKind, UndecodableError
from kruise.api.native.pod import PODS, Pod
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from kruise.machinery import codec
from kruise.machinery.clock import ManualClock
from kruise.manager.refusals import recorder, typed
from kruise.protection.deletion.cascading import judge_definition, judge_namespace
from kruise.protection.deletion.controller import FEATURE
from kruise.protection.deletion.rules import advice, judge_always, judge_workload
from tests.admission.helpers import request_of
from tests.support.admission import NOW

LABEL = "policy.kruise.io/delete-protection"
ON = {"ResourcesDeletionProtection": True, "DeletionProtectionForCRDCascadingGate": True}


def deletion(value: str | None, *, kind: str = "Deployment", **more: Any) -> AdmissionRequest:
    metadata = {"name": "web", "labels": {LABEL: value} if value is not None else {}, **more.pop("metadata", {})}
    old = {"metadata": metadata, "spec": more.pop("spec", {})}
    return request_of(None, old=old, operation=more.pop("operation", "DELETE"), kind=kind, name="web", **more)


def view(**reads: Any) -> HandlerView:
    return HandlerView(now=NOW, seed=1, gates=ON, **reads)


@pytest.mark.parametrize("value", ["always", "ALWAYS", "", "true", None])
def test_other_values_protect_from_nothing(value: str | None) -> None:  # DP-1
    assert judge_workload(deletion(value, spec={"replicas": 3}), ON) == Allow()


def test_what_is_not_looked_at() -> None:  # DP-10, DP-11, DP-12
    assert judge_workload(deletion("Always"), {}) == Allow()
    assert judge_workload(deletion("Always", subresource="status"), ON) == Allow()
    assert judge_workload(deletion("Always", operation="UPDATE"), ON) == Allow()
    assert judge_workload(deletion("Always", metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}), ON) == Allow()
    assert judge_workload(request_of(None, operation="DELETE"), ON) == Allow()


def test_an_unset_number_of_replicas_counts_as_none() -> None:  # DP-14
    assert judge_workload(deletion("Cascading"), ON) == Allow()
    assert isinstance(judge_workload(deletion("Cascading", spec={"replicas": 1}), ON), Deny)


def test_a_leaf_has_nothing_inside() -> None:  # DP-17
    assert judge_always(deletion("Cascading", kind="Service"), ON) == Allow()
    said = judge_always(deletion("Always", kind="Service"), ON)
    assert isinstance(said, Deny)
    assert said.record is None  # DP section 6: no counter, no line


def test_a_refusal_is_kept() -> None:  # DP-20, DP-30
    said = judge_workload(deletion("Always", group="apps"), ON)
    assert said == Deny(
        message=f"forbidden by ResourcesProtectionDeletion for {LABEL}=Always; to delete it, take the label away: "
        f"kubectl label deployment.apps web -n shop {LABEL}-",
        record=Protected(
            event="DeletionProtection",
            kind="Deployment",
            namespace="shop",
            name="web",
            counter="workload_deletion_protection",
            labels={"kind_namespace_name": "Deployment_shop_web"},
        ),
    )


def test_what_is_kept_is_counted_and_written(caplog: pytest.LogCaptureFixture) -> None:  # DP-30, PUB-92
    registry = CollectorRegistry()
    said = judge_namespace(deletion("Always", kind="Namespace"), view())
    assert isinstance(said, Deny)
    assert said.record is not None
    record = recorder(registry, ManualClock())
    record(said.record, "alice")
    text = typed(generate_latest(registry)).decode()
    assert "# TYPE namespace_deletion_protection counter\n" in text
    assert "untyped" not in text
    shown = [line for line in text.splitlines() if not line.startswith("#")]
    assert shown == ['namespace_deletion_protection{name="web",username="alice"} 1.0']
    expected = {
        "Event": "DeletionProtection",
        "Kind": "Namespace",
        "Name": "web",
        "Namespace": "",
        "UserAgent": "alice",
    }
    (line,) = caplog.messages
    assert codec.decode(line.encode(), dict) == expected


@pytest.mark.parametrize("judge", [judge_workload, judge_always])
def test_one_of_a_collection_is_called_by_its_name(judge: Any) -> None:  # DP-18, DP-30
    """A request to delete a collection names nobody: each object is judged by itself."""
    old = {"metadata": {"name": "web", "namespace": "shop", "labels": {LABEL: "Always"}}}
    said = judge(request_of(None, old=old, operation="DELETE", kind="Deployment", group="apps", name=""), ON)
    assert isinstance(said, Deny)
    assert "kubectl label deployment.apps web -n shop" in said.message
    if said.record is not None:
        assert (said.record.name, said.record.labels) == ("web", {"kind_namespace_name": "Deployment_shop_web"})


def _namespace(pods: Any, claims: Any) -> Verdict:
    request = deletion("Cascading", kind="Namespace", namespace="web")
    reads = {Listing(PODS, "web"): pods, Listing(PERSISTENT_VOLUME_CLAIMS, "web"): claims}
    assert judge_namespace(request, view()) == NeedsReads(targets=tuple(reads), may_fail=True)
    return judge_namespace(request, view(reads=reads))


def _pod(phase: str, **metadata: Any) -> Pod:
    return codec.convert({"metadata": {"name": "p", "namespace": "web", **metadata}, "status": {"phase": phase}}, Pod)


def _claim(phase: str, **metadata: Any) -> PersistentVolumeClaim:
    body = {"metadata": {"name": "c", "namespace": "web", **metadata}, "status": {"phase": phase}}
    return codec.convert(body, PersistentVolumeClaim)


def test_what_counts_in_a_namespace() -> None:  # DP-15
    going = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    ended = [_pod("Succeeded"), _pod("Failed"), _pod("Running", **going)]
    assert _namespace(ended, [_claim("Pending"), _claim("Lost"), _claim("Bound", **going)]) == Allow()
    said = _namespace([*ended, *[_pod("Pending")] * 5], [_claim("Bound")])
    assert isinstance(said, Deny)
    assert "active pods 5>0; delete its pods first (web/p, web/p, web/p and 2 more), or take" in said.message
    assert "-n" not in said.message
    said = _namespace([], [_claim("Bound")])
    assert isinstance(said, Deny)
    assert 'and "Bound" status pvc 1>0' in said.message


def test_what_cannot_be_counted_is_refused() -> None:  # DP-15, DP-16
    said = _namespace(Failure(403, "Forbidden", "no rights"), [])
    assert isinstance(said, Deny)
    assert said.message == "failed to list pods in web: no rights"


def test_a_definition_without_the_gate_is_refused() -> None:  # DP-16
    gates = {"ResourcesDeletionProtection": True}
    request = deletion("Cascading", kind="CustomResourceDefinition")
    said = judge_definition(request, HandlerView(now=NOW, seed=1, gates=gates))
    assert isinstance(said, Deny)
    assert "DeletionProtectionForCRDCascadingGate is not enabled" in said.message


def test_a_label_that_does_nothing_is_warned_of() -> None:
    def about(value: str, gates: dict[str, bool]) -> str:
        return advice({"metadata": {"labels": {LABEL: value}}}, gates)

    assert about("Always", ON) == ""
    assert "use Always or Cascading" in about("always", ON)
    assert "feature-gate ResourcesDeletionProtection is off" in about("Always", {})
    assert advice({"metadata": {}}, {}) == ""
    assert advice({"metadata": {"labels": ["odd"]}}, {}) == advice({"metadata": "odd"}, {}) == ""


def test_without_the_gate_nothing_depends_on_the_manager() -> None:  # DP-3, DP-11
    settings = types.SimpleNamespace(gates={})
    assert FEATURE.webhooks(settings) == ()  # type: ignore[arg-type]


def test_it_does_not_depend_on_the_pod_webhook() -> None:  # DP-19
    gates = {"ResourcesDeletionProtection": True, "PodWebhook": False}
    assert len(FEATURE.webhooks(types.SimpleNamespace(gates=gates))) == 7  # type: ignore[arg-type]


def test_versions_of_a_definition_that_nobody_knows() -> None:  # DP-53
    known = deletion("Always", kind="CustomResourceDefinition", group="apiextensions.k8s.io")
    assert isinstance(judge_definition(known, view()), Deny)
    newer = codec.evolve(known, kind=codec.evolve(known.kind, version="v2"))
    assert judge_definition(newer, view()) == Allow()


def test_what_cannot_be_read_is_no_object() -> None:  # DP-22
    request = codec.evolve(deletion("Always"), old_object=codec.Raw(b"[1]"))
    with pytest.raises(UndecodableError):
        judge_workload(request, ON)


@pytest.mark.parametrize("version", ["v1", "v1beta1"])
def test_the_version_of_an_ingress_does_not_matter(version: str) -> None:  # DP-52
    [entry] = [entry for entry in VALIDATING if entry.resource == "ingresses"]
    assert version in entry.versions
    kind = GroupVersionKind(group="networking.k8s.io", version=version, kind="Ingress")
    assert isinstance(judge_always(codec.evolve(deletion("Always", kind="Ingress"), kind=kind), ON), Deny)
