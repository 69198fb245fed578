"""What EphemeralJobs are refused for, beside what was recorded (EJ-11 to EJ-16)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.decisions import Allow, Deny, HandlerView
from kruise.machinery.patches import merge
from kruise.workloads.ephemeraljob.admission import judge, problems
from tests.support.admission import NOW, request

Json = dict[str, Any]
RECORDED = yaml.safe_load((Path(__file__).parent / "recorded_admission.yaml").read_text())
BASE: Json = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "EphemeralJob",
    "metadata": RECORDED["base"]["metadata"],
    "spec": RECORDED["base"]["spec"],
}
REFUSED_HERE = {
    # What could never do anything is refused, where the original takes it.
    "selector invalid": ["spec.selector.matchExpressions[0].values"],
    "replicas and parallelism negative": [
        "spec.replicas",
        "spec.parallelism",
        "spec.activeDeadlineSeconds",
        "spec.ttlSecondsAfterFinished",
    ],
}
BY_SCHEMA = ("no ephemeralContainers", "no selector")
CASES = [case for case in RECORDED["cases"] if case["case"] not in BY_SCHEMA]


def ask(body: Json, old: Json | None = None, **options: Any) -> Allow | Deny:
    asked = request(body, old, version="v1alpha1", kind="EphemeralJob")
    return judge(asked, HandlerView(now=NOW, seed=1), **options)


def with_container(**fields: Any) -> Json:
    container = {**BASE["spec"]["template"]["ephemeralContainers"][0], **fields}
    return merge.apply(BASE, {"spec": {"template": {"ephemeralContainers": [container]}}})


def fields_of(answer: Allow | Deny) -> list[str]:
    assert isinstance(answer, Deny), answer
    return [cause.field for cause in answer.causes]


@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_recorded(case: Json) -> None:
    """EJ-12 to EJ-16: same verdict, code and words."""
    body = merge.apply(BASE, case["patch"])
    answer = ask(body, BASE if case["op"] == "update" else None)
    if case["case"] in REFUSED_HERE:
        assert fields_of(answer) == REFUSED_HERE[case["case"]]
    elif case["accepted"]:
        assert isinstance(answer, Allow), answer
    else:
        assert isinstance(answer, Deny)
        assert answer.code == case["code"] == 400
        told = re.sub(r'^admission webhook "[^"]*" denied the request: ', "", case["message"])
        assert answer.message == told


def test_what_the_definition_refuses() -> None:
    """EJ-2."""
    by_name = {case["case"]: case for case in RECORDED["cases"]}
    assert [by_name[name]["code"] for name in BY_SCHEMA] == [422, 422]


def test_an_empty_container_has_four_errors() -> None:
    """EJ-15."""
    body = merge.apply(BASE, {"spec": {"template": {"ephemeralContainers": [{}]}}})
    names = ("name", "image", "terminationMessagePolicy", "imagePullPolicy")
    assert fields_of(ask(body)) == [f"ephemeralContainers[0].{name}" for name in names]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("livenessProbe", {"periodSeconds": -1}),
        ("readinessProbe", {"exec": {}}),
        ("startupProbe", {"tcpSocket": {"port": 0}}),
        ("lifecycle", {"postStart": {}}),
        ("resources", {"limits": {"cpu": "-1"}}),
        ("resizePolicy", [{"resourceName": "x", "restartPolicy": "y"}]),
        ("restartPolicy", ""),
    ],
)
def test_a_forbidden_field_is_told_once(field: str, value: Any) -> None:
    """EJ-14, EJ-15: whatever is wrong inside it."""
    answer = ask(with_container(**{field: value}))
    assert fields_of(answer) == [f"ephemeralContainers[0].{field}"]
    assert "cannot be set for an Ephemeral Container" in str(answer)


def test_ports_are_also_looked_into() -> None:
    """EJ-15."""
    answer = ask(with_container(ports=[{"containerPort": 0, "protocol": "TCP"}]))
    assert set(fields_of(answer)) == {
        "ephemeralContainers[0].ports",
        "ephemeralContainers[0].ports[0].containerPort",
    }


@pytest.mark.parametrize(
    "fields",
    [
        {"targetContainerName": "nobody-knows"},
        {"targetContainerName": ""},
        {"volumeMounts": [{"name": "unknown", "mountPath": "/x"}]},
        {"volumeDevices": [{"name": "unknown", "devicePath": "/dev/x"}]},
        {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}},
        {"stdin": True, "tty": True, "stdinOnce": True, "workingDir": "/", "args": ["a"]},
    ],
)
def test_what_depends_on_the_pod_is_accepted(fields: Json) -> None:
    """EJ-4, EJ-16."""
    assert isinstance(ask(with_container(**fields)), Allow)


def test_privileged_containers_where_they_are_not_allowed() -> None:
    """EJ-14."""
    body = with_container(securityContext={"privileged": True})
    assert fields_of(ask(body, allow_privileged=False)) == ["ephemeralContainers[0].securityContext.privileged"]


@pytest.mark.parametrize("given", [{"name": "dbg"}, "dbg", 7])
def test_no_list(given: Any) -> None:
    """EJ-4, EJ-12."""
    body = {**BASE, "spec": {**BASE["spec"], "template": {"ephemeralContainers": given}}}
    answer = ask(body)
    assert isinstance(answer, Deny)
    assert answer.code == 400
    assert answer.message.startswith("ephemeralContainers: ")


def test_what_was_there_before_is_not_judged_again() -> None:
    """EJ-13: nothing is immutable, and an old flaw does not stand in the way of another change."""
    old = merge.apply(BASE, {"spec": {"replicas": -1, "template": {"ephemeralContainers": [{"name": "a"}]}}})
    assert list(problems({**old["spec"], "paused": True}, old["spec"])) == []
    assert isinstance(ask(merge.apply(BASE, {"spec": {"selector": {"matchLabels": {"app": "other"}}}}), BASE), Allow)


def test_misspelt_fields_are_warned_of() -> None:
    answer = ask(with_container(imagePullPolcy="Always"))
    assert answer.warnings == ('unknown field "spec.template.ephemeralContainers[0].imagePullPolcy"',)
    same = with_container(imagePullPolcy="Always")
    assert ask(same, same).warnings == ()


@pytest.mark.parametrize(
    ("field", "told"),
    [
        ("replicas", "0 lets no pod be served"),
        ("parallelism", "0 lets no pod be served"),
        ("activeDeadlineSeconds", "0 lets the job fail at once"),
    ],
)
def test_numbers_that_let_nothing_happen_are_warned_of(field: str, told: str) -> None:
    """EJ-13: they are accepted."""
    body = merge.apply(BASE, {"spec": {field: 0}})
    [text] = ask(body).warnings
    assert text.startswith(f"spec.{field}: {told}")
    assert ask(body, body).warnings == ()
    assert ask(merge.apply(BASE, {"spec": {field: 1}})).warnings == ()


def test_what_is_no_image_is_warned_of() -> None:
    """EJ-14: it is accepted, but stays in the pods."""
    body = with_container(image="Busybox:1.36")
    [text] = ask(body).warnings
    assert text.startswith('spec.template.ephemeralContainers[0].image: "Busybox:1.36" is no image: ')
    assert ask(body, body).warnings == ()


def test_an_empty_list_is_warned_of() -> None:
    """EJ-13, EJ-34."""
    body = {**BASE, "spec": {**BASE["spec"], "template": {"ephemeralContainers": []}}}
    [text] = ask(body).warnings
    assert "nothing to inject" in text
