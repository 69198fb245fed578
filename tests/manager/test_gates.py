"""Feature gates: syntax, table and forced relations (MGR-10 to MGR-13)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.manager import gates
from kruise.manager.gates import FeatureGateError, parse, resolve


def test_defaults_are_those_of_the_table() -> None:
    resolved = resolve({})
    on = {name for name, value in resolved.items() if value}
    assert on == {
        "PodWebhook",
        "KruiseDaemon",
        "DaemonWatchingPod",
        "WorkloadSpread",
        "PodUnavailableBudgetDeleteGate",
        "InPlaceUpdateEnvFromMetadata",
        "StatefulSetAutoDeletePVC",
        "PodIndexLabel",
        "PodProbeMarkerGate",
    }
    assert len(resolved) == 36


def test_whitespace_is_tolerated_and_last_wins() -> None:  # MGR-10
    assert parse(" PodWebhook = false , KruiseDaemon=t,, PodWebhook=1") == {"PodWebhook": True, "KruiseDaemon": True}


def test_an_unknown_gate_is_refused_with_the_known_ones() -> None:  # MGR-88
    with pytest.raises(FeatureGateError, match=r"unknown feature gate 'PodWebhok'; known gates: .*PodWebhook"):
        parse("PodWebhok=true")


@pytest.mark.parametrize("text", ["PodWebhook", "PodWebhook=yes", "PodWebhook="])
def test_a_bad_value_is_refused(text: str) -> None:  # MGR-10
    with pytest.raises(FeatureGateError, match="PodWebhook"):
        parse(text)


def test_stage_switches_leave_explicit_choices_alone_in_any_order() -> None:  # MGR-10
    one = resolve(parse("CloneSetShortHash=false,AllAlpha=true"))
    other = resolve(parse("AllAlpha=true,CloneSetShortHash=false"))
    assert one == other
    assert not one["CloneSetShortHash"]
    assert one["TemplateNoDefaults"]
    assert not one["ResourcesDeletionProtection"]


def test_conformance_configuration() -> None:  # MGR-12
    resolved = resolve(parse("AllAlpha=true,AllBeta=true,EnableExternalCerts=false,TemplateNoDefaults=false"))
    assert {name for name, value in resolved.items() if not value} == {"EnableExternalCerts", "TemplateNoDefaults"}


def test_without_the_pod_webhook_what_needs_it_is_off() -> None:  # MGR-11
    resolved = resolve(parse("AllAlpha=true,AllBeta=true,PodWebhook=false"))
    assert not any(resolved[name] for name in gates._NEEDS_POD_WEBHOOK)
    assert resolved["ImagePullJobGate"]


def test_without_the_daemon_what_needs_it_is_off() -> None:  # MGR-11
    resolved = resolve(parse("AllAlpha=true,AllBeta=true,KruiseDaemon=false"))
    assert not any(resolved[name] for name in gates._NEEDS_DAEMON)


@pytest.mark.parametrize("gate", ["PreDownloadImageForInPlaceUpdate", "PreDownloadImageForDaemonSetUpdate"])
def test_pre_download_forces_pull_jobs(gate: str) -> None:  # MGR-11
    assert resolve(parse(f"{gate}=true,ImagePullJobGate=false"))["ImagePullJobGate"]


def test_cascading_crd_protection_needs_protection() -> None:  # MGR-11
    chosen = parse("DeletionProtectionForCRDCascadingGate=true")
    assert not resolve(chosen)["DeletionProtectionForCRDCascadingGate"]


def test_documented_spellings_are_accepted() -> None:  # MGR-13
    assert parse("EnhancedLivenessProbeGate=true") == {"EnhancedLivenessProbe": True}


def test_legacy_kind_list_without_sidecarset_turns_the_pod_webhook_off() -> None:  # PW-6
    assert not resolve({}, custom_resource_enable="CloneSet,StatefulSet")["PodWebhook"]
    assert resolve({}, custom_resource_enable="CloneSet, SidecarSet")["PodWebhook"]
    assert resolve({"PodWebhook": True}, custom_resource_enable="CloneSet")["PodWebhook"]


@given(st.dictionaries(st.sampled_from([*gates.GATES, "AllAlpha", "AllBeta"]), st.booleans()))
def test_relations_hold_for_every_choice(chosen: dict[str, bool]) -> None:
    resolved = resolve(chosen)
    assert resolved["PodWebhook"] or not any(resolved[name] for name in gates._NEEDS_POD_WEBHOOK)
    assert resolve({name: resolved[name] for name in gates.GATES}) == resolved
