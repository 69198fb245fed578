"""From a Deployment to a CloneSet (KK-4)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.documents import Json
from kruise.verbs import migration
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.lookup import find
from tests.verbs.objects import cloneset, native, template

ROUTE = migration.Route(find("deployment"), find("cloneset"))


def test_the_cloneset_does_what_the_deployment_does() -> None:  # KK-4
    deployment = native(
        "Deployment",
        replicas=4,
        paused=True,
        minReadySeconds=5,
        revisionHistoryLimit=3,
        strategy={"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 1}},
    )
    deployment["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "3", "team": "a"}
    deployment["metadata"]["finalizers"] = ["x/y"]
    made = migration.made_from(ROUTE, deployment, "web2", with_replicas=True)
    assert made == {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {
            "name": "web2",
            "namespace": "demo",
            "labels": {"app": "web"},
            "annotations": {"team": "a"},
            "finalizers": ["x/y"],
        },
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "template": template(),
            "revisionHistoryLimit": 3,
            "minReadySeconds": 5,
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {
                    "podUpdatePolicy": "ReCreate",
                    "paused": True,
                    "maxUnavailable": "25%",
                    "maxSurge": 1,
                },
            },
        },
    }
    assert migration.made_from(ROUTE, deployment, "web2", with_replicas=False)["spec"]["replicas"] == 0


def test_only_a_kind_that_stands_in_for_another_gets_its_pods() -> None:  # KK-4
    assert migration.route(ROUTE.source, ROUTE.destination) == ROUTE
    assert migration.route(ROUTE.destination, ROUTE.source) is None
    assert migration.route(find("sts"), ROUTE.destination) is None


def both(source: int, destination: int, available: int, *, observed: bool = True) -> tuple[Json, Json]:
    deployment = native("Deployment", replicas=source, status={"observedGeneration": 1 if observed else 0})
    return deployment, cloneset(replicas=destination, status={"availableReplicas": available})


@given(st.integers(0, 8), st.integers(0, 4), st.integers(-1, 8), st.integers(1, 4))
def test_pods_are_never_fewer_nor_more_than_promised(source: int, start: int, wanted: int, surge: int) -> None:  # KK-4
    """At every step the sum stays between what it was and max-surge more, and the journey ends where it should."""
    if wanted > source:
        with pytest.raises(VerbError, match="cannot be moved from it"):
            migration.begin(ROUTE, *both(source, start, start), replicas=wanted, max_surge=surge)
        return
    journey = migration.begin(ROUTE, *both(source, start, start), replicas=wanted, max_surge=surge)
    left, right, available = source, start, start
    for _ in range(100):
        step = migration.next_step(journey, *both(left, right, available))
        if step.is_done:
            break
        if step.raise_to is not None:
            right = step.raise_to
        elif step.lower_to is not None:
            left = step.lower_to
        else:
            available += 1
        assert source + start <= left + right <= source + start + surge
        assert left + available >= source + start, "pods go only when others are available"
    moved = source if wanted < 0 else wanted
    assert (left, right) == (source - moved, start + moved)


def test_a_step_waits_for_the_controllers() -> None:  # KK-4
    journey = migration.begin(ROUTE, *both(2, 0, 0), replicas=-1, max_surge=1)
    assert migration.next_step(journey, *both(2, 0, 0, observed=False)).message.startswith("waiting for the Deployment")


def test_somebody_else_who_scales_ends_it() -> None:
    journey = migration.begin(ROUTE, *both(2, 0, 0), replicas=-1, max_surge=1)
    with pytest.raises(VerbError, match="somebody else scales"):
        migration.next_step(journey, *both(5, 0, 0))


def test_a_surge_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="--max-surge must be 1 or more"):
        migration.begin(ROUTE, *both(2, 0, 0), replicas=-1, max_surge=0)
