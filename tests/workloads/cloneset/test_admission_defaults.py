"""Defaults of CloneSets, beyond what was recorded: v1beta1, gates, and what must stay as it is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.admission.decisions import Allow, Change, Deny
from kruise.machinery.patches import merge
from kruise.machinery.revisions import template_data
from kruise.workloads.cloneset import admission
from tests.support.admission import Json, request, stored
from tests.workloads.cloneset.admission_model import Server, cloneset

SERVER = Server()
NO_DEFAULTS = Server(gates={"TemplateNoDefaults": True})
CLAIM: Json = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "0.0001"}}},
}


def strategy_of(spec: Json, **options: Any) -> Json:
    result: Json = SERVER.defaults(cloneset(spec, **options))["spec"]["updateStrategy"]
    return result


def test_a_silent_author_gets_a_rolling_update() -> None:
    """CS-30, v1beta1."""
    spec = SERVER.defaults(cloneset({"replicas": None}))["spec"]
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 10)
    rolling = {"podUpdatePolicy": "ReCreate", "partition": 0, "maxUnavailable": "20%", "maxSurge": 0}
    assert spec["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}


@pytest.mark.parametrize("policy", ["InPlaceIfPossible", "InPlaceOnly"])
def test_in_place_policies_get_a_strategy_of_their_own(policy: str) -> None:
    """CS-30."""
    given_policy = {"updateStrategy": {"rollingUpdate": {"podUpdatePolicy": policy}}}
    assert strategy_of(given_policy)["rollingUpdate"]["inPlaceUpdateStrategy"] == {}


def test_what_is_given_stays() -> None:
    """CS-30: explicit zeros are values."""
    rolling = {
        "podUpdatePolicy": "InPlaceOnly",
        "partition": "33.5%",
        "maxUnavailable": 0,
        "maxSurge": "10%",
        "inPlaceUpdateStrategy": {"gracePeriodSeconds": 3},
    }
    spec = {"replicas": 0, "revisionHistoryLimit": 0, "updateStrategy": {"rollingUpdate": rolling}}
    result = SERVER.defaults(cloneset(spec))["spec"]
    assert (result["replicas"], result["revisionHistoryLimit"]) == (0, 0)
    assert result["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}


def test_on_delete_gets_nothing() -> None:
    """CS-30: v1beta1 with OnDelete."""
    assert strategy_of({"updateStrategy": {"type": "OnDelete"}}) == {"type": "OnDelete"}
    partial = {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 2}}
    assert strategy_of({"updateStrategy": partial}) == partial


def test_null_is_absent() -> None:
    """CS-30: a client may write null for what it does not set."""
    sent = cloneset()
    sent["spec"].update(replicas=None, updateStrategy={"type": None, "rollingUpdate": {"partition": None}})
    spec = SERVER.defaults(sent)["spec"]
    assert (spec["replicas"], spec["updateStrategy"]["type"]) == (1, "RollingUpdate")
    assert spec["updateStrategy"]["rollingUpdate"]["partition"] == 0


def test_unknown_fields_survive() -> None:
    """What nobody here knows is the API server's to prune."""
    sent = cloneset({"foo": {"bar": 1}})
    sent["spec"]["updateStrategy"] = {"later": True}
    spec = SERVER.defaults(sent)["spec"]
    assert spec["foo"] == {"bar": 1}
    assert spec["updateStrategy"]["later"] is True


def test_claim_templates_get_a_phase_and_rounded_amounts() -> None:
    """CS-32: but no volume mode."""
    claim = SERVER.defaults(cloneset({"volumeClaimTemplates": [CLAIM]}))["spec"]["volumeClaimTemplates"][0]
    assert claim["status"] == {"phase": "Pending"}
    assert claim["spec"]["resources"] == {"requests": {"storage": "1m"}}
    assert "volumeMode" not in claim["spec"]


def test_host_ports_only_with_the_gate() -> None:
    """CS-31: gate DefaultHostNetworkHostPortsInPodTemplates."""
    containers = [{"name": "main", "image": "nginx", "ports": [{"containerPort": 80}]}]
    sent = cloneset({"template": {"spec": {"hostNetwork": True, "containers": containers}}})
    gate = Server(gates={"DefaultHostNetworkHostPortsInPodTemplates": True})
    ports = [
        server.defaults(sent)["spec"]["template"]["spec"]["containers"][0]["ports"][0].get("hostPort")
        for server in (SERVER, gate)
    ]
    assert ports == [None, 80]


def test_no_template_defaults_with_the_gate() -> None:
    """CS-31: gate TemplateNoDefaults; the rest still gets its defaults."""
    sent = cloneset({"volumeClaimTemplates": [CLAIM]})
    spec = NO_DEFAULTS.defaults(sent)["spec"]
    assert spec["template"] == sent["spec"]["template"]
    assert spec["volumeClaimTemplates"] == [CLAIM]
    assert spec["revisionHistoryLimit"] == 10


def test_a_bare_container_list_gives_the_same_revision() -> None:
    """CS-33: a merge patch that replaces the list by name and image."""
    old = stored(SERVER.defaults(cloneset()))
    bare = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "nginx:1.26"}]}}}}
    patched = SERVER.defaults(merge.apply(old, bare), old)["spec"]["template"]
    whole = SERVER.defaults(cloneset(bare["spec"]))["spec"]["template"]
    assert template_data(patched) == template_data(whole)


class TestUpdatesThatDoNotChangeTheTemplate:
    """CS-31: no defaults, and not a letter of the stored template changes."""

    def old(self) -> Json:
        resources = {"requests": {"cpu": "500m"}}
        container = {"name": "main", "image": "nginx:1.25", "resources": resources}
        return stored(SERVER.defaults(cloneset({"template": {"spec": {"containers": [container]}}})))

    def test_another_spelling_of_a_quantity(self) -> None:
        old = self.old()
        new = merge.apply(old, {"spec": {"replicas": 3}})
        new["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "0.5"
        assert SERVER.defaults(new, old)["spec"]["template"] == old["spec"]["template"]

    def test_the_patch_key_of_a_rollback(self) -> None:
        """CS-152: a rollback by merge patch leaves it behind."""
        old = self.old()
        new = merge.apply(old, {"spec": {"template": {"$patch": "replace"}}})
        assert SERVER.defaults(new, old)["spec"]["template"] == old["spec"]["template"]

    def test_a_template_stored_without_defaults(self) -> None:
        old = stored(NO_DEFAULTS.defaults(cloneset()))
        new = merge.apply(old, {"spec": {"replicas": 5}})
        assert SERVER.defaults(new, old)["spec"]["template"] == old["spec"]["template"]

    def test_a_stored_template_that_nobody_can_read(self) -> None:
        old = stored(cloneset({"template": {"spec": {"containers": "none"}}}))
        new = cloneset()
        assert SERVER.defaults(new, old) == SERVER.defaults(new)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"replicas": "2"}, "spec.replicas"),
        ({"replicas": 1.5}, "spec.replicas"),
        ({"updateStrategy": {"rollingUpdate": {"partition": [1]}}}, "spec.updateStrategy.rollingUpdate.partition"),
        ({"scaleStrategy": {"podsToDelete": ["a", 1]}}, "spec.scaleStrategy.podsToDelete[1]"),
        ({"template": {"spec": {"containers": "x"}}}, "spec.template.spec.containers"),
        (
            {"volumeClaimTemplates": [CLAIM, {"spec": {"accessModes": 1}}]},
            "spec.volumeClaimTemplates[1].spec.accessModes",
        ),
        ({"volumeClaimTemplates": [3]}, "spec.volumeClaimTemplates[0]"),
    ],
)
def test_wrong_types_are_refused_by_name(spec: Json, field: str) -> None:
    """Code 400, as the original answers; the text names the field."""
    answer = admission.default(request(cloneset(spec)), SERVER.view)
    assert isinstance(answer, Deny)
    assert (answer.code, answer.reason) == (400, "BadRequest")
    assert [(cause.field, cause.reason) for cause in answer.causes] == [(field, "FieldValueTypeInvalid")]
    assert answer.message.startswith(f"{field}: Invalid value: ")


def test_the_words_for_a_wrong_type() -> None:
    answer = admission.default(request(cloneset({"replicas": "2"})), SERVER.view)
    assert isinstance(answer, Deny)
    assert answer.message == "spec.replicas: Invalid value: must be an integer, not a string"


@pytest.mark.parametrize(("operation", "subresource"), [("DELETE", ""), ("CONNECT", ""), ("UPDATE", "status")])
def test_other_requests_pass(operation: str, subresource: str) -> None:
    asked = request(cloneset(), cloneset(), operation=operation, subresource=subresource)
    assert admission.default(asked, SERVER.view) == Allow()


class TestWarnings:
    """What is accepted but will not do what it seems to say."""

    @staticmethod
    def warnings(spec: Json, version: str = "v1beta1") -> tuple[str, ...]:
        said = admission.default(request(cloneset(spec, version=version), version=version), SERVER.view)
        assert isinstance(said, Change)
        return said.warnings

    def test_none_for_a_usual_object(self) -> None:
        assert self.warnings({"scaleStrategy": {"maxUnavailable": "20%"}}) == ()
        assert self.warnings({"replicas": 0, "scaleStrategy": {"maxUnavailable": 0}}) == ()
        assert self.warnings({"updateStrategy": {"type": "OnDelete"}}, "v1alpha1") == ()

    def test_settings_that_on_delete_loses(self) -> None:
        """CS-20: v1alpha1 only; v1beta1 keeps them."""
        strategy = {"type": "OnDelete", "partition": 1, "paused": True}
        (text,) = self.warnings({"updateStrategy": strategy}, "v1alpha1")
        assert text.endswith("partition, paused will not be kept")

    def test_pre_download_settings_that_are_annotations(self) -> None:
        """CS-22."""
        in_place = {"imagePreDownloadParallelism": 2}
        (text,) = self.warnings({"updateStrategy": {"inPlaceUpdateStrategy": in_place}}, "v1alpha1")
        assert "apps.kruise.io/image-predownload-parallelism" in text
        beta = {"updateStrategy": {"rollingUpdate": {"inPlaceUpdateStrategy": in_place}}}
        assert self.warnings(beta) == ()

    def test_a_scale_limit_that_lets_nothing_happen(self) -> None:
        for value in ("abc", 0, -1, "0%", "5"):
            (text,) = self.warnings({"scaleStrategy": {"maxUnavailable": value}})
            assert text.startswith("spec.scaleStrategy.maxUnavailable: ")


amounts = st.one_of(st.none(), st.integers(-3, 9), st.sampled_from(["10%", "0.5%", "-1%", "x", ""]))
rollouts = st.fixed_dictionaries(
    {},
    optional={
        "partition": amounts,
        "maxUnavailable": amounts,
        "maxSurge": amounts,
        "paused": st.booleans(),
        "podUpdatePolicy": st.sampled_from(["", "ReCreate", "InPlaceIfPossible", "InPlaceOnly", "Foo"]),
        "inPlaceUpdateStrategy": st.sampled_from([None, {}, {"gracePeriodSeconds": 5}]),
    },
)
types = st.sampled_from([None, "", "RollingUpdate", "OnDelete", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"])
strategies = st.one_of(
    st.none(),
    st.builds(lambda kind, rollout: {"type": kind, **rollout}, types, rollouts),
    st.builds(lambda kind, rollout: {"type": kind, "rollingUpdate": rollout}, types, st.none() | rollouts),
)


@settings(max_examples=80, deadline=None)
@given(strategy=strategies, version=st.sampled_from(["v1alpha1", "v1beta1"]), replicas=st.none() | st.integers(0, 5))
def test_defaults_are_final_and_change_nothing_that_was_said(
    strategy: Json | None, version: str, replicas: int | None
) -> None:
    """A second time adds nothing, on create and on update; what was set stays."""
    sent = cloneset(version=version)
    sent["spec"].update(replicas=replicas, updateStrategy=strategy)
    once = SERVER.defaults(sent, version=version)
    assert SERVER.defaults(once, version=version) == once
    assert SERVER.defaults(once, stored(once), version=version) == once
    for name, value in (strategy or {}).items():
        if value not in (None, "") and name != "rollingUpdate":
            assert once["spec"]["updateStrategy"][name] == value
