"""`kruise plan -f`: files with several objects, directories, kustomizations; and pods that find no node."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from kruise.machinery.client.light import LightTransport
from kruise.machinery.client.requests import Request
from kruise.machinery.client.transport import Response
from tests.support.commandline import Kruise, local_cluster, plain

Json = dict[str, Any]

SAMPLE = Path(__file__).parents[2] / "docs" / "manifests" / "sample.yaml"
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "api"}, "spec": {"ports": [{"port": 80}]}}
ROLE = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "api"}}


def cloneset(name: str, replicas: int = 2, **pod: Any) -> Json:
    labels = {"app": name}
    return {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}], **pod},
            },
        },
    }


def asking_for(name: str, cpu: str) -> Json:
    container = {"name": "main", "image": "nginx:1.25", "resources": {"requests": {"cpu": cpu}}}
    return cloneset(name, containers=[container])


def file_of(path: Path, *documents: Json) -> str:
    path.write_text(yaml.safe_dump_all(documents))
    return str(path)


@pytest.fixture(scope="module")
def kruise(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kruise]:
    """A cluster of three nodes with nothing on them."""
    with local_cluster(tmp_path_factory.mktemp("state")) as kubeconfig:
        yield Kruise(kubeconfig)


def planned(lines: list[str]) -> list[str]:
    return [re.sub(r" in namespace.*", "", line.split()[1]) for line in lines if line.startswith("Plan:")]


# Several objects


def test_the_workloads_of_a_file_are_planned_and_the_rest_is_named(kruise: Kruise) -> None:
    lines = kruise.ok("plan", "-f", str(SAMPLE))
    assert lines[0] == "== 1 of 1: cloneset.apps.kruise.io/sample =="
    assert planned(lines) == ["cloneset.apps.kruise.io/sample"]
    assert lines[-1] == "Not looked at: service/sample"


def test_several_files_and_the_standard_input(kruise: Kruise, tmp_path: Path) -> None:
    one, two = file_of(tmp_path / "a.yaml", cloneset("a")), yaml.safe_dump_all([ROLE, cloneset("b")])
    lines = kruise.ok("plan", "-f", one, "-f", "-", stdin=two)
    assert planned(lines) == ["cloneset.apps.kruise.io/a", "cloneset.apps.kruise.io/b"]
    assert [line for line in lines if line.startswith("== ")] == [
        "== 1 of 2: cloneset.apps.kruise.io/a ==",
        "== 2 of 2: cloneset.apps.kruise.io/b ==",
    ]
    assert lines[-3:] == [
        "Not looked at: role.rbac.authorization.k8s.io/api",
        "Note: each plan is made for itself: room on nodes that another one takes is not counted",
        "Result of all: complete",
    ]


def test_directories_and_those_below(kruise: Kruise, tmp_path: Path) -> None:
    file_of(tmp_path / "a.yaml", cloneset("a"))
    (tmp_path / "notes.txt").write_text("no manifest")
    below = tmp_path / "below"
    below.mkdir()
    file_of(below / "b.yml", cloneset("b"))
    assert planned(kruise.ok("plan", "-f", str(tmp_path))) == ["cloneset.apps.kruise.io/a"]
    assert planned(kruise.ok("plan", "-R", "-f", str(tmp_path))) == [
        "cloneset.apps.kruise.io/a",
        "cloneset.apps.kruise.io/b",
    ]


def test_a_name_picks_one(kruise: Kruise, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x.yaml", cloneset("a"), SERVICE, cloneset("b", replicas=3))
    lines = kruise.ok("plan", "clone/b", "-f", file)
    assert lines[0] == "Plan:        cloneset.apps.kruise.io/b in namespace default (to be created)"
    assert json.loads(kruise("plan", "clone/b", "-f", file, "-o", "json").out)["replicas"] == 3
    assert kruise.refused("plan", "clone/c", "-f", file, code=2) == (
        f"cloneset.apps.kruise.io/c is not in {file}, which holds cloneset.apps.kruise.io/a, service/api, "
        "cloneset.apps.kruise.io/b"
    )


def test_a_name_that_several_have_is_picked_by_its_namespace(kruise: Kruise, tmp_path: Path) -> None:
    def web(namespace: str, replicas: int) -> Json:
        found = cloneset("web", replicas)
        return {**found, "metadata": {**found["metadata"], "namespace": namespace}}

    file = file_of(tmp_path / "x.yaml", web("kube-public", 4), web("kube-system", 5))
    for namespace, replicas in (("kube-public", 4), ("kube-system", 5)):
        data = json.loads(kruise("plan", "clone/web", "-f", file, "-n", namespace, "-o", "json").out)
        assert (data["object"]["namespace"], data["replicas"]) == (namespace, replicas)
    told = f"in namespace kube-public ({file}), in namespace kube-system ({file})"
    refusal = f"cloneset.apps.kruise.io/web is 2 times in {file}: {told}. Pick one by its namespace with -n"
    assert kruise.refused("plan", "clone/web", "-f", file, code=2) == refusal
    assert kruise.refused("plan", "clone/web", "-f", file, "-n", "default", code=2) == refusal
    alone = file_of(tmp_path / "y.yaml", web("kube-public", 4), cloneset("other"))
    assert json.loads(kruise("plan", "clone/web", "-f", alone, "-o", "json").out)["replicas"] == 4


def test_flags_change_every_one_of_them(kruise: Kruise, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x.yaml", cloneset("a"), cloneset("b"))
    data = json.loads(kruise("plan", "-f", file, "--replicas=4", "-o", "json").out)
    assert [item["replicas"] for item in data["items"]] == [4, 4]


def test_data_of_several(kruise: Kruise, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x.yaml", cloneset("a"), SERVICE)
    data = json.loads(kruise("plan", "-f", file, "-o", "json").out)
    assert (data["schema"], data["verdict"], data["notLookedAt"]) == ("kruise.plans/v1", "complete", ["service/api"])
    assert [item["object"]["name"] for item in data["items"]] == ["a"]
    assert data["items"][0]["schema"] == "kruise.plan/v1"
    as_yaml = yaml.safe_load(kruise("plan", "-f", file, "-o", "yaml").out)
    assert as_yaml.keys() == data.keys()
    alone = file_of(tmp_path / "y.yaml", cloneset("a"))
    assert yaml.safe_load(kruise("plan", "-f", alone, "-o", "yaml").out)["schema"] == "kruise.plan/v1"


def test_markdown_and_a_drawing_of_several(kruise: Kruise, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x.yaml", cloneset("a"), SERVICE, cloneset("b"))
    text = "\n".join(kruise.ok("plan", "-f", file, "-o", "markdown"))
    assert text.count("### Plan for `cloneset.apps.kruise.io/") == 2
    assert "- **Not looked at**: service/api." in text
    drawn = plain(kruise.drawn("plan", "-f", file, LANG="C.UTF-8"))
    assert "2 of 2: cloneset.apps.kruise.io/b" in drawn
    assert "Not looked at  service/api" in drawn


def test_the_exit_code_is_the_worst(kruise: Kruise, tmp_path: Path) -> None:
    good, stuck = cloneset("a"), asking_for("b", "100")
    refused = cloneset("c", replicas=-1)
    assert kruise("plan", "-f", file_of(tmp_path / "x.yaml", stuck, good), "--exit-code").code == 4
    done = kruise("plan", "-f", file_of(tmp_path / "x.yaml", refused, stuck, good))
    assert done.code == 1
    assert planned(done.lines) == ["cloneset.apps.kruise.io/b", "cloneset.apps.kruise.io/a"]
    assert done.lines[0] == "== 1 of 3: cloneset.apps.kruise.io/c =="
    assert done.lines[1].startswith('Error: CloneSet.apps.kruise.io "c" is invalid: .spec.replicas: Invalid value: -1')
    assert done.lines[-1] == "Result of all: refused"
    item = json.loads(kruise("plan", "-f", file_of(tmp_path / "x.yaml", refused, good), "-o", "json").out)["items"][0]
    assert (item["verdict"], item["object"]["name"]) == ("refused", "c")
    assert "spec.replicas" in item["error"]


def test_files_without_anything_to_plan(kruise: Kruise, tmp_path: Path) -> None:
    file = file_of(tmp_path / "x.yaml", SERVICE, ROLE)
    assert kruise.refused("plan", "-f", file).startswith(
        f"{file} holds nothing but service/api, role.rbac.authorization.k8s.io/api. Plans are for "
    )
    empty = file_of(tmp_path / "y.yaml")
    assert kruise.refused("plan", "-f", empty).startswith(f"{empty} holds no object. Plans are for ")
    broken = file_of(tmp_path / "z.yaml", cloneset("a"), {"metadata": {"name": "x"}})
    said = f"{broken} holds an object without apiVersion and kind: is it a manifest?"
    assert kruise.refused("plan", "-f", broken, code=2) == said


def test_a_file_of_a_directory_that_is_no_manifest_is_named(kruise: Kruise, tmp_path: Path) -> None:
    file = file_of(tmp_path / "kubeconfig.yaml", {"clusters": [], "users": []})
    said = f"{file} holds an object without apiVersion and kind: is it a manifest?"
    assert kruise.refused("plan", "-f", str(tmp_path), code=2) == said
    file_of(tmp_path / "kubeconfig.yaml", {"apiVersion": "v1", "kind": "Config", "users": []})
    assert kruise.refused("plan", "-f", str(tmp_path)).startswith(f"{file}: no such kind: ")


TYPO = {**cloneset("typo"), "kind": "Clonset"}


def test_a_kind_that_the_cluster_does_not_have_is_an_error(kruise: Kruise, tmp_path: Path) -> None:
    """`kubectl apply` refuses that object, and takes the others."""
    file = file_of(tmp_path / "x.yaml", cloneset("a"), TYPO, SERVICE)
    done = kruise("plan", "-f", file)
    assert done.code == 1
    assert planned(done.lines) == ["cloneset.apps.kruise.io/a"]
    assert done.lines[-4:] == [
        f"Error: {file}: no such kind: the cluster serves no Clonset in apps.kruise.io/v1beta1; did you mean CloneSet?",
        "",
        "Not looked at: service/api",
        "Result of all: refused",
    ]
    alone = file_of(tmp_path / "y.yaml", TYPO)
    assert kruise.refused("plan", "-f", alone).endswith("did you mean CloneSet?")
    assert kruise("plan", "-f", file_of(tmp_path / "z.yaml", TYPO, SERVICE)).code == 1


def test_a_kind_in_a_version_that_does_not_have_it(kruise: Kruise, tmp_path: Path) -> None:
    old = {"apiVersion": "extensions/v1beta1", "kind": "Deployment", "metadata": {"name": "old"}}
    done = kruise("plan", "-f", file_of(tmp_path / "x.yaml", cloneset("a"), old))
    assert done.code == 1
    assert "did you mean apiVersion: apps/v1?" in done.out


def test_kinds_that_the_files_define_themselves_are_not_looked_at(kruise: Kruise, tmp_path: Path) -> None:
    names = {"kind": "Widget", "plural": "widgets"}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "names": names},
    }
    widget = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}}
    lines = kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", widget, cloneset("a"), definition))
    assert lines[-1].startswith("Not looked at: widget.example.com/w, ")


def test_a_kind_alone_is_no_object(kruise: Kruise) -> None:
    """The flags that other verbs have are not offered."""
    for verb in (("plan",), ("describe", "rollout"), ("why",)):
        assert kruise.refused(*verb, "cloneset", code=2) == "which CloneSet? Name it as cloneset/NAME"


# Kustomizations


def fake_kubectl(directory: Path, script: str) -> dict[str, str]:
    program = directory / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"}


def test_a_kustomization_is_built_by_kubectl(kruise: Kruise, tmp_path: Path) -> None:
    file_of(tmp_path / "built.yaml", cloneset("a"), SERVICE)
    environment = fake_kubectl(tmp_path, f'[ "$1 $2" = "kustomize overlay" ] && cat {tmp_path}/built.yaml')
    done = kruise("plan", "-k", "overlay", environment=environment)
    assert done.code == 0
    assert planned(done.lines) == ["cloneset.apps.kruise.io/a"]


def test_a_kustomization_that_cannot_be_built(kruise: Kruise, tmp_path: Path) -> None:
    environment = fake_kubectl(tmp_path, 'echo "error: unable to find one of kustomization.yaml" >&2; exit 1')
    done = kruise("plan", "-k", "overlay", environment=environment)
    assert done.code == 2
    assert "kubectl kustomize overlay: error: unable to find one of kustomization.yaml" in done.err
    done = kruise("plan", "-k", "overlay", environment={"PATH": str(tmp_path / "nothing")})
    assert done.code == 2
    assert "there is no kubectl on the PATH" in done.err
    done = kruise("plan", "-k", "overlay", "-f", "x.yaml")
    assert done.code == 2
    assert "not both" in done.err


# Room on nodes


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (asking_for("a", "100"), "2 pods find no node: 0/3 nodes are available: 3 Insufficient cpu."),
        (
            cloneset("a", nodeSelector={"disk": "tape"}),
            "2 pods find no node: 0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.",
        ),
        (cloneset("a", 1000), "670 pods find no node: 0/3 nodes are available: 3 Too many pods."),
    ],
    ids=["cpu", "selector", "slots"],
)
def test_pods_that_find_no_node(kruise: Kruise, tmp_path: Path, document: Json, why: str) -> None:
    done = kruise("plan", "-f", file_of(tmp_path / "x.yaml", document))
    assert done.code == 4
    assert done.lines[1] == "Result:      stuck"
    [stop] = [line for line in done.lines if line.startswith("Stops (unscheduled)")]
    assert why in stop
    assert "make room on the nodes, or change what the template asks of them" in stop


def notes(lines: list[str]) -> list[str]:
    return [line.removeprefix("Note: ") for line in lines if line.startswith("Note: ")]


def test_objects_that_the_template_names_are_looked_for(kruise: Kruise, tmp_path: Path) -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "stock"}}]
    pod = {"serviceAccountName": "robot", "priorityClassName": "urgent", "volumes": volumes}
    document = cloneset("a", **pod)
    assert notes(kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", document))) == [
        "there is no ServiceAccount robot in namespace default, which the template names: "
        "every new pod is refused until it is there",
        "there is no PriorityClass urgent, which the template names: every new pod is refused until it is there",
        "there is no PersistentVolumeClaim stock in namespace default, which the template names: "
        "no new pod finds a node until it is there",
    ]
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}
    lines = kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", account, document))
    assert not any("robot" in note for note in notes(lines))  # the same files bring it
    good = cloneset("a", serviceAccountName="default", priorityClassName="system-node-critical")
    assert notes(kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", good))) == []


def test_rules_about_other_pods_are_kept(kruise: Kruise, tmp_path: Path) -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "no-such-label",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    hard = kruise("plan", "-f", file_of(tmp_path / "x.yaml", cloneset("a", topologySpreadConstraints=[spread])))
    assert hard.code == 4
    assert "didn't match pod topology spread constraints (missing required label)" in hard.out
    soft = cloneset("a", topologySpreadConstraints=[{**spread, "whenUnsatisfiable": "ScheduleAnyway"}])
    assert notes(kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", soft))) == []
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "nobody"}}}
    together = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    alone = kruise("plan", "-f", file_of(tmp_path / "x.yaml", cloneset("a", affinity=together)))
    assert alone.code == 4
    assert "didn't match pod affinity rules" in alone.out


def test_an_image_that_no_node_can_read(kruise: Kruise, tmp_path: Path) -> None:
    document = cloneset("a", containers=[{"name": "main", "image": "Nginx:1:2"}])
    done = kruise("plan", "-f", file_of(tmp_path / "x.yaml", document))
    assert done.code == 4
    [stop] = [line for line in done.lines if line.startswith("Stops (image-name)")]
    assert "repository name (library/Nginx) must be lowercase" in stop


class Watchful(LightTransport):
    """Remembers who was listed over all namespaces, and refuses that where it is told to."""

    listed: ClassVar[list[str]] = []
    refuses: ClassVar[bool] = False

    async def send(self, request: Request) -> Response:
        plural = request.resource.plural if request.resource is not None else ""
        if plural == "pods" and not request.namespace:
            type(self).listed.append(dict(request.query).get("fieldSelector", ""))
            if type(self).refuses:
                status = {"kind": "Status", "code": 403, "reason": "Forbidden", "message": "pods is forbidden"}
                return Response(403, json.dumps(status).encode(), {})
        return await super().send(request)


@pytest.fixture
def watchful(monkeypatch: pytest.MonkeyPatch) -> type[Watchful]:
    class Fresh(Watchful):
        listed: ClassVar[list[str]] = []

    monkeypatch.setattr("kruise.cli.session.LightTransport", Fresh)
    return Fresh


def test_all_pods_are_read_once_and_only_where_one_needs_a_node(
    kruise: Kruise, tmp_path: Path, watchful: type[Watchful]
) -> None:
    kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", cloneset("a", 0)))
    assert watchful.listed == []
    kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", cloneset("a"), cloneset("b")))
    assert watchful.listed == ["spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"]


def test_without_the_right_to_see_other_pods(kruise: Kruise, tmp_path: Path, watchful: type[Watchful]) -> None:
    watchful.refuses = True
    lines = kruise.ok("plan", "-f", file_of(tmp_path / "x.yaml", cloneset("a")))
    assert [line for line in lines if line.startswith("Note:")] == [
        "Note: no right to list the pods of all namespaces: the room that others take on nodes was not counted"
    ]
    assert kruise("plan", "-f", file_of(tmp_path / "x.yaml", asking_for("a", "100"))).code == 4
