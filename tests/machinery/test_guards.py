"""What goes out for an action, and what errors mean: pure."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.native.pod import PODS
from kruise.machinery.client.errors import (
    ApiError,
    BadAnswerError,
    ClientError,
    RequestTimeoutError,
    Status,
    StatusCause,
    StatusDetails,
    TransportError,
    from_status,
)
from kruise.machinery.client.requests import PatchType
from kruise.machinery.codec import decode
from kruise.machinery.guards import Load, guarded_body, judge
from kruise.machinery.plan import Action, Result, Target, apply_object, create, delete, evict, patch, status_patch
from tests.support.inprocess import TOYS, ToySpec

POD = Target(PODS, "ns", "a")
PATCH = patch(POD, {"metadata": {"labels": {"x": "y"}}}, uid="u1", reason="x")
JSON_PATCH = patch(POD, [{"op": "remove", "path": "/x"}], uid="u1", reason="x", patch_type=PatchType.JSON)
CREATE = create(PODS, {"metadata": {"name": "a", "namespace": "ns"}}, reason="x")
DELETE = delete(POD, uid="u1", reason="x")
EVICT = evict(POD, uid="u1", reason="x")


def answer(code: int, reason: str = "", message: str = "", **details: Any) -> ApiError:
    return from_status(Status(code=code, reason=reason, message=message, details=StatusDetails(**details)))


def sent(action: Action) -> Any:
    return decode(guarded_body(action), object)


def test_guards_of_each_kind_of_patch() -> None:
    merged = patch(POD, {"metadata": {"labels": {}}, "spec": {}}, uid="u1", reason="x", resource_version="7")
    assert sent(merged) == {"metadata": {"labels": {}, "uid": "u1", "resourceVersion": "7"}, "spec": {}}
    assert sent(PATCH) == {"metadata": {"labels": {"x": "y"}, "uid": "u1"}}
    assert sent(JSON_PATCH) == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "remove", "path": "/x"},
    ]
    versioned = patch(POD, [], uid="u1", reason="x", patch_type=PatchType.JSON, resource_version="7")
    assert sent(versioned)[1] == {"op": "test", "path": "/metadata/resourceVersion", "value": "7"}
    assert sent(patch(POD, ToySpec(replicas=2), uid="u1", reason="x")) == {"replicas": 2, "metadata": {"uid": "u1"}}
    applied = apply_object(POD, {"metadata": {"name": "a"}}, field_manager="m", reason="x")
    assert sent(applied) == {"metadata": {"name": "a"}}
    assert PATCH.body == {"metadata": {"labels": {"x": "y"}}}  # the plan is not changed


def test_deletes_have_no_body_here_and_patches_need_one() -> None:
    assert guarded_body(DELETE) == b""
    assert guarded_body(EVICT) == b""
    with pytest.raises(ValueError, match="has no body"):
        guarded_body(patch(POD, None, uid="u1", reason="x"))
    with pytest.raises(ValueError, match="needs an object"):
        guarded_body(patch(POD, [1], uid="u1", reason="x"))


def test_a_status_patch_is_a_guarded_json_patch() -> None:
    action = status_patch(Target(TOYS, "ns", "toy"), ToySpec(replicas=1), uid="u1", reason="status")
    assert action.subresource == "status"
    assert sent(action) == [
        {"op": "test", "path": "/metadata/uid", "value": "u1"},
        {"op": "add", "path": "/status", "value": {"replicas": 1}},
    ]


UID_CAUSE = (StatusCause(field="metadata.uid", reason="FieldValueInvalid"),)
OTHER_CAUSE = (StatusCause(field="spec.containers[0].image", reason="FieldValueRequired"),)
UNFIT = "the server rejected our request due to an error in our request"
HERE = {"name": "a", "kind": "pods"}


@pytest.mark.parametrize(
    ("action", "error", "result"),
    [
        (PATCH, answer(409, "Conflict"), Result.MOVED),
        (DELETE, answer(409, "Conflict"), Result.MOVED),
        (PATCH, answer(422, "Invalid", causes=UID_CAUSE), Result.MOVED),
        (PATCH, answer(422, "Invalid", causes=OTHER_CAUSE), Result.FAILED),
        (PATCH, answer(422, "Invalid", UNFIT), Result.FAILED),
        (JSON_PATCH, answer(422, "Invalid", UNFIT), Result.MOVED),
        (JSON_PATCH, answer(422, "Invalid", "Pod is invalid", causes=OTHER_CAUSE), Result.FAILED),
        (CREATE, answer(422, "Invalid", causes=UID_CAUSE), Result.FAILED),
        (PATCH, answer(404, "NotFound", **HERE), Result.GONE),
        (DELETE, answer(404, "NotFound", **HERE), Result.DONE),
        (EVICT, answer(404, "NotFound", **HERE), Result.DONE),
        # The kind or the namespace is missing: that is no word about the object.
        (DELETE, answer(404, "NotFound", UNFIT), Result.FAILED),
        (PATCH, answer(404, "NotFound", "page not found"), Result.FAILED),
        (CREATE, answer(404, "NotFound", name="ns", kind="namespaces"), Result.FAILED),
        (CREATE, answer(409, "AlreadyExists"), Result.FAILED),
        (CREATE, answer(403, "Forbidden", "exceeded quota"), Result.FAILED),
        (CREATE, answer(400, "BadRequest"), Result.FAILED),
        (CREATE, answer(500, "InternalError", "failed calling webhook x: etcdserver: y"), Result.FAILED),
        (CREATE, answer(500, "InternalError", "boom"), Result.FAILED),
        (EVICT, answer(429, "TooManyRequests", causes=(StatusCause(reason="DisruptionBudget"),)), Result.FAILED),
    ],
)
def test_answers_that_settle_a_write(action: Action, error: ClientError, result: Result) -> None:
    verdict = judge(action, error)
    assert verdict.result is result
    assert verdict.load is Load.FINE
    assert not verdict.may_have_acted


@pytest.mark.parametrize(
    ("error", "may_have_acted", "load"),
    [
        (TransportError("refused", sent=False), False, Load.SILENT),
        (TransportError("reset", sent=True), True, Load.OVERLOADED),
        (RequestTimeoutError("timeout", sent=True), True, Load.OVERLOADED),
        (BadAnswerError("html"), True, Load.SILENT),
        (answer(429, "TooManyRequests"), False, Load.OVERLOADED),
        (answer(503, "ServiceUnavailable"), False, Load.OVERLOADED),
        (answer(504, "Timeout"), True, Load.OVERLOADED),
        (answer(500, "ServerTimeout"), True, Load.OVERLOADED),
        (answer(502), True, Load.OVERLOADED),
        (answer(500, "InternalError", "etcdserver: leader changed"), True, Load.OVERLOADED),
        (answer(500, "InternalError", "rpc error: code = Unavailable"), True, Load.OVERLOADED),
    ],
)
@pytest.mark.parametrize("action", [CREATE, PATCH, DELETE, EVICT])
def test_answers_after_which_a_write_is_tried_again(
    action: Action, error: ClientError, may_have_acted: bool, load: Load
) -> None:
    verdict = judge(action, error)
    assert verdict.result is None
    assert verdict.may_have_acted is may_have_acted
    assert verdict.load is load
    assert verdict.cause


def test_the_pause_that_the_server_asks_for_is_passed_on() -> None:
    assert judge(CREATE, answer(429, "TooManyRequests", retry_after_seconds=7)).retry_after == 7
