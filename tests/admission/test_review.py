"""Reviews on the wire: both versions, what is kept raw, what is refused."""

from __future__ import annotations

import json

import pytest

from kruise.admission import review
from kruise.admission.review import ReviewError, UndecodableError
from kruise.api.native.config import ConfigMap
from kruise.machinery.client.errors import StatusCause
from tests.admission.helpers import config_map, request_of, review_body


@pytest.mark.parametrize("version", ["admission.k8s.io/v1", "admission.k8s.io/v1beta1"])
def test_answers_echo_uid_and_version(version: str) -> None:  # MGR-39
    got, request = review.decode_admission(review_body(config_map(), version=version, uid="u-77"))
    answer = json.loads(review.encode_admission(got, request.uid, allowed=True))
    assert answer == {
        "apiVersion": version,
        "kind": "AdmissionReview",
        "response": {"uid": "u-77", "allowed": True},
    }


def test_a_request_tells_what_is_asked() -> None:
    request = request_of(config_map(data={"a": "1"}), old=config_map(), operation="UPDATE", dry_run=True)
    assert (request.operation, request.namespace, request.name) == ("UPDATE", "shop", "basket")
    assert request.user_info.username == "alice"
    assert request.is_dry_run
    assert request.body()["data"] == {"a": "1"}
    assert request.decoded(ConfigMap).data == {"a": "1"}
    assert request.old_body() == config_map()
    assert str(request) == "UPDATE ConfigMap shop/basket"


def test_every_getter_decodes_anew() -> None:
    """A handler that changes what it got must not change what others get."""
    request = request_of(config_map())
    request.body()["data"] = {"spoiled": "yes"}
    assert "data" not in request.body()


def test_absent_objects_are_absent() -> None:
    request = request_of(None, old=config_map(), operation="DELETE")
    assert not request.has_object
    assert request.has_old_object
    with pytest.raises(UndecodableError, match="DELETE ConfigMap shop/basket: the review has no object"):
        request.body()


def test_nulls_that_go_writes_for_empty_values_are_accepted() -> None:
    body = json.loads(review_body(config_map(data={"keep": None})))
    body["request"]["userInfo"] = {"username": "x", "groups": None, "extra": None}
    body["request"]["dryRun"] = None
    body["request"]["options"] = None
    request = review.decode_admission(json.dumps(body).encode())[1]
    assert request.body()["data"] == {"keep": None}
    assert not request.is_dry_run


def test_an_eviction_with_dry_run_in_its_delete_options_is_a_dry_run() -> None:  # PW-37
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "deleteOptions": {"dryRun": ["All"]}}
    assert request_of(eviction, resource="pods", kind="Eviction", subresource="eviction").is_dry_run
    assert not request_of({"kind": "Eviction"}, resource="pods", subresource="eviction").is_dry_run
    assert not request_of({"deleteOptions": 5}, resource="pods", subresource="eviction").is_dry_run


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b'"AdmissionReview"',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":""}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v2","request":{"uid":"u"}}',
        b'{"kind":"ConversionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u"}}',
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":7}}',
        b'{"kind":1,"request":}',
        b'{"kind":1,"x":"\xff"}',
    ],
)
def test_what_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(ReviewError):
        review.decode_admission(body)


@pytest.mark.parametrize("version", ["apiextensions.k8s.io/v1", "apiextensions.k8s.io/v1beta1"])
def test_conversion_reviews_of_both_versions(version: str) -> None:  # MGR-39
    body = json.dumps(
        {
            "kind": "ConversionReview",
            "apiVersion": version,
            "request": {"uid": "c-1", "desiredAPIVersion": "toys.example/v2", "objects": [{"a": 1}]},
        }
    ).encode()
    got, request = review.decode_conversion(body)
    assert (got, request.uid, request.desired_api_version) == (version, "c-1", "toys.example/v2")
    answer = json.loads(review.encode_conversion(got, request.uid, request.objects or ()))
    assert answer["apiVersion"] == version
    assert answer["response"] == {"uid": "c-1", "convertedObjects": [{"a": 1}], "result": {"status": "Success"}}


def test_wrong_fields_are_named_in_text_and_causes() -> None:
    causes = [
        StatusCause(reason="FieldValueInvalid", message="Invalid value: -1: must be positive", field="spec.replicas"),
        StatusCause(reason="FieldValueRequired", message="Required value", field="spec.selector"),
    ]
    request = request_of(config_map(), kind="CloneSet", group="apps.kruise.io")
    status = review.invalid_status(request, causes)
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"] == "[spec.replicas: Invalid value: -1: must be positive, spec.selector: Required value]"
    assert status["details"] == {
        "name": "basket",
        "group": "apps.kruise.io",
        "kind": "CloneSet",
        "causes": [
            {"reason": "FieldValueInvalid", "message": "Invalid value: -1: must be positive", "field": "spec.replicas"},
            {"reason": "FieldValueRequired", "message": "Required value", "field": "spec.selector"},
        ],
    }
    assert review.invalid_status(request, causes[1:])["message"] == "spec.selector: Required value"
