"""Scaling of CloneSets: how many pods there are, which ones come and which ones go (CS sections 6 to 8)."""

from __future__ import annotations

import collections
import itertools
import re
from typing import Any

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.inplace import keys
from kruise.machinery.client.requests import PatchType
from tests.scenarios.podlog import is_serving, is_there
from tests.scenarios.stage import (
    ALPHA,
    INSTANCE_ID,
    OK_GATE,
    Stage,
    clonesets,
    has_condition,
    hash_in,
    names,
    scenario,
    state_of,
    uids,
)
from tests.support.world import Json

ALL_AT_ONCE = {"maxUnavailable": "100%"}
GATED = {"readinessGates": [{"conditionType": OK_GATE}]}


@scenario("CS-85", "CS-110", "CS-153", "IPU-21", "IPU-75", "IPU-80", "IPU-81", smoke=True)
async def pods_are_made_with_names_labels_and_gates(stage: Stage) -> None:
    """A new CloneSet makes its pods at once, and everything that others rely on is on them."""
    pods = await stage.start(replicas=3, annotations={"note": "kept"}, labels={"tier": "front"})
    cloneset = await stage.world.cloneset()
    revision = cloneset["status"]["updateRevision"]
    for pod in pods:
        metadata = pod["metadata"]
        instance = metadata["labels"][INSTANCE_ID]
        assert re.fullmatch("[bcdfghjklmnpqrstvwxz2456789]{5}", instance)
        assert metadata["name"] == f"web-{instance}"
        assert metadata["generateName"] == "web-"
        assert metadata["labels"]["tier"] == "front"
        assert metadata["annotations"]["note"] == "kept"
        short = stage.gates["CloneSetShortHash"]
        assert metadata["labels"][keys.REVISION_LABEL] == (hash_in(revision) if short else revision)
        assert metadata["labels"][keys.TEMPLATE_HASH_LABEL] == hash_in(revision)
        assert state_of(pod) == "Normal"
        assert keys.STATE_TIME_ANNOTATION in metadata["annotations"]
        [owner] = metadata["ownerReferences"]
        assert owner == {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "CloneSet",
            "name": "web",
            "uid": cloneset["metadata"]["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
        gates = [gate["conditionType"] for gate in pod["spec"]["readinessGates"]]
        assert sorted(gates) == [keys.IN_PLACE_READY, keys.KRUISE_POD_READY]
        assert all(has_condition(pod, gate) for gate in gates)
        await stage.has_event("SuccessfulCreate", f"succeed to create pod {metadata['name']}")
    status = cloneset["status"]
    assert (status["labelSelector"], status["collisionCount"], status["expectedUpdatedReplicas"]) == ("app=web", 0, 3)


@scenario("CS-45", "CS-116", "CS-70")
async def no_replicas_are_complete_at_once(stage: Stage) -> None:
    """0 replicas: nothing is made, Progressing is Available, and maxUnavailable 0 is allowed (edge case 1)."""
    await stage.create(replicas=0, rolling={"maxUnavailable": 0, "maxSurge": 0}, progressDeadlineSeconds=600)
    assert await stage.complete() == []
    assert await stage.progressing() == "CloneSetAvailable"
    await stage.is_refused(stage.scale(1), "maxUnavailable")
    await stage.roll({"maxUnavailable": 1})
    await stage.scale(1)
    assert len(await stage.complete()) == 1


@scenario("CS-3", "CS-155", "CS-2", smoke=True)
async def the_scale_subresource_works_in_both_versions(stage: Stage) -> None:
    """What `kubectl scale` and an HPA do, up and down, through either version."""
    await stage.start(replicas=1)
    for version, replicas in ((ALPHA, 3), ("v1beta1", 2)):
        resource = clonesets(version)
        await stage.client.set_scale(resource, "web", replicas, stage.namespace)
        assert len(await stage.complete()) == replicas
        scale = await stage.client.get_scale(resource, "web", stage.namespace)
        assert (scale.spec.replicas, scale.status.replicas, scale.status.selector) == (replicas, replicas, "app=web")


@scenario("CS-69a", "CS-76", "CS-81")
async def a_limited_scale_up_streams_pod_after_pod(stage: Stage) -> None:
    """With scaleStrategy.maxUnavailable 1 each pod waits for the one before to be available, never less and hardly
    more; an update is not held up by it (edge case 5)."""
    seconds = stage.pace.seconds
    async with stage.watching() as log:
        await stage.create(replicas=3, minReadySeconds=seconds, scale={"maxUnavailable": 1}, rolling=ALL_AT_ONCE)
        await stage.has_event("ScaleUpLimited", "because of scaleStrategy.maxUnavailable, limit: 1", type="Warning")
        await stage.complete()
    assert log.highest(lambda pod: is_there(pod) and not is_serving(pod)) == 1
    made: list[str] = []
    for entry in log.entries:
        if entry.kind == "ADDED":
            made.append(entry.pod.metadata.name)
    for former, later in itertools.pairwise(made):
        ready = next(pod for pod in reversed(log.of(former)) if is_serving(pod))
        since = next(item.last_transition_time for item in ready.status.conditions if item.type == "Ready")
        created = log.of(later)[0].metadata.creation_timestamp
        assert since is not None
        assert created is not None
        assert seconds <= (created - since).total_seconds() <= seconds + stage.pace.slack
    await stage.change({"replicas": 5, "scaleStrategy": {"maxUnavailable": 0}})
    await stage.set_image("nginx:1.26")
    await stage.reaches(replicas=3, updatedReplicas=3, updatedAvailableReplicas=3)


@scenario("CS-91")
async def pods_that_serve_least_go_first(stage: Stage) -> None:
    """Scaling in takes a pod that is not ready before all others, then the one of the lowest deletion cost."""
    await stage.create(replicas=4, pod=GATED, rolling={"maxUnavailable": 4})
    await stage.reaches(replicas=4)
    pods = names(await stage.pods())
    for name in pods[1:]:
        await stage.open_gate(name)
    await stage.reaches(availableReplicas=3)
    await stage.scale(3)
    await stage.is_gone(PODS, pods[0])
    assert names(await stage.pods()) == pods[1:]
    cost = "controller.kubernetes.io/pod-deletion-cost"
    for name, value in zip(pods[1:], ("10", "-5", "0"), strict=True):
        await stage.annotate(name, {cost: value})
    await stage.scale(2)
    await stage.is_gone(PODS, pods[2])
    await stage.reaches(replicas=2)
    await stage.scale(1)
    await stage.is_gone(PODS, pods[3])
    await stage.reaches(replicas=1)
    assert names(await stage.pods()) == [pods[1]]


@scenario("CS-92")
async def a_crowded_node_loses_a_pod_first(stage: Stage) -> None:
    """Without topology constraints pods leave the node that has most of them."""
    requests = [{"name": "main", "image": "nginx:1.25", "resources": {"requests": {"cpu": "10m"}}}]
    before = await stage.start(replicas=8, containers=requests, rolling={"maxUnavailable": "100%"})
    crowd = collections.Counter(pod["spec"]["nodeName"] for pod in before)
    assert max(crowd.values()) > 1
    while len(before) > len(crowd):
        fullest = max(crowd.values())
        await stage.scale(len(before) - 1)
        after = await stage.complete()
        [gone] = [pod for pod in before if pod["metadata"]["name"] not in names(after)]
        assert crowd[gone["spec"]["nodeName"]] == fullest
        crowd[gone["spec"]["nodeName"]] -= 1
        before = after


@scenario("CS-93")
async def a_crowded_domain_loses_a_pod_first(stage: Stage) -> None:
    """With topology constraints pods leave the domain that has most of them."""
    key = f"rack.example.com/{stage.namespace}"
    nodes = names(await stage.world.list(NODES))
    constraint = {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    pod = {"topologySpreadConstraints": [constraint]}
    before = await stage.start(replicas=6, pod=pod, rolling={"maxUnavailable": "100%"})
    crowd = collections.Counter(item["spec"]["nodeName"] for item in before)
    lonely, fewest = crowd.most_common()[-1]
    assert fewest < 3
    for node in nodes:
        # One rack has a single node, one with few pods; the other rack has all the rest.
        rack = "small" if node == lonely else "large"
        await stage.client.patch(NODES, node, {"metadata": {"labels": {key: rack}}})
    await stage.scale(5)
    after = names(await stage.complete())
    [gone] = [item for item in before if item["metadata"]["name"] not in after]
    assert gone["spec"]["nodeName"] != lonely


@scenario("CS-87", "CS-69", "CS-47", smoke=True)
async def a_named_pod_goes_and_its_name_leaves_the_list(stage: Stage) -> None:
    """podsToDelete together with fewer replicas: just that pod goes, and the controller empties the list."""
    before = names(await stage.start(replicas=3))
    await stage.change({"replicas": 2, "scaleStrategy": {"podsToDelete": [before[1]]}})
    await stage.is_gone(PODS, before[1])
    await stage.has_event("SuccessfulDelete", f"succeed to delete pod {before[1]}")

    async def is_emptied() -> None:
        spec = (await stage.world.cloneset())["spec"]
        assert "podsToDelete" not in spec.get("scaleStrategy", {})

    await stage.until(is_emptied)
    assert names(await stage.complete()) == [before[0], before[2]]


@scenario("CS-87", "CS-69", "CS-47")
async def a_named_pod_is_replaced_when_replicas_stay(stage: Stage) -> None:
    """podsToDelete alone: the pod is replaced. v1beta1 takes names of pods that do not exist, and drops them; v1alpha1
    refuses them, and both refuse a name twice."""
    before = names(await stage.start(replicas=3))
    generation = (await stage.world.cloneset())["metadata"]["generation"]
    await stage.change({"scaleStrategy": {"podsToDelete": [before[0], "web-nobody"]}})
    await stage.is_gone(PODS, before[0])
    after = names(await stage.complete())
    assert set(before) - set(after) == {before[0]}

    async def is_emptied() -> None:
        cloneset = await stage.world.cloneset()
        assert "podsToDelete" not in cloneset["spec"].get("scaleStrategy", {})
        assert cloneset["metadata"]["generation"] > generation + 1

    await stage.until(is_emptied)
    unknown = {"scaleStrategy": {"podsToDelete": ["web-nobody"]}}
    await stage.is_refused(stage.change(unknown, version=ALPHA), "podsToDelete", "web-nobody")
    twice = {"scaleStrategy": {"podsToDelete": [after[0], after[0]]}}
    await stage.is_refused(stage.change(twice, version=ALPHA), "podsToDelete")
    await stage.is_refused(stage.change(twice), "podsToDelete")


@scenario("IPU-130", "CS-83", "CS-78")
async def marked_pods_go_within_the_budget(stage: Stage) -> None:
    """Pods marked for deletion: unready ones at once, ready ones as far as maxUnavailable allows."""
    await stage.create(replicas=4, pod=GATED, rolling={"maxUnavailable": 1})
    await stage.reaches(replicas=4)
    pods = names(await stage.pods())
    for name in pods[:3]:
        await stage.open_gate(name)
    await stage.reaches(availableReplicas=3)
    for name in pods:
        await stage.set_labels(name, {keys.SPECIFIED_DELETE_LABEL: "any"})
    await stage.is_gone(PODS, pods[3])
    # Its successor is not ready, which uses the budget up.
    await stage.reaches(replicas=4, availableReplicas=3)

    async def the_ready_ones_stay() -> None:
        assert set(pods[:3]) <= set(names(await stage.pods()))

    await stage.stays(the_ready_ones_stay)
    for _ in range(3):
        [successor] = [name for name in names(await stage.pods()) if name not in pods and await _is_shut(stage, name)]
        before = set(names(await stage.pods()))
        await stage.open_gate(successor)

        async def one_went(before: set[str] = before) -> None:
            now = set(names(await stage.pods()))
            assert len(now) == 4
            assert len(before - now) == 1

        await stage.until(one_went)
    assert not set(pods) & set(names(await stage.pods()))


async def _is_shut(stage: Stage, name: str) -> bool:
    return not has_condition(await stage.pod(name), OK_GATE)


@scenario("CS-74", "CS-83", "CS-106")
async def a_marked_pod_is_replaced_before_it_goes_with_surge(stage: Stage) -> None:
    """maxSurge 1, maxUnavailable 0: the substitute serves before the marked pod is deleted."""
    before = names(await stage.start(replicas=3, policy="ReCreate", rolling={"maxSurge": 1, "maxUnavailable": 0}))
    async with stage.watching() as log:
        await stage.set_labels(before[0], {keys.SPECIFIED_DELETE_LABEL: "true"})
        await stage.is_gone(PODS, before[0])
        await stage.complete()
    assert log.lowest(is_serving) == 3
    assert log.highest(is_there) == 4


@scenario("CS-84", "CS-78")
async def scale_in_of_ready_pods_waits_for_the_budget(stage: Stage) -> None:
    """Where too many pods are unavailable, ready ones are not deleted until the others have recovered."""
    pods = names(await _all_open(stage, replicas=5, pod=GATED, rolling={"maxUnavailable": 1}))
    cost = "controller.kubernetes.io/pod-deletion-cost"
    for name in pods[:2]:
        # Young pods whose minReadySeconds have not passed are ready but unavailable, and so go last.
        await stage.annotate(name, {cost: "100"})
    await stage.change({"minReadySeconds": 1000, "replicas": 4})
    await stage.reaches(availableReplicas=0, readyReplicas=5)

    async def nobody_goes() -> None:
        assert names(await stage.pods()) == pods

    await stage.stays(nobody_goes)
    await stage.change({"minReadySeconds": 0})
    await stage.reaches(replicas=4, availableReplicas=4)
    assert set(pods[:2]) <= set(names(await stage.pods()))


async def _all_open(stage: Stage, **options: Any) -> list[Json]:
    """Start a CloneSet whose pods have the gate `example.com/ok`, and open it for each."""
    await stage.create(**options)
    wanted = (await stage.world.cloneset())["spec"]["replicas"]
    await stage.reaches(replicas=wanted)
    for pod in await stage.pods():
        await stage.open_gate(pod["metadata"]["name"])
    return await stage.complete()


@scenario("CS-67", "CS-60", smoke=True)
async def a_pod_that_leaves_the_selector_is_released_and_replaced(stage: Stage) -> None:
    """A pod whose label was edited away is let go, lives on, and gets a successor (edge case 15). A stranger with
    fitting labels is not adopted."""
    before = await stage.start(replicas=2)
    lost = before[0]["metadata"]["name"]
    await stage.set_labels(lost, {"app": "elsewhere"})

    async def is_released() -> None:
        assert "ownerReferences" not in (await stage.pod(lost))["metadata"]

    await stage.until(is_released)
    after = await stage.complete()
    assert before[1]["metadata"]["name"] in names(after)
    assert uids([await stage.pod(lost)]) == {lost: before[0]["metadata"]["uid"]}
    spec = {"containers": [{"name": "main", "image": "nginx:1.25"}]}
    metadata = {"name": "stranger", "labels": {"app": "web"}}
    await stage.world.create({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

    async def keeps_to_itself() -> None:
        assert "ownerReferences" not in (await stage.pod("stranger"))["metadata"]
        assert names(await stage.pods()) == names(after)

    await stage.stays(keeps_to_itself)
    # Coming back does not lead to adoption either.
    await stage.set_labels(lost, {"app": "web"})
    await stage.stays(keeps_to_itself, seconds=stage.pace.calm / 4)


NOWHERE = {"nodeSelector": {"nobody": "here"}}


@scenario("IPU-110", "CS-65")
async def finished_pods_do_not_count_and_are_left_alone(stage: Stage) -> None:
    """Failed and Succeeded pods are replaced, not deleted (edge case 16)."""
    await stage.create(replicas=2, pod=NOWHERE)
    await stage.reaches(replicas=2)
    for phase in ("Failed", "Succeeded"):
        pods = names(await stage.pods())
        running = [name for name in pods if (await stage.pod(name))["status"]["phase"] == "Pending"]
        lost = running[0]
        await stage.world.patch(PODS, lost, {"status": {"phase": phase}}, subresource="status")

        async def is_replaced(pods: list[str] = pods, lost: str = lost) -> None:
            now = names(await stage.pods())
            assert lost in now
            assert len(now) == len(pods) + 1

        await stage.until(is_replaced)
        await stage.reaches(replicas=2)
    assert len(await stage.pods()) == 4


@scenario("CS-65", "CS-120", smoke=True)
async def deleting_a_cloneset_deletes_all_it_owns(stage: Stage) -> None:
    """Pods, claims and revisions go with the CloneSet (edge case 21)."""
    await stage.start(replicas=2, claims=("data",))
    await stage.world.delete(CLONE_SETS, "web")

    async def nothing_is_left() -> None:
        assert await stage.pods() == []
        assert await stage.claims() == []
        assert await stage.revisions() == []

    await stage.until(nothing_is_left)


@scenario("CS-60", "CS-65")
async def an_orphaning_delete_leaves_the_pods(stage: Stage) -> None:
    """`kubectl delete --cascade=orphan`: pods live on without an owner, and a new CloneSet does not take them over."""
    before = await stage.start(replicas=2)
    await stage.world.delete(CLONE_SETS, "web", propagation="Orphan")
    await stage.is_gone(CLONE_SETS, "web")

    async def are_orphans() -> None:
        found = await stage.world.pods("app=web")
        assert uids(found) == uids(before)
        assert all("ownerReferences" not in pod["metadata"] for pod in found)

    await stage.until(are_orphans)
    await stage.start(replicas=1)
    assert set(uids(await stage.world.pods("app=web"))) >= set(uids(before))


@scenario("CS-150", "CS-85", "CS-25", gates={"CloneSetShortHash": False})
async def a_long_name_cannot_make_pods_without_short_hashes(stage: Stage) -> None:
    """The revision name does not fit into a label: the failure is told as event and condition."""
    name = "w" * 60
    await stage.create(name)
    await stage.has_event("FailedCreate", "failed to create pod: ", name=name, type="Warning")

    async def is_told() -> None:
        condition = await stage.condition("FailedScale", name)
        assert condition["status"] == "True"
        assert "must be no more than 63" in condition["message"]

    await stage.until(is_told)


@scenario("CS-150", "IPU-21", gates={"CloneSetShortHash": True})
async def a_long_name_makes_pods_with_short_hashes(stage: Stage) -> None:
    """With short hashes in the label the name may be longer."""
    name = "w" * 57
    [pod] = await stage.start(name, replicas=1)
    revision = (await stage.status(name))["updateRevision"]
    assert pod["metadata"]["labels"][keys.REVISION_LABEL] == hash_in(revision)


@scenario("CS-87")
async def a_pod_deleted_by_hand_is_replaced(stage: Stage) -> None:
    """Whatever hooks and budgets say, a pod that somebody deletes is gone, and another one is made."""
    before = names(await stage.start(replicas=2, rolling={"maxUnavailable": 1}))
    for name in before:
        await stage.delete_pod(name)
    for name in before:
        await stage.is_gone(PODS, name)
    assert not set(before) & set(names(await stage.complete()))


@scenario("CS-42", "CS-31", gates={"DefaultHostNetworkHostPortsInPodTemplates": False})
async def host_ports_follow_the_container_port_on_pods_only(stage: Stage) -> None:
    """hostNetwork with containerPort alone is accepted; pods show the hostPort, the template not (edge case 24)."""
    assert await _host_port(stage) is None


@scenario("CS-42", "CS-31", gates={"DefaultHostNetworkHostPortsInPodTemplates": True})
async def host_ports_follow_the_container_port_in_templates(stage: Stage) -> None:
    """With the gate the template shows it as well."""
    assert await _host_port(stage) == 8080


async def _host_port(stage: Stage) -> object:
    containers = [{"name": "main", "image": "nginx:1.25", "ports": [{"containerPort": 8080}]}]
    [pod] = await stage.start(replicas=1, containers=containers, pod={"hostNetwork": True})
    assert pod["spec"]["containers"][0]["ports"][0]["hostPort"] == 8080
    cloneset = await stage.world.cloneset()
    return cloneset["spec"]["template"]["spec"]["containers"][0]["ports"][0].get("hostPort")


@scenario("CS-44", "CS-52")
async def numbers_that_are_no_numbers_are_refused(stage: Stage) -> None:
    """maxUnavailable `"5"` is refused at creation and at change, in both versions (edge case 23); so is a new
    selector."""
    for version in (ALPHA, "v1beta1"):
        bad = stage.manifest("bad", version=version, rolling={"maxUnavailable": "5"})
        await stage.is_refused(stage.world.create(bad), "maxUnavailable")
    await stage.start(replicas=1)
    await stage.is_refused(stage.roll({"maxUnavailable": "5"}), "maxUnavailable")
    flat = {"updateStrategy": {"maxUnavailable": "5"}}
    await stage.is_refused(stage.change(flat, version=ALPHA), "maxUnavailable")
    selector = {"selector": {"matchLabels": {"app": "web", "more": "labels"}}}
    await stage.is_refused(stage.change(selector), "spec")


@scenario("CS-69", "IPU-143")
async def a_settled_cloneset_is_left_alone(stage: Stage) -> None:
    """Once everything is done nothing is written any more: versions of CloneSet and pods stay."""
    await stage.start(replicas=3, progressDeadlineSeconds=600, minReadySeconds=1)
    await stage.world.sleep(stage.pace.calm / 10)

    def versions(objects: list[Json]) -> list[str]:
        return [item["metadata"]["resourceVersion"] for item in objects]

    before = versions([*(await stage.pods()), await stage.world.cloneset(), *(await stage.revisions())])

    async def nothing_is_written() -> None:
        now = versions([*(await stage.pods()), await stage.world.cloneset(), *(await stage.revisions())])
        assert now == before

    await stage.stays(nothing_is_written)


@scenario("CS-28", "CS-26")
async def a_status_that_others_spoil_is_put_right(stage: Stage) -> None:
    """The status says what is there, also after somebody wrote into it."""
    await stage.start(replicas=1)
    body = {"status": {"readyReplicas": 7, "labelSelector": "app=other"}}
    await stage.world.patch(CLONE_SETS, "web", body, subresource="status", patch_type=PatchType.MERGE)
    status = await stage.reaches(readyReplicas=1)
    assert status["labelSelector"] == "app=web"
