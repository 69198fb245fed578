"""What becomes of a workload when nodes are lost: played by its own decisions, told with budgets and room."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import pytest

from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.apps.persistentpodstate import PERSISTENT_POD_STATES, PersistentPodState
from kruise.api.apps.statefulset import STATEFUL_SETS as ADVANCED
from kruise.api.apps.uniteddeployment import UNITED_DEPLOYMENTS
from kruise.api.meta import Key, OwnerReference
from kruise.api.native.nodes import NODES, Node
from kruise.api.native.pod import PODS, Pod, Volume
from kruise.api.native.policy import PodDisruptionBudget
from kruise.api.native.storage import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    STORAGE_CLASSES,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from kruise.api.resource import Resource
from kruise.foresight import needed
from kruise.foresight.foreseeing import foresee
from kruise.foresight.playing import Bounds
from kruise.foresight.removal import telling
from kruise.foresight.removal.guards import Guards
from kruise.foresight.removal.losing import NOTICED, TOLERATED, Around, Loss, lose, lose_as_they_are
from kruise.foresight.removal.returning import returning_needs
from kruise.foresight.staging import stage
from kruise.kinds import features
from kruise.local.workloads.controllers import CHILDREN
from kruise.machinery.codec import convert, evolve
from kruise.machinery.selectors import parse
from tests.foresight.scenes import KEY, LATER, NOW, Scene, manifest, node, options
from tests.spread.uniteddeployment.test_forecast import manifest as united

GIVEN_UP = NOTICED + TOLERATED
DECIDING = (CHILDREN, *features())
"""About children of Kubernetes' kinds, too."""


def zoned(number: int, zone: str, **more: Any) -> Node:
    return node(number, labels={"zone": zone}, **more)


THREE = (zoned(1, "a"), zoned(2, "b"), zoned(3, "c"))


def budget(name: str, *, healthy: int, needed: int) -> PodDisruptionBudget:
    status = {"currentHealthy": healthy, "desiredHealthy": needed, "expectedPods": healthy}
    body = {
        "metadata": {"name": name, "namespace": "demo"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
        "status": status,
    }
    return convert(body, PodDisruptionBudget)


def around(nodes: Sequence[Node], selector: str = "zone=a", **more: Any) -> Around:
    budgets = more.pop("budgets", ())
    values: dict[str, Any] = {
        "target": "cloneset/web",
        "key": KEY,
        "selector": parse(selector),
        "nodes": nodes,
        "elsewhere": (),
        "guards": Guards((), budgets, gates={}, now=NOW),
        "now": NOW,
        **more,
    }
    return Around(**values)


def settled(document: Any, nodes: Sequence[Node]) -> Scene:
    empty = Scene(document, {NODES: nodes}, NOW - LATER, options())
    return dataclasses.replace(empty.after(document), now=NOW)


def lost(scene: Scene, cluster: Around) -> Loss:
    return lose(cluster, CLONE_SETS, scene.document, scene.objects, features=features(), settings=scene.options)


def as_they_are(cluster: Around, pods: Sequence[Pod], objects: Any = MappingProxyType({})) -> Loss:
    return lose_as_they_are(cluster, pods, {}, objects, features=features(), settings=options())


def test_pods_come_again_where_there_is_room() -> None:
    scene = settled(manifest(6), THREE)
    found = lost(scene, around(THREE))
    assert (found.nodes, found.nodes_left) == (("node-1",), 2)
    assert (found.before, found.at_once, found.after) == (6, 4, 6)
    assert [(one.node, one.given_up) for one in found.lost] == [("node-1", GIVEN_UP)] * 2
    assert sorted(one.node for one in found.coming) == ["node-2", "node-3"]
    assert found.seconds is not None
    assert GIVEN_UP < found.seconds < GIVEN_UP + 10
    assert [count for _, count in found.serving] == [4, 5, 6]
    assert not found.homeless


def test_who_does_not_fit_is_told_in_the_scheduler_s_words() -> None:
    nodes = tuple(zoned(number, zone, pods=2) for number, zone in ((1, "a"), (2, "b"), (3, "c")))
    scene = settled(manifest(5), nodes)
    [gone] = {pod.spec.node_name for pod in scene.pods if pod.spec.node_name == "node-1"}
    assert gone
    found = lost(scene, around(nodes))
    assert not found.recovers
    assert found.after == 4
    [homeless] = found.homeless
    assert "Too many pods" in homeless.why
    text = "\n".join(telling.loss_lines(found))
    assert "Result:      does not recover: 1 pod finds no node" in text
    assert "1 pod (" in text


def test_budgets_that_nobody_asks_are_broken_until_pods_are_back() -> None:
    scene = settled(manifest(6), THREE)
    kept, broken = budget("kept", healthy=6, needed=4), budget("web", healthy=6, needed=5)
    found = lost(scene, around(THREE, budgets=(kept, broken)))
    [one] = found.budgets
    assert (one.breach.name, one.breach.left, one.breach.needed) == ("poddisruptionbudget/web", 4, 5)
    assert one.until is not None
    assert one.until > GIVEN_UP
    stays = lost(scene, around(THREE, "zone", budgets=(broken,)))
    assert [one.until for one in stays.budgets] == [None]
    elsewhere = [evolve(pod, metadata=evolve(pod.metadata, uid=f"{pod.metadata.uid}-other")) for pod in scene.pods]
    both = lost(scene, around(THREE, budgets=(budget("web", healthy=12, needed=9),), elsewhere=elsewhere))
    assert [one.breach.left for one in both.budgets] == [8]  # what others lose counts, where it is over both
    foreign = [evolve(pod, metadata=evolve(pod.metadata, labels={"app": "db"})) for pod in elsewhere]
    other = evolve(broken, spec=convert({"selector": {"matchLabels": {"app": "db"}}}, type(broken.spec)))
    assert not lost(scene, around(THREE, budgets=(other,), elsewhere=foreign)).budgets
    assert (stays.at_once, stays.nodes_left) == (0, 0)


def test_pods_say_how_long_they_wait_for_their_node() -> None:
    document = manifest(2)
    toleration = {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 10,
    }
    document["spec"]["template"]["spec"]["tolerations"] = [toleration]
    scene = settled(document, THREE)
    found = lost(scene, around(THREE, f"zone={zone_of(scene.pods[0])}"))
    assert {one.given_up for one in found.lost} == {NOTICED + 10}


def zone_of(pod: Pod) -> str:
    return next(one.metadata.labels["zone"] for one in THREE if one.metadata.name == pod.spec.node_name)


def test_a_loss_of_nodes_that_nobody_needs() -> None:
    scene = settled(manifest(2), THREE)
    spare = (set("abc") - {zone_of(pod) for pod in scene.pods}).pop()
    found = lost(scene, around(THREE, f"zone={spare}"))
    assert (found.before, found.at_once, found.seconds, found.lost) == (2, 2, 0.0, ())
    assert "nothing happens" in telling.loss_lines(found)[2]
    assert telling.as_data(found)["recovers"] is True


def played(subject: Resource[Any], key: Key, document: Any, nodes: Sequence[Node]) -> dict[Resource[Any], Any]:
    """Everything that is there when a new object has settled."""
    scene = stage(
        subject,
        key,
        document,
        {NODES: nodes},
        features=DECIDING,
        settings=options(),
        now=NOW - LATER,
        seed=0,
        answer_hooks=True,
        server_version=None,
        bounds=Bounds(),
    )
    scene.playing.play()
    sources = [source for one in DECIDING for spec in one.controllers(options()) for source in spec.all_sources]
    return {source.resource: scene.world.store(source.resource).list() for source in sources}


@pytest.mark.parametrize("member", ["cloneSetTemplate", "deploymentTemplate"])
def test_subsets_move_on_from_a_zone_that_is_lost(member: str) -> None:
    """UD-61, UD-64: pods that find no node in their subset go to the next one, as they will."""
    subsets = [
        {
            "name": zone,
            "nodeSelectorTerm": {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]},
            **({"maxReplicas": 2} if zone == "a" else {}),
        }
        for zone in "ab"
    ]
    adaptive = {"rescheduleCriticalSeconds": 10, "unschedulableDuration": 600}
    schedule = {"type": "Adaptive", "adaptive": adaptive}
    given = united()["spec"]["template"]["cloneSetTemplate"]
    template = {member: {**given, "metadata": {"labels": {"app": "shop"}}}}
    body = united(replicas=4, template=template, topology={"subsets": subsets, "scheduleStrategy": schedule})
    key = Key("default", "shop")
    objects = played(UNITED_DEPLOYMENTS, key, body, THREE)
    assert Counter(pod.spec.node_name for pod in objects[PODS]) == {"node-1": 2, "node-2": 2}
    found = lose(around(THREE, key=key), UNITED_DEPLOYMENTS, body, objects, features=DECIDING, settings=options())
    assert (found.at_once, found.after) == (2, 4)
    assert found.seconds is not None
    assert found.seconds > GIVEN_UP + 10
    assert [one.node for one in found.coming] == ["node-2", "node-2"]
    assert [part.split(" (")[0] for part in found.parts] == ["a: 0 pods", "b: 4 pods"]


def test_pods_of_a_stateful_set_come_one_by_one() -> None:
    """ST-66: under OrderedReady a pod waits for those before it."""
    document = {**manifest(3), "kind": "StatefulSet"}
    document["spec"]["updateStrategy"] = {"type": "RollingUpdate"}
    objects = played(ADVANCED, KEY, document, THREE)
    found = lose(around(THREE, "zone in (a, b)"), ADVANCED, document, objects, features=features(), settings=options())
    assert sorted(one.pod for one in found.coming) == sorted(one.pod for one in found.lost)
    assert {one.node for one in found.coming} == {"node-3"}
    first, second = sorted(one.serves or 0.0 for one in found.coming)
    assert second - first >= 3  # its start


def tied(pods: Sequence[Pod]) -> dict[Resource[Any], Any]:
    """A claim `data-POD` for each pod, bound to a volume `disk-POD` in the zone of its node."""
    claims, volumes = [], []
    for pod in pods:
        name = pod.metadata.name
        metadata = {"name": f"data-{name}", "namespace": pod.metadata.namespace, "uid": f"uid-{name}"}
        bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        spec = {
            "volumeName": f"disk-{name}",
            "storageClassName": "disks",
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        }
        status = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
        claim = {"metadata": {**metadata, **bound}, "spec": spec, "status": status}
        claims.append(convert(claim, PersistentVolumeClaim))
        zone = [{"key": "zone", "operator": "In", "values": [zone_of(pod)]}]
        affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": zone}]}}
        volume = {"capacity": {"storage": "1Gi"}, "claimRef": metadata, "nodeAffinity": affinity}
        body = {"metadata": {"name": f"disk-{name}"}, "spec": volume, "status": {"phase": "Bound"}}
        volumes.append(convert(body, PersistentVolume))
    disks = {"metadata": {"name": "disks"}, "provisioner": "example.com/disks"}
    return {
        PERSISTENT_VOLUME_CLAIMS: claims,
        PERSISTENT_VOLUMES: volumes,
        STORAGE_CLASSES: [convert(disks, StorageClass)],
    }


def with_claims(replicas: int) -> Any:
    document = {**manifest(replicas), "kind": "StatefulSet"}
    spec = document["spec"]
    spec["updateStrategy"] = {"type": "RollingUpdate"}
    claim = {"storageClassName": "disks", "accessModes": ["ReadWriteOnce"]}
    claim |= {"resources": {"requests": {"storage": "1Gi"}}}  # type: ignore[dict-item]
    spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim}]
    spec["template"]["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    return document


def test_pods_whose_volumes_are_in_a_lost_zone_go_nowhere() -> None:
    document = with_claims(3)
    document["spec"]["podManagementPolicy"] = "Parallel"
    objects = played(ADVANCED, KEY, document, THREE)
    [first] = [pod for pod in objects[PODS] if zone_of(pod) == "a"]

    def asked(known: Any) -> Loss:
        return lose(around(THREE), ADVANCED, document, known, features=features(), settings=options())

    unread = {resource: items for resource, items in objects.items() if resource != PERSISTENT_VOLUMES}
    assert asked(unread).recovers, "where volumes were not read, nobody is tied to them"
    found = asked({**objects, **tied(objects[PODS])})
    assert (found.recovers, found.after) == (False, 2)
    [homeless] = found.homeless
    name = first.metadata.name
    assert homeless.why == "0/2 nodes are available: 2 node(s) didn't match PersistentVolume's node affinity."
    assert [(tie.claim, tie.volume) for tie in homeless.ties] == [(f"data-{name}", f"disk-{name}")]
    told = f"  {name}: its claim data-{name} is bound to volume disk-{name}, which no node that is left can use"
    assert told in telling.loss_lines(found)
    [one] = [one for one in telling.as_data(found)["coming"] if not one["node"]]
    assert one["ties"] == ({"claim": f"data-{name}", "volume": f"disk-{name}"},)


def test_a_volume_within_reach_is_no_tie() -> None:
    """The other node of the zone is full, which is for somebody else to change."""
    document = with_claims(3)
    document["spec"]["podManagementPolicy"] = "Parallel"
    objects = played(ADVANCED, KEY, document, THREE)
    cluster = around((*THREE, zoned(4, "a", pods=0)), "zone=a,!spare")
    spare = evolve(cluster.nodes[3], metadata=evolve(cluster.nodes[3].metadata, labels={"zone": "a", "spare": "yes"}))
    cluster = dataclasses.replace(cluster, nodes=(*THREE, spare))
    known = {**objects, **tied(objects[PODS])}
    [homeless] = lose(cluster, ADVANCED, document, known, features=features(), settings=options()).homeless
    assert "1 Too many pods" in homeless.why
    assert homeless.ties == ()


def test_volumes_hold_pods_of_others_as_well() -> None:
    owner = convert({"kind": "StatefulSet", "name": "web", "uid": "sts", "controller": True}, OwnerReference)
    pods = []
    for pod in settled(manifest(3), THREE).pods:
        mounted = {"name": "data", "persistentVolumeClaim": {"claimName": f"data-{pod.metadata.name}"}}
        spec = evolve(pod.spec, volumes=(convert(mounted, Volume),))
        pods.append(evolve(pod, spec=spec, metadata=evolve(pod.metadata, owner_references=(owner,))))
    cluster = around(THREE, elsewhere=pods)
    [homeless] = as_they_are(cluster, pods, tied(pods)).homeless
    assert [tie.claim for tie in homeless.ties] == [f"data-{homeless.pod}"]
    assert as_they_are(cluster, pods).recovers


def remembered(pods: Sequence[Pod], **more: Any) -> PersistentPodState:
    """The zones of pods of a StatefulSet of Kubernetes."""
    places = {pod.metadata.name: {"nodeTopologyLabels": {"zone": zone_of(pod)}} for pod in pods}
    target = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}
    body = {
        "metadata": {"name": "web", "namespace": "demo", "uid": "pps"},
        "spec": {"targetRef": target, "requiredPersistentTopology": {"keys": ["zone"]}, **more},
        "status": {"observedGeneration": 1, "podStates": places},
    }
    return convert(body, PersistentPodState)


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_pods_of_others_wait_for_the_zone_that_is_remembered(kind: str) -> None:
    """PPS-30: the first pods came without any tie; those that are made again under their names have one."""
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "owner", "controller": True}
    owner = convert(reference, OwnerReference)
    pods = [
        evolve(pod, metadata=evolve(pod.metadata, owner_references=(owner,)))
        for pod in settled(manifest(3), THREE).pods
    ]
    cluster = around(THREE, elsewhere=pods)
    found = as_they_are(cluster, pods, {PERSISTENT_POD_STATES: (remembered(pods),)})
    assert found.recovers is (kind != "StatefulSet")
    assert as_they_are(cluster, pods).recovers, "where nobody has read it, nobody is tied"
    if not found.recovers:
        [homeless] = found.homeless
        [gone] = found.lost
        assert homeless.pod == gone.pod
        assert "2 node(s) didn't match Pod's node affinity/selector" in homeless.why
        spare = (*THREE, evolve(zoned(4, "a"), metadata=evolve(zoned(4, "a").metadata, labels={"zone": "a", "x": "y"})))
        elsewhere = as_they_are(
            around(spare, "zone=a,!x", elsewhere=pods), pods, {PERSISTENT_POD_STATES: (remembered(pods),)}
        )
        assert [one.node for one in elsewhere.coming] == ["node-4"]


def test_what_brings_pods_back_is_read_where_pods_keep_their_names() -> None:
    def needs(kind: str) -> set[Resource[Any]]:
        owner = OwnerReference(api_version="apps/v1", kind=kind, name="web", uid="owner", controller=True)
        pods = [
            evolve(pod, metadata=evolve(pod.metadata, owner_references=(owner,)))
            for pod in settled(manifest(1), THREE).pods
        ]
        found = returning_needs("demo", pods, features=features(), settings=options())
        assert all(need.optional and need.shapes_pods and need.namespace == "demo" for need in found)
        return {need.resource for need in found}

    assert needs("StatefulSet") == {PERSISTENT_POD_STATES}
    assert needs("ReplicaSet") == set()


def test_a_rollout_knows_where_the_volumes_are() -> None:
    """The node of the zone is cordoned: a pod that is made again there waits for it."""
    document = with_claims(3)
    objects = played(ADVANCED, KEY, document, THREE)
    cordoned = [evolve(one, spec=evolve(one.spec, unschedulable=one.metadata.labels["zone"] == "a")) for one in THREE]
    document["spec"]["template"]["spec"]["containers"][0]["image"] = "nginx:2"
    cluster = {**objects, **tied(objects[PODS]), NODES: cordoned}
    found = foresee(ADVANCED, KEY, document, cluster, features=features(), settings=options(), now=NOW)
    words = "2 node(s) didn't match PersistentVolume's node affinity"
    assert any(words in stop.message for stop in found.stops), found.stops


def test_volumes_are_read_where_pods_have_claims() -> None:
    for document, is_read in ((with_claims(1), True), ({**manifest(1), "kind": "StatefulSet"}, False)):
        needs = {need.resource: need for need in needed(ADVANCED, document, features=features(), settings=options())}
        assert (PERSISTENT_VOLUMES in needs) is is_read
        assert needs[PERSISTENT_VOLUME_CLAIMS].selector == ("" if is_read else "app=web")
        assert not needs[PERSISTENT_VOLUME_CLAIMS].places_pods
        assert not is_read or needs[PERSISTENT_VOLUMES].places_pods


def test_what_others_decide_about_comes_again_as_it_was() -> None:
    owner = convert({"kind": "ReplicaSet", "name": "web-1", "uid": "rs", "controller": True}, OwnerReference)
    scene = settled(manifest(4), THREE)
    pods = [evolve(pod, metadata=evolve(pod.metadata, owner_references=(owner,))) for pod in scene.pods]
    here = sum(pod.spec.node_name == "node-1" for pod in pods)
    found = as_they_are(around(THREE, elsewhere=pods), pods)
    assert (found.before, found.at_once, found.after) == (4, 4 - here, 4)
    assert len(found.coming) == here
    assert all(one.node in ("node-2", "node-3") and one.pod.startswith("web-1-") for one in found.coming)
    assert "Kubernetes itself decides" in found.assumptions[-1]
