"""Our patches against a real API server: the same patch to the same document gives the same object.

Each patch goes to the server as a dry run. Beside it the document that our code makes of the same patch is sent as a
dry-run update, so that both results have passed through the same defaults and the same validation. They must be equal,
or be refused with the same words.
"""

from __future__ import annotations

import copy
import http.client
import json
import random
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from kruise.api.core.schema import merge_schema
from kruise.api.meta import PartialObject
from kruise.api.resource import Resource
from kruise.machinery import ownership
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import convert
from kruise.machinery.ownership import Owner
from kruise.machinery.patches import json_patch, merge, strategic
from kruise.machinery.patches.errors import PatchError
from tests.support.examples import EXAMPLES
from tests.support.realcluster import Answer, ControlPlane

Document = dict[str, Any]
NAMES = ["a", "b", "c", "d"]
MERGE_KEYS = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "ports": "containerPort",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "imagePullSecrets": "name",
    "hostAliases": "ip",
    "ownerReferences": "uid",
}
PODS = Resource("", "v1", "pods", "Pod", True, PartialObject)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap", True, PartialObject)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True, PartialObject)


class Server:
    """One kept connection: hundreds of dry runs over fresh ones would mostly measure TLS."""

    def __init__(self, cluster: ControlPlane) -> None:
        address = urlsplit(cluster.url)
        self._connection = http.client.HTTPSConnection(
            address.hostname or "", address.port, context=cluster.ssl_context(), timeout=20
        )

    def send(self, method: str, path: str, body: Any, kind: str = "application/json") -> Answer:
        headers = {"Content-Type": kind, "Accept": "application/json"}
        self._connection.request(method, path, json.dumps(body), headers)
        response = self._connection.getresponse()
        return Answer(response.status, json.loads(response.read()))

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def server(control_plane: ControlPlane) -> Iterator[Server]:
    found = Server(control_plane)
    yield found
    found.close()


def what_counts(body: Any) -> Any:
    """The parts of an object that a patch can change, or the words of a refusal."""
    if body.get("kind") == "Status":
        return {"message": body["message"], "code": body["code"]}
    metadata = {name: body["metadata"].get(name) for name in ("labels", "annotations", "finalizers", "ownerReferences")}
    return {"metadata": metadata, "spec": body.get("spec")}


class Subject:
    """An object on the server that is patched over and over, always as a dry run."""

    def __init__(self, server: Server, resource: Resource[Any], namespace: str, document: Document) -> None:
        self._server = server
        self._schema = merge_schema(resource.api_version, resource.kind)
        created = server.send("POST", resource.path(namespace), document).ok()
        self.path = resource.path(namespace, created["metadata"]["name"])
        self.document: Document = self._settled()

    def _settled(self, timeout: float = 20.0) -> Document:
        """The object once its controller has annotated it and written its status, so that it lies still from now on."""
        deadline = time.monotonic() + timeout
        while True:
            found: Document = self._server.send("GET", self.path, None).ok()
            seen = found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
            if seen and "deployment.kubernetes.io/revision" in found["metadata"].get("annotations", {}):
                return found
            assert time.monotonic() < deadline, f"the controller did not look at {self.path}"
            time.sleep(0.02)

    def update(self, document: Document) -> Answer:
        sent = {**document, "metadata": {**document["metadata"]}}
        sent["metadata"].pop("resourceVersion", None)
        sent["metadata"].pop("managedFields", None)
        return self._server.send("PUT", f"{self.path}?dryRun=All", sent)

    def patch(self, patch: Any, patch_type: PatchType) -> Answer:
        return self._server.send("PATCH", f"{self.path}?dryRun=All", patch, patch_type.value)

    def ours(self, patch: Any, patch_type: PatchType) -> Document:
        apply: dict[PatchType, Callable[[], Any]] = {
            PatchType.STRATEGIC: lambda: strategic.apply(self.document, patch, self._schema),
            PatchType.MERGE: lambda: merge.apply(self.document, patch),
            PatchType.JSON: lambda: json_patch.apply(self.document, patch),
        }
        result: Document = apply[patch_type]()
        return result

    def compare(self, patch: Any, patch_type: PatchType) -> str:
        """Patch both ways; returns how it ended, for counting."""
        before = copy.deepcopy(self.document)
        theirs = self.patch(patch, patch_type)
        result: Document | None
        try:
            result = self.ours(patch, patch_type)
        except PatchError:
            result = None
        assert self.document == before
        if result is None:
            assert theirs.status in (400, 422, 500), f"we refuse, the server does not: {json.dumps(patch)}"
            return "refused"
        expected = self.update(result)
        assert what_counts(theirs.body) == what_counts(expected.body), json.dumps(patch)
        return "applied" if theirs.status < 300 else "invalid"

    def diff(self, after: Document) -> Document:
        return strategic.diff(self.document, after, self._schema)

    def three_way(self, original: Document, modified: Document) -> Document:
        return strategic.three_way(original, modified, self.document, self._schema)


class Maker:
    """Makes deployments at random, valid ones as a rule, and patches full of directives."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self, make: Callable[[], Document], key: str, most: int = 3, least: int = 0) -> list[Document]:
        found = {element[key]: element for element in (make() for _ in range(self.random.randint(least, most)))}
        return list(found.values())

    def container(self, volumes: list[str]) -> Document:
        choose = self.random.choice
        made: Document = {"name": choose(NAMES), "image": choose(["i:1", "i:2"])}
        if self.chance(0.5):
            made["env"] = self.some(lambda: {"name": choose(NAMES), "value": choose("12")}, "name")
        if self.chance(0.5):
            made["ports"] = self.some(lambda: {"containerPort": choose([80, 81, 82])}, "containerPort")
        if self.chance(0.4):
            made["args"] = [choose("xy") for _ in range(2)]
        if self.chance(0.4):
            made["resources"] = {"limits": {name: choose(["1", "500m"]) for name in ("cpu", "memory")}}
        if volumes and self.chance(0.4):
            mounts = ["/a", "/b"]
            made["volumeMounts"] = self.some(
                lambda: {"mountPath": choose(mounts), "name": choose(volumes)}, "mountPath"
            )
        return made

    def volume(self) -> Document:
        sources: list[Document] = [{"emptyDir": {}}, {"emptyDir": {"medium": "Memory"}}, {"hostPath": {"path": "/x"}}]
        return {"name": self.random.choice(NAMES), **self.random.choice(sources)}

    def pod_spec(self) -> Document:
        choose = self.random.choice
        volumes = self.some(self.volume, "name") if self.chance(0.6) else []
        known = [volume["name"] for volume in volumes]
        made: Document = {"containers": self.some(lambda: self.container(known), "name", 4, 1)}
        if volumes:
            made["volumes"] = volumes
        if self.chance(0.3):
            made["initContainers"] = [{**self.container(known), "name": f"init-{choose(NAMES)}"}]
        if self.chance(0.4):
            made["tolerations"] = [{"key": choose(NAMES), "operator": "Exists"} for _ in range(2)]
        if self.chance(0.4):
            made["nodeSelector"] = {name: "1" for name in NAMES if self.chance(0.5)}
        if self.chance(0.3):
            made["imagePullSecrets"] = self.some(lambda: {"name": choose(NAMES)}, "name")
        if self.chance(0.3):
            addresses = ["1.1.1.1", "2.2.2.2"]
            made["hostAliases"] = self.some(lambda: {"ip": choose(addresses), "hostnames": ["h"]}, "ip")
        if self.chance(0.3):
            made["securityContext"] = {"runAsUser": choose([1, 2]), "supplementalGroups": [1]}
        return made

    def metadata(self) -> Document:
        made: Document = {}
        if self.chance(0.6):
            made["labels"] = {name: self.random.choice("12") for name in NAMES if self.chance(0.5)}
        if self.chance(0.5):
            made["annotations"] = {f"x.io/{name}": self.random.choice("12") for name in NAMES if self.chance(0.5)}
        if self.chance(0.4):
            made["finalizers"] = self.random.sample([f"x.io/{name}" for name in NAMES], self.random.randint(1, 3))
        return made

    def deployment(self) -> Document:
        template = {"metadata": {"labels": {"app": "x"}}, "spec": self.pod_spec()}
        spec: Document = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template}
        if self.chance(0.6):
            strategies: list[Document] = [
                {"type": "Recreate"},
                {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": self.random.choice([1, "25%"])}},
            ]
            spec["strategy"] = self.random.choice(strategies)
        return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": self.metadata(), "spec": spec}

    def patch(self) -> Document:
        made = self.deployment()
        del made["spec"]["selector"]
        self._sprinkle(made["metadata"])
        self._sprinkle(made["spec"])
        return made

    def _sprinkle(self, node: Document) -> None:
        for name in list(node):
            value = node[name]
            if self.chance(0.05) and name not in (*MERGE_KEYS.values(), *NAMES, "template", "image", "cpu", "memory"):
                node[name] = None
            elif isinstance(value, dict):
                self._sprinkle(value)
                if name == "strategy" and self.chance(0.5):
                    value["$retainKeys"] = [key for key in ("type", "rollingUpdate") if self.chance(0.9)]
                elif name in ("securityContext", "nodeSelector") and self.chance(0.3):
                    value["$patch"] = self.random.choice(["replace", "delete"])
            elif isinstance(value, list) and name in MERGE_KEYS:
                for element in value:
                    self._sprinkle(element)
                self._direct(node, name, MERGE_KEYS[name])
            elif name == "finalizers":
                self._direct_primitives(node, value)

    def _direct(self, node: Document, name: str, key: str) -> None:
        elements = node[name]
        known: list[Any] = [80, 81] if name == "ports" else ["/a"] if name == "volumeMounts" else NAMES
        order = [{key: element[key]} for element in elements]
        if self.chance(0.3):
            elements.append({key: self.random.choice(known), "$patch": "delete"})
        elif self.chance(0.1):
            elements.insert(0, {"$patch": "replace"})
        if order and self.chance(0.4):
            for value in known:
                if {key: value} not in order and self.chance(0.4):
                    order.insert(self.random.randint(0, len(order)), {key: value})
            if self.chance(0.1):
                self.random.shuffle(order)
            node[f"$setElementOrder/{name}"] = order

    def _direct_primitives(self, node: Document, value: list[str]) -> None:
        others = [f"x.io/{name}" for name in NAMES if f"x.io/{name}" not in value]
        if others and self.chance(0.4):
            node["$deleteFromPrimitiveList/finalizers"] = others[:1]
        if self.chance(0.4):
            node["$setElementOrder/finalizers"] = [*others[1:], *value]


def subject(server: Server, namespace: str, maker: Maker, name: str) -> Subject:
    document = maker.deployment()
    document["metadata"]["name"] = name
    # A finalizer would keep the namespace from going away after the test.
    document["metadata"].pop("finalizers", None)
    return Subject(server, DEPLOYMENTS, namespace, document)


def compare_strategic(server: Server, namespace: str, *, subjects: int, patches: int) -> dict[str, int]:
    counts = {"applied": 0, "invalid": 0, "refused": 0}
    for seed in range(subjects):
        maker = Maker(seed)
        target = subject(server, namespace, maker, f"d{seed}")
        for _ in range(patches):
            counts[target.compare(maker.patch(), PatchType.STRATEGIC)] += 1
    return counts


@pytest.mark.smoke
def test_strategic_patches_do_what_they_do_on_the_server(server: Server, namespace: str) -> None:
    counts = compare_strategic(server, namespace, subjects=6, patches=25)
    assert counts["applied"] > 60, counts


def test_many_more_strategic_patches_do_what_they_do_on_the_server(server: Server, namespace: str) -> None:
    counts = compare_strategic(server, namespace, subjects=20 * EXAMPLES, patches=40)
    assert counts["applied"] > 300 * EXAMPLES, counts
    assert counts["refused"] > 3 * EXAMPLES, counts


@pytest.mark.smoke
def test_a_difference_brings_the_server_to_the_wish(server: Server, namespace: str) -> None:
    """Two documents: the patch between them, applied by the server, gives what an update gives."""
    applied = 0
    for seed in range(100, 110):
        maker = Maker(seed)
        target = subject(server, namespace, maker, f"d{seed}")
        for _ in range(10):
            wish = copy.deepcopy(target.document)
            wish["spec"].update(maker.deployment()["spec"])
            theirs = target.patch(target.diff(wish), PatchType.STRATEGIC)
            expected = target.update(wish)
            assert what_counts(theirs.body) == what_counts(expected.body)
            applied += theirs.status < 300
    assert applied > 60


def test_a_three_way_patch_does_what_kubectl_apply_does(
    control_plane: ControlPlane, server: Server, namespace: str
) -> None:
    """What was applied before and is gone goes, what is new comes, what others added stays."""
    maker = Maker(7)
    for number in range(6):
        original, modified = maker.deployment(), maker.deployment()
        for document in (original, modified):
            document["metadata"] = {"name": f"k{number}", "namespace": namespace}
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(original))
        path = DEPLOYMENTS.path(namespace, f"k{number}")
        injected = {"name": "injected", "image": "side:1"}
        others = {"spec": {"template": {"metadata": {"labels": {"o": "1"}}, "spec": {"containers": [injected]}}}}
        live = server.send("PATCH", path, others, PatchType.STRATEGIC.value).ok()
        schema = merge_schema("apps/v1", "Deployment")
        patch = strategic.three_way(original, modified, live, schema)
        ours = server.send("PATCH", f"{path}?dryRun=All", patch, PatchType.STRATEGIC.value).ok()
        control_plane.kubectl("apply", "-f", "-", stdin=json.dumps(modified))
        theirs = server.send("GET", path, None).ok()
        assert what_counts(ours)["spec"] == what_counts(theirs)["spec"]
        assert "injected" in [container["name"] for container in ours["spec"]["template"]["spec"]["containers"]]
        # What is already as wished needs no patch, unless members of a union have to be kept apart.
        settled = strategic.three_way(modified, modified, theirs, schema)
        unchanged = server.send("PATCH", f"{path}?dryRun=All", settled, PatchType.STRATEGIC.value).ok()
        assert what_counts(unchanged)["spec"] == what_counts(theirs)["spec"]


@pytest.mark.smoke
def test_json_patches_do_what_they_do_on_the_server(server: Server, namespace: str) -> None:
    target = subject(server, namespace, Maker(1), "json")
    template = "/spec/template/spec"
    cases: list[list[Document]] = [
        [{"op": "replace", "path": f"{template}/containers/0/image", "value": "new:1"}],
        [{"op": "test", "path": "/spec/replicas", "value": 0}, {"op": "replace", "path": "/spec/replicas", "value": 3}],
        [{"op": "add", "path": f"{template}/containers/-", "value": {"name": "new", "image": "i"}}],
        [{"op": "add", "path": f"{template}/containers/-1", "value": {"name": "new", "image": "i"}}],
        [{"op": "copy", "from": f"{template}/containers", "path": f"{template}/initContainers"}],
        [{"op": "copy", "from": "/spec/template/metadata/labels", "path": "/metadata/labels"}],
        [{"op": "add", "path": "/metadata/annotations/a~1b~0c", "value": "1"}],
        [{"op": "replace", "path": "/spec/paused", "value": True}],
        [{"op": "test", "path": "/spec/paused", "value": None}],
        [{"op": "move", "from": "/metadata/labels", "path": "/metadata/annotations"}],
        [{"op": "remove", "path": f"{template}/containers"}],
    ]
    ends = [target.compare(case, PatchType.JSON) for case in cases]
    assert ends.count("applied") >= 6
    assert ends.count("invalid") >= 1


@pytest.mark.smoke
@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/spec/replicas", "value": 5},
        {"op": "test", "path": "/metadata/labels/none/deeper", "value": 5},
        {"op": "remove", "path": "/spec/none"},
        {"op": "remove", "path": "/spec/template/spec/containers/9"},
        {"op": "add", "path": "/spec/none/deeper", "value": 1},
        {"op": "replace", "path": "/spec/template/spec/containers/x/image", "value": 1},
    ],
)
def test_json_patches_that_do_not_fit_answer_422(server: Server, namespace: str, operation: Document) -> None:
    """A failed test is no conflict to the server: it answers like any other operation that does not fit."""
    target = subject(server, namespace, Maker(1), "json")
    with pytest.raises(PatchError):
        target.ours([operation], PatchType.JSON)
    assert target.patch([operation], PatchType.JSON).status == 422


@pytest.mark.smoke
def test_merge_patches_do_what_they_do_on_the_server(server: Server, namespace: str) -> None:
    maker = Maker(3)
    target = subject(server, namespace, maker, "merge")
    ends = []
    for _ in range(20):
        wish = maker.deployment()
        del wish["spec"]["selector"]
        ends.append(target.compare(wish, PatchType.MERGE))
        changes = merge.diff(target.document, {**target.document, "spec": {**target.document["spec"], **wish["spec"]}})
        ends.append(target.compare(changes or {}, PatchType.MERGE))
    assert ends.count("applied") > 20


@pytest.mark.smoke
def test_adoption_and_release_leave_other_owners_alone(server: Server, namespace: str) -> None:
    """The patches of the ownership decisions, on a real pod with another owner."""
    uids = {}
    for name in ("other", "web"):
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
        uids[name] = server.send("POST", CONFIG_MAPS.path(namespace), body).ok()["metadata"]["uid"]
    owned = {"apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": uids["other"]}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "ownerReferences": [owned]},
        "spec": {"containers": [{"name": "c", "image": "i"}], "schedulerName": "nobody"},
    }
    live = server.send("POST", PODS.path(namespace), pod).ok()
    owner = Owner(CONFIG_MAPS, namespace, "web", uids["web"])
    action = ownership.adopt(PODS, convert(live, PartialObject), owner)
    adopted = server.send("PATCH", PODS.path(namespace, "p"), action.body, str(action.patch_type)).ok()
    assert {reference["uid"] for reference in adopted["metadata"]["ownerReferences"]} == set(uids.values())
    assert ownership.is_controlled_by(convert(adopted, PartialObject), owner.uid)
    action = ownership.release(PODS, convert(adopted, PartialObject), owner)
    released = server.send("PATCH", PODS.path(namespace, "p"), action.body, str(action.patch_type)).ok()
    assert released["metadata"]["ownerReferences"] == [owned]
