"""The chart as files. That Helm makes of it what `kruise install` applies is shown where Helm is (tests/real)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from kruise.admission.inventory import configurations
from kruise.kinds import features
from kruise.manager.installation.chart import chart_files, kustomize_files
from kruise.manager.installation.manifests import Style, manifests
from kruise.manager.installation.templating import (
    IsSet,
    MissingValueError,
    Not,
    Value,
    When,
    as_template,
    gate,
    resolved,
    text,
)
from kruise.manager.installation.values import SETTINGS, by_path, defaults, with_values
from kruise.manager.options import parse
from kruise.manager.webhooks import installed_by

GATES = {"On": True, "Off": False}
KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "Deployment")
VALUES: dict[str, Any] = {"a": {"b": 3}, "empty": [], "several": [1, 2], "flag": True}


@pytest.mark.parametrize(
    ("part", "plain"),
    [
        ({"k": Value("a.b")}, {"k": 3}),
        ({"k": text("x=", Value("a.b"), "%")}, {"k": "x=3%"}),
        ({"k": text(Value("flag"))}, {"k": "true"}),
        ({"k": When(IsSet("empty"), 1), "l": When(Not(IsSet("empty")), 1)}, {"l": 1}),
        ({"k": When(gate("Off", "On"), "yes", "no")}, {"k": "yes"}),
        ([When(gate("On"), [1, 2]), When(gate("Off"), 3), When(gate("On"), {"x": 1})], [1, 2, {"x": 1}]),
        ([0, When(IsSet("several"), Value("several"))], [0, 1, 2]),
        ([When(gate("On"), When(gate("Off"), 1, 2))], [2]),
    ],
)
def test_values_are_put_in(part: Any, plain: Any) -> None:
    assert resolved(part, VALUES, GATES) == plain


def test_a_value_that_nobody_declared_is_a_mistake() -> None:
    with pytest.raises(MissingValueError, match=r"a\.c"):
        resolved({"k": Value("a.c")}, VALUES, GATES)


def test_what_could_leave_a_key_with_nothing_below_it_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing below"):
        as_template({"k": {"l": When(gate("On"), 1)}})


def test_words_that_look_like_a_template_are_none() -> None:
    assert as_template({"k": "{{ x }}"}) == 'k: "{{ "{{" }} x }}"\n'


def test_the_file_of_values_has_the_defaults_with_their_meanings() -> None:
    files = chart_files(features(), "1.2.3")
    assert yaml.safe_load(files["values.yaml"]) == defaults()
    assert "# one of them leads; all answer webhooks" in files["values.yaml"]
    assert by_path(defaults()) == {setting.path: setting.default for setting in SETTINGS}


def test_the_schema_knows_every_value_and_no_other() -> None:
    schema = json.loads(chart_files(features(), "1.2.3")["values.schema.json"])
    manager = schema["properties"]["manager"]
    assert manager["additionalProperties"] is False
    assert manager["properties"]["replicas"]["type"] == ["integer", "string"]
    assert set(schema["properties"]) == {*defaults(), "global"}


@pytest.mark.parametrize(
    ("version", "semantic"),
    [
        ("0.1.0.dev0", "0.1.0-dev0"),
        ("1.2.3", "1.2.3"),
        ("1.2.3rc1", "1.2.3-rc1"),
        ("1.2.3rc2.dev0", "1.2.3-rc2.dev0"),
        ("0", "0"),
    ],
)
def test_versions_of_python_become_versions_of_helm(version: str, semantic: str) -> None:
    chart = yaml.safe_load(chart_files(features(), version)["Chart.yaml"])
    assert (chart["version"], chart["appVersion"]) == (semantic, version)


def test_the_kustomize_base_is_what_is_installed_with_one_manager() -> None:
    files = kustomize_files(features())
    resources = yaml.safe_load(files["kustomization.yaml"])["resources"]
    found = [document for name in resources for document in yaml.safe_load_all(files[name])]
    plain = manifests(features(), values={"featureGates": ""}, runs=["manager", "daemon"])
    names = [(m["kind"], m["metadata"]["name"]) for m in plain if m["kind"] != "PodDisruptionBudget"]
    assert sorted((m["kind"], m["metadata"]["name"]) for m in found) == sorted(names)
    [deployment] = [m for m in found if m["kind"] == "Deployment"]
    assert deployment["spec"]["replicas"] == 1
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == "manager:latest"


def test_a_component_of_kustomize_lets_new_pods_in() -> None:
    """Only what differs. That kustomize makes of it what is installed is shown where kubectl is (tests/real)."""
    files = kustomize_files(features())
    about = yaml.safe_load(files["pods-admitted/kustomization.yaml"])
    assert (about["kind"], about["patches"]) == ("Component", [{"path": "pods.yaml"}])
    configuration, deployment = yaml.safe_load_all(files["pods-admitted/pods.yaml"])
    assert configuration["metadata"]["name"] == "kruise-mutating-webhook-configuration"
    policies = {
        each["name"]: each["failurePolicy"] for each in json.loads(configuration["metadata"]["annotations"]["template"])
    }
    assert {name for name, policy in policies.items() if policy == "Ignore"} == {"mpod.kb.io"}
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert "--pod-failure-policy=Ignore" in container["args"]


@pytest.mark.parametrize("style", Style)
def test_what_is_chosen_for_new_pods_is_in_the_configuration_and_known_to_the_manager(style: Style) -> None:
    chosen = {"webhookConfiguration.failurePolicy.pods": "Ignore"}
    found = {
        m["kind"]: m for m in manifests(features(), style=style, values=chosen, runs=["manager"]) if m["kind"] in KINDS
    }
    [container] = found["Deployment"]["spec"]["template"]["spec"]["containers"]
    options = parse(container["args"], {})
    # What a manager with these arguments makes again is what was installed.
    labels = {"control-plane": "openkruise"} if style is Style.CHART else {}
    again = {m["kind"]: m for m in configurations(installed_by(labels, options))}
    for kind, made in again.items():
        assert json.loads(made["metadata"]["annotations"]["template"]) == json.loads(
            found[kind]["metadata"]["annotations"]["template"]
        )


def test_time_out_and_azure_are_chosen_without_the_chart_too() -> None:
    def entries(**values: Any) -> list[dict[str, Any]]:
        made = [m for m in manifests(features(), values=values) if m["kind"].endswith("WebhookConfiguration")]
        texts = [m["metadata"].get("annotations", {}).get("template", "[]") for m in made]
        live = [entry for m in made for entry in m.get("webhooks", [])]
        return [*live, *(entry for text in texts for entry in json.loads(text))]

    values = {"webhookConfiguration.timeoutSeconds": 7, "webhookConfiguration.aksIntegration": True}
    plain, chosen = entries(), entries(**values)
    assert all("timeoutSeconds" not in entry and "azure" not in str(entry) for entry in plain)
    assert all("azure" in str(entry["namespaceSelector"]) for entry in chosen)
    assert {entry["timeoutSeconds"] for entry in chosen} == {7}
    assert [entry["name"] for entry in chosen] == [entry["name"] for entry in plain]
    # Those that are live from the beginning are no others.
    external = "AllAlpha=true,AllBeta=true,EnableExternalCerts=true"
    assert entries(**values, featureGates=external) == chosen


def test_a_policy_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"failurePolicy\.pods is 'ignore': choose Fail or Ignore"):
        with_values({"webhookConfiguration.failurePolicy.pods": "ignore"})


def test_every_value_has_an_effect_or_says_that_it_has_none() -> None:
    """A value that nothing reads would be a promise."""
    files = "".join(chart_files(features(), "1").values())
    unread = {s.path for s in SETTINGS if f".Values.{s.path}" not in files and "no effect" not in s.meaning}
    assert unread == set()


def test_values_of_a_file_and_of_the_command_line_are_the_same() -> None:
    tree = {"manager": {"replicas": 3, "resources": {"limits": {"cpu": "1"}}}, "featureGates": "AllBeta=true"}
    assert with_values(by_path(tree))["manager"]["resources"] == {"limits": {"cpu": "1"}}


def test_the_page_lists_every_value_with_its_meaning() -> None:
    page = (Path(__file__).parents[3] / "docs" / "install.md").read_text()
    rows = {row[1].strip(" `"): row[3].strip() for line in page.splitlines() if len(row := line.split("|")) == 5}
    wanted = {s.path: " ".join(filter(None, [s.meaning, "(new)" if s.is_new else ""])) for s in SETTINGS}
    assert {path: rows.get(path) for path in wanted} == wanted
