"""What a CloneSet may not be, beyond what was recorded: v1beta1, updates, pods to delete, odd input."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kruise.admission import inventory
from kruise.admission.decisions import Allow, Change, Deny, Invalid, NeedsReads
from kruise.admission.registry import MutatingHandler, ValidatingHandler
from kruise.api.native.pod import PODS
from kruise.machinery.patches import merge
from kruise.machinery.plan import Target
from kruise.workloads.cloneset import admission
from tests.support.admission import NAMESPACE, Json, causes_of, code_of, messages_of, request, stored
from tests.support.examples import EXAMPLES
from tests.workloads.cloneset.admission_model import Server, cloneset, pod

SERVER = Server()
INVALID, REQUIRED, FORBIDDEN = "FieldValueInvalid", "FieldValueRequired", "FieldValueForbidden"
ROLLING = "spec.updateStrategy.rollingUpdate"


def rolling(**settings: Any) -> Json:
    return {"updateStrategy": {"rollingUpdate": settings}}


def flat(**settings: Any) -> Json:
    return {"updateStrategy": settings}


def refused(answer: Any, *causes: tuple[str, str]) -> str:
    """The texts of a 422 with exactly these fields and reasons."""
    assert isinstance(answer, Invalid), answer
    assert causes_of(answer) == set(causes)
    return messages_of(answer)


class TestRegistration:
    def test_the_paths_are_those_of_the_inventory(self) -> None:
        """CS sections 4 and 5: which requests reach which handler, in both versions, fail-closed."""
        mutating, validating = admission.handlers()
        assert isinstance(mutating, MutatingHandler)
        assert isinstance(validating, ValidatingHandler)
        entries = {
            entry.path: (entry.operations, entry.versions)
            for entry in (*inventory.MUTATING, *inventory.VALIDATING)
            if entry.resource == "clonesets"
        }
        both = ("v1alpha1", "v1beta1")
        assert entries == {
            mutating.path: (("CREATE", "UPDATE"), both),
            validating.path: (("CREATE", "UPDATE", "DELETE"), both),
        }

    def test_privileged_containers_are_the_servers_matter(self) -> None:
        container = {"name": "main", "image": "x", "securityContext": {"privileged": True}}
        sent = SERVER.defaults(cloneset({"template": {"spec": {"containers": [container]}}}))
        asked = request(stored(sent))
        verdicts = [admission.handlers(allow_privileged=yes)[1].decide(asked, SERVER.view) for yes in (True, False)]
        assert isinstance(verdicts[0], Allow)
        assert isinstance(verdicts[1], Invalid)


class TestMetadata:
    def test_a_generated_name_comes_later(self) -> None:
        """CS-40: before the name is drawn there is only its beginning."""
        sent = SERVER.defaults(cloneset())
        sent["metadata"] = {"generateName": "cs-"}
        assert SERVER.judge(request(sent)) == Allow()
        sent["metadata"] = {"generateName": "CS_"}
        refused(SERVER.judge(request(sent)), ("metadata.generateName", INVALID))

    def test_metadata_of_updates(self) -> None:
        """CS-40: no finalizer comes to what is being deleted."""
        old = stored(SERVER.defaults(cloneset()))
        old["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        refused(
            SERVER.update(old, {"metadata": {"finalizers": ["a.b/c"]}}),
            ("metadata.finalizers", FORBIDDEN),
        )

    def test_wrong_types(self) -> None:
        sent = SERVER.defaults(cloneset())
        sent["metadata"]["labels"] = {"a": 1}
        refused(SERVER.judge(request(sent)), ("metadata.labels[a]", "FieldValueTypeInvalid"))


class TestSelector:
    @pytest.mark.parametrize("selector", [{}, {"matchLabels": {}}, {"matchExpressions": []}])
    def test_an_empty_one_would_take_every_pod(self, selector: Json) -> None:
        """CS-41."""
        sent = cloneset()
        sent["spec"]["selector"] = selector
        assert "empty selector" in refused(SERVER.send(sent), ("spec.selector", INVALID))

    def test_a_bad_label_value(self) -> None:
        """CS-41."""
        refused(
            SERVER.send(cloneset({"selector": {"matchLabels": {"app": "a b"}}})),
            ("spec.selector.matchLabels", INVALID),
        )

    def test_the_same_in_another_form_is_no_change(self) -> None:
        """CS-50: null and absent lists mean the same."""
        old = stored(SERVER.defaults(cloneset()))
        new = json.loads(json.dumps(old))
        new["spec"]["selector"]["matchExpressions"] = []
        assert isinstance(SERVER.send(new, old), Allow)

    @pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
    def test_it_is_immutable(self, version: str) -> None:
        """CS-50."""
        old = stored(SERVER.defaults(cloneset(version=version), version=version))
        labels = {"app": "n"}
        patch = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
        text = refused(SERVER.update(old, {"spec": patch}, version=version), ("spec", FORBIDDEN))
        assert text.endswith("are forbidden, but found selector")


class TestTemplate:
    def test_it_is_judged_as_the_pods_will_be(self) -> None:
        """CS-42: also where the gate TemplateNoDefaults left it bare."""
        bare = Server(gates={"TemplateNoDefaults": True})
        assert isinstance(bare.send(cloneset()), Allow)
        broken = cloneset({"template": {"spec": {"restartPolicy": "Never"}}})
        refused(bare.send(broken), ("spec.template.spec.restartPolicy", "FieldValueNotSupported"))

    def test_places_of_volumes_are_those_of_the_author(self) -> None:
        """CS-42: claims count as volumes behind those of the template."""
        claim = {"metadata": {"name": "data"}, "spec": {}}
        spec = {"volumeClaimTemplates": [claim], "template": {"spec": {"volumes": [{"name": "B_d"}]}}}
        refused(SERVER.send(cloneset(spec)), ("spec.template.spec.volumes[0].name", INVALID))

    @pytest.mark.parametrize("claim", [{}, {"metadata": None}, {"metadata": {}}])
    def test_a_claim_template_needs_a_name(self, claim: Json) -> None:
        """CS-42."""
        answer = SERVER.send(cloneset({"volumeClaimTemplates": [claim]}))
        refused(answer, ("spec.volumeClaimTemplates[0].metadata.name", REQUIRED))

    def test_everything_wrong_is_said_at_once(self) -> None:
        """CS-42 and CS-44."""
        template = {"spec": {"activeDeadlineSeconds": 5, "containers": [{"name": "main"}]}}
        answer = SERVER.send(cloneset({"template": template, **rolling(partition="x")}))
        refused(
            answer,
            ("spec.template.spec.activeDeadlineSeconds", FORBIDDEN),
            ("spec.template.spec.containers[0].image", REQUIRED),
            (f"{ROLLING}.partition", INVALID),
        )


class TestStrategy:
    @pytest.mark.parametrize("kind", ["RollingUpdate", "OnDelete", ""])
    def test_types(self, kind: str) -> None:
        """CS-43, v1beta1."""
        assert isinstance(SERVER.send(cloneset(flat(type=kind))), Allow)

    @pytest.mark.parametrize("kind", ["ReCreate", "InPlaceOnly", "rollingUpdate"])
    def test_other_types(self, kind: str) -> None:
        """CS-43, v1beta1."""
        text = refused(SERVER.send(cloneset(flat(type=kind))), ("spec.updateStrategy.type", INVALID))
        assert text.endswith("must be 'RollingUpdate' or 'OnDelete'")

    @pytest.mark.parametrize("policy", ["ReCreate", "InPlaceIfPossible", "InPlaceOnly", ""])
    def test_policies(self, policy: str) -> None:
        """CS-43."""
        assert isinstance(SERVER.send(cloneset(rolling(podUpdatePolicy=policy))), Allow)

    def test_other_policies(self) -> None:
        """CS-43."""
        answer = SERVER.send(cloneset(rolling(podUpdatePolicy="Recreate")))
        text = refused(answer, (f"{ROLLING}.podUpdatePolicy", INVALID))
        assert "'ReCreate', 'InPlaceIfPossible' or 'InPlaceOnly'" in text

    @pytest.mark.parametrize("kind", ["ReCreate", "InPlaceIfPossible", "InPlaceOnly", "OnDelete", ""])
    def test_types_of_v1alpha1(self, kind: str) -> None:
        """CS-43: OnDelete too, which the original refused."""
        sent = cloneset(flat(type=kind), version="v1alpha1")
        assert isinstance(SERVER.send(sent, version="v1alpha1"), Allow)

    @pytest.mark.parametrize("value", [0, 3, "0%", "50%", "33.5%", "150%"])
    def test_partitions(self, value: int | str) -> None:
        """CS-44."""
        assert isinstance(SERVER.send(cloneset(rolling(partition=value))), Allow)

    @pytest.mark.parametrize("value", [-1, "-10%", "-0.5%"])
    @pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
    def test_negative_partitions(self, value: int | str, version: str) -> None:
        """CS-44: also as a percentage, which the original let pass."""
        beta = version == "v1beta1"
        spec, path = (rolling(partition=value), ROLLING) if beta else (flat(partition=value), "spec.updateStrategy")
        answer = SERVER.send(cloneset(spec, version=version), version=version)
        text = refused(answer, (f"{path}.partition", INVALID))
        assert text.endswith("must be greater than or equal to 0")

    @pytest.mark.parametrize("name", ["partition", "maxUnavailable", "maxSurge"])
    @pytest.mark.parametrize("value", ["5", "abc", "%", "", "1 %", "nan%", "inf%", "0x1%", "1_0%", "١%"])
    def test_what_is_no_amount(self, name: str, value: str) -> None:
        """CS-44, on create and on update."""
        cause = (f"{ROLLING}.{name}", INVALID)
        assert "an integer or a percentage" in refused(SERVER.send(cloneset(rolling(**{name: value}))), cause)
        old = stored(SERVER.defaults(cloneset()))
        refused(SERVER.update(old, {"spec": rolling(**{name: value})}), cause)

    @pytest.mark.parametrize(
        ("replicas", "unavailable", "surge", "accepted"),
        [
            (2, 0, 0, False),
            (2, "0%", "0%", False),
            (2, 0, None, False),
            (2, -1, 0, False),
            (0, 0, 0, True),
            (2, 0, 1, True),
            (2, 0, "1%", True),
            (2, "1%", 0, True),
            (2, "0.1%", 0, True),
            (2, None, 0, True),
        ],
    )
    def test_something_must_be_able_to_move(
        self, replicas: int, unavailable: int | str | None, surge: int | str | None, accepted: bool
    ) -> None:
        """CS-45: rounded up, and v1beta1 looks at maxSurge, too."""
        spec = {"replicas": replicas, **rolling(maxUnavailable=unavailable, maxSurge=surge)}
        answer = SERVER.send(cloneset(spec))
        if accepted:
            assert isinstance(answer, Allow), messages_of(answer)
        else:
            refused(answer, (f"{ROLLING}.maxUnavailable", INVALID))

    def test_scaling_up_from_nothing_needs_room_to_move(self) -> None:
        """CS-45: the rule depends on replicas."""
        old = stored(SERVER.defaults(cloneset({"replicas": 0, **rolling(maxUnavailable=0)})))
        refused(SERVER.update(old, {"spec": {"replicas": 1}}), (f"{ROLLING}.maxUnavailable", INVALID))

    def test_no_surge_in_place(self) -> None:
        """CS-45."""
        answer = SERVER.send(cloneset(rolling(podUpdatePolicy="InPlaceOnly", maxSurge="10%")))
        refused(answer, (f"{ROLLING}.maxSurge", INVALID))
        assert isinstance(SERVER.send(cloneset(rolling(podUpdatePolicy="InPlaceIfPossible", maxSurge="10%"))), Allow)

    def test_on_delete_with_some_settings(self) -> None:
        """CS-51: accepted here; what is given must still be sound."""
        spec: Json = {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1}}}
        assert isinstance(SERVER.send(cloneset(spec)), Allow)
        spec["updateStrategy"]["rollingUpdate"]["maxUnavailable"] = "x"
        refused(SERVER.send(cloneset(spec)), (f"{ROLLING}.maxUnavailable", INVALID))

    def test_update_order(self) -> None:
        """CS-46, IPU-3 and IPU-4, below rollingUpdate in v1beta1."""
        order = {"weightPriority": [{"weight": 1, "matchSelector": {}}], "orderPriority": [{"orderedKey": ""}]}
        text = refused(
            SERVER.send(cloneset(rolling(priorityStrategy=order, scatterStrategy=[{"key": ""}]))),
            (f"{ROLLING}.priorityStrategy", REQUIRED),
            (f"{ROLLING}.scatterStrategy", REQUIRED),
        )
        for part in ("only one of", "selector can not be empty", "orderPriority[0]", "scatterStrategy[0]"):
            assert part in text

    @pytest.mark.parametrize(
        ("name", "value", "accepted"),
        [
            ("imagePreDownloadParallelism", 0, True),
            ("imagePreDownloadParallelism", "3", True),
            ("imagePreDownloadParallelism", -1, False),
            ("imagePreDownloadParallelism", "-1", False),
            ("imagePreDownloadParallelism", "50%", False),
            ("imagePreDownloadParallelism", "", False),
            ("imagePreDownloadParallelism", "9" * 5000, False),
            ("imagePreDownloadTimeoutSeconds", 0, True),
            ("imagePreDownloadTimeoutSeconds", -1, False),
            ("imagePreDownloadMinUpdatedReadyPods", 0, True),
            ("imagePreDownloadMinUpdatedReadyPods", -1, False),
        ],
    )
    def test_pre_download(self, name: str, value: int | str, accepted: bool) -> None:
        """CS-49: v1beta1 only, in v1alpha1 the fields have no effect."""
        in_place = {"inPlaceUpdateStrategy": {name: value}}
        answer = SERVER.send(cloneset(rolling(**in_place)))
        if accepted:
            assert isinstance(answer, Allow)
        else:
            refused(answer, (f"{ROLLING}.inPlaceUpdateStrategy.{name}", INVALID))
        alpha = cloneset(flat(**in_place), version="v1alpha1")
        assert isinstance(SERVER.send(alpha, version="v1alpha1"), Allow)


class TestDeadline:
    @pytest.mark.parametrize(
        ("deadline", "min_ready", "accepted"),
        [(10, 9, True), (10, 10, False), (0, 0, False), (-1, 0, False), (2147483647, 2147483647, True)],
    )
    def test_it_must_leave_time_to_become_available(self, deadline: int, min_ready: int, accepted: bool) -> None:
        """CS-48: v1alpha1 only."""
        spec = {"progressDeadlineSeconds": deadline, "minReadySeconds": min_ready}
        answer = SERVER.send(cloneset(spec, version="v1alpha1"), version="v1alpha1")
        if accepted:
            assert isinstance(answer, Allow)
        else:
            refused(answer, ("spec.progressDeadlineSeconds", INVALID))
        assert isinstance(SERVER.send(cloneset(spec)), Allow)


class TestInPlaceOnly:
    """CS-50: what can only be done in place must be possible in place; checked in v1alpha1 only."""

    def update(self, spec: Json, *, version: str = "v1alpha1", base: Json | None = None) -> Any:
        strategy = flat(type="InPlaceOnly") if version == "v1alpha1" else rolling(podUpdatePolicy="InPlaceOnly")
        sent = cloneset({**strategy, **(base or {})}, version=version)
        old = stored(SERVER.defaults(sent, version=version))
        return SERVER.update(old, {"spec": spec}, version=version)

    def test_several_images_and_metadata(self) -> None:
        two = [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]
        newer = [{"name": "a", "image": "x:2"}, {"name": "b", "image": "y:2"}]
        template = {"metadata": {"annotations": {"n": "1"}}, "spec": {"containers": newer}}
        answer = self.update({"template": template}, base={"template": {"spec": {"containers": two}}})
        assert isinstance(answer, Allow), messages_of(answer)

    def test_other_changes_are_named(self) -> None:
        two = [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]
        swapped = {"template": {"spec": {"containers": two[::-1]}}}
        refused(self.update(swapped, base={"template": {"spec": {"containers": two}}}), ("spec", FORBIDDEN))
        init = {"template": {"spec": {"initContainers": [{"name": "i", "image": "x"}]}}}
        text = refused(self.update(init), ("spec", FORBIDDEN))
        assert text.endswith("only allowed to update images in spec for InPlaceOnly, but found add /initContainers")

    def test_many_changes_are_cut_short(self) -> None:
        spec = dict.fromkeys(("hostname", "nodeName", "priorityClassName", "schedulerName", "subdomain"), "x")
        text = refused(self.update({"template": {"spec": {**spec, "hostIPC": True}}}), ("spec", FORBIDDEN))
        assert text.endswith(" and 1 more")

    def test_v1beta1_leaves_it_to_the_controller(self) -> None:
        env = [{"name": "main", "image": "nginx:1.25", "env": [{"name": "A", "value": "1"}]}]
        answer = self.update({"template": {"spec": {"containers": env}}}, version="v1beta1")
        assert isinstance(answer, Allow)

    def test_a_stored_template_that_nobody_can_read(self) -> None:
        old = stored(cloneset(flat(type="InPlaceOnly"), version="v1alpha1"))
        old["spec"]["template"] = {"spec": {"containers": 1}}
        new = stored(cloneset(flat(type="InPlaceOnly"), version="v1alpha1"))
        assert isinstance(SERVER.send(new, old, version="v1alpha1"), Allow)


class TestPodsToDelete:
    OLD = stored(SERVER.defaults(cloneset({"scaleStrategy": {"podsToDelete": ["gone"]}}), version="v1alpha1"))
    PODS = (
        pod("mine", controller_uid="cs-uid"),
        pod("leaving", controller_uid="cs-uid", terminating=True),
        pod("theirs", controller_uid="other"),
        pod("orphan"),
    )

    def update(self, *names: str, version: str = "v1alpha1") -> Any:
        patch = {"spec": {"scaleStrategy": {"podsToDelete": list(names)}}}
        return Server(pods=self.PODS).update(self.OLD, patch, version=version)

    def test_names_that_were_there_are_not_looked_up(self) -> None:
        """CS-47: only added ones are."""
        assert isinstance(self.update("gone", "mine"), Allow)

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("nobody", 'find pod nobody failed: Pod "nobody" not found'),
            ("leaving", "pod leaving is being deleted already"),
            ("theirs", "find pod theirs owner is not this CloneSet"),
            ("orphan", "find pod orphan owner is not this CloneSet"),
        ],
    )
    def test_others_are_refused(self, name: str, words: str) -> None:
        """CS-47: a pod without a controller must not crash the check."""
        text = refused(self.update("gone", name), ("spec.scaleStrategy.podsToDelete", INVALID))
        assert text.endswith(words)

    def test_every_stranger_is_named(self) -> None:
        text = refused(self.update("nobody", "theirs"), ("spec.scaleStrategy.podsToDelete", INVALID))
        assert "nobody" in text
        assert "theirs" in text

    def test_at_creation_there_are_no_pods_yet(self) -> None:
        """CS-47."""
        sent = cloneset({"scaleStrategy": {"podsToDelete": ["mine"]}}, version="v1alpha1")
        answer = Server(pods=self.PODS).send(sent, version="v1alpha1")
        refused(answer, ("spec.scaleStrategy.podsToDelete", INVALID))

    def test_v1beta1_does_not_look(self) -> None:
        """CS-47."""
        assert isinstance(self.update("nobody", version="v1beta1"), Allow)

    @pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
    def test_doubles(self, version: str) -> None:
        """CS-47: in both versions, and nothing is read for a request that is refused anyway."""
        patched = merge.apply(self.OLD, {"spec": {"scaleStrategy": {"podsToDelete": ["mine", "mine"]}}})
        said = admission.judge(request(patched, self.OLD, version=version), SERVER.view)
        assert "duplicated items [mine]" in refused(said, ("spec.scaleStrategy.podsToDelete", INVALID))

    def test_pods_are_read_in_the_namespace_of_the_request(self) -> None:
        patched = merge.apply(self.OLD, {"spec": {"scaleStrategy": {"podsToDelete": ["mine", "x"]}}})
        said = admission.judge(request(patched, self.OLD, version="v1alpha1"), SERVER.view)
        assert said == NeedsReads(targets=(Target(PODS, NAMESPACE, "mine"), Target(PODS, NAMESPACE, "x")))


class TestWhatIsStoredAlready:
    """Parts that did not change are not judged again: an object of an older release can always be changed elsewhere."""

    def old(self, spec: Json, version: str = "v1beta1") -> Json:
        return stored(SERVER.defaults(cloneset(spec, version=version), version=version))

    def test_metadata_of_a_broken_object(self) -> None:
        old = self.old({"template": {"spec": {"restartPolicy": "Never"}}, **rolling(partition="-10%")})
        assert isinstance(SERVER.update(old, {"metadata": {"finalizers": ["a.b/c"]}}), Allow)

    def test_other_fields_of_a_broken_object(self) -> None:
        old = self.old({"template": {"spec": {"restartPolicy": "Never"}}, **rolling(partition="-10%")})
        assert isinstance(SERVER.update(old, {"spec": {"minReadySeconds": 5}}), Allow)
        answer = SERVER.update(old, {"spec": rolling(paused=True)})
        refused(answer, (f"{ROLLING}.partition", INVALID))

    def test_new_claims_are_judged_with_an_old_template(self) -> None:
        mount = {"name": "data", "mountPath": "/d"}
        container = {"name": "main", "image": "x", "volumeMounts": [mount]}
        claim = {"metadata": {"name": "data"}, "spec": {}}
        spec: Json = {"template": {"spec": {"containers": [container]}}, "volumeClaimTemplates": [claim]}
        answer = SERVER.update(self.old(spec), {"spec": {"volumeClaimTemplates": None}})
        refused(answer, ("spec.template.spec.containers[0].volumeMounts[0].name", "FieldValueNotFound"))

    def test_a_deadline_that_v1beta1_let_pass(self) -> None:
        """CS-48: v1alpha1 is stricter, but only about changes."""
        old = self.old({"progressDeadlineSeconds": 0}, "v1alpha1")
        assert isinstance(SERVER.update(old, {"spec": {"replicas": 3}}, version="v1alpha1"), Allow)
        answer = SERVER.update(old, {"spec": {"minReadySeconds": 3}}, version="v1alpha1")
        refused(answer, ("spec.progressDeadlineSeconds", INVALID))

    def test_a_stored_object_of_wrong_types(self) -> None:
        """Its successor is judged like a new object."""
        old = stored(cloneset({"replicas": "two"}))
        assert isinstance(SERVER.send(stored(cloneset()), old), Allow)
        refused(SERVER.send(stored(cloneset(rolling(partition=-1))), old), (f"{ROLLING}.partition", INVALID))


class TestDeletion:
    SERVER = Server(gates={"ResourcesDeletionProtection": True})

    def delete(self, old: Any) -> Any:
        return self.SERVER.judge(request(None, old, operation="DELETE"))

    @pytest.mark.parametrize("value", ["Always", "Cascading"])
    def test_both_versions_are_protected_alike(self, value: str) -> None:
        """CS-52, DP-55."""
        old = stored(cloneset(labels={"policy.kruise.io/delete-protection": value}))
        assert isinstance(self.delete(old), Deny)

    def test_unset_replicas_hold_nothing_back(self) -> None:
        """DP-14."""
        old = stored(cloneset({"replicas": None}, labels={"policy.kruise.io/delete-protection": "Cascading"}))
        assert self.delete(old) == Allow()

    def test_without_an_old_object(self) -> None:
        """DP-10: very old API servers."""
        assert self.delete(None) == Allow()


def test_wrong_types_are_never_judged() -> None:
    """Where the mutating handler was not asked, the validating one answers in the same words."""
    answer = SERVER.judge(request(cloneset({"replicas": "2"})))
    assert isinstance(answer, Deny)
    assert (answer.code, answer.message) == (400, "spec.replicas: Invalid value: must be an integer, not a string")


@pytest.mark.parametrize(("operation", "subresource"), [("CONNECT", ""), ("UPDATE", "scale")])
def test_other_requests_pass(operation: str, subresource: str) -> None:
    broken = cloneset({"replicas": -1})
    assert SERVER.judge(request(broken, broken, operation=operation, subresource=subresource)) == Allow()


# Whatever comes in, an answer comes out

scalars = st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.sampled_from(["", "x", "20%", "5", "ReCreate"]))
documents = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "name"]), inner),
    max_leaves=4,
)
FIELDS = (
    ("metadata", "labels"),
    ("metadata", "finalizers"),
    ("spec",),
    ("spec", "replicas"),
    ("spec", "selector"),
    ("spec", "selector", "matchLabels"),
    ("spec", "selector", "matchExpressions"),
    ("spec", "template"),
    ("spec", "template", "metadata"),
    ("spec", "template", "metadata", "labels"),
    ("spec", "template", "spec"),
    ("spec", "template", "spec", "containers"),
    ("spec", "volumeClaimTemplates"),
    ("spec", "scaleStrategy"),
    ("spec", "scaleStrategy", "podsToDelete"),
    ("spec", "updateStrategy"),
    ("spec", "updateStrategy", "type"),
    ("spec", "updateStrategy", "partition"),
    ("spec", "updateStrategy", "rollingUpdate"),
    ("spec", "updateStrategy", "rollingUpdate", "priorityStrategy"),
    ("spec", "lifecycle"),
)


def put(target: Json, path: tuple[str, ...], value: Any) -> None:
    for name in path[:-1]:
        if not isinstance(target.get(name), dict):
            target[name] = {}
        target = target[name]
    target[path[-1]] = value


@settings(max_examples=60 * EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    edits=st.lists(st.tuples(st.sampled_from(FIELDS), documents), min_size=1, max_size=3),
    version=st.sampled_from(["v1alpha1", "v1beta1"]),
    is_update=st.booleans(),
    is_stored=st.booleans(),
)
def test_any_document_gets_an_answer(
    edits: list[tuple[tuple[str, ...], Any]], version: str, is_update: bool, is_stored: bool
) -> None:
    """Neither handler raises, the object is not changed by being looked at, and what defaults let pass is judged."""
    sent = stored(cloneset(version=version))
    for path, value in edits:
        put(sent, path, value)
    old = None
    if is_update:
        old = json.loads(json.dumps(sent)) if is_stored else stored(cloneset(version=version))
    asked = request(sent, old, version=version)
    before = bytes(asked.object)
    said = admission.default(asked, SERVER.view)
    assert isinstance(said, Change | Deny)
    assert bytes(asked.object) == before
    assert code_of(SERVER.judge(asked)) in (200, 400, 422)
    if isinstance(said, Change):
        assert code_of(SERVER.judge(request(said.object, old, version=version))) in (200, 400, 422)
        again = admission.default(request(said.object, old, version=version), SERVER.view)
        assert isinstance(again, Change)
        assert again.object == said.object
    else:
        assert said.code == 400
