"""Advanced StatefulSets on the local cluster, beyond what was recorded."""

from __future__ import annotations

from kruise.api.versions import NEWER
from tests.support.admission_scenarios import Stage
from tests.support.recorded_admission import Recorded
from tests.support.world import World, run_local

KIND = Recorded("statefulset")


def test_a_hook_tolerates_members_that_it_does_not_know() -> None:
    """ST-144: what is known to the schema as open is neither cut away nor refused by kubectl; anything else is."""

    async def scenario(world: World) -> None:
        base = KIND.base_of(NEWER)
        hook = {"exec": {"command": ["sh", "-c", "sleep 1"]}}
        spec = {**base["spec"], "lifecycle": {"preDelete": hook, "preDelet": hook}}
        made = await Stage(world, KIND).create({**base, "spec": spec})
        assert made["spec"]["lifecycle"] == {"preDelete": hook}

    run_local(scenario, features=(KIND.feature,))
