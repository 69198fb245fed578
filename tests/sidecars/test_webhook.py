"""The whole webhook of pods, with every step on: whatever pod comes, there is an answer, and what it had stays."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.admission.chain import PodChain, PodStep
from kruise.admission.decisions import Allow, Change, Deny, HandlerView
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.nodes import NAMESPACES, Namespace
from kruise.api.resource import Resource
from kruise.kinds import features
from kruise.machinery import codec
from kruise.machinery.store import Store
from kruise.sidecars.sidecarset import keys
from tests.admission.helpers import request_of
from tests.sidecars.sidecarset.test_fuzz import SETS, pods
from tests.support.examples import story_settings
from tests.support.sidecarsets import NOW, stored
from tests.support.world import EVERY_KIND

Json = dict[str, Any]
BARRIER = "KRUISE_CONTAINER_BARRIER"
VALUES = st.sampled_from(["", "1", "-5", "high", "true", "TRUE"])
VARIABLES = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(
                [
                    "KRUISE_CONTAINER_PRIORITY",
                    "KRUISE_TERMINATE_SIDECAR_WHEN_JOB_EXIT",
                    "KRUISE_TERMINATE_SIDECAR_IGNORE_EXIT_CODE",
                    BARRIER,
                ]
            )
        },
        optional={"value": VALUES, "valueFrom": st.just({"fieldRef": {"fieldPath": "metadata.name"}})},
    ),
    max_size=2,
)
OWNERS = st.sampled_from(["apps.kruise.io/v1beta1", "apps/v1", "batch/v1"])


def _chain() -> tuple[PodChain, dict[Resource[Any], Store[Any]]]:
    chain, stores = PodChain(), dict[Resource[Any], Store[Any]]()
    for feature in features():
        for step, mutate, needs in feature.pod_mutations(EVERY_KIND):
            chain.register(step, mutate, needs=needs)
            for watched in needs:
                known = stores.get(watched.resource)
                if known is not None:
                    known.add_indexes(watched)
                else:
                    stores[watched.resource] = Store(watched)
    return chain, stores


CHAIN, STORES = _chain()
for resource, store in STORES.items():
    found: list[Any] = []
    if resource == SIDECAR_SETS:
        found = [stored(one) for one in SETS]
    elif resource == NAMESPACES:
        found = [codec.convert({"metadata": {"name": "shop", "resourceVersion": "1"}}, Namespace)]
    store.replace(found, 7)


def asked(pod: Json) -> Any:
    view = HandlerView(now=NOW, seed=1, stores=STORES.__getitem__, gates=EVERY_KIND.gates)
    return CHAIN.decide(request_of(pod, kind="Pod", resource="pods"), view)


@story_settings(150)
@given(pod=pods, variables=VARIABLES, ordered=st.booleans(), owner=OWNERS | st.none(), named=st.booleans())
def test_every_pod_is_answered(pod: Json, variables: list[Json], ordered: bool, owner: str | None, named: bool) -> None:
    """PW-3, PW-9, PW-11, PW-19, SCS-131: never an exception; nothing is taken away, nobody's pull policy is touched,
    and asked again about its own answer it changes nothing."""
    metadata = pod["metadata"]
    if ordered:
        noted = {**(metadata.get("annotations") or {}), "apps.kruise.io/container-launch-priority": "Ordered"}
        metadata["annotations"] = noted
    if owner is not None:
        metadata["ownerReferences"] = [
            {"apiVersion": owner, "kind": "X", "name": "x", "uid": "u", "controller": True},
        ]
    metadata.pop("name", None)
    metadata["name" if named else "generateName"] = "p"
    for one in pod["spec"]["containers"][:1]:
        one["env"] = [*(one.get("env") or ()), *variables]
        one["imagePullPolicy"] = "Never"
    before = copy.deepcopy(pod)
    answer = asked(pod)
    assert pod == before
    if isinstance(answer, Deny):
        assert answer.message
        return
    if isinstance(answer, Allow):
        return
    assert isinstance(answer, Change), answer
    whole = dict(answer.object)
    for part in ("containers", "initContainers"):
        here = {one["name"]: one for one in whole["spec"].get(part) or ()}
        assert {one["name"] for one in before["spec"].get(part) or ()} <= set(here)
        for one in before["spec"].get(part) or ():
            if not _is_injected(one):
                assert here[one["name"]].get("imagePullPolicy") == one.get("imagePullPolicy")
    sent = {one["name"]: _barriers(one) for one in before["spec"]["containers"]}
    for one in whole["spec"]["containers"]:
        # Barriers of a pod without any order are nobody's business.
        assert _barriers(one) <= 1 or _barriers(one) == sent[one["name"]]
    again = asked(copy.deepcopy(whole))
    assert isinstance(again, Allow) or again.object == whole


def _barriers(container: Json) -> int:
    return [item["name"] for item in container.get("env") or ()].count(BARRIER)


def _is_injected(container: Json) -> bool:
    """It was a sidecar before, and is replaced."""
    return any(one["name"] == keys.IS_INJECTED for one in container.get("env") or ())


def test_every_step_takes_part() -> None:
    assert CHAIN.steps == tuple(PodStep)
