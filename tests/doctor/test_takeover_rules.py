"""What is in the way of a takeover. Pure."""

from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import pytest

from kruise.api.native.events import Lease
from kruise.api.native.extensions import CustomResourceDefinition
from kruise.api.native.pod import Pod
from kruise.doctor.rules.takeover import rules
from kruise.machinery.codec import convert
from kruise.manager.installation.documents import Named, named
from kruise.manager.installation.manifests import Style
from kruise.manager.installation.takeover import note as notes
from kruise.manager.installation.takeover.inheritance import Inheritance, inherited
from kruise.manager.installation.takeover.note import Note, NoteError, State
from kruise.manager.installation.takeover.standing import Standing, version_names
from kruise.manager.installation.takeover.steps import Bring, Keep, Mark, Remove, Stop, back, forward
from tests.support.installed import DEFINITIONS
from tests.support.openkruise import Json, definitions, installation

NOW = datetime(2030, 1, 1, tzinfo=UTC)
NAMESPACE = "kruise-system"
KNOWN = {
    Named("CustomResourceDefinition", "", name): version_names(definition) for name, definition in DEFINITIONS.items()
}
DEPLOYMENT = Named("Deployment", NAMESPACE, "kruise-controller-manager")
CLONESETS = Named("CustomResourceDefinition", "", "clonesets.apps.kruise.io")


def standing(**fields: Any) -> Standing:
    there = copy.deepcopy([*definitions(), *installation({})])
    usual: Json = {"now": NOW, "namespace": NAMESPACE, "live": {named(one): one for one in there}}
    return Standing(**{**usual, "has_older_definitions": True, **fields})


def found(seen: Standing, inheritance: Inheritance | None = None) -> dict[str, str]:
    """Codes, and what they are about."""
    return {one.code: one.about for one in rules(seen, inheritance or Inheritance({}), KNOWN)}


def changed(name: Named, *path: str | int, value: Any) -> Standing:
    seen = standing()
    part: Any = seen.live[name]
    for step in path[:-1]:
        part = part[step]
    part[path[-1]] = value
    return seen


def test_nothing_is_in_the_way_of_what_people_have() -> None:
    assert found(standing()) == {}
    assert set(found(Standing(now=NOW, namespace=NAMESPACE, live={}))) == {"nothing-to-take-over"}


MANAGER = ("spec", "template", "spec", "containers", 0)


@pytest.mark.parametrize(
    ("image", "is_known"),
    [
        ("openkruise/kruise-manager:v1.5.4", True),
        ("mirror.example.com:5000/kruise-manager:v1.8.2", True),
        ("openkruise/kruise-manager:v1.4.1", False),
        ("openkruise/kruise-manager:v1.10.0", False),
        ("openkruise/kruise-manager@sha256:1234", False),
    ],
)
def test_versions(image: str, is_known: bool) -> None:
    seen = changed(DEPLOYMENT, *MANAGER, "image", value=image)
    assert set(found(seen)) == (set() if is_known else {"untried-version"})


def test_settings_that_cannot_be_taken_over() -> None:
    arguments = ["--feature-gates=NoSuchGate=true,SidecarTerminator=true", "--ws-enabled-versioned-status=job"]
    seen = changed(DEPLOYMENT, *MANAGER, "args", value=arguments)
    inheritance = inherited(seen)
    assert inheritance.values["featureGates"] == "SidecarTerminator=true"
    assert inheritance.left == ("--ws-enabled-versioned-status=job",)
    assert set(found(seen, inheritance)) == {"unknown-gates", "arguments-stay-behind"}
    outside = changed(DEPLOYMENT, *MANAGER, "args", value=["--feature-gates=EnableExternalCerts=true"])
    assert set(found(outside)) == {"external-certificates"}  # MGR-36


def test_a_manager_that_is_none_of_the_pods() -> None:
    lease: Json = {
        "metadata": {"name": "kruise-manager", "namespace": NAMESPACE},
        "spec": {
            "holderIdentity": "laptop_1",
            "leaseDurationSeconds": 15,
            "renewTime": "2029-12-31T23:59:55.000000Z",
        },
    }
    assert set(found(standing(lease=convert(lease, Lease)))) == {"second-manager"}
    for host, node in (("laptop", "node-1"), ("manager-0", "laptop")):
        pod = {"metadata": {"name": host}, "spec": {"nodeName": node}}
        assert found(standing(lease=convert(lease, Lease), pods=[convert(pod, Pod)])) == {}
    # Broken off after it was stopped: its lease has not run out yet.
    begun = found(standing(lease=convert(lease, Lease), note=note(State.UNDER_WAY)))
    assert set(begun) == {"takeover-broken-off"}
    lease["spec"]["renewTime"] = "2029-12-31T23:00:00.000000Z"
    assert found(standing(lease=convert(lease, Lease))) == {}


def test_what_would_keep_ours_from_starting_or_reading() -> None:
    seen = changed(Named("Namespace", "", NAMESPACE), "metadata", "labels", value={})
    assert set(found(seen)) == {"no-way-to-start"}  # MGR-40
    seen = changed(CLONESETS, "status", value={"storedVersions": ["v1alpha0", "v1alpha1"]})
    assert found(seen) == {"unknown-stored-version": str(CLONESETS)}
    foreign = {"metadata": {"name": "rollouts.apps.kruise.io"}, "spec": {"group": "apps.kruise.io"}}
    assert set(found(standing(foreign=[convert(foreign, CustomResourceDefinition)]))) == {"unknown-kind"}
    assert set(found(standing(under_way=3))) == {"pods-under-way"}


def test_rights_that_others_have_given_to_the_accounts() -> None:
    """Bindings of OpenKruise's own go with it; those of people stay, and are named."""

    def binding(name: str, role: str) -> Json:
        return {"kind": "ClusterRoleBinding", "metadata": {"name": name}, "roleRef": {"name": role}}

    certs = binding("kruise-certs-rolebinding", "kruise-certs-role")
    seen = standing(bindings=[certs, binding("games", "kruise-games"), binding("kruise-all", "cluster-admin")])
    told = [one for one in rules(seen, Inheritance({}), KNOWN) if one.code == "bound-besides"]
    assert [one.about for one in told] == ["clusterrolebinding/games", "clusterrolebinding/kruise-all"]
    removed = [step.name.name for step in forward(seen, [], since="now") if isinstance(step, Remove)]
    assert "kruise-certs-rolebinding" in removed
    assert "games" not in removed
    [keep] = [step for step in forward(seen, [], since="now") if isinstance(step, Keep)]
    assert named(certs) in keep.note.documents
    # One that came after the note was written could not be brought back.
    later = binding("kruise-later-rolebinding", "kruise-later-role")
    again = forward(standing(bindings=[later], note=note(State.UNDER_WAY)), [], since="now")
    assert named(later) not in [step.name for step in again if isinstance(step, Remove)]


@pytest.mark.parametrize(
    ("mark", "tool"),
    [
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "Helm"),
        ({"annotations": {"argocd.argoproj.io/tracking-id": "kruise:apps/Deployment"}}, "Argo CD"),
        ({"labels": {"kustomize.toolkit.fluxcd.io/name": "kruise"}}, "Flux"),
        ({"labels": {"app.kubernetes.io/managed-by": "someone"}}, ""),
    ],
)
def test_tools_that_would_bring_it_back(mark: Json, tool: str) -> None:
    [(key, value)] = mark.items()
    seen = changed(DEPLOYMENT, "metadata", key, value=value)
    assert found(seen) == ({"managed-elsewhere": tool} if tool else {})


def note(state: State) -> Note:
    return Note(state, "2030-01-01T00:00:00Z", "openkruise/kruise-manager:v1.9.0", standing().live)


def test_what_has_begun_or_is_done() -> None:
    assert set(found(standing(note=note(State.DONE)))) == {"taken-over"}
    assert set(found(standing(note=note(State.UNDER_WAY)))) == {"takeover-broken-off"}
    assert set(found(standing(note=note(State.GOING_BACK)))) == {"takeover-broken-off"}


@pytest.mark.parametrize(("label", "style"), [("controller-manager", Style.PLAIN), ("openkruise", Style.CHART)])
def test_ours_escape_the_webhooks_that_are_registered(label: str, style: Style) -> None:  # MGR-40
    where = Named("Namespace", "", NAMESPACE)
    assert changed(where, "metadata", "labels", "control-plane", value=label).style is style


@pytest.mark.parametrize(("plural", "stored"), [("sidecarsets", "v1alpha1"), ("statefulsets", "v1beta1")])
def test_objects_stay_stored_as_the_version_of_openkruise_stores_them(plural: str, stored: str) -> None:
    """Older ones have SidecarSets in v1alpha1 alone."""
    name = f"{plural}.apps.kruise.io"
    seen = standing()
    spec = seen.live[Named("CustomResourceDefinition", "", name)]["spec"]
    if stored == "v1alpha1":
        spec["versions"] = [{**spec["versions"][0], "storage": True}]
    [bring] = [step for step in forward(seen, [DEFINITIONS[name]], since="now") if isinstance(step, Bring)]
    versions = bring.manifests[0]["spec"]["versions"]
    assert {one["name"]: one["storage"] for one in versions} == {
        "v1alpha1": stored == "v1alpha1",
        "v1beta1": stored == "v1beta1",
    }
    assert [one["served"] for one in versions] == [True, True]
    assert list(bring.news) == ([f"{plural} v1beta1"] if stored == "v1alpha1" else [])


def test_the_note_comes_before_any_change_and_is_not_written_twice() -> None:
    first = forward(standing(), [], since="now")
    assert [type(step) for step in first[:2]] == [Keep, Stop]
    again = forward(standing(note=note(State.UNDER_WAY)), [], since="now")
    assert isinstance(again[0], Stop)
    turned = forward(standing(note=note(State.GOING_BACK)), [], since="now")
    assert turned[0] == Mark(State.UNDER_WAY)
    with pytest.raises(ValueError, match="no note"):
        back(standing(), [])


def test_a_note_says_what_was_written_into_it() -> None:
    kept = note(State.DONE)
    written = notes.written(kept, NAMESPACE)
    assert notes.read(written) == kept
    assert sum(map(len, written["binaryData"].values())) < 500_000, "a ConfigMap holds a mebibyte"
    key = next(iter(written["binaryData"]))
    with pytest.raises(NoteError, match="no way back"):
        notes.read({**written, "binaryData": {key: "bm90aGluZw=="}})
