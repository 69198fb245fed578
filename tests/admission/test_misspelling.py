"""Misspelt fields of pod templates, for every kind that has one."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.admission import misspelling
from kruise.admission.decisions import Allow, Deny, HandlerView, NeedsReads
from kruise.admission.inventory import MUTATING, VALIDATING
from kruise.admission.launch_order import ANNOTATION as LAUNCH_PRIORITY
from kruise.admission.misspelling import warnings_of, with_warnings
from kruise.admission.registry import ValidatingHandler
from kruise.admission.review import AdmissionRequest, GroupVersionKind
from kruise.api.apps.probes import ENHANCED_LIVENESS
from kruise.api.core import schema
from kruise.api.core.unknown_fields import unknown_fields
from kruise.api.meta import Key
from kruise.faces.face import Face
from kruise.feature import handlers_of
from kruise.foresight.admitting import Gatekeeper
from kruise.foresight.errors import RefusedError
from kruise.kinds import faces, features
from kruise.machinery.codec import evolve
from kruise.machinery.documents import with_value
from kruise.manager.options import Options
from kruise.model.world import World
from tests.admission.helpers import request_of

VIEW = HandlerView(now=datetime(2030, 1, 1, tzinfo=UTC), seed=1)
TEMPLATES = {("example.com", "Toy"): ("spec", "template")}
GOOD = {
    "metadata": {"labels": {"app": "web", "anything.example.com/goes": "here"}},
    "spec": {
        "nodeSelector": {"disk": "fast"},
        "containers": [
            {"name": "main", "image": "nginx", "resources": {"limits": {"example.com/gpu": "1"}}},
            {"name": "side", "image": "redis", "imagePullPolicy": "Always"},
        ],
        "volumes": [{"name": "v", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}}],
    },
}
WRONG = 'unknown field "spec.template.spec.containers[1].imagePullPolcy"'


def bad() -> dict[str, Any]:
    template = copy.deepcopy(GOOD)
    containers: Any = template["spec"]["containers"]
    containers[1]["imagePullPolcy"] = "Always"
    return template


def toy(template: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Toy",
        "metadata": {"name": "t"},
        "spec": {"template": template, **spec},
    }


def asked(obj: Any, old: Any = None, **more: Any) -> AdmissionRequest:
    operation = "CREATE" if old is None else "UPDATE"
    return request_of(obj, old=old, **{"kind": "Toy", "group": "example.com", "operation": operation, **more})


def test_every_place_of_a_template_is_looked_at() -> None:
    template = bad()
    template["spec"]["hostNetwrok"] = True
    template["metadata"]["lables"] = {}
    template["spec"]["volumes"][0]["configMap"]["items"][0]["pth"] = "x"
    assert unknown_fields(template, schema.POD_TEMPLATE_SPEC, "spec.template") == [
        "spec.template.metadata.lables",
        "spec.template.spec.containers[1].imagePullPolcy",
        "spec.template.spec.volumes[0].configMap.items[0].pth",
        "spec.template.spec.hostNetwrok",
    ]
    assert unknown_fields(GOOD, schema.POD_TEMPLATE_SPEC) == []
    assert unknown_fields({"spec": ["no object"]}, schema.POD_TEMPLATE_SPEC) == []


def test_in_the_words_of_an_api_server_and_never_refused() -> None:
    assert warnings_of(asked(toy(bad())), TEMPLATES) == (WRONG,)
    assert warnings_of(asked(toy(GOOD)), TEMPLATES) == ()
    claims = [{"metadata": {"name": "data"}, "spec": {"storageClass": "fast"}}]
    found = warnings_of(asked(toy(GOOD, volumeClaimTemplates=claims)), TEMPLATES)
    assert found == ('unknown field "spec.volumeClaimTemplates[0].spec.storageClass"',)


def test_only_what_a_request_changes_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert warnings_of(asked(toy(bad()), toy(GOOD)), TEMPLATES) == (WRONG,)
    monkeypatch.setattr(misspelling, "unknown_fields", None)
    assert warnings_of(asked(toy(bad(), replicas=2), toy(bad(), replicas=1)), TEMPLATES) == ()
    assert warnings_of(asked(toy(bad()), kind="Other"), TEMPLATES) == ()
    assert warnings_of(asked(toy(bad()), subresource="status"), TEMPLATES) == ()
    assert warnings_of(asked(None, toy(bad()), operation="DELETE"), TEMPLATES) == ()
    assert warnings_of(asked({"spec": "no object"}), TEMPLATES) == ()


def test_many_are_counted() -> None:
    wrong = {"spec": {f"f{number:02}": 1 for number in range(14)}}
    found = warnings_of(asked(toy(wrong)), TEMPLATES)
    assert found[9:] == ('unknown field "spec.template.spec.f09"', "4 more unknown fields in spec.template")


def test_whatever_a_handler_says_keeps_its_own_words() -> None:
    request = asked(toy(bad()))

    def said(answer: Any) -> Any:
        return with_warnings(ValidatingHandler("/x", lambda request, view: answer), TEMPLATES).decide(request, VIEW)

    assert said(Allow(warnings=("first",))) == Allow(warnings=("first", WRONG))
    assert said(Deny(message="no")) == Deny(message="no", warnings=(WRONG,))
    assert said(NeedsReads(targets=())) == NeedsReads(targets=())


OURS = [face for face in faces() if face.is_ours and face.template]


@pytest.mark.parametrize("face", OURS, ids=str)
def test_every_kind_with_a_template(face: Face) -> None:
    """One that comes later is among them by its face alone."""
    handlers = {handler.path: handler for handler in handlers_of(features(), Options())}
    assert face.template is not None
    spoken = face.resource
    entries = [
        entry
        for entry in (*MUTATING, *VALIDATING)
        if (entry.group, entry.resource) == (spoken.group, spoken.plural) and entry.path in handlers
    ]
    for version in face.versions:
        kind = GroupVersionKind(group=spoken.group, version=version, kind=spoken.kind)
        body = {"apiVersion": f"{spoken.group}/{version}", "kind": spoken.kind, "metadata": {"name": "x"}, "spec": {}}
        sent = with_value(body, face.template, bad())
        review = request_of(sent, kind=spoken.kind, group=spoken.group, resource=spoken.plural)
        answers = [handlers[entry.path].decide(evolve(review, kind=kind), VIEW) for entry in entries]
        place = ".".join(face.template)
        wanted = f'unknown field "{place}.spec.containers[1].imagePullPolcy"'
        assert any(wanted in getattr(answer, "warnings", ()) for answer in answers)


@pytest.mark.parametrize(("value", "is_told"), [("Ordered", False), ("ordered", True), ("", True)])
def test_a_launch_order_that_nobody_keeps(value: str, is_told: bool) -> None:
    """CLP-1: any other value is as good as none."""
    template: Any = copy.deepcopy(GOOD)
    template["metadata"]["annotations"] = {LAUNCH_PRIORITY: value}
    told = warnings_of(asked(toy(template)), TEMPLATES)
    where = f"spec.template.metadata.annotations[{LAUNCH_PRIORITY}]"
    text = f'{where}: "{value}" has no meaning, so all containers start at once: the only value is Ordered'
    assert told == ((text,) if is_told else ())
    assert warnings_of(asked(toy(template), toy(template)), TEMPLATES) == ()


@pytest.mark.parametrize(
    ("value", "gate", "said"),
    [
        ("true", True, ""),
        (
            "true",
            False,
            "the kubelet runs the liveness probes, since feature-gate EnhancedLivenessProbe is not enabled",
        ),
        ("false", False, ""),
        ("yes", True, '"yes" has no meaning, so the kubelet runs the liveness probes: the only value is true'),
    ],
)
def test_liveness_probes_that_no_daemon_runs(value: str, gate: bool, said: str) -> None:
    """ELP-1."""
    template: Any = copy.deepcopy(GOOD)
    template["metadata"]["annotations"] = {ENHANCED_LIVENESS: value}
    gates = {"EnhancedLivenessProbe": gate}
    where = f"spec.template.metadata.annotations[{ENHANCED_LIVENESS}]"
    assert warnings_of(asked(toy(template)), TEMPLATES, gates) == ((f"{where}: {said}",) if said else ())
    assert warnings_of(asked(toy(template), toy(template)), TEMPLATES, gates) == ()


@pytest.mark.parametrize(("value", "is_told"), [("5", False), ("-1", False), ("high", True), ("9999999999", True)])
def test_a_priority_that_is_none(value: str, is_told: bool) -> None:
    """CLP-5: the pods would be refused, one after the other, and nobody sees that who applies the workload."""
    template: Any = copy.deepcopy(GOOD)
    template["spec"]["containers"][1]["env"] = [{"name": "KRUISE_CONTAINER_PRIORITY", "value": value}]
    told = warnings_of(asked(toy(template)), TEMPLATES)
    where = "spec.template.spec.containers[1].env[KRUISE_CONTAINER_PRIORITY].value: must be an integer"
    assert [text.startswith(where) for text in told] == ([True] if is_told else [])
    assert warnings_of(asked(toy(template), toy(template)), TEMPLATES) == ()
    template["metadata"]["annotations"] = {LAUNCH_PRIORITY: "Ordered"}
    assert warnings_of(asked(toy(template)), TEMPLATES) == ()  # then nobody reads it


# Every place that a definition leaves open

LIST, REPEATED = "[]", "[0]"
LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
PATCH = {"spec": {"containers": [{"name": "main"}]}}
SIDE = {"name": "side", "image": "redis", "imagePullPolicy": "Always", "terminationMessagePolicy": "File"}
CLAIM = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
WORKLOAD = {"selector": SELECTOR, "template": GOOD, "volumeClaimTemplates": [CLAIM]}
TASK = {"template": {**GOOD, "spec": {**GOOD["spec"], "restartPolicy": "Never"}}}
NATIVE = {"selector": SELECTOR, "template": GOOD}


def _spread_over(member: str, spec: Any) -> dict[str, Any]:
    template = {member: {"metadata": {"labels": LABELS}, "spec": spec}}
    return {
        "replicas": 2,
        "selector": SELECTOR,
        "template": template,
        "topology": {"subsets": [{"name": "a", "patch": PATCH}]},
    }


SPECS: dict[str, list[dict[str, Any]]] = {
    "CloneSet": [{"replicas": 1, **WORKLOAD}],
    "StatefulSet": [{"replicas": 1, **WORKLOAD}],
    "DaemonSet": [{"selector": SELECTOR, "template": GOOD}],
    "BroadcastJob": [TASK],
    "AdvancedCronJob": [
        {"schedule": "0 3 * * *", "template": {"jobTemplate": {"spec": TASK}}},
        {"schedule": "0 3 * * *", "template": {"broadcastJobTemplate": {"spec": TASK}}},
    ],
    "EphemeralJob": [{"selector": SELECTOR, "template": {"ephemeralContainers": [SIDE]}}],
    "UnitedDeployment": [
        _spread_over("cloneSetTemplate", WORKLOAD),
        _spread_over("advancedStatefulSetTemplate", WORKLOAD),
        _spread_over("deploymentTemplate", NATIVE),
        _spread_over("statefulSetTemplate", NATIVE),
    ],
    "SidecarSet": [
        {
            "selector": SELECTOR,
            "containers": [SIDE],
            "initContainers": [SIDE | {"name": "init"}],
            "volumes": [{"name": "v", "emptyDir": {}}],
        }
    ],
    "WorkloadSpread": [
        {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "subsets": [{"name": "a", "patch": PATCH}],
        }
    ],
}
LEFT_OPEN_ON_PURPOSE = {
    "metadata": "of the objects that are made: nothing but labels and annotations is taken from it",
    "inPlaceUpdate": "hooks of StatefulSets, in words of several versions",
    "preDelete": "the same",
    "preNormal": "the same",
    "updateStrategy": "CloneSets inside v1alpha1 may be written in both versions",
    "scaleStrategy": "the same",
    "resource": "any object: its own kind's fields are looked at by ResourceDistribution",
}


def _open_places(part: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if part.get("x-kubernetes-preserve-unknown-fields"):
        yield path
    for name, below in (part.get("properties") or {}).items():
        yield from _open_places(below, (*path, name))
    if isinstance(part.get("items"), dict):
        yield from _open_places(part["items"], (*path, LIST))


OPEN_PLACES = [
    pytest.param(
        definition["spec"]["group"],
        definition["spec"]["names"]["kind"],
        version["name"],
        place,
        id=f"{definition['spec']['names']['kind']}.{version['name']}:{'.'.join(place)}",
    )
    for feature in features()
    for definition in feature.definitions
    for version in definition["spec"]["versions"]
    for place in _open_places(version["schema"]["openAPIV3Schema"])
    if place[0] == "spec" and place[-1] not in LEFT_OPEN_ON_PURPOSE
]


def _misspelt(value: Any, path: tuple[str, ...]) -> tuple[Any, str] | None:
    """The same with a field that nobody knows there, and where it is; None where the value has no such place."""
    if not path:
        if isinstance(value, list):
            return [{**value[0], "misspelt": 1}, *value[1:]], f"{REPEATED}.misspelt"
        return {**value, "misspelt": 1}, ".misspelt"
    name, rest = path[0], path[1:]
    if name == LIST:
        found = _misspelt(value[0], rest)
        return found and ([found[0], *value[1:]], f"{REPEATED}{found[1]}")
    if name not in value:
        return None
    found = _misspelt(value[name], rest)
    return found and ({**value, name: found[0]}, f".{name}{found[1]}")


@pytest.mark.parametrize(("group", "kind", "version", "place"), OPEN_PLACES)
def test_every_place_that_a_definition_leaves_open(group: str, kind: str, version: str, place: tuple[str, ...]) -> None:
    """No API server complains there. A kind that comes later is among them by its definition alone."""
    tried = [found for spec in SPECS[kind] if (found := _misspelt({"spec": spec}, place)) is not None]
    assert tried, f"there is no {kind} here with {'.'.join(place)}"
    [subject] = [face.resource for face in faces() if face.group_kind == (group, kind)]
    gatekeeper, world = _gatekeeper(), World(VIEW.now)
    gatekeeper.enter(world)
    for body, where in tried:
        sent = {"apiVersion": f"{group}/{version}", "kind": kind, "metadata": {"name": "x", "namespace": "y"}, **body}
        gatekeeper.warnings.clear()
        with contextlib.suppress(RefusedError):
            gatekeeper.admitted(subject, Key("y", "x"), sent, None, world=world)
        assert f'unknown field "{where[1:]}"' in gatekeeper.warnings


@functools.cache
def _gatekeeper() -> Gatekeeper:
    return Gatekeeper(features(), Options())
