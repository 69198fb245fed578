"""Applying what is there changes nothing, on the local cluster."""

from __future__ import annotations

from kruise.kinds import features
from tests.support.applied_twice import GATES, NOT_APPLIED, applied_twice, cases, not_covered
from tests.support.world import LocalWorld, run_local


def test_every_manifest_in_every_version_by_every_way() -> None:
    async def scenario(world: LocalWorld) -> None:
        assert await applied_twice(world, features()) == len(cases(features()))

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
