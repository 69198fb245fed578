"""Admission of image kinds: what the original was recorded to answer, asked again on the local cluster.

IMG-3, IMG-8, IMG-12, NI-10 to NI-12, IPJ-10 to IPJ-20, ILPJ-1, ILPJ-2.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.decisions import Allow, Change, Deny, HandlerView
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, IMAGE_PULL_JOBS, NODE_IMAGES, ImagePullJob
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError, BadRequestError, ForbiddenError
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.patches import merge
from kruise.operations.images.listjob import admission as lists
from kruise.operations.images.nodeimage import admission as node_images
from kruise.operations.images.pulljob import admission as jobs
from tests.support.admission import NOW, request
from tests.support.world import Json, LocalWorld, run_local

RECORDED: Mapping[str, Any] = yaml.safe_load((Path(__file__).parent / "data" / "recorded.yaml").read_text())
KINDS = {one.kind: one for one in (IMAGE_PULL_JOBS, IMAGE_LIST_PULL_JOBS, NODE_IMAGES)}
ACCEPTED = {
    "pullSecrets empty list on a job without": "an empty list says the same as none",
}
REFUSED = {
    r'parallelism -1|parallelism "(50%|-1|abc|1\.5|)"': "ILPJ-2: jobs that are made of it would be refused",
    r"parallelism 50%": "ILPJ-2: jobs that are made of it would be refused",
    r"Always with deadline (599|29|-1).*": "jobs that are made of it would be refused, for ever",
    r"completionPolicy to Always with short deadline": "likewise",
}
"""Of lists, where the original accepts."""
OTHER_CODES = {
    "ttl as string": (422, "the schema says it, with the field"),
    "image missing": (422, "the schema says it before anybody looks at a gate"),
    "tag missing": (422, "the schema says it, with the field"),
}
OTHER_WORDS = {
    r"parallelism \"(abc|1\.5|)\"": "without the names of Go functions",
    r"ttl as string": "without Go types",
    r"(images|tags) missing": "a value that is required, not one that is null",
}


LEFT_OUT = {
    "finalizer of the user": "told by its index alone",
    "Never, backoffLimit 0": "the original fills in the time-out through one version only",
}
DEFAULTS = [
    one
    for one in RECORDED["defaults"]
    if one["kind"] != "NodeImage" and "returned" in one and one["code"] < 300 and one["case"] not in LEFT_OUT
]


def expanded(value: Any) -> Any:
    """Long texts are recorded as `<64 times a>`."""
    text = re.sub(r"<(\d+) times (\w)>", lambda found: found[2] * int(found[1]), json.dumps(value))
    return json.loads(text)


def manifest(case: Json, name: str) -> Json:
    base = RECORDED["bases"][case["base"]]
    body = {
        "apiVersion": f"apps.kruise.io/{base['version']}",
        "kind": base["kind"],
        "metadata": {**base["metadata"], "name": name},
        "spec": base["spec"],
    }
    if case["op"] == "create":
        patched: Json = merge.apply(body, _many(expanded(case["patch"])))
        return {**patched, "metadata": {**patched["metadata"], "name": name}}
    return body


def _many(patch: Json) -> Json:
    """Lists of hundreds are told in words."""
    images = (patch.get("spec") or {}).get("images")
    if not isinstance(images, str):
        return patch
    count = int(re.findall(r"\d+", images)[0])
    names = [f"image-{number}" for number in range(count)]
    if "further names" in images:
        task = {"tag": "1", "pullPolicy": {"ttlSecondsAfterFinished": 5}}
        return {"spec": {"images": {name: {"tags": [task]} for name in names}}}
    return {"spec": {"images": [*names, names[0]] if "again" in images else names}}


async def answer(world: LocalWorld, case: Json, name: str) -> tuple[int, str]:
    """The code and text that a case gets here."""
    kind = KINDS[case["kind"]]
    resource: Resource[Any] = Resource(kind.group, case["version"], kind.plural, kind.kind, kind.namespaced, kind.type)
    namespace = "default" if kind.namespaced else ""
    body = manifest(case, name)
    dry = (("dryRun", "All"),)
    try:
        if case["op"] == "create":
            await world.client.send(
                Request(Verb.CREATE, resource, namespace, query=dry, body=json.dumps(body).encode())
            )
            return 201, ""
        await world.client.send(Request(Verb.CREATE, resource, namespace, body=json.dumps(body).encode()))
        try:
            await world.client.patch(resource, name, expanded(case["patch"]), namespace, dry_run=True)
            return 200, ""
        finally:
            await world.client.delete(resource, name, namespace)
    except ApiError as error:
        return error.code, str(error).partition(" denied the request: ")[2] or str(error)


def expected(case: Json) -> tuple[int, str]:
    code, text = case["code"], expanded(case.get("message", ""))
    name = case["case"]
    if name in ACCEPTED:
        return (201 if case["op"] == "create" else 200), ""
    if name in OTHER_CODES:
        return OTHER_CODES[name][0], ""
    is_list = case["kind"] == "ImageListPullJob" and case["accepted"]
    if is_list and any(re.fullmatch(one, name) for one in REFUSED):
        return 400, ""
    return code, text


@pytest.mark.parametrize(("key", "gates"), [("gated", "ImagePullJobGate=true"), ("plain", "")])
def test_every_recorded_request_gets_the_recorded_answer(key: str, gates: str) -> None:
    async def scenario(world: LocalWorld) -> None:
        differences = []
        for number, case in enumerate(RECORDED[key]):
            code, text = await answer(world, case, f"case-{number}")
            wanted, words = expected(case)
            has_words = (
                not words
                or text.startswith(words)
                or any(re.fullmatch(one, case["case"]) for one in OTHER_WORDS)
                or _told(words) in text
            )
            if code != wanted or not has_words:
                differences.append((case["kind"], case["case"], (wanted, words), (code, text)))
        assert not differences, "\n".join(map(str, differences))

    run_local(scenario, feature_gates=gates)


def _told(words: str) -> str:
    """Without values in the syntax of Go."""
    return words.replace("[]string(nil)", "null").partition(": Invalid value")[0]


@pytest.mark.parametrize("case", DEFAULTS, ids=lambda one: f"{one['kind']} {one['version']} {one['case']}")
def test_defaults_are_those_recorded(case: Json) -> None:  # IPJ-10 to IPJ-12, ILPJ-1
    handlers = {"ImagePullJob": jobs, "ImageListPullJob": lists}
    sent = {"apiVersion": f"apps.kruise.io/{case['version']}", "kind": case["kind"], **case["sent"]}
    asked = request(sent, version=case["version"], kind=case["kind"])
    said = handlers[case["kind"]].default(asked, HandlerView(now=NOW, seed=1))
    assert isinstance(said, Change)
    assert said.object == merge.apply(sent, case["returned"])
    again = request(dict(said.object), version=case["version"], kind=case["kind"])
    once_more = handlers[case["kind"]].default(again, HandlerView(now=NOW, seed=1))
    assert isinstance(once_more, Change)
    assert once_more.object == said.object


def test_a_task_that_is_there_already_keeps_its_beginning() -> None:  # NI-10
    """Who applies a manifest again that does not say it changes nothing; a task of another version begins anew."""
    policy = {"timeoutSeconds": 600, "backoffLimit": 3, "ttlSecondsAfterFinished": 300}
    earlier = "2024-01-01T00:00:00Z"

    def node_image(*tags: Json) -> Json:
        return {
            "apiVersion": NODE_IMAGES.api_version,
            "kind": NODE_IMAGES.kind,
            "metadata": {"name": "n"},
            "spec": {"images": {"nginx": {"tags": [{**tag, "pullPolicy": policy} for tag in tags]}}},
        }

    old = node_image({"tag": "1", "createdAt": earlier}, {"tag": "2", "createdAt": earlier, "version": 1})
    new = node_image({"tag": "1"}, {"tag": "2", "version": 2}, {"tag": "3"})
    said = node_images.default(request(new, old, kind="NodeImage"), HandlerView(now=NOW, seed=1))
    assert isinstance(said, Change)
    tags = said.object["spec"]["images"]["nginx"]["tags"]
    assert tags[0]["createdAt"] == earlier
    assert [tag["createdAt"] > earlier for tag in tags] == [False, True, True]


def test_with_the_gate_off_jobs_are_refused_with_the_remedy() -> None:  # IMG-1, IMG-2, IMG-3
    async def scenario(world: LocalWorld) -> None:
        body = {"apiVersion": "apps.kruise.io/v1beta1", "kind": "ImagePullJob", "metadata": {"name": "j"}}
        with pytest.raises(ForbiddenError) as refused:
            await world.client.create(IMAGE_PULL_JOBS, {**body, "spec": {"image": "nginx"}}, "default")
        assert "feature-gate ImagePullJobGate is not enabled" in str(refused.value)
        assert "--feature-gates=ImagePullJobGate=true" in str(refused.value)

    run_local(scenario)


@pytest.mark.parametrize(("kind", "judge"), [
    ("ImagePullJob", jobs.judge), ("ImageListPullJob", lists.judge), ("NodeImage", node_images.judge),
])  # fmt: skip
def test_with_the_gate_off_who_goes_is_let_go(kind: str, judge: Any) -> None:  # IMG-3, IPJ-60
    """Otherwise its finalizer could not be taken off any more."""
    body: Json = {"apiVersion": "apps.kruise.io/v1beta1", "kind": kind, "metadata": {"name": "j"}, "spec": {}}
    off = HandlerView(now=NOW, seed=1, gates={"KruiseDaemon": False, "ImagePullJobGate": False})
    assert isinstance(judge(request(body, old=body, kind=kind), off), Deny)
    leaving = {**body, "metadata": {"name": "j", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert isinstance(judge(request(leaving, old=leaving, kind=kind), off), Allow)


def test_a_name_that_is_no_node_is_warned_of_and_secrets_cannot_change() -> None:  # IPJ-20, IPJ-22
    async def scenario(world: LocalWorld) -> None:
        async def made(**spec: Any) -> list[str]:
            body = {
                "apiVersion": "apps.kruise.io/v1beta1",
                "kind": "ImagePullJob",
                "metadata": {"name": "j"},
                "spec": {"image": "nginx", **spec},
            }
            sent = Request(
                Verb.CREATE,
                IMAGE_PULL_JOBS,
                "default",
                query=(("dryRun", "All"),),
                body=json.dumps(body).encode(),
            )
            answered = await world.client.send(sent)
            return [value for name, value in answered.headers.items() if name.lower() == "warning"]

        [unknown] = await made(selector={"names": ["node-9"]})
        assert "spec.selector.names: there is no NodeImage of node-9" in unknown
        [everything] = await made(selector={})
        assert "spec.selector: is empty, so all nodes pull" in everything
        [nothing] = await made(selector={"matchLabels": {"a": "b"}})
        assert "spec.selector: no node has such labels now" in nothing
        assert await made() == []
        job = {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "ImagePullJob",
            "metadata": {"name": "j"},
            "spec": {"image": "nginx", "pullSecrets": ["a"]},
        }
        await world.client.create(IMAGE_PULL_JOBS, job, "default")
        with pytest.raises(ForbiddenError, match=r"spec\.pullSecrets is immutable"):
            await world.client.patch(IMAGE_PULL_JOBS, "j", {"spec": {"pullSecrets": ["b"]}}, "default")

    run_local(scenario, feature_gates="ImagePullJobGate=true")


def test_both_versions_show_the_same_object() -> None:  # NI-1, IPJ-12
    async def scenario(world: LocalWorld) -> None:
        older = Resource("apps.kruise.io", "v1alpha1", "imagepulljobs", "ImagePullJob", True, ImagePullJob)
        body = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "ImagePullJob", "metadata": {"name": "j"}}
        await world.client.create(older, {**body, "spec": {"image": "nginx", "parallelism": "0"}}, "default")
        first = await world.client.get(older, "j", "default")
        second = await world.client.get(IMAGE_PULL_JOBS, "j", "default")
        assert (first.spec, first.metadata.finalizers) == (second.spec, second.metadata.finalizers)
        assert first.metadata.finalizers == ("apps.kruise.io/deletion-protection",)
        fake = {
            "apiVersion": "apps.kruise.io/v1beta1",
            "kind": "NodeImage",
            "metadata": {"name": "fake", "labels": {"apps.kruise.io/fake-nodeimage": "true"}},
            "spec": {
                "images": {
                    "nginx": {
                        "pullSecrets": [{"namespace": "a", "name": "b", "mode": "batch"}],
                        "tags": [{"tag": "1", "pullPolicy": {"ttlSecondsAfterFinished": 5}}],
                    }
                }
            },
        }
        await world.client.create(NODE_IMAGES, fake)
        old_kind = Resource("apps.kruise.io", "v1alpha1", "nodeimages", "NodeImage", False, NODE_IMAGES.type)
        await world.client.patch(old_kind, "fake", {"metadata": {"annotations": {"by": "v1alpha1"}}})
        [secret] = (await world.client.get(NODE_IMAGES, "fake")).spec.images["nginx"].pull_secrets
        assert secret.mode == "batch"

    run_local(scenario, feature_gates="ImagePullJobGate=true")


def test_a_bad_request_is_never_stored() -> None:
    async def scenario(world: LocalWorld) -> None:
        with pytest.raises(BadRequestError, match="can not set both selector and podSelector"):
            await world.client.create(
                IMAGE_PULL_JOBS,
                {
                    "apiVersion": "apps.kruise.io/v1beta1",
                    "kind": "ImagePullJob",
                    "metadata": {"name": "j"},
                    "spec": {"image": "nginx", "selector": {}, "podSelector": {}},
                },
                "default",
            )
        assert (await world.client.list(IMAGE_PULL_JOBS, "default")).items == ()

    run_local(scenario, feature_gates="ImagePullJobGate=true")
