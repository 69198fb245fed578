"""Conversion by webhook: what is asked, and which answers are refused with which words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.admission.answering import Answerer
from kruise.admission.conversion import Converters
from kruise.admission.registry import Registry
from kruise.local.apicore import StatusError
from kruise.local.webhooks import AdmissionSite, InProcessCaller, WebhookConversion
from kruise.machinery.clock import ManualClock

Json = dict[str, Any]


def definition(*versions: str) -> Json:
    webhook = {
        "clientConfig": {"service": {"namespace": "sys", "name": "hooks", "path": "/convert"}},
        "conversionReviewVersions": list(versions or ("v1",)),
    }
    conversion = {"strategy": "Webhook", "webhook": webhook}
    return {"metadata": {"name": "dolls.toys.io"}, "spec": {"group": "toys.io", "conversion": conversion}}


def doll(name: str, version: str = "v1", **metadata: Any) -> Json:
    about = {"name": name, "namespace": "n", "uid": f"uid-{name}", **metadata}
    return {"apiVersion": f"toys.io/{version}", "kind": "Doll", "metadata": about, "spec": {"size": 1}}


def converted(obj: Json) -> Json:
    return {**obj, "apiVersion": "toys.io/v2", "spec": {"length": obj["spec"]["size"]}}


class Webhook:
    """Answers with `say(review)`; None for the proper answer."""

    def __init__(self, say: Any = None) -> None:
        self.seen: list[Json] = []
        self._say = say
        self.conversion = WebhookConversion(InProcessCaller({"/convert": self.answer}), seed=1)

    async def answer(self, body: bytes) -> bytes:
        review = json.loads(body)
        self.seen.append(review)
        request = review["request"]
        response = {
            "uid": request["uid"],
            "result": {"status": "Success"},
            "convertedObjects": [converted(obj) for obj in request["objects"]],
        }
        said = {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
        return json.dumps(self._say(said) if self._say else said).encode()


async def test_only_objects_of_other_versions_are_sent_and_the_order_stays() -> None:
    webhook = Webhook()
    objects = [doll("a"), doll("b", "v2"), doll("c")]
    results = await webhook.conversion.convert(definition(), objects, "v2")
    assert [obj["metadata"]["name"] for obj in results] == ["a", "b", "c"]
    assert [obj["spec"] for obj in results] == [{"length": 1}, {"size": 1}, {"length": 1}]
    (review,) = webhook.seen
    assert review["apiVersion"] == "apiextensions.k8s.io/v1"
    assert review["request"]["desiredAPIVersion"] == "toys.io/v2"
    assert [obj["metadata"]["name"] for obj in review["request"]["objects"]] == ["a", "c"]


async def test_nothing_to_convert_is_no_call() -> None:
    webhook = Webhook()
    objects = [doll("a", "v2")]
    assert await webhook.conversion.convert(definition(), objects, "v2") == objects
    assert not webhook.seen


async def test_metadata_is_kept_but_for_labels_and_annotations() -> None:
    def relabelled(review: Json) -> Json:
        metadata = review["response"]["convertedObjects"][0]["metadata"]
        metadata.update(labels={"new": "1"}, finalizers=["a/b"], generation=9)
        del metadata["annotations"]
        return review

    before = doll("a", labels={"old": "1"}, annotations={"x": "y"}, generation=2)
    (after,) = await Webhook(relabelled).conversion.convert(definition(), [before], "v2")
    assert after["metadata"] == {
        "name": "a",
        "namespace": "n",
        "uid": "uid-a",
        "generation": 2,
        "labels": {"new": "1"},
    }


def changed(**fields: Any) -> Any:
    def say(review: Json) -> Json:
        review["response"].update(fields)
        return review

    return say


def first(**fields: Any) -> Any:
    def say(review: Json) -> Json:
        obj = review["response"]["convertedObjects"][0]
        obj.update(fields)
        return review

    return say


FAILED = "conversion webhook for toys.io/v1, Kind=Doll failed: "
INVALID = "conversion webhook for toys.io/v1, Kind=Doll returned invalid converted object at index 0: "


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (changed(result={"status": "Failure", "message": "no such length"}), FAILED + "no such length"),
        (changed(result={"status": "Failure"}), FAILED + "response.result.status was 'Failure', not 'Success'"),
        (changed(uid="other"), FAILED + "expected response.uid="),
        (changed(convertedObjects=[]), "conversion webhook for toys.io/v1, Kind=Doll returned 0 objects, expected 1"),
        (lambda review: {**review, "response": None}, FAILED + "no response provided"),
        (
            lambda review: {**review, "kind": "Status"},
            FAILED + "expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got "
            "apiextensions.k8s.io/v1, Kind=Status",
        ),
        (
            first(apiVersion="toys.io/v3"),
            INVALID + "invalid groupVersion (expected toys.io/v2, received toys.io/v3)",
        ),
        (first(kind="Toy"), INVALID + "invalid kind (expected Doll, received Toy)"),
        (first(metadata={"name": "b", "namespace": "n", "uid": "uid-a"}), INVALID + "must have the same name: a != b"),
        (first(metadata={"name": "a", "uid": "uid-a"}), INVALID + "must have the same namespace: n != "),
        (first(metadata={"name": "a", "namespace": "n"}), INVALID + "must have the same UID: uid-a != "),
        (first(metadata=None), "conversion webhook for toys.io/v1, Kind=Doll returned invalid metadata in object"),
    ],
)
async def test_improper_answers_are_refused(say: Any, message: str) -> None:
    with pytest.raises(StatusError) as refused:
        await Webhook(say).conversion.convert(definition(), [doll("a")], "v2")
    assert refused.value.code == 500
    assert refused.value.message.startswith(message)


async def test_the_older_review_version_is_not_held_to_its_uid() -> None:
    webhook = Webhook(changed(uid=""))
    (after,) = await webhook.conversion.convert(definition("v1beta1"), [doll("a")], "v2")
    assert after["spec"] == {"length": 1}
    assert webhook.seen[0]["apiVersion"] == "apiextensions.k8s.io/v1beta1"


async def test_nobody_there_is_told_without_a_time_limit() -> None:
    conversion = WebhookConversion(InProcessCaller(), seed=1)
    with pytest.raises(StatusError) as refused:
        await conversion.convert(definition(), [doll("a")], "v2")
    assert refused.value.message == FAILED + 'Post "https://hooks.sys.svc:443/convert": service "hooks" not found'


async def test_the_converters_of_a_manager_answer_in_process() -> None:
    converters = Converters()

    def convert(obj: Json, version: str) -> Json:
        if obj["spec"]["size"] == "bad":
            raise ValueError("no such length")
        return converted(obj)

    converters.register("toys.io", "Doll", convert)
    site = AdmissionSite(Registry(), Answerer(ManualClock()), converters)
    conversion = WebhookConversion(InProcessCaller({"https://hooks.sys.svc:443": site}), seed=1)
    (after,) = await conversion.convert(definition(), [doll("a")], "v2")
    assert after["spec"] == {"length": 1}
    with pytest.raises(StatusError, match="no such length"):
        await conversion.convert(definition(), [{**doll("a"), "spec": {"size": "bad"}}], "v2")
