"""`kruise migrate` between Kubernetes' kinds and ours, against one `kruise up`: pods stay, whatever breaks off."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kruise import kinds
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS
from kruise.faces.face import Face
from kruise.verbs.handover import FINALIZER, MARK
from tests.support.commandline import Kruise, local_cluster

OURS = tuple(face for face in kinds.REGISTRY.built_in if face.counterpart is not None)


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def native_of(face: Face) -> Face:
    assert face.counterpart is not None
    found = kinds.face_of(*face.counterpart)
    assert found is not None
    return found


def manifest(face: Face, name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": face.resource.api_version,
        "kind": face.resource.kind,
        "metadata": {"name": name, "labels": labels, "annotations": {"team": "a"}},
        "spec": {
            **({"replicas": 3, "serviceName": name} if face.replicas else {}),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], "terminationGracePeriodSeconds": 1},
            },
            **spec,
        },
    }


def start(kruise: Kruise, face: Face, name: str, **spec: Any) -> dict[str, tuple[str, int]]:
    kruise.create(face.resource, manifest(face, name, **spec))
    kruise.ok("rollout", "status", f"{face.label}/{name}", "--timeout=60s")
    return pods(kruise, name)


def listed(kruise: Kruise, resource: Any, name: str) -> list[Any]:
    async def read(client: Any) -> list[Any]:
        found = await client.list(resource, "default", labels=f"app={name}")
        return list(found.items)

    return kruise.talk(read)


def pods(kruise: Kruise, name: str) -> dict[str, tuple[str, int]]:
    """Uid and restarts of every pod."""
    return {
        pod.metadata.name: (pod.metadata.uid, sum(one.restart_count for one in pod.status.container_statuses))
        for pod in listed(kruise, PODS, name)
    }


def owners(kruise: Kruise, resource: Any, name: str) -> set[tuple[str, ...]]:
    return {
        tuple(owner.api_version for owner in one.metadata.owner_references) for one in listed(kruise, resource, name)
    }


def until(read: Callable[[], Any], wanted: Any) -> None:
    deadline = time.monotonic() + 30
    while (found := read()) != wanted:
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def migrate(source: Face, destination: Face, name: str, *flags: str) -> tuple[str, ...]:
    return ("migrate", destination.label, "--from", source.label, f"--src-name={name}", "-n", "default", *flags)


@pytest.mark.parametrize("face", OURS, ids=str)
def test_to_ours_and_back_without_a_restart(kruise: Kruise, face: Face) -> None:
    """Broken off after every step on the way there."""
    native, name = native_of(face), f"move-{face.singular}"
    before = start(kruise, native, name, minReadySeconds=1)
    there = migrate(native, face, name, "--timeout-seconds=0")
    codes = []
    while not codes or codes[-1] == 3:
        codes.append(kruise(*there).code)
        assert pods(kruise, name) == before
        assert len(codes) < 60
    assert codes[-1] == 0
    assert len(codes) > 5
    assert kruise.ok(*there) == [f"{face.named(name)} has {len(before)} pods"]
    assert owners(kruise, PODS, name) == {(face.resource.api_version,)}
    assert owners(kruise, CONTROLLER_REVISIONS, name) == {(face.resource.api_version,)}

    done = kruise.ok(*migrate(face, native, name, "--timeout-seconds=60"))
    assert done[0] == f"{face.named(name)} is kept as the record of this migration"
    assert done[-1] == f"{native.named(name)} has {len(before)} pods"
    assert pods(kruise, name) == before
    assert owners(kruise, PODS, name) == {("apps/v1",)}
    # Nothing moves later either, until the template changes.
    kruise.ok("rollout", "status", native.named(name), "--timeout=60s")
    assert pods(kruise, name) == before
    back = json.loads("\n".join(kruise.ok("set", "image", native.named(name), "*=x", "--dry-run=client", "-o", "json")))
    assert back["metadata"]["annotations"]["team"] == "a"
    assert MARK not in back["metadata"]["annotations"]
    assert FINALIZER not in back["metadata"].get("finalizers", [])
    assert back["spec"]["minReadySeconds"] == 1
    kruise.ok("set", "image", native.named(name), "main=nginx:1.26", "--wait", "--timeout=90s")
    assert not set(before.values()) & set(pods(kruise, name).values())


STATEFUL_SET = next(face for face in OURS if face.singular == "statefulset")
CLAIMS = {
    "volumeClaimTemplates": [
        {
            "metadata": {"name": "data", "labels": {"app": "claims"}},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    ],
    "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Delete", "whenScaled": "Retain"},
}


def test_claims_get_the_new_owner(kruise: Kruise) -> None:
    """Those that would be deleted with the StatefulSet are not, and will be with the other one."""
    face, native = STATEFUL_SET, native_of(STATEFUL_SET)
    before = start(kruise, native, "claims", **CLAIMS)
    claims = {one.metadata.uid for one in listed(kruise, PERSISTENT_VOLUME_CLAIMS, "claims")}
    assert owners(kruise, PERSISTENT_VOLUME_CLAIMS, "claims") == {("apps/v1",)}
    for source, destination in ((native, face), (face, native)):
        kruise.ok(*migrate(source, destination, "claims", "--timeout-seconds=60"))
        kruise.ok("rollout", "status", destination.named("claims"), "--timeout=60s")
        wanted = {(destination.resource.api_version,)}
        until(lambda: owners(kruise, PERSISTENT_VOLUME_CLAIMS, "claims"), wanted)
        assert {one.metadata.uid for one in listed(kruise, PERSISTENT_VOLUME_CLAIMS, "claims")} == claims
        assert pods(kruise, "claims") == before


def test_what_is_refused_changes_nothing(kruise: Kruise) -> None:
    face, native = STATEFUL_SET, native_of(STATEFUL_SET)
    strategy = {"rollingUpdate": {"paused": True}}
    hook = {"preDelete": {"labelsHandler": {"a": "b"}}}
    before = start(kruise, face, "stay", updateStrategy=strategy, lifecycle=hook)
    back = migrate(face, native, "stay")
    refusal = kruise.refused(*back)
    assert refusal.startswith("statefulsets.apps have no spec.")
    assert "spec.updateStrategy.rollingUpdate.paused" in refusal
    assert "spec.lifecycle.preDelete.labelsHandler.a" in refusal
    assert refusal.endswith("Remove it there, or leave it behind with --force.")
    kruise.talk(lambda client: client.patch(face.resource, "stay", {"spec": {"reserveOrdinals": [7]}}, "default"))
    assert kruise.refused(*back, "--force") == (
        "spec.reserveOrdinals of statefulset.apps.kruise.io/stay decides which pods there are, "
        "and statefulsets.apps have no such field"
    )
    gated = {"spec": {"template": {"spec": {"readinessGates": [{"conditionType": "InPlaceUpdateReady"}]}}}}
    kruise.talk(lambda client: client.patch(face.resource, "stay", gated, "default"))
    assert "new pods would never be ready" in kruise.refused(*back, "--force")
    assert "cannot become" in kruise.refused(*migrate(native, native, "stay"), code=2)
    assert "for pods that are made anew" in kruise.refused(*back, "--create", code=2)
    assert "has the name of the other one" in kruise.refused(*back, "--dst-name=x", code=2)
    assert "not found" in kruise.refused(*migrate(native, face, "nobody"))
    assert pods(kruise, "stay") == before


def test_a_rollout_under_way_is_waited_for(kruise: Kruise) -> None:
    face, native = STATEFUL_SET, native_of(STATEFUL_SET)
    kruise.create(native.resource, manifest(native, "busy", updateStrategy={"type": "OnDelete"}))
    preview = migrate(native, face, "busy", "--dry-run=server")
    until(lambda: kruise(*preview).code, 0)
    before = pods(kruise, "busy")
    kruise.ok("set", "image", native.named("busy"), "main=nginx:1.26")
    refusal = kruise.refused(*migrate(native, face, "busy"))
    assert refusal.startswith("statefulset.apps/busy is not settled: ")
    kruise.ok("set", "image", native.named("busy"), "main=nginx:1.25")
    until(lambda: kruise(*preview).code, 0)
    assert kruise.ok(*preview) == [
        "statefulset.apps.kruise.io/busy takes over from statefulset.apps/busy (server dry run)"
    ]
    made = json.loads("\n".join(kruise.ok(*migrate(native, face, "busy", "-o", "json"))))
    assert made["kind"] == "StatefulSet"
    assert made["apiVersion"] == face.resource.api_version
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}
    assert pods(kruise, "busy") == before


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_source_that_somebody_deletes_meanwhile_lets_go_too(kruise: Kruise, propagation: str) -> None:
    """Its pods would go with it: the finalizer holds it until they are let go."""
    face, native, name = STATEFUL_SET, native_of(STATEFUL_SET), f"gone-{propagation.lower()}"
    before = start(kruise, native, name, replicas=1)
    move = migrate(native, face, name)
    assert kruise(*move, "--timeout-seconds=0").code == 3
    kruise.talk(lambda client: client.delete(native.resource, name, "default", propagation=propagation))
    if propagation == "Background":
        assert kruise.ok(*move, "--timeout-seconds=30")[-1] == f"{face.named(name)} has 1 pod"
        assert pods(kruise, name) == before
    else:
        # That asked for the pods to go first. They are made anew, by one owner.
        kruise.ok(*move, "--timeout-seconds=30")
        assert pods(kruise, name).keys() == before.keys()
