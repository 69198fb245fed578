"""What configurations and conversion stanzas should say, and when nothing is to be written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kruise.admission.configurations import (
    ConfigurationError,
    ServiceEndpoint,
    UrlEndpoint,
    bundle_problems,
    complete,
    configuration_patch,
    definition_patch,
    entry_path,
    is_converted,
    live_bundles,
)
from kruise.api.meta import ObjectMeta
from kruise.api.native.extensions import (
    CustomResourceDefinition,
    DefinitionSpec,
    WebhookConfiguration,
)

SERVICE = ServiceEndpoint("kruise-system", "kruise-webhook-service")
URL = UrlEndpoint("10.0.0.1", 9876)
BUNDLE = b"CA"
ENCODED = "Q0E="


def entry(name: str, path: str, **more: Any) -> dict[str, Any]:
    service = {"namespace": "other", "name": "webhook-service", "path": path}
    rules = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
    return {
        "name": name,
        "clientConfig": {"service": service},
        "rules": rules,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **more,
    }


def configuration(*webhooks: dict[str, Any], template: str | None = None) -> WebhookConfiguration:
    annotations = {} if template is None else {"template": template}
    metadata = ObjectMeta(name="kruise-x", uid="u", resource_version="7", annotations=annotations)
    return WebhookConfiguration(kind="MutatingWebhookConfiguration", metadata=metadata, webhooks=webhooks)


def applied(live: WebhookConfiguration, patch: dict[str, Any]) -> WebhookConfiguration:
    """The object after our patch, with the defaults that the API server fills in."""
    annotations = {**live.metadata.annotations, **patch["metadata"].get("annotations", {})}
    return configuration(
        *(complete(item, live.kind) for item in patch["webhooks"]), template=annotations.get("template")
    )


def ensure(live: WebhookConfiguration, *active: str, endpoint: Any = SERVICE) -> dict[str, Any] | None:
    return configuration_patch(live, active=active, endpoint=endpoint, bundle=BUNDLE)


@pytest.mark.parametrize("template", [None, "", " "])
def test_first_sight_saves_the_list_as_template_and_fills_it_in(template: str | None) -> None:  # MGR-37, PW-50
    live = configuration(entry("a", "/a"), entry("b", "/b"), template=template)
    patch = ensure(live, "/a")
    assert patch is not None
    assert patch["metadata"]["resourceVersion"] == "7"
    assert json.loads(patch["metadata"]["annotations"]["template"]) == [entry("a", "/a"), entry("b", "/b")]
    assert [item["name"] for item in patch["webhooks"]] == ["a"]
    assert patch["webhooks"][0]["clientConfig"] == {
        "service": {"namespace": "kruise-system", "name": "kruise-webhook-service", "path": "/a", "port": 443},
        "caBundle": ENCODED,
    }


def test_nothing_is_written_when_it_is_right_whatever_the_server_filled_in() -> None:  # PW-50, PW section 9.12
    live = configuration(entry("a", "/a"))
    patch = ensure(live, "/a")
    assert patch is not None
    assert ensure(applied(live, patch), "/a") is None


def test_a_wiped_bundle_and_hand_edits_are_put_right() -> None:  # MGR-82, MGR-37
    live = configuration(entry("a", "/a"))
    patch = ensure(live, "/a")
    assert patch is not None
    right = applied(live, patch)
    wiped = dict(right.webhooks[0])
    wiped["clientConfig"] = {key: value for key, value in wiped["clientConfig"].items() if key != "caBundle"}
    for spoiled in (wiped, {**right.webhooks[0], "failurePolicy": "Ignore"}, {**right.webhooks[0], "extra": 1}):
        again = ensure(configuration(spoiled, template=right.metadata.annotations["template"]), "/a")
        assert again is not None
        assert again["webhooks"] == patch["webhooks"]
        assert "annotations" not in again["metadata"]
    assert ensure(configuration(template=right.metadata.annotations["template"]), "/a") is not None


def test_upgrade_with_the_old_template_kept_brings_the_old_list_back() -> None:  # MGR-83
    template = json.dumps([entry("old", "/a")])
    patch = ensure(configuration(entry("new", "/b"), template=template), "/a", "/b")
    assert patch is not None
    assert [item["name"] for item in patch["webhooks"]] == ["old"]


def test_upgrade_with_an_empty_template_makes_the_new_list_the_template() -> None:  # MGR-83
    patch = ensure(configuration(entry("new", "/b"), template=""), "/a", "/b")
    assert patch is not None
    assert json.loads(patch["metadata"]["annotations"]["template"])[0]["name"] == "new"


def test_entries_vanish_and_return_with_their_handlers() -> None:  # MGR-84
    live = configuration(entry("a", "/a"), entry("b", "/b"))
    patch = ensure(live, "/a", "/b")
    assert patch is not None
    both = applied(live, patch)
    patch = ensure(both, "/a")
    assert patch is not None
    one = applied(both, patch)
    assert [item["name"] for item in one.webhooks] == ["a"]
    patch = ensure(one, "/a", "/b")
    assert patch is not None
    assert [item["name"] for item in patch["webhooks"]] == ["a", "b"]
    patch = ensure(both)
    assert patch is not None
    assert patch["webhooks"] == []


def test_outside_the_cluster_entries_are_urls() -> None:  # MGR-37
    live = configuration(entry("a", "/a"))
    patch = ensure(live, "/a", endpoint=URL)
    assert patch is not None
    assert patch["webhooks"][0]["clientConfig"] == {"url": "https://10.0.0.1:9876/a", "caBundle": ENCODED}
    right = applied(live, patch)
    assert ensure(right, "/a", endpoint=URL) is None
    # A template that was taken from entries by URL still knows its paths.
    assert entry_path(right.webhooks[0]) == "/a"
    assert UrlEndpoint("fd00::1", 1).client_config("/x") == {"url": "https://[fd00::1]:1/x"}


@pytest.mark.parametrize("template", ["{", '{"a": 1}', "[1]", "null"])
def test_a_broken_template_is_named_with_a_remedy(template: str) -> None:
    with pytest.raises(ConfigurationError, match="kruise-x: annotation template is no list of webhooks"):
        ensure(configuration(template=template))


@pytest.mark.parametrize("client", [{}, None, 5, {"service": None}, {"url": 5}])
def test_entries_without_an_address_have_no_handler(client: Any) -> None:
    assert entry_path({"clientConfig": client}) not in ("/a", "/")
    assert ensure(configuration({"name": "x", "clientConfig": client}), "/a") is not None


def definition(conversion: dict[str, Any], group: str = "apps.kruise.io") -> CustomResourceDefinition:
    return CustomResourceDefinition(
        metadata=ObjectMeta(name="toys.x", uid="u"), spec=DefinitionSpec(group=group, conversion=conversion)
    )


def test_which_definitions_are_ours() -> None:  # MGR-38, PW-52
    assert is_converted(definition({"strategy": "Webhook"}))
    assert is_converted(definition({"strategy": "Webhook"}, group="policy.kruise.io"))
    assert not is_converted(definition({"strategy": "None"}))
    assert not is_converted(definition({}))
    assert not is_converted(definition({"strategy": "Webhook"}, group="rollouts.kruise.io"))


def test_the_conversion_stanza() -> None:  # MGR-38
    patch = definition_patch(definition({"strategy": "Webhook"}), endpoint=SERVICE, bundle=BUNDLE)
    assert patch is not None
    assert patch["spec"]["conversion"]["webhook"] == {
        "clientConfig": {
            "url": None,
            "service": {
                "namespace": "kruise-system",
                "name": "kruise-webhook-service",
                "path": "/convert",
                "port": 443,
            },
            "caBundle": ENCODED,
        },
        "conversionReviewVersions": ["v1", "v1beta1"],
    }
    stanza = {"clientConfig": {**SERVICE.client_config("/convert"), "caBundle": ENCODED}}
    stanza["conversionReviewVersions"] = ["v1", "v1beta1"]  # type: ignore[assignment]
    live = definition({"strategy": "Webhook", "webhook": stanza})
    assert definition_patch(live, endpoint=SERVICE, bundle=BUNDLE) is None
    assert definition_patch(live, endpoint=SERVICE, bundle=b"other") is not None
    moved = definition_patch(live, endpoint=URL, bundle=BUNDLE)
    assert moved is not None
    assert moved["spec"]["conversion"]["webhook"]["clientConfig"] == {
        "url": "https://10.0.0.1:9876/convert",
        "service": None,
        "caBundle": ENCODED,
    }


def test_live_bundles_are_collected_and_junk_is_left_out() -> None:
    bundles = [ENCODED, "no base64!", None, 5, ENCODED, "Qw=="]
    entries = [{"name": "x", "clientConfig": {"caBundle": bundle}} for bundle in bundles]
    assert live_bundles([configuration(*entries, {"name": "y"}), configuration()]) == b"CA" + b"C"


def test_external_certificates_are_only_compared() -> None:  # MGR-36
    good = {**entry("a", "/a"), "clientConfig": {"caBundle": ENCODED}}
    stanza = {"strategy": "Webhook", "webhook": {"clientConfig": {"caBundle": ENCODED}}}
    assert bundle_problems([configuration(good)], [definition(stanza)], BUNDLE) == []
    problems = bundle_problems([configuration(good, entry("b", "/b"))], [definition({"strategy": "Webhook"})], BUNDLE)
    assert problems == [
        "MutatingWebhookConfiguration kruise-x, entry b: caBundle is not the external CA",
        "CustomResourceDefinition toys.x: caBundle is not the external CA",
    ]
