"""Rollouts, scaling, deletion and claims of a CloneSet on three real nodes."""

from __future__ import annotations

import itertools
import time
from collections import Counter

import pytest

from tests.support.nodescene import (
    CACHE,
    DATA,
    STATE,
    Json,
    Scene,
    assert_all,
    cloneset,
    condition,
    container,
    identity,
    image_of,
    is_ready,
    status_of,
    waiting_reason,
)

pytestmark = [pytest.mark.nodes, pytest.mark.spread]


# Rollouts


@pytest.mark.parametrize("remedy", ["nginx:1.26", "nginx:1.25"])
def test_an_image_that_cannot_be_pulled_stops_the_rollout(scene: Scene, remedy: str) -> None:
    """It breaks as many pods as may be unavailable and no more; a mended template heals those first (CS-102, IPU-38).

    Going back to the old image leaves the pods that never changed alone (IPU-17).
    """
    scene.create(cloneset(replicas=4, rolling={"maxUnavailable": 2}))
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("nginx:no-such-tag")

    def broken() -> set[str]:
        names = {name for name, pod in scene.by_name().items() if "Image" in waiting_reason(pod)}
        assert len(names) == 2, scene.told()
        return names

    ill = scene.until(broken)
    status = scene.cloneset()["status"]
    time.sleep(4)
    assert scene.most_of(status["updateRevision"], mark) == 2
    assert scene.fewest_ready(mark) == 2
    assert broken() == ill
    for name, pod in scene.by_name().items():
        assert pod["metadata"]["uid"] == before[name]["metadata"]["uid"]
        if name not in ill:
            assert "nginx 1.25" in scene.page(pod)

    mended = scene.log.mark()
    scene.set_image(remedy)
    after = scene.settled(remedy)
    assert {name: identity(pod) for name, pod in after.items()} == {name: identity(pod) for name, pod in before.items()}
    assert scene.fewest_ready(mended) == 2
    revision = scene.cloneset()["status"]["updateRevision"]
    if remedy == "nginx:1.26":
        assert set(scene.order_of_updates(revision, since=mended)[:2]) == ill
    else:
        assert revision == status["currentRevision"]
        for name in after.keys() - ill:
            assert status_of(after[name]) == status_of(before[name])


def test_waves_by_partition(scene: Scene) -> None:
    """Each lower partition lets so many more pods go; the pages served tell the versions (CS-70, CS-79)."""
    scene.create(cloneset(replicas=4, rolling={"partition": 3, "maxUnavailable": "100%"}))
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    for partition in (3, "50%", 0):
        if partition != 3:
            scene.patch({"updateStrategy": {"rollingUpdate": {"partition": partition}}})
        wanted = {3: 1, "50%": 2, 0: 4}[partition]

        def arrived(wanted: int = wanted) -> None:
            status = scene.cloneset()["status"]
            assert status["expectedUpdatedReplicas"] == wanted
            assert status.get("updatedAvailableReplicas") == wanted
            assert status["availableReplicas"] == 4

        scene.until(arrived)
        pages = Counter("nginx 1.26" in scene.page(pod) for pod in scene.pods())
        assert pages == Counter({True: wanted, False: 4 - wanted})
        assert scene.most_of(scene.cloneset()["status"]["updateRevision"], mark) == wanted
    after = scene.settled("nginx:1.26")
    assert {name: identity(pod) for name, pod in after.items()} == {name: identity(pod) for name, pod in before.items()}
    assert {status_of(pod)["restartCount"] for pod in after.values()} == {1}


def test_new_pods_first_with_max_surge(scene: Scene) -> None:
    """With maxUnavailable 0 never a pod less than asked for, never more than one too many (CS-74, CS-106)."""
    scene.create(cloneset(policy="ReCreate", rolling={"maxSurge": 1, "maxUnavailable": 0}))
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    after = scene.settled("nginx:1.26")
    assert not after.keys() & before.keys()
    assert scene.fewest_ready(mark) == 3
    assert scene.most_pods(mark) == 4


def test_surge_with_in_place_update(scene: Scene) -> None:
    """One pod more for the time of the rollout; the others change in place (CS-106)."""
    scene.create(cloneset(rolling={"maxSurge": 1, "maxUnavailable": 0}))
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    after = scene.settled("nginx:1.26")
    assert len(after.keys() & before.keys()) >= 2
    assert scene.fewest_ready(mark) == 3
    assert scene.most_pods(mark) == 4


def test_what_cannot_be_done_in_place_makes_new_pods_and_claims(scene: Scene) -> None:
    """An environment change: new pods, new claims; the old claims and their volumes go (IPU-32, CS-103, CS-104)."""
    mounts = [{"name": "data", "mountPath": "/data"}]
    scene.create(cloneset(replicas=2, containers=[container(volumeMounts=mounts)], volumeClaimTemplates=[DATA]))
    before, claims = scene.settled(), scene.claims()
    mark = scene.log.mark()
    for name in before:
        scene.run(name, "echo old > /data/word")
    changed = container(volumeMounts=mounts, env=[{"name": "COLOUR", "value": "blue"}])
    scene.patch({"template": {"spec": {"containers": [changed]}}})
    scene.until(lambda: assert_all(scene.pods(), lambda pod: bool(pod["spec"]["containers"][0].get("env"))))
    after = scene.settled()
    assert not after.keys() & before.keys()
    assert scene.fewest_ready(mark) >= 1
    for name in after:
        assert scene.run(name, "echo $COLOUR; ls /data") == "blue\n"
    assert scene.claims().keys() == {f"data-{name}" for name in after}
    old = {each["spec"]["volumeName"] for each in claims.values()}

    def removed() -> None:
        assert not old & {each["metadata"]["name"] for each in scene.items("/api/v1/persistentvolumes")}

    scene.until(removed)
    assert len(scene.events("SuccessfulUpdatePodReCreate")) == 2


def test_probes_and_hooks_of_containers_set_the_pace(scene: Scene) -> None:
    """A new container counts when its postStart has run and its readiness probe succeeds; then the next (IPU-111)."""
    script = "trap 'exit 0' TERM\nsleep 2 & wait $!\ntouch /ready\nwhile :; do sleep 600 & wait $!; done\n"
    for version in ("v1", "v2"):
        scene.cluster.push_image(f"slow:{version}", script=script, contents={"/version": f"{version}\n"})
    slow = container(
        image="slow:v1",
        readinessProbe={"exec": {"command": ["cat", "/ready"]}, "periodSeconds": 1},
        lifecycle={"postStart": {"exec": {"command": ["sh", "-c", "cat /version >> /cache/starts"]}}},
        volumeMounts=[{"name": "cache", "mountPath": "/cache"}],
    )
    scene.create(cloneset(containers=[slow], pod={"volumes": [CACHE]}, minReadySeconds=1))
    before = scene.settled()
    mark = scene.log.mark()
    scene.set_image("slow:v2")
    after = scene.settled("slow:v2")
    assert scene.fewest_ready(mark) == 2
    for name, pod in after.items():
        assert identity(pod) == identity(before[name])
        assert scene.run(name, "cat /cache/starts") == "v1\nv2\n"
    starts = sorted(status_of(pod)["state"]["running"]["startedAt"] for pod in after.values())
    seconds = [time.mktime(time.strptime(each, "%Y-%m-%dT%H:%M:%SZ")) for each in starts]
    # Two seconds until it is ready, one more until it counts; times are whole seconds.
    assert all(later - earlier >= 2 for earlier, later in itertools.pairwise(seconds))


# Scaling, deleting, claims


def test_kubectl_scale(scene: Scene) -> None:
    """Up, down, and up in the middle of a rollout: the new pod is of the new revision (CS-3, CS-76)."""
    scene.create(cloneset(replicas=2))
    before = scene.settled()
    scene.kubectl("scale", "cloneset/web", "--replicas=4")
    four = scene.settled(replicas=4)
    assert before.keys() < four.keys()
    scene.kubectl("scale", "cloneset/web", "--replicas=2")
    two = scene.settled(replicas=2)
    assert two.keys() < four.keys()
    columns = scene.kubectl("get", "cloneset", "web").splitlines()[1].split()
    assert columns[:7] == ["web", "2", "2", "2", "2", "2", "2"]
    mark = scene.log.mark()
    scene.set_image("nginx:1.26")
    scene.until_change(lambda change: image_of(change.object) == "nginx:1.26", since=mark)
    scene.kubectl("scale", "cloneset/web", "--replicas=3")
    after = scene.settled("nginx:1.26", replicas=3)
    assert two.keys() < after.keys()
    assert [status_of(after[name])["restartCount"] for name in sorted(two)] == [1, 1]
    (new,) = after.keys() - two.keys()
    assert status_of(after[new])["restartCount"] == 0


def test_claims_follow_their_pods(scene: Scene) -> None:
    """v1alpha1 reuses claims: a pod deleted by hand comes back with name and data; scaled in, the claim goes, too.

    CS-120, CS-121, CS-86.
    """
    mounts = [{"name": "data", "mountPath": "/data"}]
    scene.create(
        cloneset(
            replicas=2,
            containers=[container(volumeMounts=mounts)],
            volumeClaimTemplates=[DATA],
            version="v1alpha1",
        )
    )
    before, claims = scene.settled(), scene.claims()
    assert claims.keys() == {f"data-{name}" for name in before}
    assert {each["status"]["phase"] for each in claims.values()} == {"Bound"}
    for name in before:
        scene.run(name, f"echo {name} > /data/word")
    lost = min(before)
    scene.kubectl("delete", "pod", lost)
    back = scene.until_pod(lost, is_ready)
    assert back["metadata"]["uid"] != before[lost]["metadata"]["uid"]
    assert scene.claims()[f"data-{lost}"]["metadata"]["uid"] == claims[f"data-{lost}"]["metadata"]["uid"]
    assert scene.run(lost, "cat /data/word") == f"{lost}\n"
    scene.settled()
    scene.kubectl("scale", "cloneset/web", "--replicas=1")
    (kept,) = scene.settled(replicas=1)

    def claimed() -> None:
        assert scene.claims().keys() == {f"data-{kept}"}

    scene.until(claimed)
    assert scene.run(kept, "cat /data/word") == f"{kept}\n"


def test_specified_pods_are_deleted(scene: Scene) -> None:
    """By label: replaced. By name together with fewer replicas: only that one goes. Others do not notice.

    CS-83, CS-87, IPU-130.
    """
    scene.create(cloneset())
    before = scene.settled()
    first, second, third = before
    scene.kubectl("label", "pod", first, "apps.kruise.io/specified-delete=true")

    def replaced() -> None:
        assert first not in scene.by_name()

    scene.until(replaced)
    replacement = scene.settled()
    assert {second, third} < replacement.keys()
    scene.patch({"replicas": 2, "scaleStrategy": {"podsToDelete": [second]}})
    after = scene.settled(replicas=2)
    assert after.keys() == replacement.keys() - {second}
    for name in after.keys() & before.keys():
        assert status_of(after[name]) == status_of(before[name])

    def emptied() -> None:
        assert not scene.cloneset()["spec"]["scaleStrategy"].get("podsToDelete")

    scene.until(emptied)


def test_a_hook_holds_the_deletion(scene: Scene) -> None:
    """The pod leaves the Service, its container runs on until the label is taken off (CS-86, IPU-82, IPU-100)."""
    scene.expose()
    hook = {"labelsHandler": {"example.com/busy": "true"}, "markPodNotReady": True}
    scene.create(cloneset(replicas=2, labels={"example.com/busy": "true"}, lifecycle={"preDelete": hook}))
    before = scene.settled()
    scene.until(lambda: assert_all(before.values(), lambda pod: scene.is_serving(pod["metadata"]["name"])))
    scene.kubectl("scale", "cloneset/web", "--replicas=1")

    def held() -> Json:
        pod = next((each for each in scene.pods() if each["metadata"]["labels"][STATE] == "PreparingDelete"), None)
        assert pod is not None, scene.told()
        assert condition(pod, "KruisePodReady") == "False"
        assert not is_ready(pod)
        return pod

    pod = scene.until(held)
    name = pod["metadata"]["name"]

    def out_of_service() -> None:
        assert not scene.is_serving(name)

    scene.until(out_of_service)
    time.sleep(2)
    assert "nginx 1.25" in scene.page(held())
    assert status_of(held()) == status_of(before[name])
    scene.kubectl("label", "pod", name, "example.com/busy-")
    after = scene.settled(replicas=1)
    assert after.keys() == before.keys() - {name}
