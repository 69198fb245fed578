"""What PodProbeMarkers are refused for (PPM-10 to PPM-16), and their steps of the pod chain."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Allow, Deny, HandlerView
from kruise.api.apps.probes import ENHANCED_LIVENESS, LIVENESS_PROBES, POD_PROBE_MARKERS, PodProbeMarker
from kruise.machinery.codec import convert
from kruise.machinery.patches import merge
from kruise.machinery.store import Store
from kruise.manager import gates
from kruise.manager.options import Options
from kruise.operations.probes.marker.admission import judge
from kruise.operations.probes.marker.controller import FEATURE, controllers
from kruise.operations.probes.marker.liveness import move_liveness_probes
from kruise.operations.probes.marker.serverless import write_probes
from kruise.operations.probes.watched import WATCHED_MARKERS
from tests.support.admission import NAMESPACE, NOW, request

Json = dict[str, Any]
RECORDED = yaml.safe_load((Path(__file__).parent / "recorded_admission.yaml").read_text())
BASE: Json = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "PodProbeMarker",
    "metadata": RECORDED["base"]["metadata"],
    "spec": RECORDED["base"]["spec"],
}
BY_SCHEMA = ("selector missing", "probes missing")
CASES = [case for case in RECORDED["cases"] if case["case"] not in BY_SCHEMA]
OTHER_WORDS = {
    # Ours say what to write, where the original shows Go syntax or other words.
    "selector empty",
    "probes empty",
    "no condition and no marker",
    "selector changed",
    "probes made empty",
    "marker state unknown",
}


def ask(body: Json, old: Json | None = None, **options: Any) -> Allow | Deny:
    asked = request(body, old, version="v1alpha1", kind="PodProbeMarker")
    return judge(asked, HandlerView(now=NOW, seed=1), **options)


def with_probe(**fields: Any) -> Json:
    return merge.apply(BASE, {"spec": {"probes": [{**BASE["spec"]["probes"][0], **fields}]}})


def test_the_handlers_that_there_are_are_named_beside_the_refusal() -> None:
    """PPM-13: the schema has gRPC, and nobody runs it."""
    answer = ask(with_probe(probe={"grpc": {"port": 9000}}))
    assert isinstance(answer, Deny)
    assert answer.warnings == ("spec.probes[0].probe.grpc is not supported: use exec, httpGet or tcpSocket",)


def fields_of(answer: Allow | Deny) -> list[str]:
    assert isinstance(answer, Deny), answer
    return [cause.field for cause in answer.causes]


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_recorded(case: Json) -> None:
    """PPM-10 to PPM-16: same verdict and code, the same field, and words that say as much."""
    answer = ask(merge.apply(BASE, case["patch"]), BASE if case["op"] == "update" else None)
    if case["accepted"]:
        assert isinstance(answer, Allow), answer
        return
    assert isinstance(answer, Deny)
    assert answer.code == case["code"] == 400
    told = re.sub(r'^admission webhook "[^"]*" denied the request: ', "", case["message"])
    if case["case"] in OTHER_WORDS:
        assert answer.message.partition(":")[0] == told.partition(":")[0]
    else:
        assert answer.message == told


@pytest.mark.parametrize("number", ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "failureThreshold"])
def test_numbers_are_not_negative(number: str) -> None:
    """PPM-14."""
    answer = ask(with_probe(probe={"exec": {"command": ["true"]}, number: -1}))
    assert fields_of(answer) == [f"spec.probe.{number}"]


def test_what_works_otherwise_than_one_may_think_is_warned_of() -> None:
    [text] = ask(with_probe(podConditionType="Ready")).warnings
    assert "the kubelet writes the condition Ready" in text


def test_gates() -> None:
    """PPM-1 to PPM-4: without the daemon there is nobody who probes."""
    off = gates.resolve(gates.parse("KruiseDaemon=false"))
    assert off["PodProbeMarkerGate"] is False
    assert controllers(Options(gates=off)) == ()
    for closed in ("PodProbeMarkerGate", "KruiseDaemon"):
        [handler] = FEATURE.webhooks(Options(gates=gates.resolve(gates.parse(f"{closed}=false"))))
        sent = request(BASE, version="v1alpha1", kind="PodProbeMarker")
        answer: Any = handler.decide(sent, HandlerView(now=NOW, seed=1))
        remedy = f"start the manager with --feature-gates={closed}=true"
        assert (answer.code, answer.message) == (403, f"feature-gate PodProbeMarkerGate is not enabled: {remedy}")
    assert FEATURE.pod_mutations(Options(gates=gates.resolve({}))) == ()
    chosen = gates.parse("EnablePodProbeMarkerOnServerless=true,EnhancedLivenessProbe=true")
    assert len(FEATURE.pod_mutations(Options(gates=gates.resolve(chosen)))) == 2


def test_who_goes_is_let_go_with_the_gate_off() -> None:
    """Otherwise nobody could take its finalizer away."""
    going = merge.apply(BASE, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert isinstance(ask(going, BASE, gate_off="KruiseDaemon"), Allow)


# Probes on virtual nodes


def marker(name: str, *probes: Json, **metadata: Any) -> PodProbeMarker:
    return convert(
        {
            "metadata": {"name": name, "namespace": NAMESPACE, "uid": name, "resourceVersion": "1", **metadata},
            "spec": {"selector": {"matchLabels": {"app": "game"}}, "probes": list(probes)},
        },
        PodProbeMarker,
    )


def probe(name: str, container: str = "main", condition: str | None = None, **more: Any) -> Json:
    return {
        "name": name,
        "containerName": container,
        "probe": {"exec": {"command": [name]}},
        "podConditionType": f"game.example/{name}" if condition is None else condition,
        **more,
    }


def pod(**metadata: Any) -> Json:
    return {
        "metadata": {"name": "p", "labels": {"app": "game"}, **metadata},
        "spec": {
            "containers": [{"name": "main"}, {"name": "nginx"}],
            "initContainers": [{"name": "setup"}, {"name": "side", "restartPolicy": "Always"}],
        },
    }


def written(body: Json, *markers: PodProbeMarker) -> dict[str, str]:
    store: Store[PodProbeMarker] = Store(POD_PROBE_MARKERS)
    store.add_indexes(WATCHED_MARKERS)
    store.replace(markers, 1)
    view = HandlerView(now=NOW, seed=1, stores=lambda resource: store)  # type: ignore[arg-type,return-value]
    answer = write_probes(body, StepContext(request(body, kind="Pod"), view, NAMESPACE))
    return dict(answer.object["metadata"]["annotations"]) if answer is not None else {}


def test_probes_are_written_into_new_pods() -> None:
    """SLS-1, SLS-2, PPM-43, PW-30: in the order of markers, without policies."""
    first = marker("ppm-nginx", probe("healthy", "nginx", markerPolicy=[{"state": "Failed", "labels": {"a": "b"}}]))
    second = marker("ppm-main", probe("check"))
    found = written(pod(), first, second)
    assert found["kruise.io/podprobemarker-list"] == "ppm-main,ppm-nginx"
    assert json.loads(found["kruise.io/podprobe"]) == [
        {
            "name": "check",
            "containerName": "main",
            "probe": {"exec": {"command": ["check"]}},
            "podConditionType": "game.example/check",
        },
        {
            "name": "healthy",
            "containerName": "nginx",
            "probe": {"exec": {"command": ["healthy"]}},
            "podConditionType": "game.example/healthy",
        },
    ]


def test_what_is_not_written() -> None:
    """SLS-2, PW-29: no condition, a condition or a pair that is taken, a container that is not probed."""
    one = marker("a", probe("x"), probe("y", condition=""), probe("z", "setup"), probe("s", "side"))
    two = marker("b", probe("x", condition="other"), probe("w", condition="game.example/x"))
    found = json.loads(written(pod(), one, two)["kruise.io/podprobe"])
    assert [(entry["name"], entry["containerName"]) for entry in found] == [("x", "main"), ("s", "side")]
    assert written(pod(labels={"app": "other"}), one) == {}
    assert written(pod(), marker("gone", probe("x"), deletionTimestamp="2026-01-01T00:00:00Z")) == {}


def test_a_pod_that_names_its_markers_gets_those() -> None:
    """PPM-21, SLS-6, PW-28: missing ones are skipped."""
    named = pod(labels={}, annotations={"kruise.io/podprobemarker-list": "b,missing"})
    found = written(named, marker("a", probe("x")), marker("b", probe("y")))
    assert [entry["name"] for entry in json.loads(found["kruise.io/podprobe"])] == ["y"]


# Liveness probes

OWNED = [{"apiVersion": "apps.kruise.io/v1beta1", "kind": "CloneSet", "name": "c", "uid": "1", "controller": True}]
LIVENESS = {"httpGet": {"path": "/health", "port": 7001}, "periodSeconds": 100, "failureThreshold": 3}


def moved(body: Json) -> Json | None:
    context = StepContext(request(body, kind="Pod"), HandlerView(now=NOW, seed=1), NAMESPACE)
    answer = move_liveness_probes(body, context)
    return dict(answer.object) if answer is not None else None


def live(**metadata: Any) -> Json:
    body = pod(**{"annotations": {ENHANCED_LIVENESS: "true"}, "ownerReferences": OWNED, **metadata})
    body["spec"]["containers"][0] |= {"livenessProbe": LIVENESS, "readinessProbe": {"exec": {"command": ["r"]}}}
    return body


def test_liveness_probes_are_moved() -> None:
    """ELP-1, ELP-2, PW-27."""
    found = moved(live())
    assert found is not None
    assert json.loads(found["metadata"]["annotations"][LIVENESS_PROBES]) == [
        {"name": "main", "livenessProbe": LIVENESS}
    ]
    main, nginx = found["spec"]["containers"]
    assert "livenessProbe" not in main
    assert main["readinessProbe"]
    assert nginx == {"name": "nginx"}


def test_a_probe_by_grpc_stays_with_the_kubelet() -> None:
    """ELP-2, and better: nobody else could run it, so the container would have no liveness check at all."""
    body = live()
    body["spec"]["containers"][1] |= {"livenessProbe": {"grpc": {"port": 9000}}}
    found = moved(body)
    assert found is not None
    assert [one["name"] for one in json.loads(found["metadata"]["annotations"][LIVENESS_PROBES])] == ["main"]
    assert found["spec"]["containers"][1]["livenessProbe"] == {"grpc": {"port": 9000}}
    del body["spec"]["containers"][0]["livenessProbe"]
    assert moved(body) is None


@pytest.mark.parametrize(
    "body",
    [
        live(annotations={ENHANCED_LIVENESS: "false"}),
        live(annotations={}),
        live(ownerReferences=[]),
        live(ownerReferences=[{**OWNED[0], "apiVersion": "apps/v1", "kind": "ReplicaSet"}]),
        pod(annotations={ENHANCED_LIVENESS: "true"}, ownerReferences=OWNED),
    ],
)
def test_other_pods_keep_them(body: Json) -> None:
    """ELP-1, ELP-2: also a pod without any liveness probe gets no annotation."""
    assert moved(body) is None


def test_the_step_comes_after_injection() -> None:
    """ELP-3."""
    chosen = gates.parse("EnablePodProbeMarkerOnServerless=true,EnhancedLivenessProbe=true")
    steps = [entry.step for entry in FEATURE.pod_mutations(Options(gates=gates.resolve(chosen)))]
    assert [step.name for step in sorted(steps)] == ["LIVENESS_PROBE", "PROBE_MARKER"]
    assert min(steps) > 3
