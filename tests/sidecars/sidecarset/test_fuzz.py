"""Whatever pod an API server may send, the step of the pod webhook answers: with the pod, or with a refusal."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.admission.chain import StepContext
from kruise.admission.decisions import Change, Deny, HandlerView
from kruise.api.apps.sidecarset import SIDECAR_SETS
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.nodes import NAMESPACES
from kruise.machinery.store import Store
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.injecting import Injection
from kruise.sidecars.sidecarset.matching import WATCHED_NAMESPACES, WATCHED_REVISIONS, WATCHED_SETS
from tests.admission.helpers import request_of
from tests.support.examples import story_settings
from tests.support.sidecarsets import NOW, sidecar_set, stored

Json = dict[str, Any]
NAMES = ("main", "side", "hot-1", "hot", "init")
POLICY = {
    "targetContainersMode": "sum",
    "targetContainersNameRegex": "^m",
    "resourcesExpr": {"limits": {"cpu": "cpu - 50m"}, "requests": {"memory": "max(memory, 1Mi)"}},
}
SETS = (
    sidecar_set(
        "one",
        containers=[
            {
                "name": "side",
                "image": "i:1",
                "shareVolumePolicy": {"type": "enabled"},
                "shareVolumeDevicePolicy": {"type": "enabled"},
                "transferEnv": [
                    {"sourceContainerName": "main", "envNames": ["A", "B"]},
                    {"sourceContainerNameFrom": {"fieldRef": {"fieldPath": "metadata.labels['from']"}}, "envName": "C"},
                ],
                "resourcesPolicy": POLICY,
            }
        ],
        initContainers=[{"name": "init", "image": "i:1"}],
    ),
    sidecar_set(
        "two",
        containers=[
            {
                "name": "hot",
                "image": "i:1",
                "upgradeStrategy": {"upgradeType": "HotUpgrade", "hotUpgradeEmptyImage": "e:1"},
                "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            }
        ],
        volumes=[{"name": "v", "emptyDir": {}}],
        patchPodMetadata=[{"annotations": {"k": '{"a":1}'}, "patchPolicy": "MergePatchJson"}],
    ),
)

optional = st.none() | st.just([])
env = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["A", "B", "IS_INJECTED"])}, optional={"value": st.text(max_size=5)})
)
mounts = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from("vw"), "mountPath": st.sampled_from(["/v", "/w"])},
        optional={"subPathExpr": st.text(alphabet="$(A)B/", max_size=8)},
    )
)
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory"]), st.sampled_from(["1", "100m", "1Gi", "0", "-1", "x", 2]), max_size=2
)
containers = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(NAMES), "image": st.just("i:1")},
        optional={
            "env": env | optional,
            "volumeMounts": mounts | optional,
            "resources": st.fixed_dictionaries({}, optional={"limits": amounts, "requests": amounts}) | st.none(),
            "restartPolicy": st.just("Always"),
        },
    ),
    max_size=3,
    unique_by=lambda one: one["name"],
)
texts = st.sampled_from(["", "{", "{}", "[]", "null", '"x"', '{"one":"h"}', '{"one":{"hash":1}}', '{"one":[]}'])
annotations = st.dictionaries(
    st.sampled_from([keys.HASH, keys.HASH_WITHOUT_IMAGE, keys.INJECTED_LIST, keys.WORKING, "k", "other"]), texts
)
pods = st.fixed_dictionaries(
    {
        "metadata": st.fixed_dictionaries(
            {"labels": st.fixed_dictionaries({"app": st.just("web")}, optional={"from": st.sampled_from(NAMES)})},
            optional={"annotations": annotations | st.none(), "name": st.just("p")},
        ),
        "spec": st.fixed_dictionaries(
            {"containers": containers},
            optional={"initContainers": containers | optional, "volumes": st.none(), "imagePullSecrets": optional},
        ),
    }
)


def asked(pod: Json) -> Any:
    sets, namespaces, revisions = Store(WATCHED_SETS), Store(WATCHED_NAMESPACES), Store(WATCHED_REVISIONS)
    sets.replace([stored(one) for one in SETS], 7)
    namespaces.replace([], 7)
    revisions.replace([], 7)
    stores: dict[Any, Any] = {SIDECAR_SETS: sets, NAMESPACES: namespaces, CONTROLLER_REVISIONS: revisions}
    view = HandlerView(now=NOW, seed=1, stores=stores.__getitem__)
    return Injection("kruise-system")(pod, StepContext(request_of(pod, kind="Pod", resource="pods"), view, "d"))


@story_settings(150)
@given(pods)
def test_every_pod_is_answered(pod: Json) -> None:
    """SCS-60, SCS-61: never an exception; the pod as it was sent stays as it is, and a second call changes nothing."""
    before = copy.deepcopy(pod)
    answer = asked(pod)
    assert pod == before
    if isinstance(answer, Deny):
        assert "SidecarSet" in answer.message or "annotation" in answer.message, answer.message
        return
    assert isinstance(answer, Change)
    whole = dict(answer.object)
    names = [one["name"] for one in whole["spec"]["containers"]]
    assert {"side", "hot-1", "hot-2"} <= set(names)
    assert len(names) == len(set(names))
    assert asked(whole) == answer
