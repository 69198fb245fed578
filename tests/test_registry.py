"""Where kinds are found: their doors, what packages of others bring, and what is wrong with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from kruise import kinds
from kruise.faces import native
from kruise.faces.face import Face, Pods
from kruise.feature import Feature
from kruise.manager.options import Options
from kruise.readiness.controller import FEATURE as READINESS
from kruise.registry import Entry, Installed, Registry, installed
from kruise.workloads.cloneset.controller import FEATURE as CLONE_SETS
from tests.support.distributions import install_toy, write_distribution

TROUPE = Installed("Troupe.toy.pykruise.dev", "tests.toy", "troupe-kind")
CLONE_SET = Entry("apps.kruise.io", "CloneSet", "kruise.workloads.cloneset")


def registry(*found: Installed, own: Sequence[Entry] = (CLONE_SET,)) -> Registry:
    return Registry(own, natives=native.FACES, installed=lambda: found)


def test_a_kind_is_one_line() -> None:
    """The toy beside the kinds of this build."""
    known = registry(own=(CLONE_SET, Entry("toy.pykruise.dev", "Troupe", "tests.toy")))
    face = known.face_of("toy.pykruise.dev", "Troupe")
    assert face is not None
    assert face in known.faces
    assert [feature.name for feature in known.features] == ["cloneset", "troupe"]


def test_kinds_of_the_same_name_live_side_by_side() -> None:
    assert kinds.face_of("apps", "StatefulSet") is native.STATEFUL_SET
    assert kinds.face_of("apps.kruise.io", "StatefulSet") is not native.STATEFUL_SET


def test_an_installed_package_brings_a_kind() -> None:
    known = registry(TROUPE)
    face = known.face_of("toy.pykruise.dev", "Troupe")
    assert face is not None
    assert face in known.faces
    assert face not in known.built_in
    assert [feature.name for feature in known.features] == ["cloneset", "troupe"]
    feature = known.feature_of("toy.pykruise.dev", "Troupe")
    assert feature is not None
    assert [spec.name for spec in feature.controllers(Options())] == [face.controller]
    assert known.problems == ()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (Installed("Ghost.example.com", "no_such_package", "x"), "ModuleNotFoundError: No module named"),
        (Installed("Ghost.example.com", "kruise.admission", "x"), "No module named 'kruise.admission.face'"),
        (Installed("Ghost.example.com", "tests.toy", "x"), "tests.toy.face is about Troupe.toy.pykruise.dev"),
        (Installed("Ghost.example.com", "kruise.faces", "x"), "kruise.faces.face has no Face called FACE"),
        (Installed("CloneSet.apps.kruise.io", "tests.toy", "x"), "this kind is built in"),
        (Installed("StatefulSet.apps", "tests.toy", "x"), "this kind is built in"),
        (TROUPE._replace(distribution="x"), "troupe-kind brings it already"),
    ],
)
def test_what_cannot_be_used_is_told_of_and_stops_nobody(wrong: Installed, why: str) -> None:
    known = registry(TROUPE, wrong)
    assert known.face_of("toy.pykruise.dev", "Troupe") is not None
    assert [feature.name for feature in known.features] == ["cloneset", "troupe"]
    [problem] = known.problems
    assert problem.startswith(f'kind "{wrong.name}" of the package x is left out: ')
    assert why in problem


@pytest.mark.parametrize(
    ("feature", "why"),
    [
        (Feature(name="cloneset"), "there is another feature 'cloneset'"),
        (Feature(name="x", flags=CLONE_SETS.flags), "there is another flag"),
        (Feature(name="x", controllers=CLONE_SETS.controllers), "there is another controller 'cloneset-controller'"),
        (Feature(name="x", webhooks=CLONE_SETS.webhooks), "two handlers for /mutate-apps-kruise-io-cloneset"),
        (Feature(name="x", pod_mutations=READINESS.pod_mutations), "pod step READINESS_GATE is registered twice"),
        (Feature(name="x", controllers=lambda settings: 1 / 0), "ZeroDivisionError"),  # type: ignore[arg-type,return-value]
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_feature_that_gets_in_the_way_of_another_is_left_out(
    feature: Feature, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.toy.controller.FEATURE", feature)
    known = Registry((CLONE_SET,), without_kind=("kruise.readiness",), natives=native.FACES, installed=lambda: [TROUPE])
    assert [one.name for one in known.features] == ["cloneset", "readiness"]
    [problem] = known.problems
    assert problem.startswith('kind "Troupe.toy.pykruise.dev" of the package troupe-kind is left out: ')
    assert why in problem


def test_what_is_built_in_is_known_without_a_look_at_what_is_installed() -> None:
    def never() -> list[Installed]:
        raise AssertionError("it takes time to look")

    known = Registry((CLONE_SET,), natives=native.FACES, installed=never)
    assert known.face_of("apps.kruise.io", "CloneSet") in known.built_in
    assert known.face_of("apps", "Deployment") is native.DEPLOYMENT
    assert known.feature_of("apps.kruise.io", "CloneSet") is not None


def test_entry_points_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install_toy(tmp_path)
    write_distribution(tmp_path, "other-kind", {"Ghost.example.com": "ghost"})
    monkeypatch.syspath_prepend(str(tmp_path))
    assert set(installed()) == {
        Installed("Troupe.toy.pykruise.dev", "troupe", "troupe-kind"),
        Installed("Ghost.example.com", "ghost", "other-kind"),
    }


def test_faces_are_light() -> None:
    """Every command loads them: no code that decides, no structs of the kinds."""
    code = "import sys; from kruise import kinds; kinds.REGISTRY.built_in; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    heavy = ("kruise.machinery.plan", "kruise.api.apps.cloneset", "kruise.feature", "importlib.metadata")
    assert "kruise.workloads.cloneset.face" in loaded
    assert [name for name in heavy if name in loaded] == []


@pytest.mark.parametrize("face", kinds.faces(), ids=str)
def test_every_face_is_whole(face: Face) -> None:
    """What it refers to can be loaded, and fits."""
    forecast = face.forecast_facts()
    if forecast is not None:
        assert (forecast.resource.group, forecast.resource.kind) == face.group_kind
        assert forecast.resource.version == face.resource.version
    if face.progress is not None and face.pods is not Pods.NONE:
        assert face.settings
    if face.is_ours:
        feature = kinds.feature_of(*face.group_kind)
        assert feature is not None
        [definition] = [
            one
            for one in feature.definitions
            if (one["spec"]["group"], one["spec"]["names"]["kind"]) == face.group_kind
        ]
        names, versions = definition["spec"]["names"], definition["spec"]["versions"]
        assert (names["plural"], tuple(names.get("shortNames", ()))) == (face.resource.plural, face.short_names)
        assert tuple(version["name"] for version in versions if version["served"]) == face.versions
