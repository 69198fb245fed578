"""A CloneSet `web` on real nodes: made, changed, waited for, looked into; and a log of all that happened to its pods.

scene.create(cloneset(replicas=3, rolling={"maxUnavailable": 1}))
before = scene.settled()
scene.set_image("nginx:1.26")
after = scene.settled("nginx:1.26")
"""

from __future__ import annotations

import http.client
import itertools
import json
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tests.support.kruisecluster import KruiseCluster
from tests.support.realcluster import ClusterError
from tests.support.realnodes import RealNodes
from tests.support.watchlog import Change, WatchLog

Json = dict[str, Any]
T = TypeVar("T")

REVISION = "controller-revision-hash"
STATE = "lifecycle.apps.kruise.io/state"
UPDATE_STATE = "apps.kruise.io/inplace-update-state"
UPDATE_GRACE = "apps.kruise.io/inplace-update-grace"
SLICES = "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices"

_TICK = """\
trap 'exit 0' TERM
echo start >> /cache/starts
while :; do date +%s >> /cache/ticks; sleep 1 & wait $!; done
"""
# Counts seconds in a file and its own starts in another. A gap or a second start would show.
TICKER: Json = {
    "name": "ticker",
    "image": "busybox:1.36",
    "command": ["sh", "-c", _TICK],
    "volumeMounts": [{"name": "cache", "mountPath": "/cache"}],
}
CACHE: Json = {"name": "cache", "emptyDir": {}}
DATA: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
# One pod on each of three nodes.
SPREAD: Json = {
    "maxSkew": 1,
    "topologyKey": "kubernetes.io/hostname",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def container(name: str = "main", image: str = "nginx:1.25", **more: Any) -> Json:
    return {"name": name, "image": image, **more}


def cloneset(
    *,
    replicas: int = 3,
    containers: Sequence[Json] = (),
    policy: str = "InPlaceIfPossible",
    rolling: Mapping[str, Any] | None = None,
    labels: Mapping[str, str] | None = None,
    pod: Mapping[str, Any] | None = None,
    version: str = "v1beta1",
    **spec: Any,
) -> Json:
    """`rolling` has fields of the rolling update in either version, `pod` further fields of the pod's spec."""
    strategy = {"maxUnavailable": 1, **(rolling or {})}
    nested = {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": policy, **strategy}}
    return {
        "apiVersion": f"apps.kruise.io/{version}",
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", **(labels or {})}},
                "spec": {
                    "containers": list(containers) or [container()],
                    "terminationGracePeriodSeconds": 5,
                    **(pod or {}),
                },
            },
            "updateStrategy": nested if version == "v1beta1" else {"type": policy, **strategy},
            **spec,
        },
    }


# What a pod says of itself


def condition(found: Json, kind: str) -> str:
    """The status of a condition, or an empty string."""
    return next((each["status"] for each in found["status"].get("conditions", []) if each["type"] == kind), "")


def is_ready(pod: Json) -> bool:
    return condition(pod, "Ready") == "True" and "deletionTimestamp" not in pod["metadata"]


def status_of(pod: Json, name: str = "main") -> Json:
    """A container's status; empty before there is one."""
    return next((each for each in pod["status"].get("containerStatuses", []) if each["name"] == name), {})


def image_of(pod: Json, name: str = "main") -> str:
    return next(str(each["image"]) for each in pod["spec"]["containers"] if each["name"] == name)


def waiting_reason(pod: Json, name: str = "main") -> str:
    return str(status_of(pod, name).get("state", {}).get("waiting", {}).get("reason", ""))


def revision_of(pod: Json) -> str:
    return str(pod["metadata"]["labels"].get(REVISION, ""))


def identity(pod: Json) -> tuple[str, str, str]:
    """What stays as long as the pod is the same one."""
    return pod["metadata"]["uid"], pod["status"]["podIP"], pod["spec"]["nodeName"]


class Scene:
    """Waits end as soon as they can; `within` is what a step may take on a busy machine."""

    def __init__(self, kruise: KruiseCluster, cluster: RealNodes, namespace: str, log: WatchLog) -> None:
        self.kruise = kruise
        self.cluster = cluster
        self.namespace = namespace
        self.log = log

    # Writing

    def create(self, manifest: Json) -> None:
        group = manifest["apiVersion"]
        self.cluster.request("POST", f"/apis/{group}/namespaces/{self.namespace}/clonesets", manifest).ok()

    def patch(self, spec: Json) -> None:
        """A merge patch of the CloneSet's spec."""
        self.cluster.request("PATCH", self._cloneset, {"spec": spec}).ok()

    def set_images(self, images: Mapping[int, str]) -> None:
        """New images by the containers' positions."""
        path = "/spec/template/spec/containers"
        operations = [{"op": "replace", "path": f"{path}/{at}/image", "value": image} for at, image in images.items()]
        self.kubectl("patch", "cloneset", "web", "--type=json", "-p", json.dumps(operations))

    def set_image(self, image: str) -> None:
        self.set_images({0: image})

    def expose(self) -> str:
        """Makes a Service in front of the pods; its address."""
        body = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}}
        made = self.cluster.request("POST", f"/api/v1/namespaces/{self.namespace}/services", body).ok()
        return f"http://{made['spec']['clusterIP']}/"

    def kubectl(self, *arguments: str) -> str:
        return self.cluster.kubectl(f"--namespace={self.namespace}", *arguments)

    def run(self, pod: str, command: str, name: str = "main") -> str:
        """Runs a shell command in a container."""
        return self.kubectl("exec", pod, f"--container={name}", "--", "sh", "-c", command)

    # Reading

    @property
    def _cloneset(self) -> str:
        return f"/apis/apps.kruise.io/v1beta1/namespaces/{self.namespace}/clonesets/web"

    def cloneset(self) -> Json:
        found: Json = self.cluster.request("GET", self._cloneset).ok()
        return found

    def items(self, path: str) -> list[Json]:
        items: list[Json] = self.cluster.request("GET", f"{path.format(self.namespace)}").ok()["items"]
        return items

    def pods(self) -> list[Json]:
        """Those that are not on their way out, by name."""
        found = self.items("/api/v1/namespaces/{}/pods?labelSelector=app%3Dweb")
        return sorted(
            (pod for pod in found if "deletionTimestamp" not in pod["metadata"]),
            key=lambda pod: pod["metadata"]["name"],
        )

    def by_name(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.pods()}

    def claims(self) -> dict[str, Json]:
        found = self.items("/api/v1/namespaces/{}/persistentvolumeclaims")
        return {each["metadata"]["name"]: each for each in found if "deletionTimestamp" not in each["metadata"]}

    def events(self, reason: str) -> list[str]:
        """The messages of the CloneSet's events of a reason."""
        found = self.items("/api/v1/namespaces/{}/events")
        return [
            each["message"] for each in found if each["reason"] == reason and each["involvedObject"]["name"] == "web"
        ]

    def is_serving(self, pod: str) -> bool:
        """Whether the Service sends traffic to a pod now."""
        return any(
            endpoint.get("targetRef", {}).get("name") == pod and endpoint["conditions"].get("ready")
            for item in self.items(SLICES)
            for endpoint in item.get("endpoints") or []
        )

    def page(self, pod: Json) -> str:
        """What the pod's web server says."""
        with urllib.request.urlopen(f"http://{pod['status']['podIP']}/", timeout=5) as answer:
            return str(answer.read().decode())

    # Waiting

    def until(self, check: Callable[[], T], *, within: float = 90.0) -> T:
        """Asks again until no AssertionError comes. The API server may be away meanwhile."""
        deadline = time.monotonic() + within
        while True:
            try:
                return check()
            except (AssertionError, OSError, http.client.HTTPException, ClusterError):
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.1)

    def settled(self, image: str = "", *, replicas: int | None = None, within: float = 90.0) -> dict[str, Json]:
        """Waits until the rollout is over and every pod is available; the pods by name."""

        def check() -> dict[str, Json]:
            found = self.cloneset()
            status = found.get("status", {})
            wanted = found["spec"]["replicas"] if replicas is None else replicas
            counters = ("replicas", "readyReplicas", "availableReplicas", "updatedReplicas", "updatedAvailableReplicas")
            assert status.get("observedGeneration") == found["metadata"]["generation"]
            assert {name: status.get(name) for name in counters} == dict.fromkeys(counters, wanted), self.told()
            assert status.get("currentRevision") == status["updateRevision"], self.told()
            pods = self.by_name()
            assert len(pods) == wanted
            for pod in pods.values():
                assert is_ready(pod), self.told()
                assert pod["metadata"]["labels"][STATE] == "Normal", self.told()
                assert not image or image_of(pod) == image, self.told()
            return pods

        return self.until(check, within=within)

    def until_pod(self, name: str, check: Callable[[Json], bool], *, within: float = 90.0) -> Json:
        """Waits for a pod that is there to be as `check` wants it."""

        def look() -> Json:
            pod = self.by_name().get(name)
            assert pod is not None, f"there is no pod {name}"
            assert check(pod), json.dumps(pod["status"], indent=1)
            return pod

        return self.until(look, within=within)

    def until_change(self, check: Callable[[Change], bool], *, since: int, within: float = 90.0) -> Change:
        """Waits for the first change of a pod that is as `check` wants it."""

        def look() -> Change:
            found = next(filter(check, self.log.changes(since=since)), None)
            assert found is not None, self.told()
            return found

        return self.until(look, within=within)

    def told(self) -> str:
        """The CloneSet's status and its pods, for people who read of a failure."""
        lines = [json.dumps(self.cloneset().get("status", {}))]
        for pod in self.pods():
            metadata = pod["metadata"]
            notes = {key: value for key, value in metadata.get("annotations", {}).items() if "inplace" in key}
            lines.append(f"{metadata['name']} {metadata['labels']} {notes} {json.dumps(pod['status'])}")
        return "\n".join(lines)

    # What the log shows

    def moments(self, since: int) -> Iterator[Sequence[Json]]:
        """All pods after each change, beginning with how things were at version `since`."""
        present: dict[str, Json] = {}
        for change in self.log.changes():
            if change.version > since:
                yield tuple(present.values())
            if change.is_gone:
                present.pop(change.uid, None)
            else:
                present[change.uid] = change.object
        yield tuple(present.values())

    def fewest_ready(self, since: int) -> int:
        """The lowest number of pods that were ready at any moment."""
        return min(sum(map(is_ready, pods)) for pods in self.moments(since))

    def most_pods(self, since: int) -> int:
        """The highest number of pods, without those on their way out."""
        return max(sum("deletionTimestamp" not in pod["metadata"] for pod in pods) for pods in self.moments(since))

    def most_of(self, revision: str, since: int) -> int:
        """The highest number of pods of a revision, without those on their way out."""
        return max(
            sum(revision_of(pod) == revision and "deletionTimestamp" not in pod["metadata"] for pod in pods)
            for pods in self.moments(since)
        )

    def history(self, uid: str, *, since: int) -> list[Change]:
        """One pod's changes."""
        return [change for change in self.log.changes(since=since) if change.uid == uid]

    def first(self, uid: str, check: Callable[[Json], bool], *, since: int) -> Change:
        """The first change after which a pod is as `check` wants it."""
        found = next((change for change in self.history(uid, since=since) if check(change.object)), None)
        assert found is not None, f"that never happened to pod {uid}"
        return found

    def order_of_updates(self, revision: str, *, since: int) -> list[str]:
        """Pod names in the order in which they got a revision's label."""
        order: dict[str, None] = {}
        for change in self.log.changes(since=since):
            if revision_of(change.object) == revision:
                order.setdefault(change.name)
        return list(order)


def assert_all(pods: Iterable[Json], check: Callable[[Json], bool]) -> None:
    for pod in pods:
        assert check(pod), json.dumps(pod["status"], indent=1)


def check_unbroken(scene: Scene, pods: Iterable[str], before: Mapping[str, Json], after: Mapping[str, Json]) -> None:
    """The ticker of each pod is the same container all the time, and has counted on."""
    for name in pods:
        assert status_of(after[name], "ticker") == status_of(before[name], "ticker")
        assert status_of(after[name], "ticker")["restartCount"] == 0
        assert scene.run(name, "cat /cache/starts", "ticker") == "start\n"
        ticks = [int(line) for line in scene.run(name, "cat /cache/ticks", "ticker").split()]
        gaps = [later - earlier for earlier, later in itertools.pairwise(ticks)]
        # A busy machine may let it wait for a moment; a container that was stopped would have a second start.
        assert max(gaps, default=0) <= 5
