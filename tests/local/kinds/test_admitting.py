"""The admission plugins that every API server has."""

from __future__ import annotations

import asyncio
from typing import Any

from kruise.local.apicore import ApiCore
from kruise.local.inprocess import InProcessTransport
from kruise.local.kinds import native_registry
from kruise.local.kinds.admitting import install
from kruise.local.kinds.bootstrap import create_system_objects
from kruise.machinery.client.requests import PatchType, Verb
from kruise.machinery.clock import ManualClock, VirtualClock, run_virtual
from tests.local.kinds.cases import claim, pod, volume
from tests.local.kinds.playing import local_transport, send


async def _ours() -> InProcessTransport:
    return await local_transport(ManualClock(), "n")


async def _create(ours: InProcessTransport, plural: str, name: str, body: Any) -> tuple[int, Any]:
    about = {**(body.get("metadata") or {}), "name": name}
    return await send(ours, Verb.CREATE, plural, "n", body={**body, "metadata": about})


async def test_protected_namespaces_stay() -> None:
    ours = await _ours()
    for name in ("default", "kube-system", "kube-public"):
        code, answer = await send(ours, Verb.DELETE, "namespaces", "", name)
        assert code == 403
        assert answer["message"] == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert (await send(ours, Verb.DELETE, "namespaces", "", "kube-node-lease"))[0] == 200


async def test_a_deleted_namespace_stays_until_it_is_finalized() -> None:
    """The server marks it; whoever empties it takes the finalizer away, and with it the namespace."""
    ours = await _ours()
    code, marked = await send(ours, Verb.DELETE, "namespaces", "", "n")
    assert code == 200
    assert marked["status"] == {"phase": "Terminating"}
    assert "deletionTimestamp" in marked["metadata"]
    assert "deletionGracePeriodSeconds" not in marked["metadata"]
    code, again = await send(ours, Verb.DELETE, "namespaces", "", "n")
    assert (code, again["metadata"]["resourceVersion"]) == (200, marked["metadata"]["resourceVersion"])
    patch = {"spec": {"finalizers": []}, "metadata": {"labels": {"a": "b"}}}
    _, labelled = await send(ours, Verb.PATCH, "namespaces", "", "n", patch, content_type=PatchType.MERGE)
    assert labelled["spec"] == {"finalizers": ["kubernetes"]}
    labelled["spec"] = {}
    code, gone = await send(ours, Verb.UPDATE, "namespaces", "", "n", labelled, subresource="finalize")
    assert (code, gone["spec"]) == (200, {})
    assert (await send(ours, Verb.GET, "namespaces", "", "n"))[0] == 404


async def test_a_finalized_namespace_that_lives_goes_with_its_deletion() -> None:
    ours = await _ours()
    _, found = await send(ours, Verb.GET, "namespaces", "", "n")
    found["spec"] = {}
    assert (await send(ours, Verb.UPDATE, "namespaces", "", "n", found, subresource="finalize"))[0] == 200
    assert (await send(ours, Verb.GET, "namespaces", "", "n"))[0] == 200
    assert (await send(ours, Verb.DELETE, "namespaces", "", "n"))[0] == 200
    assert (await send(ours, Verb.GET, "namespaces", "", "n"))[0] == 404


async def test_accounts_decide_about_tokens_and_pull_secrets() -> None:
    ours = await _ours()
    account = {"automountServiceAccountToken": False, "imagePullSecrets": [{"name": "registry"}]}
    await _create(ours, "serviceaccounts", "quiet", account)
    _, quiet = await _create(ours, "pods", "a", pod(serviceAccountName="quiet"))
    assert "volumes" not in quiet["spec"]
    assert quiet["spec"]["imagePullSecrets"] == [{"name": "registry"}]
    _, asked = await _create(ours, "pods", "b", pod(serviceAccountName="quiet", automountServiceAccountToken=True))
    assert asked["spec"]["volumes"][0]["name"].startswith("kube-api-access-")


def test_pods_of_a_new_namespace_wait_for_its_account() -> None:
    """A controller makes the account; a pod that comes first is not refused at once."""

    async def scenario() -> None:
        clock = VirtualClock(asyncio.get_running_loop())
        core = ApiCore(native_registry(), clock=clock, seed=1)
        install(core, seed=1)
        ours = InProcessTransport(core)
        creation = asyncio.create_task(_create(ours, "pods", "a", pod()))
        await asyncio.sleep(0.5)
        assert not creation.done()
        await _create(ours, "serviceaccounts", "default", {})
        assert (await creation)[0] == 201
        began = clock.now()
        code, refused = await send(ours, Verb.CREATE, "pods", "other", body={"metadata": {"name": "a"}, **pod()})
        assert (code, refused["reason"]) == (403, "Forbidden")
        assert 1 < (clock.now() - began).total_seconds() < 2

    run_virtual(scenario())


async def test_accounts_may_be_left_out() -> None:
    core = ApiCore(native_registry(), clock=ManualClock(), seed=1)
    install(core, seed=1, require_service_accounts=False)
    code, made = await _create(InProcessTransport(core), "pods", "a", pod(serviceAccountName="x"))
    assert (code, made["spec"]["serviceAccountName"]) == (201, "x")


async def test_the_same_seed_gives_the_same_names() -> None:
    made = []
    for _ in range(2):
        ours = await _ours()
        made.append((await _create(ours, "pods", "a", pod()))[1])
    assert made[0] == made[1]


async def test_a_default_priority_class_is_the_only_one() -> None:
    ours = await _ours()
    assert (await _create(ours, "priorityclasses", "usual", {"value": 7, "globalDefault": True}))[0] == 201
    code, refused = await _create(ours, "priorityclasses", "other", {"value": 8, "globalDefault": True})
    assert code == 403
    assert "PriorityClass usual is already marked as default" in refused["message"]
    _, made = await _create(ours, "pods", "a", pod())
    assert (made["spec"]["priority"], made["spec"]["priorityClassName"]) == (7, "usual")
    _, kept = await send(ours, Verb.PATCH, "pods", "n", "a", {"spec": {"priority": None}}, content_type=PatchType.MERGE)
    assert kept["spec"]["priority"] == 7


async def test_claims_get_the_default_class_and_keep_their_volume() -> None:
    ours = await _ours()
    default = {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
    for name, about in (("slow", {}), ("fast", default)):
        await _create(ours, "storageclasses", name, {"provisioner": "x", "metadata": about})
    _, made = await _create(ours, "persistentvolumeclaims", "a", claim())
    assert made["spec"]["storageClassName"] == "fast"
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
    _, none = await _create(ours, "persistentvolumeclaims", "b", claim(storageClassName=""))
    assert none["spec"]["storageClassName"] == ""
    _, made = await _create(ours, "persistentvolumes", "a", volume())
    assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]


async def test_claims_grow_only_where_they_are_bound_and_their_class_allows_it() -> None:
    ours = await _ours()
    for name, grows in (("grows", True), ("fixed", False)):
        body = {"provisioner": "a.b/c", "allowVolumeExpansion": grows}
        await _create(ours, "storageclasses", name, body)
        await _create(ours, "persistentvolumeclaims", name, claim(storageClassName=name))
    refused = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"

    async def grow(name: str) -> tuple[int, str]:
        more = {"spec": {"resources": {"requests": {"storage": "9Gi"}}}}
        code, answer = await send(
            ours, Verb.PATCH, "persistentvolumeclaims", "n", name, more, content_type=PatchType.MERGE
        )
        return code, answer.get("message", "")

    assert (await grow("grows"))[0] == 422
    for name in ("grows", "fixed"):
        bound = {"status": {"phase": "Bound"}}
        await send(
            ours,
            Verb.PATCH,
            "persistentvolumeclaims",
            "n",
            name,
            bound,
            subresource="status",
            content_type=PatchType.MERGE,
        )
    assert (await grow("grows"))[0] == 200
    code, message = await grow("fixed")
    assert (code, message.partition("forbidden: ")[2]) == (403, f"{refused} support resize")


async def test_system_objects_are_created_once() -> None:
    core = ApiCore(native_registry(), clock=ManualClock(), seed=1)
    for _ in range(2):
        await create_system_objects(core, port=1234)
    ours = InProcessTransport(core)
    _, found = await send(ours, Verb.GET, "services", "default", "kubernetes")
    assert found["spec"]["clusterIP"] == "10.96.0.1"
    assert found["spec"]["ports"][0]["targetPort"] == 1234
    _, classes = await send(ours, Verb.LIST, "priorityclasses")
    assert {item["metadata"]["name"] for item in classes["items"]} == {
        "system-cluster-critical",
        "system-node-critical",
    }
