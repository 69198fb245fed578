"""The pod model against a real API server: the same template goes to both, and both say the same.

With `KRUISE_RECORD=1` the answers are written down for the tests that have no server (`tests/api/core/recorded.py`).
"""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kruise.api.core import defaults, schema, validation
from kruise.machinery.patches import merge
from tests.api.core import comparison, recorded
from tests.api.core.accepted_cases import accepted_cases
from tests.api.core.accepted_cases import template as make_template
from tests.api.core.comparison import Answer
from tests.api.core.generated_cases import generated_cases
from tests.api.core.refused_cases import refused_cases
from tests.api.core.update_cases import BASES, EPHEMERAL, STATUSES, UPDATES
from tests.support.examples import EXAMPLES
from tests.support.realcluster import ControlPlane

pytestmark = pytest.mark.long

SERVICE_ACCOUNTS = ("sa", "new")


class Server:
    """Dry-run requests over one connection."""

    def __init__(self, cluster: ControlPlane, namespace: str) -> None:
        address = urllib.parse.urlsplit(cluster.url)
        assert address.hostname is not None
        self.connection = http.client.HTTPSConnection(
            address.hostname, address.port, context=cluster.ssl_context(), timeout=30
        )
        self.namespace = namespace

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        text = None if body is None else json.dumps(body)
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        self.connection.request(method, path, text, {"Content-Type": kind})
        response = self.connection.getresponse()
        return response.status, json.loads(response.read())

    def _create(self, plural: str, body: Any) -> tuple[int, Any]:
        query = "dryRun=All&fieldValidation=Ignore"
        return self.request("POST", f"/api/v1/namespaces/{self.namespace}/{plural}?{query}", body)

    def template_answer(self, template: Any) -> Answer:
        status, body = self._create("podtemplates", {"metadata": {"name": "t"}, "template": template})
        return comparison.server_answer(status, body, "template")

    def pod_answer(self, template: Any) -> Answer:
        status, body = self._create("pods", comparison.pod_of(template, self.namespace))
        return comparison.server_answer(status, body, "")


@pytest.fixture
def server(control_plane: ControlPlane, namespace: str) -> Iterator[Server]:
    server = Server(control_plane, namespace)
    for name in SERVICE_ACCOUNTS:
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        assert server.request("POST", path, {"metadata": {"name": name}})[0] == 201
    yield server
    server.connection.close()


class Tally:
    """Compares answers and counts them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.differences: list[str] = []

    def compare(self, what: str, ours: Answer, theirs: Answer) -> None:
        if "other" in theirs:
            # An admission plugin refused it (no such service account), so that validation was not reached.
            self.counts["not comparable"] += 1
            return
        (outcome,) = theirs
        difference = comparison.difference(ours, theirs)
        if difference:
            self.differences.append(f"{what}:\n  {difference}")
            return
        self.counts[f"{outcome}, equal"] += 1
        if outcome == "refused":
            self.counts["refused in the same words"] += comparison.same_messages(ours, theirs)

    def report(self, title: str) -> None:
        print(f"\n{title}: " + ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items())))
        assert not self.differences, "\n".join(self.differences)


def _compare_all(server: Server, templates: Mapping[str, Any], title: str) -> tuple[Tally, list[dict[str, Any]]]:
    tally, answers = Tally(), []
    for name, template in templates.items():
        as_template, as_pod = server.template_answer(template), server.pod_answer(template)
        tally.compare(f"template {name!r}", comparison.template_answer(template), as_template)
        tally.compare(f"pod {name!r}", comparison.pod_answer(template), as_pod)
        answers.append({"name": name, "template": as_template, "pod": as_pod})
    tally.report(title)
    return tally, answers


def _shortened(answer: dict[str, Any], is_told: Callable[[str], bool]) -> dict[str, Any]:
    """A recorded case without what says nothing new, to keep the file small."""
    pod = answer["pod"]
    same = comparison.without_prefix(answer["template"]) == pod
    if "other" in pod or same or ("stored" in pod and not is_told(answer["name"])):
        return {key: value for key, value in answer.items() if key != "pod"}
    return answer


@pytest.mark.smoke
def test_accepted_templates_get_the_same_defaults(server: Server) -> None:
    """Defaults, canonical form and quality of service are those of the API server, in templates and in pods."""
    tally, answers = _compare_all(server, accepted_cases(), "accepted")
    assert tally.counts["stored, equal"] > 300
    if recorded.is_recording():
        recorded.write("accepted", (_shortened(answer, lambda name: ": " not in name) for answer in answers))


@pytest.mark.smoke
def test_refused_templates_are_refused_for_the_same_fields(server: Server) -> None:
    """The set of reasons and fields is the same, and nearly always the words are too."""
    tally, answers = _compare_all(server, refused_cases(), "refused")
    assert tally.counts["refused, equal"] > 500
    assert tally.counts["undecodable, equal"] > 20
    assert tally.counts["refused in the same words"] > 0.99 * tally.counts["refused, equal"]
    if recorded.is_recording():
        recorded.write("refused", (_shortened(answer, lambda _: True) for answer in answers))


@pytest.mark.smoke
def test_generated_templates(server: Server) -> None:
    """Templates drawn at random from the table of types: accepted and refused alike."""
    templates = generated_cases(300)
    tally, answers = _compare_all(server, templates, "generated")
    assert tally.counts["stored, equal"] > 250
    assert tally.counts["refused, equal"] > 150
    if recorded.is_recording():
        kept = [_shortened(answer, lambda _: False) for answer in answers[: recorded.GENERATED]]
        recorded.write("generated", ({**answer, "sent": templates[answer["name"]]} for answer in kept))


@pytest.mark.smoke
def test_templates_inside_a_deployment(server: Server) -> None:
    """The place of the template shows in the fields, and a Deployment's pods always restart."""
    tally = Tally()
    path = f"/apis/apps/v1/namespaces/{server.namespace}/deployments?dryRun=All&fieldValidation=Ignore"
    # Labels are needed for the selector, wrong types have no causes, deadlines are the Deployment's own business.
    other = ("label:", "type:", "deadline")
    cases = [case for name, case in refused_cases().items() if not name.startswith(other)][::4]
    cases += [make_template(restartPolicy=policy) for policy in ("Never", "x")]
    for case in cases:
        sent = {**case, "metadata": {**(case.get("metadata") or {}), "labels": {"app": "x"}}}
        spec = {"selector": {"matchLabels": {"app": "x"}}, "template": sent}
        theirs = comparison.server_answer(
            *server.request("POST", path, {"metadata": {"name": "d"}, "spec": spec}), "spec"
        )
        errors = validation.validate_pod_template(
            defaults.stored_template(sent), "spec.template", restart_policies=("Always",)
        )
        if errors:  # a few cases are refused in pods only
            tally.compare(repr(sent), comparison.refusal(errors), theirs)
        else:
            assert "stored" in theirs, sent
    tally.report("deployments")
    assert tally.counts["refused, equal"] > 50


def test_many_generated_templates(server: Server) -> None:
    """The same with more seeds than anyone looked at."""
    tally, _ = _compare_all(server, generated_cases(1000 * EXAMPLES, start=1000), "many generated")
    assert tally.counts["stored, equal"] > 1000 * EXAMPLES


@pytest.mark.smoke
def test_updates_of_pods(server: Server) -> None:
    """What may change in a pod and through its subresources, and how a refusal reads."""
    path = f"/api/v1/namespaces/{server.namespace}/pods"
    names = {base: f"base-{position}" for position, base in enumerate(BASES)}
    for base, spec in BASES.items():
        body = {"metadata": {"name": names[base]}, "spec": {**spec, "automountServiceAccountToken": False}}
        status, answer = server.request("POST", path, body)
        assert status == 201, answer
    tally, answers, bases = Tally(), [], {}
    for base, statuses in STATUSES.items():
        assert server.request("PATCH", f"{path}/{names[base]}/status", {"status": statuses})[0] == 200
    for base, ephemeral in EPHEMERAL.items():
        body = {"spec": {"ephemeralContainers": ephemeral}}
        assert server.request("PATCH", f"{path}/{names[base]}/ephemeralcontainers", body)[0] == 200
    for name, (base, subresource, patch) in UPDATES.items():
        old, theirs = _updated(server, f"{path}/{names[base]}", subresource, patch)
        tally.compare(name, comparison.update_answer(merge.apply(old, patch), old, subresource), theirs)
        old["metadata"].pop("managedFields", None)
        bases[base] = {"name": base, "pod": {key: old[key] for key in ("metadata", "spec", "status")}}
        answers.append({"name": name, "update": theirs})
    tally.report("updates")
    assert tally.counts["accepted, equal"] > 25
    assert tally.counts["refused in the same words"] == tally.counts["refused, equal"] > 50
    if recorded.is_recording():
        recorded.write("base", bases.values())
        recorded.write("update", answers)


def _updated(server: Server, path: str, subresource: str, patch: Any) -> tuple[dict[str, Any], Answer]:
    """The pod, and the answer to its update. The scheduler writes to pods too, so a conflict means once more."""
    for _ in range(20):
        status, old = server.request("GET", path)
        assert status == 200, old
        place = f"{path}/{subresource}" if subresource else path
        status, body = server.request("PUT", f"{place}?dryRun=All", merge.apply(old, patch))
        if status != 409:
            return old, comparison.server_update_answer(status, body)
    raise AssertionError(f"{path} never rests")


def _check_type(definitions: Mapping[str, Any], definition: str, struct: str, seen: dict[str, int]) -> None:
    if struct in seen:
        return
    published = definitions[definition].get("properties", {})
    ours = schema.struct_type(struct).by_name
    assert set(ours) == set(published), struct
    seen[struct] = len(ours)
    for name, field in ours.items():
        shown = published[name]
        strategies = frozenset(filter(None, shown.get("x-kubernetes-patch-strategy", "").split(",")))
        assert (strategies, shown.get("x-kubernetes-patch-merge-key", "")) == (field.strategies, field.merge_key), name
        wire_type = field.type
        while wire_type.startswith((schema.LIST, schema.MAP)):
            shown = shown.get("items") or shown.get("additionalProperties") or {}
            wire_type = wire_type[2:]
        if schema.is_struct(wire_type) and "$ref" in shown:
            _check_type(definitions, shown["$ref"].removeprefix("#/definitions/"), wire_type, seen)


@pytest.mark.smoke
def test_the_table_says_what_the_server_publishes(server: Server) -> None:
    """Field names, patch strategies and merge keys of every kind in the table."""
    status, document = server.request("GET", "/openapi/v2")
    assert status == 200
    definitions = document["definitions"]
    kinds = {
        "/".join(filter(None, (kind["group"], kind["version"], kind["kind"]))): name
        for name, definition in definitions.items()
        for kind in definition.get("x-kubernetes-group-version-kind", ())
        if name.startswith(("io.k8s.api.", "io.k8s.apiextensions-apiserver."))
    }
    seen: dict[str, int] = {}
    checked = 0
    for kind, struct in schema.table()["kinds"].items():
        if kind in kinds:
            _check_type(definitions, kinds[kind], struct, seen)
            checked += 1
    print(f"\ntable: {checked} kinds, {len(seen)} types, {sum(seen.values())} fields")
    assert checked > 45
    assert len(seen) > 300
