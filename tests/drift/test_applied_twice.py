"""Applying what is there changes nothing, on the local cluster."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.kinds import features
from kruise.machinery.client.errors import ApiError
from tests.support.applied_twice import (
    GATES,
    NOT_APPLIED,
    WAYS,
    Case,
    applied_twice,
    apply,
    cases,
    create,
    drift,
    not_covered,
    resource_of,
)
from tests.support.world import LocalWorld, run_local


def test_every_manifest_in_every_version_by_every_way() -> None:
    async def scenario(world: LocalWorld) -> None:
        assert await applied_twice(world, features(), pause=2.0) == len(cases(features()))

    run_local(scenario, feature_gates=GATES)


def test_every_kind_has_a_manifest_in_every_version_that_is_served() -> None:
    """A new kind has to show one in its document, and is then among the cases by itself."""
    assert not_covered(features()) == []
    kinds = {str(case.manifest["kind"]) for case in cases(features())}
    served = {definition["spec"]["names"]["kind"] for feature in features() for definition in feature.definitions}
    assert served - kinds == NOT_APPLIED.keys()


def test_both_versions_of_a_manifest_are_among_the_cases() -> None:
    """What is written in one version is converted to the other, and applied in that one, too."""
    for origin, kind in (("persistentpodstate.md", "PersistentPodState"), ("imagepulljob.yaml", "ImagePullJob")):
        found = [case for case in cases(features()) if (case.origin, case.manifest["kind"]) == (origin, kind)]
        assert [str(case.manifest["apiVersion"]) for case in found] == [
            "apps.kruise.io/v1alpha1",
            "apps.kruise.io/v1beta1",
        ]
        assert found[0].manifest["spec"].keys() == found[1].manifest["spec"].keys()


TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "main", "image": "nginx:1.25"}]}}
SELECTOR = {"matchLabels": {"app": "x"}}
OLDER_WORDS: dict[str, dict[str, Any]] = {
    # SCS-1, SCS-3
    "SidecarSet": {"selector": SELECTOR, "namespace": "x", "containers": [{"name": "side", "image": "busybox:1.36"}]},
    # UD-5
    "UnitedDeployment": {
        "replicas": 0,
        "selector": SELECTOR,
        "template": {
            "cloneSetTemplate": {
                "metadata": {"labels": {"app": "x"}},
                "spec": {
                    "selector": SELECTOR,
                    "template": TEMPLATE,
                    "scaleStrategy": {"disablePVCReuse": True},
                    "updateStrategy": {"type": "InPlaceIfPossible", "maxUnavailable": 2},
                },
            }
        },
        "topology": {"subsets": [{"name": "a"}]},
    },
    "CloneSet": {
        "replicas": 0,
        "selector": SELECTOR,
        "template": TEMPLATE,
        "updateStrategy": {"type": "InPlaceIfPossible", "inPlaceUpdateStrategy": {"imagePreDownloadParallelism": 2}},
    },
}
"""What is stored in other words, or not at all. It is not read back as it was written."""


@pytest.mark.parametrize("kind", OLDER_WORDS)
def test_words_of_the_older_version_are_no_change_each_time(kind: str) -> None:
    """The API server compares in the version of the request, after admission."""
    manifest = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": kind, "metadata": {"name": "older"}}
    case = Case("older words", {**manifest, "spec": OLDER_WORDS[kind]})

    async def scenario(world: LocalWorld) -> None:
        resource = resource_of(case, features())
        await create(world, resource, case)
        await world.sleep(1)
        before = await world.get(resource, case.name)
        for way in WAYS:
            for _ in range(2):
                assert drift(before, await apply(world, resource, case, way)) == ""

    run_local(scenario, feature_gates=GATES)


def test_a_wrong_word_of_the_older_version_is_refused_all_the_same() -> None:
    """Although it would be read back as what is there."""
    manifest = {"apiVersion": "apps.kruise.io/v1alpha1", "kind": "CloneSet", "metadata": {"name": "older"}}
    spec = {"replicas": 0, "selector": SELECTOR, "template": TEMPLATE}
    right, wrong = (
        Case("older words", {**manifest, "spec": {**spec, "updateStrategy": {"type": word}}})
        for word in ("ReCreate", "Recreate")
    )

    async def scenario(world: LocalWorld) -> None:
        resource = resource_of(right, features())
        await create(world, resource, right)
        for way in WAYS:
            with pytest.raises(ApiError, match=r"spec\.updateStrategy\.type"):
                await apply(world, resource, wrong, way)

    run_local(scenario)
