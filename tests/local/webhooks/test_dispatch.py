"""Which webhooks are asked for a write, in what order, and what their answers do."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from kruise.admission.answering import Answerer
from kruise.admission.decisions import Allow, Change, Deny, HandlerView, Mutation, Verdict
from kruise.admission.inventory import VALIDATING
from kruise.admission.registry import MutatingHandler, Registry, ValidatingHandler
from kruise.admission.review import AdmissionRequest
from kruise.api.meta import PartialObject
from kruise.api.native.apps import DEPLOYMENTS
from kruise.api.native.extensions import MUTATING_WEBHOOK_CONFIGURATIONS, VALIDATING_WEBHOOK_CONFIGURATIONS
from kruise.api.native.nodes import NAMESPACES, NODES
from kruise.api.resource import Resource
from kruise.local.apicore import custom_kind
from kruise.local.webhooks import AdmissionSite, InProcessCaller, Webhooks
from kruise.machinery.client.requests import Request, Verb
from kruise.machinery.clock import ManualClock, run_virtual
from tests.local.harness import CONFIG_MAPS, PODS, WIDGETS, Api, cm, deployment, pod, widget
from tests.local.webhooks.harness import Site, add, entry, patch

VERSIONED = Resource("toys.kruise.io", "v1", "dolls", "Doll", True, PartialObject)
VERSIONED_2 = Resource("toys.kruise.io", "v2", "dolls", "Doll", True, PartialObject)


def renamed(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """`size` in v1 is `length` in v2."""
    names = {"v1": "size", "v2": "length"}
    (other,) = names.keys() - {version}
    spec = dict(obj.get("spec") or {})
    if names[other] in spec:
        spec[names[version]] = spec.pop(names[other])
    return {**obj, "apiVersion": f"toys.kruise.io/{version}", "spec": spec}


DOLLS = custom_kind(VERSIONED, versions=("v1", "v2"), convert=renamed)


def appends(letter: str) -> Any:
    """Adds its letter to the data, so that the order shows."""
    return lambda request: patch(add("/data/order", request["object"]["data"].get("order", "") + letter))


async def test_configurations_go_by_name_and_their_entries_as_listed() -> None:
    site = Site()
    for name in "abcd":
        site.hook(name, appends(name))
    await site.mutating("zebra", entry("c"), entry("d"))
    await site.mutating("ant", entry("b"), entry("a"))
    _, made = await site.api.create(CONFIG_MAPS, cm("x"))
    assert made["data"] == {"a": "1", "order": "bacd"}


async def test_validating_webhooks_see_what_the_mutating_ones_made() -> None:
    site = Site()
    site.hook("stamp", lambda request: patch(add("/data/stamped", "yes")))
    site.hook("judge")
    await site.mutating("m", entry("stamp"))
    await site.validating("v", entry("judge"))
    await site.api.create(CONFIG_MAPS, cm("x"))
    stamped, judged = site.seen
    assert stamped["request"]["object"]["data"] == {"a": "1"}
    assert judged["request"]["object"]["data"] == {"a": "1", "stamped": "yes"}
    assert judged["request"]["object"]["metadata"]["uid"]


async def test_a_review_tells_everything_about_the_request() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge"))
    await site.api.create(CONFIG_MAPS, cm("x"), query=(("fieldManager", "me"),), impersonate="jane")
    (review,) = site.seen
    request = review["request"]
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    assert request["kind"] == request["requestKind"] == {"group": "", "version": "v1", "kind": "ConfigMap"}
    assert request["resource"] == request["requestResource"] == {"group": "", "version": "v1", "resource": "configmaps"}
    assert (request["name"], request["namespace"], request["operation"]) == ("x", "default", "CREATE")
    assert request["userInfo"] == {"username": "jane"}
    assert request["oldObject"] is None
    assert request["dryRun"] is False
    assert request["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldManager": "me"}


async def test_updates_show_both_objects_and_deletes_the_old_one_with_their_options() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge"))
    await site.api.create(CONFIG_MAPS, cm("x"))
    await site.api.patch(CONFIG_MAPS, "x", {"data": {"a": "2"}})
    await site.api.delete(CONFIG_MAPS, "x", {"propagationPolicy": "Background"})
    assert site.calls == ["CREATE x", "UPDATE x", "DELETE x"]
    update, delete = site.seen[1]["request"], site.seen[2]["request"]
    assert (update["oldObject"]["data"], update["object"]["data"]) == ({"a": "1"}, {"a": "2"})
    assert (delete["object"], delete["oldObject"]["data"]) == (None, {"a": "2"})
    assert delete["options"]["propagationPolicy"] == "Background"


async def test_a_generated_name_is_not_known_to_mutating_webhooks_yet() -> None:
    site = Site()
    site.hook("stamp")
    site.hook("judge")
    await site.mutating("m", entry("stamp"))
    await site.validating("v", entry("judge"))
    await site.api.create(CONFIG_MAPS, {"metadata": {"generateName": "x-"}})
    stamped, judged = (review["request"] for review in site.seen)
    assert "name" not in stamped
    assert judged["name"].startswith("x-")
    assert judged["object"]["metadata"]["name"] == judged["name"]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ({}, True),
        ({"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}, True),
        ({"resources": ["*"]}, True),
        ({"resources": ["pods", "configmaps"]}, True),
        ({"resources": ["configmaps/*"]}, True),
        ({"resources": ["configmaps/status"]}, False),
        ({"resources": ["pods"]}, False),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v2"]}, False),
        ({"operations": ["CREATE", "DELETE"]}, True),
        ({"operations": ["UPDATE"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
    ],
)
async def test_rules_say_what_is_asked(rule: dict[str, Any], asked: bool) -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", rule=rule))
    await site.api.create(CONFIG_MAPS, cm("x"))
    assert bool(site.seen) is asked


async def test_evictions_are_asked_as_objects_of_their_own() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", rule={"resources": ["pods/eviction"]}))
    await site.api.create(PODS, pod("p"))
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    code, _ = await site.api.create(PODS, body, name="p", subresource="eviction")
    assert code == 201
    (request,) = (review["request"] for review in site.seen)
    assert request["kind"] == {"group": "policy", "version": "v1", "kind": "Eviction"}
    assert request["resource"] == {"group": "", "version": "v1", "resource": "pods"}
    assert (request["subResource"], request["requestSubResource"], request["operation"]) == (
        "eviction",
        "eviction",
        "CREATE",
    )
    assert request["object"] == body


async def test_a_scale_is_asked_as_a_scale_and_may_be_changed() -> None:
    site = Site()
    site.hook("limit", lambda request: patch({"op": "replace", "path": "/spec/replicas", "value": 2}))
    rule = {"apiGroups": ["apps"], "resources": ["deployments/scale"]}
    await site.mutating("m", entry("limit", rule=rule))
    await site.api.create(DEPLOYMENTS, deployment("d", replicas=1))
    code, answer = await site.api.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 9}}, subresource="scale")
    assert code == 200
    assert answer["spec"] == {"replicas": 2}
    (request,) = (review["request"] for review in site.seen)
    assert request["kind"] == {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    assert (request["object"]["spec"], request["oldObject"]["spec"]) == ({"replicas": 9}, {"replicas": 1})
    _, stored = await site.api.get(DEPLOYMENTS, "d")
    assert stored["spec"]["replicas"] == 2


async def test_webhooks_of_workloads_do_not_see_scaling() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", rule={"apiGroups": ["apps"], "resources": ["deployments"]}))
    await site.api.create(DEPLOYMENTS, deployment("d", replicas=1))
    await site.api.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 9}}, subresource="scale")
    assert site.calls == ["CREATE d"]


async def test_status_writes_are_a_subresource() -> None:
    site = Site()
    site.hook("judge")
    rule = {"apiGroups": ["toys.kruise.io"], "resources": ["widgets/status"]}
    await site.validating("v", entry("judge", rule=rule))
    await site.api.create(WIDGETS, widget("w"))
    await site.api.patch(WIDGETS, "w", {"status": {"ready": True}}, subresource="status")
    (request,) = (review["request"] for review in site.seen)
    assert (request["subResource"], request["kind"]["kind"]) == ("status", "Widget")


async def labelled_namespace(site: Site, name: str, **labels: str) -> None:
    await site.api.create(NAMESPACES, {"metadata": {"name": name, "labels": labels}}, namespace="")


async def test_the_labels_of_the_namespace_select() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", namespaceSelector={"matchLabels": {"team": "a"}}))
    await labelled_namespace(site, "ours", team="a")
    await labelled_namespace(site, "theirs", team="b")
    await site.api.create(CONFIG_MAPS, cm("x"), namespace="ours")
    await site.api.create(CONFIG_MAPS, cm("y"), namespace="theirs")
    assert site.calls == ["CREATE x"]


async def test_cluster_scoped_objects_are_never_exempted_by_the_namespace_selector() -> None:
    site = Site()
    site.hook("judge")
    selector = {"matchLabels": {"team": "a"}}
    await site.validating("v", entry("judge", namespaceSelector=selector, rule={"resources": ["nodes"]}))
    await site.api.create(NODES, {"metadata": {"name": "n"}}, namespace="")
    assert site.calls == ["CREATE n"]


async def test_a_namespace_is_selected_by_the_labels_that_are_written() -> None:
    site = Site()
    site.hook("judge")
    selector = {"matchLabels": {"team": "a"}}
    rule = {"resources": ["namespaces"], "scope": "Cluster"}
    await site.validating("v", entry("judge", namespaceSelector=selector, rule=rule))
    await labelled_namespace(site, "ours", team="a")
    await labelled_namespace(site, "theirs")
    await site.api.patch(NAMESPACES, "theirs", {"metadata": {"labels": {"team": "a"}}}, namespace="")
    await site.api.delete(NAMESPACES, "theirs", namespace="")
    assert site.calls == ["CREATE ours", "UPDATE theirs", "DELETE theirs"]
    assert [review["request"]["namespace"] for review in site.seen] == ["ours", "theirs", "theirs"]


async def test_a_missing_namespace_is_not_found_where_namespaces_are_needed() -> None:
    site = Site(require_namespaces=True)
    site.hook("judge")
    await site.validating("v", entry("judge", namespaceSelector={"matchLabels": {"team": "a"}}))
    code, answer = await site.api.create(CONFIG_MAPS, cm("x"), namespace="nowhere")
    assert (code, answer["message"]) == (404, 'namespaces "nowhere" not found')


async def test_object_or_old_object_must_match_the_object_selector() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", objectSelector={"matchLabels": {"watch": "me"}}))
    await site.api.create(CONFIG_MAPS, cm("plain"))
    await site.api.create(CONFIG_MAPS, cm("x", labels={"watch": "me"}))
    await site.api.patch(CONFIG_MAPS, "x", {"metadata": {"labels": {"watch": None}}})
    await site.api.patch(CONFIG_MAPS, "x", {"data": {"a": "3"}})
    assert site.calls == ["CREATE x", "UPDATE x"]


async def test_an_equivalent_version_is_converted_for_the_webhook_and_back() -> None:
    site = Site(kinds=(DOLLS,))
    site.hook("grow", lambda request: patch({"op": "replace", "path": "/spec/length", "value": 7}))
    rule = {"apiGroups": ["toys.kruise.io"], "apiVersions": ["v2"], "resources": ["dolls"]}
    await site.mutating("m", entry("grow", rule=rule))
    _, made = await site.api.create(VERSIONED, widget("d", {"size": 1}))
    assert (made["apiVersion"], made["spec"]) == ("toys.kruise.io/v1", {"size": 7})
    (request,) = (review["request"] for review in site.seen)
    assert request["object"]["spec"] == {"length": 1}
    assert (request["kind"]["version"], request["requestKind"]["version"]) == ("v2", "v1")
    assert (request["resource"]["version"], request["requestResource"]["version"]) == ("v2", "v1")


async def test_an_equivalent_version_may_take_a_conversion_webhook() -> None:
    async def converter(objects: Sequence[dict[str, Any]], version: str) -> list[dict[str, Any]]:
        await asyncio.sleep(0)
        return [renamed(obj, version) for obj in objects]

    kind = custom_kind(VERSIONED, versions=("v1", "v2"), converter=converter)
    site = Site(kinds=(kind,))
    site.hook("grow", lambda request: patch({"op": "replace", "path": "/spec/length", "value": 7}))
    rule = {"apiGroups": ["toys.kruise.io"], "apiVersions": ["v2"], "resources": ["dolls"]}
    condition = {"name": "c", "expression": "object.spec.length == 1"}
    await site.mutating("m", entry("grow", rule=rule, matchConditions=[condition]))
    _, made = await site.api.create(VERSIONED, widget("d", {"size": 1}))
    assert made["spec"] == {"size": 7}


async def test_exact_matching_knows_only_the_version_of_the_request() -> None:
    site = Site(kinds=(DOLLS,))
    site.hook("judge")
    rule = {"apiGroups": ["toys.kruise.io"], "apiVersions": ["v2"], "resources": ["dolls"]}
    await site.validating("v", entry("judge", rule=rule, matchPolicy="Exact"))
    await site.api.create(VERSIONED, widget("one"))
    await site.api.create(VERSIONED_2, widget("two"))
    assert site.calls == ["CREATE two"]


async def test_our_own_match_conditions_spare_pods_that_nobody_marked() -> None:
    """PW-23, PW-33."""
    site = Site()
    site.hook("judge")
    (pods,) = (entry for entry in VALIDATING if entry.name == "vpod.kb.io")
    conditions = [dict(condition) for condition in pods.match_conditions]
    rule = {"resources": ["pods"], "operations": ["UPDATE", "DELETE"]}
    await site.validating("v", entry("judge", rule=rule, matchConditions=conditions))
    await site.api.create(PODS, pod("free"))
    await site.api.create(PODS, pod("marked", annotations={"kruise.io/related-pub": "b"}))
    for name in ("free", "marked"):
        await site.api.patch(PODS, name, {"metadata": {"labels": {"a": "b"}}})
    await site.api.patch(PODS, "marked", {"metadata": {"annotations": None}})
    await site.api.patch(PODS, "marked", {"metadata": {"labels": {"a": "c"}}})
    assert site.calls == ["UPDATE marked", "UPDATE marked"]


async def test_a_condition_that_cannot_be_evaluated_refuses_or_passes_by_the_failure_policy() -> None:
    for policy, code in (("Fail", 403), ("Ignore", 201)):
        site = Site()
        site.hook("judge")
        condition = {"name": "c", "expression": "object.metadata.labels.a == 'b'"}
        await site.validating("v", entry("judge", matchConditions=[condition], failurePolicy=policy))
        answered, answer = await site.api.create(CONFIG_MAPS, cm("x"))
        assert answered == code
        assert not site.seen
        if code == 403:
            assert answer["message"] == (
                "configmaps \"x\" is forbidden: expression 'object.metadata.labels.a == 'b'' resulted in error: "
                "no such key: labels"
            )


async def test_a_condition_beyond_us_counts_as_true_and_its_author_is_warned() -> None:
    site = Site()
    site.hook("judge")
    condition = {"name": "c", "expression": "object.metadata.name.startsWith('y')"}
    body = {"metadata": {"name": "v"}, "webhooks": [entry("judge", matchConditions=[condition])]}
    sent = json.dumps(body).encode()
    answer = await site.api.transport.send(Request(Verb.CREATE, VALIDATING_WEBHOOK_CONFIGURATIONS, body=sent))
    assert answer.status == 201
    assert "webhooks[0].matchConditions[0].expression: not evaluated" in answer.headers["warning"]
    await site.api.create(CONFIG_MAPS, cm("x"))
    assert site.calls == ["CREATE x"]


async def test_changed_configurations_count_at_once() -> None:
    site = Site()
    site.hook("judge")
    await site.api.create(CONFIG_MAPS, cm("before"))
    await site.validating("v", entry("judge"))
    await site.api.create(CONFIG_MAPS, cm("during"))
    await site.api.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, "v", namespace="")
    await site.api.create(CONFIG_MAPS, cm("after"))
    assert site.calls == ["CREATE during"]


async def test_configurations_are_never_shown_to_webhooks() -> None:
    site = Site()
    site.hook("judge", lambda request: {"allowed": False})
    everything = {"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await site.validating("v", entry("judge", rule=everything))
    code, _ = await site.api.delete(VALIDATING_WEBHOOK_CONFIGURATIONS, "v", namespace="")
    assert code == 200
    assert not site.seen
    body = {"metadata": {"name": "m"}, "webhooks": []}
    assert (await site.api.create(MUTATING_WEBHOOK_CONFIGURATIONS, body, namespace=""))[0] == 201


@pytest.mark.parametrize(
    ("said", "code", "reason", "message"),
    [
        ({}, 400, "", 'admission webhook "judge.example.io" denied the request without explanation'),
        ({"reason": "Weather"}, 400, "Weather", 'admission webhook "judge.example.io" denied the request: Weather'),
        (
            {"code": 403, "reason": "Forbidden", "message": "not here"},
            403,
            "Forbidden",
            'admission webhook "judge.example.io" denied the request: not here',
        ),
        ({"code": 200, "message": "no"}, 400, "", 'admission webhook "judge.example.io" denied the request: no'),
    ],
)
async def test_a_denial_has_the_words_and_the_code_of_the_webhook(
    said: dict[str, Any], code: int, reason: str, message: str
) -> None:
    site = Site()
    site.hook("judge", lambda request: {"allowed": False, "status": said})
    await site.validating("v", entry("judge"))
    answered, answer = await site.api.create(CONFIG_MAPS, cm("x"))
    assert (answered, answer["code"]) == (code, code)
    assert (answer["status"], answer.get("reason", ""), answer["message"]) == ("Failure", reason, message)
    assert (await site.api.get(CONFIG_MAPS, "x"))[0] == 404


async def test_a_denial_carries_details_and_the_time_to_come_back() -> None:
    site = Site()
    details = {"retryAfterSeconds": 7, "causes": [{"message": "m", "field": "f", "reason": "r"}]}
    status = {"code": 429, "reason": "TooManyRequests", "message": "later", "details": details}
    site.hook("judge", lambda request: {"allowed": False, "status": status})
    await site.validating("v", entry("judge"))
    request = Request(Verb.CREATE, CONFIG_MAPS, "default", body=json.dumps(cm("x")).encode())
    answer = await site.api.transport.send(request)
    assert (answer.status, answer.headers["retry-after"]) == (429, "7")
    assert json.loads(answer.body)["details"] == details


async def test_of_several_denials_the_first_in_order_is_given() -> None:
    site = Site()
    for name in ("a", "b", "c"):
        refusal = {"allowed": name == "a", "status": {"message": name}}
        site.hook(name, lambda request, refusal=refusal: refusal)  # type: ignore[misc]
    await site.validating("v", entry("a"), entry("b"), entry("c"))
    _, answer = await site.api.create(CONFIG_MAPS, cm("x"))
    assert answer["message"] == 'admission webhook "b.example.io" denied the request: b'
    assert len(site.seen) == 3


async def test_warnings_come_with_the_answer_also_with_a_refusal() -> None:
    site = Site()
    site.hook("a", lambda request: {"warnings": ['say "hello"', "twice"]})
    site.hook("b", lambda request: {"allowed": False, "warnings": ["twice"]})
    await site.validating("v", entry("a"), entry("b"))
    answer = await site.api.transport.send(
        Request(Verb.CREATE, CONFIG_MAPS, "default", body=json.dumps(cm("x")).encode())
    )
    assert answer.headers["warning"] == '299 - "say \\"hello\\"", 299 - "twice"'


def failure(why: str) -> str:
    return f'Internal error occurred: failed calling webhook "judge.example.io": {why}'


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (b"no json", "failed to call webhook: couldn't get version/kind; json parse error"),
        (b"{}", "failed to call webhook: Object 'Kind' is missing in '{}'"),
        (
            b'{"kind": "Pod", "apiVersion": "v1"}',
            'failed to call webhook: no kind "Pod" is registered for version "v1" in scheme',
        ),
        (
            b'{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}',
            "received invalid webhook response: webhook response was absent",
        ),
        ({"uid": "other"}, "received invalid webhook response: expected response.uid="),
        (
            {"patch": "W10=", "patchType": "JSONPatch"},
            "received invalid webhook response: validating webhook may not return response.patch",
        ),
        ({"patchType": "JSONPatch"}, "received invalid webhook response: validating webhook may not return response.p"),
    ],
)
async def test_an_improper_answer_is_a_failure(answer: Any, why: str) -> None:
    for policy, code in (("Fail", 500), ("Ignore", 201)):
        site = Site()
        if isinstance(answer, bytes):

            async def say(body: bytes) -> bytes:
                return bytes(answer)

            site.caller.mount("/judge", say)
        else:
            site.hook("judge", lambda request: dict(answer))
        await site.validating("v", entry("judge", failurePolicy=policy))
        answered, refusal = await site.api.create(CONFIG_MAPS, cm("x"))
        assert answered == code
        if code == 500:
            assert refusal["message"].startswith(failure(why)), refusal["message"]
            assert refusal["reason"] == "InternalError"


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"patch": "W10="}, failure("received invalid webhook response: webhook returned response.patch but not ")),
        ({"patchType": "JSONPatch"}, failure("received invalid webhook response: webhook returned response.patchType")),
        ({"patch": "e30=", "patchType": "JSONPatch"}, failure("received undecodable patch in webhook response: ")),
        ({"patch": "W3t9XQ==", "patchType": "Merge"}, failure('unsupported patch type "Merge"')),
        (patch(add("/no/such/place", 1)), "Internal error occurred: "),
    ],
)
async def test_an_improper_patch_is_a_failure(said: dict[str, Any], message: str) -> None:
    site = Site()
    site.hook("judge", lambda request: said)
    await site.mutating("m", entry("judge"))
    code, answer = await site.api.create(CONFIG_MAPS, cm("x"))
    assert code == 500
    assert answer["message"].startswith(message)


async def test_a_patch_of_a_delete_is_refused() -> None:
    site = Site()
    site.hook("judge", lambda request: patch(add("/data", {})) if request["operation"] == "DELETE" else None)
    await site.mutating("m", entry("judge"))
    await site.api.create(CONFIG_MAPS, cm("x"))
    code, answer = await site.api.delete(CONFIG_MAPS, "x")
    assert (code, answer["message"]) == (
        500,
        'Internal error occurred: admission webhook "judge.example.io" attempted to modify the object, which is not '
        "supported for this operation",
    )


async def test_the_older_review_version_is_spoken_where_it_is_wanted() -> None:
    site = Site()
    site.hook("judge", lambda request: {"uid": "", **patch(add("/data/b", "2")), "patchType": None})
    await site.mutating("m", entry("judge", admissionReviewVersions=["v9", "v1beta1", "v1"]))
    code, made = await site.api.create(CONFIG_MAPS, cm("x"))
    assert (code, made["data"]) == (201, {"a": "1", "b": "2"})
    assert site.seen[0]["apiVersion"] == "admission.k8s.io/v1beta1"


async def test_nobody_there_names_the_address_with_its_time_limit() -> None:
    for config, why in (
        (
            {"service": {"namespace": "sys", "name": "gone", "path": "/x", "port": 8443}},
            'Post "https://gone.sys.svc:8443/x?timeout=3s": service "gone" not found',
        ),
        (
            {"url": "https://127.0.0.1:1/x"},
            'Post "https://127.0.0.1:1/x?timeout=3s": dial tcp 127.0.0.1:1: connect: connection refused',
        ),
    ):
        site = Site()
        await site.validating("v", entry("judge", clientConfig=config, timeoutSeconds=3))
        code, answer = await site.api.create(CONFIG_MAPS, cm("x"))
        assert (code, answer["message"]) == (500, failure(f"failed to call webhook: {why}"))


def test_a_slow_webhook_is_waited_for_as_long_as_it_may_take() -> None:
    async def main() -> None:
        site = Site()

        async def sleep(body: bytes) -> bytes:
            await asyncio.sleep(3600)
            return b""

        site.caller.mount("/judge", sleep)
        await site.validating("v", entry("judge", timeoutSeconds=7))
        code, answer = await site.api.create(CONFIG_MAPS, cm("x"))
        assert asyncio.get_running_loop().time() == pytest.approx(7)
        url = "https://hooks.sys.svc:443/judge?timeout=7s"
        why = f'failed to call webhook: Post "{url}": context deadline exceeded'
        assert (code, answer["message"]) == (500, failure(why))

    run_virtual(main())


def test_validating_webhooks_are_asked_at_once() -> None:
    async def main() -> None:
        site = Site()
        for name in ("a", "b", "c"):

            async def answer(body: bytes) -> bytes:
                await asyncio.sleep(5)
                uid = json.loads(body)["request"]["uid"]
                response = {"uid": uid, "allowed": True}
                review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": response}
                return json.dumps(review).encode()

            site.caller.mount(f"/{name}", answer)
        await site.validating("v", entry("a"), entry("b"), entry("c"))
        code, _ = await site.api.create(CONFIG_MAPS, cm("x"))
        assert code == 201
        assert asyncio.get_running_loop().time() == pytest.approx(5)

    run_virtual(main())


async def test_an_imported_webhook_that_speaks_no_known_version_fails() -> None:
    """It could not be registered here, but objects of another cluster are taken in as they are."""
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge"))
    site.change_unchecked("v", admissionReviewVersions=["v9"])
    code, answer = await site.api.create(CONFIG_MAPS, cm("x"))
    why = "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)"
    assert (code, answer["message"]) == (500, failure(why))


@pytest.mark.parametrize("side_effects", ["Some", ""])
async def test_an_imported_webhook_with_side_effects_forbids_dry_runs(side_effects: str) -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", failurePolicy="Ignore"))
    site.change_unchecked("v", sideEffects=side_effects)
    code, answer = await site.api.create(CONFIG_MAPS, cm("x"), query=(("dryRun", "All"),))
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert answer["message"] == 'admission webhook "judge.example.io" does not support dry run'


@pytest.mark.parametrize("side_effects", ["None", "NoneOnDryRun"])
async def test_a_dry_run_is_told(side_effects: str) -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", sideEffects=side_effects, failurePolicy="Ignore"))
    answered, _ = await site.api.create(CONFIG_MAPS, cm("x"), query=(("dryRun", "All"),))
    assert answered == 201
    assert site.seen[0]["request"]["dryRun"] is True
    assert site.seen[0]["request"]["options"]["dryRun"] == ["All"]


async def test_a_dry_run_of_a_delete_is_told() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge", rule={"operations": ["DELETE"]}))
    await site.api.create(CONFIG_MAPS, cm("x"))
    await site.api.delete(CONFIG_MAPS, "x", {"dryRun": ["All"]})
    assert site.seen[0]["request"]["dryRun"] is True


async def test_earlier_webhooks_that_want_it_are_asked_again_after_a_change() -> None:
    site = Site()
    site.hook("early")
    site.hook("once")
    site.hook("late", lambda request: patch(add("/data/late", "yes")))
    await site.mutating("m", entry("early", reinvocationPolicy="IfNeeded"), entry("once"), entry("late"))
    _, made = await site.api.create(CONFIG_MAPS, cm("x"))
    assert made["data"]["late"] == "yes"
    seen = [review["request"]["object"]["data"] for review in site.seen]
    assert seen == [{"a": "1"}, {"a": "1"}, {"a": "1"}, {"a": "1", "late": "yes"}]


async def test_nobody_is_asked_again_when_nothing_changed_afterwards() -> None:
    site = Site()
    site.hook("early", lambda request: patch(add("/data/early", "yes")))
    site.hook("late")
    policy = {"reinvocationPolicy": "IfNeeded"}
    await site.mutating("m", entry("early", **policy), entry("late", **policy))
    await site.api.create(CONFIG_MAPS, cm("x"))
    assert len(site.seen) == 2


async def test_webhooks_are_asked_again_once_at_most() -> None:
    """Two webhooks that always change something do not go on for ever."""
    site = Site()
    for name in ("a", "b"):
        site.hook(name, appends(name))
    policy = {"reinvocationPolicy": "IfNeeded"}
    await site.mutating("m", entry("a", **policy), entry("b", **policy))
    _, made = await site.api.create(CONFIG_MAPS, cm("x"))
    assert made["data"]["order"] == "abab"


async def test_what_a_webhook_takes_away_is_defaulted_again() -> None:
    site = Site()
    site.hook("strip", lambda request: patch({"op": "remove", "path": "/spec/terminationGracePeriodSeconds"}))
    await site.mutating("m", entry("strip", rule={"resources": ["pods"], "operations": ["CREATE"]}))
    _, made = await site.api.create(PODS, pod("p", grace=5))
    assert made["spec"]["terminationGracePeriodSeconds"] == 30


async def test_the_handlers_of_a_manager_answer_in_process() -> None:
    def stamp(request: AdmissionRequest, view: HandlerView) -> Mutation:
        body = request.body()
        return Change(object={**body, "data": {**body["data"], "stamped": "yes"}}, warnings=("stamped",))

    def judge(request: AdmissionRequest, view: HandlerView) -> Verdict:
        return Deny(message="forbidden word") if "bad" in request.body()["data"] else Allow()

    api = Api()
    registry = Registry(MutatingHandler("/stamp", stamp))
    caller = InProcessCaller({"https://hooks.sys.svc:443": AdmissionSite(registry, Answerer(ManualClock()))})
    Webhooks(api.core, caller, seed=1)
    site = Site.__new__(Site)
    site.api = api
    await site.mutating("m", entry("stamp"))
    await site.validating("v", entry("judge"))
    code, answer = await api.create(CONFIG_MAPS, cm("x"))
    assert (code, answer["message"]) == (
        500,
        failure("failed to call webhook: the server could not find the requested resource"),
    )
    registry.add(ValidatingHandler("/judge", judge))
    _, made = await api.create(CONFIG_MAPS, cm("x"))
    assert made["data"] == {"a": "1", "stamped": "yes"}
    code, answer = await api.create(CONFIG_MAPS, cm("y", {"bad": "1"}))
    assert (code, answer["message"]) == (
        403,
        'admission webhook "judge.example.io" denied the request: forbidden word',
    )


async def test_closed_webhooks_are_out_of_the_way() -> None:
    site = Site()
    site.hook("judge")
    await site.validating("v", entry("judge"))
    site.webhooks.close()
    await site.api.create(CONFIG_MAPS, cm("x"))
    assert not site.seen
