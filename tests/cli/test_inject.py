"""`kruise inject`: what a pod would get, from whom, and why not; the same as it gets when it is made."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.configurations import MUTATING_NAME
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.api.native.pod import PODS
from kruise.cli.injecting import Asked, Planned, asked, pod_of
from kruise.cli.session import Session
from kruise.machinery.client.errors import AlreadyExistsError
from kruise.manager import gates
from kruise.sidecars.sidecarset import keys
from kruise.verbs.errors import UsageError
from tests.support.commandline import Kruise, local_cluster
from tests.support.sidecarsets import SIDE, names, pod, set_image, sidecar_set, status, until_counts
from tests.support.world import LocalWorld, run_local

Json = dict[str, Any]
FIRST = {"env": [{"name": "KRUISE_CONTAINER_PRIORITY", "value": "1"}]}


async def ask(world: LocalWorld, *documents: Json, feature_gates: str = "") -> list[Asked]:
    session = Session(world.client, namespace=world.namespace, clock=world.clock)
    planned = [found for one in documents if (found := pod_of(one, world.namespace)) is not None]
    return await asked(session, planned, gates.resolve(gates.parse(feature_gates)))


def reasons(answer: Asked) -> dict[str, str]:
    return {one.sidecar_set: one.reason for one in answer.verdicts}


def deployment(labels: Json | None = None) -> Json:
    template = {"metadata": {"labels": labels or {"app": "web"}}, "spec": pod()["spec"]}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_the_pod_is_the_one_that_is_made() -> None:
    """SCS-45 to SCS-60, SCS-131, CLP-6: sidecars, volumes, annotations, and the order of start, sidecars included."""

    async def scenario(world: LocalWorld) -> None:
        mounted = {**SIDE, **FIRST, "volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        await world.create(
            sidecar_set(
                containers=[mounted, {"name": "late", "image": "l:1", "podInjectPolicy": "AfterAppContainer"}],
                initContainers=[{"name": "init", "image": "i:1"}],
                volumes=[{"name": "v", "emptyDir": {}}, {"name": "unused", "emptyDir": {}}],
                imagePullSecrets=[{"name": "pull"}],
            )
        )
        await until_counts(world, 0, 0, 0, 0)
        (answer,) = await ask(world, pod())
        await world.create(pod())
        made = await world.get(PODS, "web-1")
        assert names(answer.pod["spec"]["containers"]) == names(made["spec"]["containers"])
        barriers = [
            [one["env"][-1]["valueFrom"]["configMapKeyRef"] for one in found["spec"]["containers"]]
            for found in (answer.pod, made)
        ]
        assert barriers[0] == barriers[1] == [{"name": "web-1-barrier", "key": key} for key in ("p_1", "p_0", "p_0")]
        told, record = (json.loads(one["metadata"]["annotations"][keys.HASH])["logs"] for one in (answer.pod, made))
        assert {**told, "updateTimestamp": ""} == {**record, "updateTimestamp": ""}
        assert list(answer.lines()) == [
            "pod web-1 in namespace default gets the sidecars of 1 SidecarSet",
            f"  logs (revision {(await status(world))['latestRevision']})",
            "    init container init, image i:1",
            "    container side, image nginx:1.25, before the pod's own",
            "    container late, image l:1, after the pod's own",
            "    volume v",
            "    pull secret pull",
            "its containers start in this order: side; then main, late",
        ]

    run_local(scenario, feature_gates="SidecarSetPatchPodMetadataDefaultsAllowed=true")


def test_why_not() -> None:
    """SCS-34 to SCS-37: the label that differs, the namespace, the pause, the canary."""

    async def scenario(world: LocalWorld) -> None:
        def named(name: str, **more: Any) -> Json:
            return sidecar_set(name, containers=[{"name": name, "image": "i:1"}], **more)

        await world.create(named("other", selector={"matchLabels": {"app": "db"}}))
        await world.create(named("missing", selector={"matchExpressions": [{"key": "tier", "operator": "Exists"}]}))
        await world.create(named("elsewhere", namespaceSelector={"matchLabels": {"team": "a"}}))
        await world.create(named("paused", injectionStrategy={"paused": True}))
        await world.create(named("base"))
        canary = {"annotations": {keys.CANARY: "true", keys.BASE: "base"}}
        await world.create(named("canary", metadata=canary, updateStrategy={"type": "NotUpdate"}))
        (answer,) = await ask(world, pod(labels={"app": "web"}))
        wanted = {
            "base": "its canary, SidecarSet canary, takes its place",
            "canary": "",
            "elsewhere": "its namespaceSelector asks for team=a, and namespace default has no label team",
            "other": "its selector asks for app=db, and the pod has app=web",
            "paused": "spec.injectionStrategy.paused is true: new pods get nothing of it",
        }
        found = reasons(answer)
        assert found.pop("missing").endswith("and the pod has no label tier")
        assert found == wanted
        assert [name for name in names(answer.pod["spec"]["containers"]) if name != "main"] == ["canary"]
        lines = list(answer.lines())
        assert lines.index("nothing from") < lines.index("  paused: " + wanted["paused"])

    run_local(scenario)


def test_workloads_namespaces_and_refusals() -> None:
    """SCS-35, SCS-61: templates of workloads; a namespace that is not there; names that clash."""

    async def scenario(world: LocalWorld) -> None:
        await world.client.create(NAMESPACES, {"metadata": {"name": "team", "labels": {"team": "a"}}})
        await world.create(sidecar_set(namespaceSelector={"matchLabels": {"team": "a"}}))
        cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "night", "namespace": "team"}}
        cron["spec"] = {"jobTemplate": {"spec": deployment()["spec"]}}  # type: ignore[assignment]
        clash = pod(containers=[{"name": "side", "image": "i:1"}])
        clash["metadata"]["namespace"] = "team"
        nowhere = pod()
        nowhere["metadata"]["namespace"] = "nowhere"
        first, second, third, fourth = await ask(world, deployment(), cron, clash, nowhere)
        assert next(first.lines()) == (
            "a pod of deployment/web in namespace default gets no sidecars: no SidecarSet gives it any"
        )
        assert next(second.lines()) == "a pod of cronjob/night in namespace team gets the sidecars of 1 SidecarSet"
        assert next(third.lines()) == "pod web-1 in namespace team would be refused"
        assert "SidecarSet logs has a sidecar side, and the pod has a container side" in third.refusal
        assert third.as_data()["sidecarSets"][0]["injected"] is False
        assert reasons(fourth) == {"logs": "it has a namespaceSelector, and there is no namespace nowhere"}
        (off,) = await ask(world, deployment(), feature_gates="PodWebhook=false")
        assert list(off.lines()) == [
            "a pod of deployment/web in namespace default gets no sidecars: the feature gate PodWebhook is off"
        ]

    run_local(scenario)


def test_where_nobody_is_asked() -> None:
    """PW-43: pods of the control plane, and those of the manager, come without sidecars."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set())
        own = {"metadata": {"name": "system", "labels": {"control-plane": "controller-manager"}}}
        for body in ({"metadata": {"name": "kube-system"}}, own):
            with contextlib.suppress(AlreadyExistsError):
                await world.client.create(NAMESPACES, body)
        for name in ("kube-system", "system"):
            planned = pod()
            planned["metadata"]["namespace"] = name
            (answer,) = await ask(world, planned)
            assert list(answer.lines()) == [
                f"pod web-1 in namespace {name} gets no sidecars: no webhook is asked about pods in namespace {name}"
            ]
            assert answer.as_data()["unasked"] == f"no webhook is asked about pods in namespace {name}"
            assert answer.as_data()["sidecarSets"][0]["injected"] is False
            made = await world.client.create(PODS, planned, name)
            assert [one.name for one in made.spec.containers] == names(planned["spec"]["containers"])
        await world.client.delete(MUTATING_WEBHOOK_CONFIGURATIONS, MUTATING_NAME)
        (answer,) = await ask(world, pod())
        assert answer.unasked.startswith("no webhook for pods is registered")

    run_local(scenario)


def test_an_earlier_revision_is_told() -> None:
    """SCS-38 to SCS-41."""

    async def scenario(world: LocalWorld) -> None:
        await world.create(sidecar_set(customVersion="v1", updateStrategy={"paused": True}))
        await until_counts(world, 0, 0, 0, 0)
        first = (await status(world))["latestRevision"]
        await set_image(world, "nginx:1.26")
        revision = {"revisionName": first}
        change = {"customVersion": "v2", "injectionStrategy": {"revision": revision}}
        await world.patch(SIDECAR_SETS, "logs", {"spec": change})
        (answer,) = await ask(world, pod())
        (verdict,) = answer.verdicts
        assert (verdict.revision, verdict.gains[0].about) == (first, "nginx:1.25")

    run_local(scenario)


def test_what_makes_no_pod_is_none() -> None:
    assert pod_of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}, "default") is None
    with pytest.raises(UsageError, match=r"pod web-1 is no pod that an API server takes: .*labels"):
        pod_of(pod(labels={}) | {"metadata": {"name": "web-1", "labels": ["a"]}}, "default")
    planned = pod_of(pod() | {"metadata": {"generateName": "x-"}}, "default")
    assert planned == Planned("pod x-", {**pod(), "metadata": {"generateName": "x-", "namespace": "default"}})


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def test_the_command(kruise: Kruise, tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text(yaml.safe_dump_all([deployment(), pod("bare")]), encoding="utf-8")
    lines = kruise.ok("inject", "-f", str(file))
    assert lines[0] == "a pod of deployment/web in namespace default gets no sidecars: there is no SidecarSet"
    data = yaml.safe_load("\n".join(kruise.ok("inject", "-f", str(file), "-o", "yaml")))
    assert [one["pod"]["kind"] for one in data["pods"]] == ["Pod", "Pod"]
    told = kruise.ok("inject", "-f", "-", "-o", "json", stdin=json.dumps(pod()))
    assert json.loads("\n".join(told))["sidecarSets"] == []
    file.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}))
    assert "neither a pod nor a workload" in kruise.refused("inject", "-f", str(file), code=2)
    assert "name manifests with -f" in kruise.refused("inject", code=2)
    wrong = pod(containers=[{"name": "a", "image": "i", **FIRST}, {"name": "b", "image": "i"}])
    wrong["spec"]["containers"][0]["env"][0]["value"] = "high"
    file.write_text(json.dumps(wrong))
    assert "pod web-1: spec.containers[0].env[KRUISE_CONTAINER_PRIORITY]" in kruise.refused("inject", "-f", str(file))


def test_a_plan_names_the_pods_and_their_workload(kruise: Kruise) -> None:
    """Here, after the test above, since it makes the first SidecarSet."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod()["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    kruise.talk(lambda client: client.create(SIDECAR_SETS, sidecar_set(updateStrategy={"maxUnavailable": 2})))
    kruise.create(CLONE_SETS, {"metadata": {"name": "web", "namespace": "default"}, "spec": spec})
    kruise.ok("rollout", "status", "cloneset/web", "--timeout=60s")
    lines = kruise.ok("plan", "sidecarset/logs", "--image", "side=nginx:1.26")
    assert "Workloads:   cloneset/web in default (2 change)" in lines
    assert sum(line.startswith("default/web-") for line in lines) == 2
    assert not [line for line in lines if "new pod" in line]
