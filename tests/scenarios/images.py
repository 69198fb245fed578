"""Images ahead of pods: jobs, NodeImages, the daemon that pulls."""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, IMAGE_PULL_JOBS, NODE_IMAGES, ImagePullJob, NodeImage
from kruise.api.native.config import SECRETS
from kruise.api.native.events import EVENTS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import BadRequestError, NotFoundError
from kruise.machinery.client.requests import PatchType, Request, Verb
from tests.scenarios.stage import Scenario, Stage, scenario
from tests.support.world import Json

SCENARIOS: dict[str, Scenario] = {}
_GATES = {"ImagePullJobGate": True}
NODES_OF_A_JOB = 3
EXCHANGE = "kruise-daemon-config"
GROUP = "apps.kruise.io"
SIMULATED = "node.kruise.io/simulated"


class ImageStage(Stage):
    """Speaks of image jobs and of what nodes have pulled."""

    def fake(self, name: str) -> str:
        """NodeImages are in no namespace, and others play beside us."""
        return f"{self.namespace}-{name}"

    async def node_images(self) -> list[NodeImage]:
        """Of some nodes, once they are there."""

        async def check() -> list[NodeImage]:
            nodes = [node.metadata.name for node in (await self.client.list(NODES)).items]
            found = list((await self.client.list(NODE_IMAGES)).items)
            assert {one.metadata.name for one in found} >= set(nodes)
            return [one for one in found if one.metadata.name in nodes][:NODES_OF_A_JOB]

        return await self.world.until(check, within=self.pace.within)

    async def raw(self, resource: Resource[Any], name: str) -> Json:
        namespace = self.namespace if resource.namespaced else ""
        answer = await self.client.send(Request(Verb.GET, resource, namespace, name))
        found: Json = json.loads(answer.body)
        return found

    async def job(self, name: str, image: str, *, version: str = "v1beta1", **spec: Any) -> None:
        if "selector" not in spec and "podSelector" not in spec:
            spec["selector"] = {"names": [one.metadata.name for one in await self.node_images()]}
        body = {
            "apiVersion": f"{GROUP}/{version}",
            "kind": "ImagePullJob",
            "metadata": {"name": name},
            "spec": {"image": image, **spec},
        }
        resource = Resource(GROUP, version, "imagepulljobs", "ImagePullJob", True, ImagePullJob)
        await self.client.create(resource, body, self.namespace)

    async def until_job(self, name: str, **wanted: Any) -> ImagePullJob:
        async def check() -> ImagePullJob:
            found = await self.client.get(IMAGE_PULL_JOBS, name, self.namespace)
            seen = {field: getattr(found.status, field) for field in wanted}
            assert seen == wanted, found.status
            return found

        return await self.world.until(check, within=self.pace.within)

    async def until_completed(self, name: str) -> ImagePullJob:
        async def check() -> ImagePullJob:
            found = await self.client.get(IMAGE_PULL_JOBS, name, self.namespace)
            assert found.status.completion_time is not None, found.status
            return found

        return await self.world.until(check, within=self.pace.within)

    async def until_gone(self, resource: Resource[Any], name: str, namespace: str | None = None) -> None:
        async def check() -> None:
            try:
                await self.client.get(resource, name, self.namespace if namespace is None else namespace)
            except NotFoundError:
                return
            raise AssertionError(f"{resource.kind} {name} is still there")

        await self.world.until(check, within=self.pace.within)

    async def tasks(self) -> dict[str, list[str]]:
        """What nodes are to pull for jobs of this namespace, by node."""
        found: dict[str, list[str]] = {}
        for one in (await self.client.list(NODE_IMAGES)).items:
            found[one.metadata.name] = [
                f"{image}:{task.tag}"
                for image, entry in one.spec.images.items()
                for task in entry.tags
                if any(owner.namespace == self.namespace for owner in task.owner_references)
            ]
        return found

    async def until_no_tasks(self) -> None:
        async def check() -> None:
            assert not any((await self.tasks()).values())

        await self.world.until(check, within=self.pace.within)

    async def fake_node(self, name: str, **labels: str) -> None:
        """A NodeImage that nobody answers for but the scenario."""
        marks = {"apps.kruise.io/fake-nodeimage": "true", "team": self.namespace, **labels}
        metadata = {"name": self.fake(name), "labels": marks}
        body = {"apiVersion": f"{GROUP}/v1beta1", "kind": "NodeImage", "metadata": metadata, "spec": {}}
        await self.client.create(NODE_IMAGES, body)

    async def reports(self, node: str, image: str, tag: str, phase: str, **fields: Any) -> None:
        """What the daemon of a node would write."""
        time = fields.pop("at", None) or self.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        ended = {"completionTime": time} if phase in ("Succeeded", "Failed") else {}
        status = {"tag": tag, "phase": phase, "startTime": time, **ended, **fields}
        body = {"status": {"desired": 1, "imageStatuses": {image: {"tags": [status]}}}}
        await self.client.patch(NODE_IMAGES, self.fake(node), body, subresource="status")

    async def until_task(self, node: str, image: str, check: Callable[[Any], bool] = bool) -> Any:
        async def look() -> Any:
            found = (await self.client.get(NODE_IMAGES, self.fake(node))).spec.images.get(image)
            assert check(found), found
            return found

        return await self.world.until(look, within=self.pace.within)


_scenario: Callable[..., Callable[[Callable[[Any], Awaitable[None]]], Callable[[Any], Awaitable[None]]]] = (
    functools.partial(scenario, into=SCENARIOS, gates=_GATES, stage=ImageStage)
)


@_scenario("NI-15", "NI-18", "NI-20", "NI-1", "DMN-48", smoke=True)
async def every_ready_node_has_a_node_image(stage: ImageStage) -> None:
    """With the labels of the node, which it follows, and a status with its zeros once its daemon has looked at it."""
    found = await stage.node_images()
    name = found[0].metadata.name

    async def zeros() -> None:
        document = await stage.raw(NODE_IMAGES, name)
        assert {"desired", "succeeded", "failed", "pulling", "waiting"} <= document.get("status", {}).keys()

    await stage.world.until(zeros, within=stage.pace.within)
    await stage.client.patch(NODES, name, {"metadata": {"labels": {"images": "here"}}})

    async def follows() -> None:
        node, node_image = await stage.client.get(NODES, name), await stage.client.get(NODE_IMAGES, name)
        assert node.metadata.labels == node_image.metadata.labels
        assert node.metadata.labels.get("images") == "here"

    await stage.world.until(follows, within=stage.pace.within)
    await stage.client.patch(NODE_IMAGES, name, {"metadata": {"labels": {"by": "hand"}}})

    async def by_hand_goes() -> None:
        assert "by" not in (await stage.client.get(NODE_IMAGES, name)).metadata.labels

    await stage.world.until(by_hand_goes, within=stage.pace.within)


@_scenario("IPJ-32", "IPJ-45", "IPJ-42", "IPJ-60", "IPJ-61", "NI-16", "DMN-39", "DMN-41", smoke=True)
async def a_job_brings_an_image_to_all_nodes(stage: ImageStage) -> None:
    """Two at a time; when it is deleted, nothing of it is left."""
    nodes = await stage.node_images()
    await stage.job("ahead", "nginx:1.27", parallelism=2)
    done = await stage.until_completed("ahead")
    status = done.status
    assert (status.desired, status.succeeded, status.failed, status.active) == (len(nodes), len(nodes), 0, 0)
    assert status.message == "job has completed"
    node_image = await stage.client.get(NODE_IMAGES, nodes[0].metadata.name)
    [told] = node_image.status.image_statuses["nginx"].tags
    assert (told.phase, told.progress, told.tag) == ("Succeeded", 100, "1.27")
    assert told.image_id.startswith("nginx@sha256:")

    async def released() -> None:
        assert (await stage.client.get(IMAGE_PULL_JOBS, "ahead", stage.namespace)).metadata.finalizers == ()

    await stage.world.until(released, within=stage.pace.within)
    await stage.client.delete(IMAGE_PULL_JOBS, "ahead", stage.namespace)
    await stage.until_no_tasks()


@_scenario("DMN-38", "DMN-41", "DMN-45", "IPJ-42", smoke=True)
async def an_image_that_is_not_there_fails_with_the_words_of_the_registry(stage: ImageStage) -> None:
    """After as many attempts as were asked for; the nodes are named, and events tell it."""
    nodes = await stage.node_images()
    await stage.job("no-such", "nginx:missing", parallelism=5, pullPolicy={"backoffLimit": 1, "timeoutSeconds": 60})
    done = await stage.until_completed("no-such")
    assert done.status.failed_nodes == tuple(sorted(one.metadata.name for one in nodes))
    told = (await stage.client.get(NODE_IMAGES, nodes[0].metadata.name)).status.image_statuses["nginx"].tags[0]
    assert told.message.startswith('Failed to pull image reference "nginx:missing": rpc error: code = NotFound desc = ')

    async def events() -> None:
        found = (await stage.client.list(EVENTS, stage.namespace)).items
        assert [one for one in found if one.reason == "PullImageFailed" and one.involved_object.name == "no-such"]

    await stage.world.until(events, within=stage.pace.within)


@_scenario("NI-10", "NI-13", "NI-20", "DMN-33")
async def a_task_by_hand_needs_no_job(stage: ImageStage) -> None:
    """It is pulled, pulled again with a higher version, and leaves after its time."""
    name = (await stage.node_images())[0].metadata.name
    spec = {"images": {"ubuntu": {"tags": [{"tag": "latest", "pullPolicy": {"ttlSecondsAfterFinished": 20}}]}}}
    await stage.client.patch(NODE_IMAGES, name, {"spec": spec})
    [task] = (await stage.client.get(NODE_IMAGES, name)).spec.images["ubuntu"].tags
    assert task.created_at is not None
    assert task.pull_policy is not None
    assert (task.pull_policy.timeout_seconds, task.pull_policy.backoff_limit) == (600, 3)

    async def succeeded(version: int) -> None:
        found = (await stage.client.get(NODE_IMAGES, name)).status
        tags = found.image_statuses["ubuntu"].tags if "ubuntu" in found.image_statuses else ()
        assert [(one.phase, one.version) for one in tags] == [("Succeeded", version)]

    await stage.world.until(lambda: succeeded(0), within=stage.pace.within)
    spec["images"]["ubuntu"]["tags"][0]["version"] = 5  # type: ignore[assignment]
    await stage.client.patch(NODE_IMAGES, name, {"spec": spec})
    await stage.world.until(lambda: succeeded(5), within=stage.pace.within)

    async def pruned() -> None:
        found = await stage.client.get(NODE_IMAGES, name)
        assert "ubuntu" not in found.spec.images
        assert "ubuntu" not in found.status.image_statuses

    await stage.world.until(pruned, within=stage.pace.within)


@_scenario("IPJ-43", "IPJ-44", "IPJ-49", "IPJ-50", "IPJ-71", "NI-17")
async def a_job_that_never_ends_follows_nodes_and_time(stage: ImageStage) -> None:
    """A node that comes gets the image, a task of yesterday is done again with a higher version."""
    await stage.node_images()
    await stage.fake_node("fake-a")
    chosen: Json = {"selector": {"matchLabels": {"team": stage.namespace}}, "parallelism": "5"}
    await stage.job("always-there", "redis:7", completionPolicy={"type": "Never"}, **chosen)
    await stage.until_task("fake-a", "redis")
    await stage.reports("fake-a", "redis", "7", "Succeeded")
    await stage.until_job("always-there", desired=1, succeeded=1, message="job is running, progress 100.0%")
    await stage.fake_node("fake-b")
    await stage.until_task("fake-b", "redis")
    await stage.until_job("always-there", desired=2, succeeded=1, active=1)
    await stage.reports("fake-a", "redis", "7", "Succeeded", at="2020-01-01T00:00:00Z")
    again = await stage.until_task("fake-a", "redis", lambda found: found and found.tags[0].version == 1)
    assert again.tags[0].pull_policy.active_deadline_seconds == 1800
    await stage.client.delete(NODE_IMAGES, stage.fake("fake-b"))
    await stage.until_job("always-there", desired=1)
    await stage.client.delete(IMAGE_PULL_JOBS, "always-there", stage.namespace)
    await stage.until_no_tasks()
    await stage.client.delete(NODE_IMAGES, stage.fake("fake-a"))


@_scenario("IPJ-46", "NI-20")
async def two_jobs_of_one_image_share_a_task(stage: ImageStage) -> None:
    """The second has the node look again; the first keeps what it reached; the last to go takes the task along."""
    await stage.node_images()
    await stage.fake_node("fake-a")
    chosen: Json = {"selector": {"names": [stage.fake("fake-a")]}}
    await stage.job("one", "docker.io/library/nginx:1", completionPolicy={"type": "Never"}, **chosen)
    await stage.until_task("fake-a", "nginx")
    await stage.reports("fake-a", "nginx", "1", "Succeeded")
    await stage.until_job("one", succeeded=1)
    await stage.job("two", "nginx:1", imagePullPolicy="Always", **chosen)
    shared = await stage.until_task("fake-a", "nginx", lambda found: found and found.tags[0].version == 1)
    assert [owner.name for owner in shared.tags[0].owner_references] == ["one", "two"]
    await stage.until_job("two", active=1)
    await stage.until_job("one", succeeded=1, active=0)
    await stage.reports("fake-a", "nginx", "1", "Succeeded", version=1)
    await stage.until_completed("two")
    await stage.client.delete(IMAGE_PULL_JOBS, "one", stage.namespace)
    await stage.until_task("fake-a", "nginx", lambda found: found and len(found.tags[0].owner_references) == 1)
    await stage.client.delete(IMAGE_PULL_JOBS, "two", stage.namespace)
    await stage.until_no_tasks()
    await stage.client.delete(NODE_IMAGES, stage.fake("fake-a"))


@_scenario("IPJ-33 to IPJ-40", "IPJ-60", "IPJ-73", "IMG-5")
async def secrets_come_to_where_nodes_may_read_them(stage: ImageStage) -> None:
    """One copy for both jobs, which follows its source; a missing one comes later; all are given back."""
    await stage.node_images()
    for name in ("fake-a", "fake-b"):
        await stage.fake_node(name)

    async def secret(name: str) -> None:
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"own": "1"}}}
        await stage.client.create(SECRETS, {**body, "type": "Opaque", "data": {"k": "djE="}}, stage.namespace)

    async def copies() -> dict[str, Any]:
        found = (await stage.client.list(SECRETS, EXCHANGE)).items
        key = "imagepulljobs.kruise.io/source-key"
        mine = [one for one in found if one.metadata.annotations.get(key, "").startswith(f"{stage.namespace}/")]
        return {one.metadata.annotations[key].partition("/")[2]: one for one in mine}

    async def until_copies(check: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async def look() -> dict[str, Any]:
            found = await copies()
            assert check(found), found
            return found

        return await stage.world.until(look, within=stage.pace.within)

    def users(found: dict[str, Any], name: str) -> str:
        annotations = found[name].metadata.annotations if name in found else {}
        return str(annotations.get("imagepulljobs.kruise.io/references", ""))

    one, two = f"{stage.namespace}/one", f"{stage.namespace}/two"
    await secret("reg-a")
    await stage.job("one", "nginx:1", selector={"names": [stage.fake("fake-a")]}, pullSecrets=["reg-a", "reg-late"])
    entry = await stage.until_task("fake-a", "nginx")
    [ref] = entry.pull_secrets
    assert (ref.namespace, ref.mode) == (EXCHANGE, "batch")
    assert ref.name.startswith("reg-a-")
    kept = await until_copies(lambda found: users(found, "reg-a") == one)
    assert kept["reg-a"].metadata.labels == {"own": "1"}
    await stage.job(
        "two",
        "redis:7",
        selector={"names": [stage.fake("fake-b")]},
        pullSecrets=["reg-a"],
        completionPolicy={"type": "Never"},
    )
    await until_copies(lambda found: users(found, "reg-a") == f"{one},{two}")
    await stage.client.patch(SECRETS, "reg-a", {"data": {"k": "djI="}}, stage.namespace)
    await until_copies(lambda found: found["reg-a"].data == {"k": b"v2"})
    await secret("reg-late")
    await stage.until_task("fake-a", "nginx", lambda found: found and len(found.pull_secrets) == 2)
    await stage.reports("fake-a", "nginx", "1", "Succeeded")
    await stage.until_completed("one")
    await until_copies(lambda found: "reg-late" not in found and users(found, "reg-a") == two)
    await stage.client.delete(IMAGE_PULL_JOBS, "two", stage.namespace)
    await stage.until_gone(IMAGE_PULL_JOBS, "two")
    await until_copies(lambda found: not found)
    await stage.client.delete(IMAGE_PULL_JOBS, "one", stage.namespace)
    await stage.until_no_tasks()
    for name in ("fake-a", "fake-b"):
        await stage.client.delete(NODE_IMAGES, stage.fake(name))


@_scenario("IPJ-21", "IPJ-72", "IPJ-61")
async def nodes_of_pods_are_followed(stage: ImageStage) -> None:
    """A node counts as long as an active pod that is selected is on it; the task of one that left goes with the job."""
    nodes = [one.metadata.name for one in await stage.node_images()][:2]

    async def pod(name: str, node: str) -> None:
        body = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": "web"}},
            "spec": {
                "nodeName": node,
                "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "main", "image": "busybox:1", "command": ["sleep", "3600"]}],
            },
        }
        await stage.client.create(PODS, body, stage.namespace)

    await pod("a", nodes[0])
    await stage.job(
        "near-pods", "redis:7", podSelector={"matchLabels": {"app": "web"}}, completionPolicy={"type": "Never"}
    )
    await stage.until_job("near-pods", desired=1, succeeded=1)
    await pod("b", nodes[1])
    await stage.until_job("near-pods", desired=2, succeeded=2)
    await stage.client.patch(PODS, "a", {"metadata": {"labels": {"app": "other"}}}, stage.namespace)
    await stage.until_job("near-pods", desired=1)
    assert (await stage.tasks())[nodes[0]] == ["redis:7"]
    await stage.client.delete(IMAGE_PULL_JOBS, "near-pods", stage.namespace)
    await stage.until_no_tasks()
    for name in ("a", "b"):
        await stage.client.delete(PODS, name, stage.namespace)


@_scenario("IPJ-41", "IPJ-31")
async def a_deadline_ends_a_job_whatever_its_nodes_do(stage: ImageStage) -> None:
    """Nodes that pull and nodes that never began have failed; the job goes after its time."""
    await stage.node_images()
    for name in ("fake-a", "fake-b", "fake-c"):
        await stage.fake_node(name)
    await stage.job(
        "in-time",
        "nginx:1",
        selector={"names": [stage.fake("fake-c"), stage.fake("fake-b"), stage.fake("fake-a")]},
        pullPolicy={"timeoutSeconds": 5},
        completionPolicy={"type": "Always", "activeDeadlineSeconds": 6, "ttlSecondsAfterFinished": 5},
    )
    await stage.until_task("fake-a", "nginx")
    await stage.reports("fake-a", "nginx", "1", "Succeeded")
    await stage.until_task("fake-b", "nginx")
    done = await stage.until_completed("in-time")
    assert (done.status.message, done.status.failed_nodes) == (
        "job exceeds activeDeadlineSeconds",
        (stage.fake("fake-b"), stage.fake("fake-c")),
    )
    assert (await stage.tasks())[stage.fake("fake-c")] == []
    await stage.until_gone(IMAGE_PULL_JOBS, "in-time")
    await stage.until_no_tasks()
    for name in ("fake-a", "fake-b", "fake-c"):
        await stage.client.delete(NODE_IMAGES, stage.fake(name))


@_scenario("ILPJ-10 to ILPJ-19", smoke=True)
async def a_list_makes_a_job_for_each_image(stage: ImageStage) -> None:
    """Images come and go with their jobs; another template replaces all; failures are named; deletion takes all."""
    await stage.node_images()
    body = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ImageListPullJob",
        "metadata": {"name": "list"},
        "spec": {
            "images": ["nginx:1.27", "redis:missing"],
            "parallelism": 5,
            "selector": {"names": [one.metadata.name for one in await stage.node_images()]},
            "pullPolicy": {"backoffLimit": 0, "timeoutSeconds": 60},
            "completionPolicy": {"type": "Never"},
        },
    }
    await stage.client.create(IMAGE_LIST_PULL_JOBS, body, stage.namespace)

    async def children() -> dict[str, ImagePullJob]:
        found = (await stage.client.list(IMAGE_PULL_JOBS, stage.namespace)).items
        return {one.spec.image: one for one in found if one.metadata.deletion_timestamp is None}

    async def counted(**wanted: int) -> None:
        status = (await stage.client.get(IMAGE_LIST_PULL_JOBS, "list", stage.namespace)).status
        assert {name: getattr(status, name) for name in wanted} == wanted, status

    await stage.world.until(lambda: counted(desired=2, completed=2, succeeded=1, active=0), within=stage.pace.within)
    first = await children()
    assert set(first) == {"nginx:1.27", "redis:missing"}
    assert all(one.metadata.name.startswith("list-") for one in first.values())
    assert first["nginx:1.27"].spec.image_pull_policy == "IfNotPresent"
    [failure] = (await stage.client.get(IMAGE_LIST_PULL_JOBS, "list", stage.namespace)).status.failed_image_statuses
    name = first["redis:missing"].metadata.name
    assert (failure.name, failure.image_pull_job) == ("redis:missing", name)
    assert failure.message == f"Please check for details which nodes failed by 'kubectl get ImagePullJob {name}'."
    await stage.client.patch(
        IMAGE_LIST_PULL_JOBS, "list", {"spec": {"images": ["nginx:1.27", "redis:7"]}}, stage.namespace
    )

    async def exchanged() -> None:
        found = await children()
        assert set(found) == {"nginx:1.27", "redis:7"}
        assert found["nginx:1.27"].metadata.uid == first["nginx:1.27"].metadata.uid

    await stage.world.until(exchanged, within=stage.pace.within)
    await stage.world.until(lambda: counted(completed=2, succeeded=2), within=stage.pace.within)
    await stage.client.patch(IMAGE_LIST_PULL_JOBS, "list", {"spec": {"parallelism": 3}}, stage.namespace)

    async def replaced() -> None:
        found = await children()
        assert set(found) == {"nginx:1.27", "redis:7"}
        assert found["nginx:1.27"].metadata.uid != first["nginx:1.27"].metadata.uid
        assert all(one.spec.parallelism == 3 for one in found.values())

    await stage.world.until(replaced, within=stage.pace.within)
    await stage.client.delete(IMAGE_LIST_PULL_JOBS, "list", stage.namespace)

    async def gone() -> None:
        assert not (await stage.client.list(IMAGE_PULL_JOBS, stage.namespace)).items

    await stage.world.until(gone, within=stage.pace.within)
    await stage.until_no_tasks()


@_scenario("ILPJ-12", "ILPJ-19")
async def jobs_of_a_list_wait_for_its_end(stage: ImageStage) -> None:
    """One that is over would only be made anew, were it to go before the list has counted the others."""
    await stage.node_images()
    await stage.fake_node("fake-a")
    body = {
        "apiVersion": f"{GROUP}/v1beta1",
        "kind": "ImageListPullJob",
        "metadata": {"name": "list"},
        "spec": {
            "images": ["nginx:1", "redis:7"],
            "selector": {"names": [stage.fake("fake-a")]},
            "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 2},
        },
    }
    await stage.client.create(IMAGE_LIST_PULL_JOBS, body, stage.namespace)
    await stage.until_task("fake-a", "nginx")
    await stage.until_task("fake-a", "redis")
    before = {one.metadata.uid for one in (await stage.client.list(IMAGE_PULL_JOBS, stage.namespace)).items}
    assert len(before) == 2
    await stage.reports("fake-a", "nginx", "1", "Succeeded")
    await stage.world.sleep(2 * stage.pace.seconds)
    assert {one.metadata.uid for one in (await stage.client.list(IMAGE_PULL_JOBS, stage.namespace)).items} == before
    await stage.reports("fake-a", "redis", "7", "Succeeded")
    await stage.until_gone(IMAGE_LIST_PULL_JOBS, "list")
    await stage.until_no_tasks()
    await stage.client.delete(NODE_IMAGES, stage.fake("fake-a"))


@_scenario("NI-12", "IPJ-17", "IMG-8")
async def what_cannot_work_is_refused(stage: ImageStage) -> None:
    """With a text that says what to change, as a plain refusal."""
    name = (await stage.node_images())[0].metadata.name
    spec = {"images": {"nginx": {"tags": [{"tag": "1"}]}}}
    with pytest.raises(BadRequestError, match=r"pullPolicy\.ttlSecondsAfterFinished for nginx/1 must set"):
        await stage.client.patch(NODE_IMAGES, name, {"spec": spec})
    with pytest.raises(BadRequestError, match=r"invalid image Nginx:1: .* must be lowercase"):
        await stage.job("bad", "Nginx:1")


@_scenario("NI-12", "DMN-38")
async def a_name_that_is_no_image_fails_on_the_node(stage: ImageStage) -> None:
    """The contract lets it pass into a NodeImage. The node says what is wrong, and other tasks of it go on."""
    name = (await stage.node_images())[0].metadata.name
    policy = {"ttlSecondsAfterFinished": 20, "backoffLimit": 0}
    tags = [{"tag": "latest", "pullPolicy": policy}]
    spec = {"images": {"Bad Name": {"tags": tags}, "nginx:1": {"tags": tags}, "ubuntu": {"tags": tags}}}
    sent = Request(
        Verb.PATCH,
        NODE_IMAGES,
        name=name,
        query=(("dryRun", "All"),),
        body=json.dumps({"spec": spec}).encode(),
        content_type=PatchType.MERGE.value,
    )
    answered = await stage.client.send(sent)
    warned = " ".join(value for header, value in answered.headers.items() if header.lower() == "warning")
    assert "spec.images[Bad Name]: no node can pull Bad Name:latest" in warned
    assert "spec.images[nginx:1]: no node can pull nginx:1:latest" in warned
    assert "ubuntu" not in warned
    await stage.client.patch(NODE_IMAGES, name, {"spec": spec})

    async def done() -> None:
        found = (await stage.client.get(NODE_IMAGES, name)).status.image_statuses
        told = {image: status.tags[0] for image, status in found.items() if image in spec["images"]}
        assert {image: one.phase for image, one in told.items()} == {
            "Bad Name": "Failed",
            "nginx:1": "Failed",
            "ubuntu": "Succeeded",
        }
        assert all("failed to parse image reference" in one.message for image, one in told.items() if image != "ubuntu")

    await stage.world.until(done, within=stage.pace.within)
