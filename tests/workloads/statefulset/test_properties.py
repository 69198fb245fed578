"""Promises that hold for whatever anybody does to a StatefulSet and its pods, in any order.

Hypothesis makes up a StatefulSet and a story: users change the spec, mark and delete pods, hooks open and close,
containers start, crash and fail, claims vanish, time passes, and in between the manager makes passes, some of which are
cut off by its death or come late. Every write of the manager is checked. In the end everybody does their part, and
things must come to rest where the spec wants them.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.meta import ObjectMeta
from kruise.api.native.apps import CONTROLLER_REVISIONS
from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, STORAGE_CLASSES, StorageClass
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Action, Outcome, Plan, Result
from kruise.machinery.revision_names import is_revision
from kruise.model.world import Json
from kruise.workloads.shared.ordinals import START_GATE
from kruise.workloads.statefulset.claim_templates import GROWTH_GATE
from kruise.workloads.statefulset.decide import decide
from kruise.workloads.statefulset.limits import Limits, limits_of
from kruise.workloads.statefulset.situation import Snapshot
from tests.support.examples import story_settings
from tests.support.modelled import BROKEN, UID, UNGRANTED, runs_what_it_should
from tests.workloads.statefulset.modelled import CLAIM, ModelledStatefulSet, document, template

IMAGES = ("nginx:1", "nginx:2", "nginx:3", BROKEN)
GUARD, HOLD, OKAY = "example.com/guard", "example.com/hold", "example.com/okay"
"""Labels of the hooks: a pod is born with the first two, and somebody adds the third."""
RESERVED: tuple[list[int | str], ...] = ([], [1], [0, "2-3"], ["1-2"])
MANY = 400
"""More rounds than any story needs to come to rest."""


class Checked:
    """A model whose manager is watched."""

    def __init__(self, model: ModelledStatefulSet) -> None:
        self.model = model
        self._before: dict[str, Pod] = {}
        self._sizes: dict[str, int] = {}
        self._available = 0

    def reconcile(self, *, die_at: int | None = None, between: Callable[[], None] | None = None) -> Plan:
        late = between is not None

        def decided(snapshot: Snapshot, plan: Plan) -> None:
            self._on_plan(snapshot, plan)
            if between is not None:
                between()

        def wrote(outcome: Outcome) -> None:
            if outcome.result is Result.DONE:
                self._on_write(outcome.action, late=late)

        plan = self.model.reconcile(die_at=die_at, decided=decided, wrote=wrote)
        if die_at is None and not late and not list(plan.actions()):
            self._explained(plan)
        return plan

    # Of whole plans

    def _on_plan(self, snapshot: Snapshot, plan: Plan) -> None:
        assert decide(snapshot) == plan, "decided twice, and not the same"
        self._before = {pod.metadata.name: pod for pod in self.model.pods}
        self._sizes = {claim.metadata.name: _size(self.model, claim.metadata.name) for claim in self.model.claims}
        self._available = self.available()
        touched: dict[str, set[Verb]] = {}
        for action in plan.actions():
            assert action.target.resource != PERSISTENT_VOLUME_CLAIMS or action.verb is not Verb.DELETE
            if action.target.resource == PODS:
                touched.setdefault(action.target.name, set()).add(action.verb)
        assert all(len(verbs) == 1 for verbs in touched.values()), f"several things at once: {touched}"
        creates = [name for name, verbs in touched.items() if Verb.CREATE in verbs]
        doubled = [name for name in creates if name in self._before]
        assert not doubled, f"{doubled} are made while their names are taken"
        if self.limits.is_ordered:
            assert len(creates) <= 1, f"pods have an order, and {creates} are made at once"
        for held in plan.held:
            assert held.causes, f"{held.target} is held without a cause"
            assert all(cause.code and cause.message for cause in held.causes)

    def _explained(self, plan: Plan) -> None:
        """Nothing is done, so whatever is not where it should be is held for a reason."""
        held = {item.target.name for item in plan.held}
        there = {pod.metadata.name: pod for pod in self.kept()}
        for name in self.wanted:
            pod = there.get(name)
            if pod is None:
                assert held & {name, "web"}, f"{name} is missing, and nobody says why"
            elif pod.metadata.labels.get(keys.STATE_LABEL) != "Normal":
                assert name in held, f"nobody says why {name} stays as it is: {pod.metadata.labels}"
            elif not self.is_new(pod) or keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels:
                assert name in held, f"nobody says why {name} stays"
        for name in there.keys() - set(self.wanted):
            assert name in held, f"{name} is not wanted, and nobody says why it stays"

    # Of single writes

    def _on_write(self, action: Action, *, late: bool) -> None:
        name = action.target.name
        if action.target.resource == PERSISTENT_VOLUME_CLAIMS and action.verb is Verb.PATCH:
            self._nothing_shrinks(name)
        if action.target.resource != PODS:
            return
        names = [pod.metadata.name for pod in self.model.pods]
        assert len(names) == len(set(names))
        if action.verb is Verb.PATCH and (pod := self.model.pod(name)) is not None:
            kinds = [item.type for item in pod.status.conditions]
            assert len(kinds) == len(set(kinds)), f"two conditions of one type: {kinds}"
        if late:
            return
        self._order_is_kept(action)
        self._partition_is_kept(action)
        now = self.available()
        if now < self._available:
            least = len(self.wanted) - self.limits.max_unavailable
            assert now >= least, f"{action.verb} {name}: {now} available, {least} are promised"
        self._available = now

    def _nothing_shrinks(self, name: str) -> None:
        """ST-97."""
        now, before = _size(self.model, name), self._sizes.get(name, 0)
        assert now >= before, f"{name} shrinks from {before} to {now}"

    def _order_is_kept(self, action: Action) -> None:
        """ST-61, ST-63."""
        name, wanted = action.target.name, self.wanted
        if not self.limits.is_ordered:
            return
        serving = {pod.metadata.name for pod in self._before.values() if self.serves(pod)}
        if action.verb is Verb.CREATE:
            before = wanted[: wanted.index(name)]
            assert serving.issuperset(before), f"{name} is made, and of {before} only {serving} serve"
        elif action.verb is Verb.DELETE and name not in wanted and name in serving:
            higher = [pod for pod in self._before if pod not in wanted and _ordinal(pod) > _ordinal(name)]
            assert not higher, f"{name} goes before {higher}"
            assert serving.issuperset(wanted), f"{name} goes, and of {wanted} only {serving} serve"

    def _partition_is_kept(self, action: Action) -> None:
        """ST-56, ST-57, ST-72."""
        pod = self.model.pod(action.target.name)
        before = self._before.get(action.target.name)
        if pod is None or not self.is_new(pod) or (before is not None and self.is_new(before)):
            return
        if not self._is_rolling_out() or action.target.name not in self.wanted:
            return
        partition = self.limits.partition
        if self.limits.is_unordered:
            new = sum(self.is_new(pod) for pod in self.kept() if pod.metadata.name in self.wanted)
            assert new <= len(self.wanted) - partition, f"{new} new pods: past the partition {partition}"
        else:
            assert action.target.name not in self.wanted[:partition], f"{action.target} is past the partition"

    # Counting, apart from the code that is tested

    @property
    def limits(self) -> Limits:
        return limits_of(self.model.statefulset.spec)

    @property
    def wanted(self) -> list[str]:
        spec = self.model.statefulset.spec
        reserved: set[int] = set()
        for entry in spec.reserve_ordinals:
            first, _, last = str(entry).partition("-")
            reserved |= set(range(int(first), int(last or first) + 1))
        start = spec.ordinals.start if spec.ordinals is not None else 0
        free = (number for number in itertools.count(start) if number not in reserved)
        return [f"web-{number}" for number in itertools.islice(free, spec.replicas or 0)]

    def kept(self) -> list[Pod]:
        owned = [pod for pod in self.model.pods if any(o.uid == UID for o in pod.metadata.owner_references)]
        return [pod for pod in owned if is_active(pod) and pod.metadata.labels.get("app") == "web"]

    @property
    def _newest(self) -> str:
        return max(self.model.revisions, key=lambda revision: revision.revision).metadata.name

    def is_new(self, pod: Pod) -> bool:
        return is_revision(pod.metadata.labels.get(keys.REVISION_LABEL, ""), self._newest)

    def _is_rolling_out(self) -> bool:
        """With a failure budget, a revision that was never rolled out completely is nothing to stay at."""
        memory = self.model.statefulset.status.failure_budget
        if memory is not None and not memory.failed:
            return False
        current = self.model.statefulset.status.current_revision
        return current in {revision.metadata.name for revision in self.model.revisions} - {self._newest}

    def available(self) -> int:
        return sum(self.serves(pod) for pod in self.kept() if pod.metadata.name in self.wanted)

    def serves(self, pod: Pod) -> bool:
        ready = next((item for item in pod.status.conditions if item.type == "Ready"), None)
        if not is_active(pod) or pod.status.phase != "Running" or ready is None or ready.status != "True":
            return False
        if pod.metadata.labels.get(keys.STATE_LABEL, "") not in ("", "Normal") or not runs_what_it_should(pod):
            return False
        wait, since = self.limits.min_ready_seconds, ready.last_transition_time
        # A whole second more, because the server keeps whole seconds.
        return not wait or (since is not None and (self.model.now - since).total_seconds() >= wait + 1)


def _size(model: ModelledStatefulSet, claim: str) -> int:
    found = next(item for item in model.claims if item.metadata.name == claim)
    return int(found.spec.resources.requests["storage"].removesuffix("Gi"))


def _ordinal(name: str) -> int:
    return int(name.rpartition("-")[2])


# What happens


def _pick(model: ModelledStatefulSet, number: int) -> str:
    names = model.names
    return names[number % len(names)] if names else ""


def _on_pod(act: Callable[[ModelledStatefulSet, str], object]) -> Callable[[ModelledStatefulSet, int], None]:
    def move(model: ModelledStatefulSet, number: int) -> None:
        if name := _pick(model, number):
            act(model, name)

    return move


def _set(field: str, *values: Any) -> Callable[[ModelledStatefulSet, int], None]:
    return lambda model, number: model.edit_spec(lambda spec: spec.update({field: values[number % len(values)]}))


def _set_rolling(field: str, *values: Any) -> Callable[[ModelledStatefulSet, int], None]:
    def move(model: ModelledStatefulSet, number: int) -> None:
        def apply(spec: Json) -> None:
            rolling = spec["updateStrategy"].get("rollingUpdate")
            if rolling is not None:
                rolling[field] = values[number % len(values)]

        model.edit_spec(apply)

    return move


def set_image(model: ModelledStatefulSet, number: int) -> None:
    model.set_image(IMAGES[number % len(IMAGES)])


def set_cpus(model: ModelledStatefulSet, number: int) -> None:
    model.set_cpus(("1", "2", *UNGRANTED)[number % 4])


def lose_revision(model: ModelledStatefulSet, number: int) -> None:
    """Somebody tidies up."""
    if model.revisions:
        model.world.remove(CONTROLLER_REVISIONS, model.revisions[number % len(model.revisions)])


def set_strategy(model: ModelledStatefulSet, number: int) -> None:
    strategies: tuple[Json, ...] = (
        {"type": "OnDelete"},
        {"type": "RollingUpdate", "rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}},
    )
    model.edit_spec(lambda spec: spec.update(updateStrategy=copy.deepcopy(strategies[number % 2])))


def set_environment(model: ModelledStatefulSet, number: int) -> None:
    model.set_environment("LEVEL", str(number % 3))


def orphan(model: ModelledStatefulSet, name: str) -> None:
    model.change(PODS, name, lambda made: made["metadata"].pop("ownerReferences", None))


def set_size(model: ModelledStatefulSet, number: int) -> None:
    """Of the claims that are wanted, where there are any."""
    size = {"requests": {"storage": f"{number % 3 + 1}Gi"}}
    wanted = {**CLAIM, "spec": {**CLAIM["spec"], "resources": size}}
    if model.statefulset.spec.volume_claim_templates:
        model.edit_spec(lambda spec: spec.update(volumeClaimTemplates=[wanted]))


def provision(model: ModelledStatefulSet, number: int) -> None:
    """One volume gets the size that its claim asks for."""
    asking = [claim for claim in model.claims if claim.status.capacity != claim.spec.resources.requests]
    if asking:
        claim = asking[number % len(asking)]
        status = {"phase": "Bound", "capacity": dict(claim.spec.resources.requests)}
        model.change(PERSISTENT_VOLUME_CLAIMS, claim.metadata.name, lambda made: made.update(status=status))


def lose_claim(model: ModelledStatefulSet, number: int) -> None:
    if model.claims:
        model.world.delete(PERSISTENT_VOLUME_CLAIMS, model.claims[number % len(model.claims)])


def _with_pod(act: Callable[[ModelledStatefulSet, Pod], None]) -> Callable[[ModelledStatefulSet, int], None]:
    def move(model: ModelledStatefulSet, number: int) -> None:
        if (pod := model.pod(_pick(model, number))) is not None:
            act(model, pod)

    return move


def attend(model: ModelledStatefulSet, name: str) -> bool:
    """Somebody does what the hooks ask for, at one pod; whether there was anything to do."""
    pod = model.pod(name)
    assert pod is not None
    wanted: Mapping[str, dict[str, str | None]] = {
        "PreparingNormal": {OKAY: "true"},
        "PreparingUpdate": {HOLD: None},
        "Updated": {HOLD: "true"},
        "PreparingDelete": {GUARD: None},
    }
    labels = wanted.get(pod.metadata.labels.get(keys.STATE_LABEL, ""), {})
    if all(pod.metadata.labels.get(key) == value for key, value in labels.items()):
        return False
    model.label(name, **labels)
    return True


def all_kubelets(model: ModelledStatefulSet, number: int) -> None:
    for name in model.names:
        for _ in range(number % 3 + 1):
            model.kubelet(name)


MOVES: Mapping[str, Callable[[ModelledStatefulSet, int], None]] = {
    "image": set_image,
    "environment": set_environment,
    "cpus": set_cpus,
    "strategy": set_strategy,
    "hooks": _set("lifecycle", None, {}, {"inPlaceUpdate": {"labelsHandler": {HOLD: "true"}}}),
    "lose revision": lose_revision,
    "succeed": _with_pod(lambda model, pod: model.kubelets.succeed(pod)),
    "replicas": _set("replicas", 0, 1, 2, 3, 4, 5),
    "reserve": _set("reserveOrdinals", *RESERVED),
    "start": _set("ordinals", None, {"start": 1}, {"start": 3}),
    "size": set_size,
    "growth": _set("volumeClaimUpdateStrategy", {"type": "OnPodRollingUpdate"}, {"type": "OnDelete"}),
    "rank": _on_pod(lambda model, name: model.label(name, rank=str(_ordinal(name) % 3))),
    "scale limit": _set("scaleStrategy", None, {"maxUnavailable": 1}, {"maxUnavailable": "50%"}),
    "retention": _set(
        "persistentVolumeClaimRetentionPolicy",
        *({"whenDeleted": d, "whenScaled": s} for d in ("Retain", "Delete") for s in ("Retain", "Delete")),
    ),
    "partition": _set_rolling("partition", 0, 1, 2, 9),
    "max unavailable": _set_rolling("maxUnavailable", 1, 2, "50%", "100%"),
    "paused": _set_rolling("paused", True, False),
    "policy": _set_rolling("podUpdatePolicy", "ReCreate", "InPlaceIfPossible", "InPlaceOnly"),
    "grace": _set_rolling("inPlaceUpdateStrategy", {}, {"gracePeriodSeconds": 2}),
    "patience": _set_rolling("minReadySeconds", 0, 3, 30),
    "mark": _on_pod(lambda model, name: model.label(name, **{keys.SPECIFIED_DELETE_LABEL: "true"})),
    "delete": _on_pod(lambda model, name: model.delete_pod(name)),
    "lead away": _on_pod(lambda model, name: model.label(name, app="other")),
    "orphan": _on_pod(orphan),
    "unname": _on_pod(lambda model, name: model.label(name, **{"statefulset.kubernetes.io/pod-name": None})),
    "lose claim": lose_claim,
    "crash": _with_pod(lambda model, pod: model.kubelets.crash(pod)),
    "fail": _with_pod(lambda model, pod: model.kubelets.fail(pod)),
    "kubelet": _on_pod(lambda model, name: model.kubelet(name)),
    "kubelets": all_kubelets,
    "attend": _on_pod(attend),
    "provision": provision,
    "wait": lambda model, number: model.pass_time((0.4, 1.0, 4.0, 40.0)[number % 4]),
}
BY_ITSELF = ("kubelet", "kubelets", "attend", "provision", "wait")
PRIORITIES: tuple[Json, ...] = (
    {},
    {"priorityStrategy": {"orderPriority": [{"orderedKey": "rank"}]}},
    {"priorityStrategy": {"weightPriority": [{"weight": 50, "matchSelector": {"matchLabels": {"rank": "1"}}}]}},
)
PASS, CUT_PASS, LATE_PASS, ROUND = "pass", "cut pass", "late pass", "round"


def _sized(made: Json) -> Json:
    made["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1"}}
    return made


@st.composite
def models(draw: st.DrawFn) -> ModelledStatefulSet:
    parallel = draw(st.booleans())
    labels: dict[str, str] = {}
    hooks: Json = {}
    if draw(st.booleans()):
        hooks["preDelete"] = {"labelsHandler": {GUARD: "true"}, "markPodNotReady": draw(st.booleans())}
        labels[GUARD] = "true"
    if draw(st.booleans()):
        hooks["inPlaceUpdate"] = {"labelsHandler": {HOLD: "true"}, "markPodNotReady": draw(st.booleans())}
        labels[HOLD] = "true"
    if draw(st.integers(0, 3)) == 0:
        hooks["preNormal"] = {"labelsHandler": {OKAY: "true"}}
    rolling: Json = {
        "podUpdatePolicy": draw(st.sampled_from(("ReCreate", "InPlaceIfPossible", "InPlaceIfPossible", "InPlaceOnly"))),
        "partition": draw(st.sampled_from((0, 0, 1, 2))),
        "maxUnavailable": draw(st.sampled_from((1, 1, 2, "50%"))),
    }
    if parallel and draw(st.integers(0, 2)) == 0:
        rolling["unorderedUpdate"] = draw(st.sampled_from(PRIORITIES))
    given: Json = document(
        draw(st.integers(0, 5)),
        parallel=parallel,
        rolling=rolling,
        template=_sized(template(labels=labels)),
        reserveOrdinals=draw(st.sampled_from(RESERVED)),
        revisionHistoryLimit=draw(st.sampled_from((0, 1, 10))),
        volumeClaimTemplates=[CLAIM] if draw(st.booleans()) else [],
        volumeClaimUpdateStrategy={"type": draw(st.sampled_from(("OnDelete", "OnPodRollingUpdate")))},
    )
    if hooks:
        given["spec"]["lifecycle"] = hooks
    if draw(st.integers(0, 7)) == 0:
        given["spec"]["updateStrategy"] = {"type": "OnDelete"}
    if draw(st.integers(0, 3)) == 0:
        given["metadata"]["annotations"] = {
            "apps.kruise.io/failure-budget": draw(st.sampled_from(("0", "1", "50%:rollback")))
        }
    gates = {"PreparingUpdateAsUpdate": draw(st.integers(0, 3)) == 0, START_GATE: True, GROWTH_GATE: True}
    gates["InPlaceWorkloadVerticalScaling"] = draw(st.booleans())
    model = ModelledStatefulSet(given, gates=gates)
    model.world.add(STORAGE_CLASSES, [StorageClass(metadata=ObjectMeta(name="manual"), allow_volume_expansion=True)])
    return model


_NUMBERS = st.integers(0, 11)
_STEPS = st.one_of(
    st.tuples(st.just(PASS), _NUMBERS),
    st.tuples(st.sampled_from((PASS, CUT_PASS, LATE_PASS)), _NUMBERS),
    st.tuples(st.just(ROUND), _NUMBERS),
    st.tuples(st.sampled_from(BY_ITSELF), _NUMBERS),
    st.tuples(st.sampled_from(sorted(MOVES)), _NUMBERS),
)


def _play(checked: Checked, step: str, number: int) -> None:
    if step == PASS:
        checked.reconcile()
    elif step == ROUND:
        for _ in range(number % 4 + 1):
            _round(checked)
    elif step == CUT_PASS:
        checked.reconcile(die_at=number)
    elif step == LATE_PASS:
        late = sorted(MOVES)[number % len(MOVES)]
        checked.reconcile(between=lambda: MOVES[late](checked.model, number))
    else:
        MOVES[step](checked.model, number)


def _round(checked: Checked) -> bool:
    """Everybody does their part once; whether anything happened."""
    model = checked.model
    before = model.world.version
    checked.reconcile()
    for name in model.names:
        model.kubelet(name)
    for name in model.names:
        attend(model, name)
    provision(model, 0)
    return model.world.version != before


def _come_to_rest(checked: Checked) -> None:
    """Users mend what they broke, and let everything go on."""
    model = checked.model
    for pod in model.pods:
        if pod.metadata.labels.get("app") != "web":
            model.label(pod.metadata.name, app="web")
    set_image(model, 1)
    set_cpus(model, 0)
    if model.statefulset.spec.update_strategy.type == "OnDelete":
        for pod in model.pods:
            if pod.spec.containers[0].image == BROKEN:
                model.delete_pod(pod.metadata.name)  # nobody else replaces it (ST-79)
    model.edit_spec(lambda spec: spec["updateStrategy"].get("rollingUpdate", {}).update(paused=False))
    if model.statefulset.spec.update_strategy.rolling_update is not None:
        MOVES["policy"](model, 1)
        if any(BROKEN.encode() in bytes(revision.data) for revision in model.revisions):
            MOVES["partition"](model, 0)  # it may be the current one, at which a partition keeps pods (ST-14, ST-56)
    quiet = 0
    for _ in range(MANY):
        quiet = 0 if _round(checked) else quiet + 1
        model.pass_time(31.0)
        if quiet > 4:
            break
    assert quiet > 4, "it does not come to rest"


@given(models(), st.lists(_STEPS, max_size=40))
@story_settings(60)
def test_promises_hold_in_every_story(model: ModelledStatefulSet, story: list[tuple[str, int]]) -> None:
    # ST-40, ST-43, ST-44, ST-60 to ST-65, ST-69, ST-72 to ST-74, ST-82, ST-90, ST-105, ST-106
    checked = Checked(model)
    for step, number in story:
        _play(checked, step, number)
    _come_to_rest(checked)
    spec, status = model.statefulset.spec, model.statefulset.status
    assert model.names == sorted(checked.wanted)
    assert checked.available() == len(checked.wanted)
    assert not [pod for pod in model.pods if not pod.metadata.owner_references]
    assert (status.replicas, status.available_replicas) == (len(checked.wanted), len(checked.wanted))
    old = [pod.metadata.name for pod in model.pods if not checked.is_new(pod)]
    if not checked.limits.is_on_delete:
        marked = [pod for pod in model.pods if keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels]
        assert not marked
        assert len(old) <= checked.limits.partition
        if not checked.limits.is_unordered:
            assert set(old) <= set(checked.wanted[: checked.limits.partition])
    if spec.volume_claim_update_strategy.type == "OnPodRollingUpdate" and not checked.limits.is_on_delete:
        template = spec.volume_claim_templates
        size = (
            int(codec.decode(bytes(template[0]), dict)["spec"]["resources"]["requests"]["storage"][0])
            if template
            else 0
        )
        moved = [name for name in checked.wanted if name not in old] if template else []
        assert all(_size(model, f"data-{name}") >= size for name in moved)  # ST-94
    assert {pod.metadata.labels[keys.STATE_LABEL] for pod in model.pods} <= {"Normal"}
    policy = spec.persistent_volume_claim_retention_policy
    deleted, scaled = (policy.when_deleted, policy.when_scaled) if policy is not None else ("Retain", "Retain")
    claims = {claim.metadata.name: claim for claim in model.claims}
    if spec.volume_claim_templates:
        for name in checked.wanted:
            kinds = [owner.kind for owner in claims[f"data-{name}"].metadata.owner_references]
            assert kinds == (["StatefulSet"] if deleted == "Delete" else []), (name, deleted, scaled)
    plan = checked.reconcile()
    assert list(plan.actions()) == []
