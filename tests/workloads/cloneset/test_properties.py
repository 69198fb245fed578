"""Promises that hold for whatever anybody does to a CloneSet and its pods, in any order.

Hypothesis makes up a CloneSet and a story: users change the spec, mark and delete pods, hooks open and close,
containers start, crash and fail, time passes, and in between the manager makes passes, some of which are cut off by
its death or come late. Every write of the manager is checked. In the end everybody does their part, and things must
come to rest where the spec wants them.

`KRUISE_EXAMPLES` multiplies the examples. Run with `-s` to see how many examples, passes and writes that were.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kruise.api.native.pod import PODS, Pod, is_active
from kruise.api.native.storage import PERSISTENT_VOLUME_CLAIMS, claim_names
from kruise.inplace import keys
from kruise.machinery import codec
from kruise.machinery.client.requests import Verb
from kruise.machinery.plan import Action, Outcome, Plan, Result
from kruise.machinery.revision_names import short_hash
from kruise.model.world import Json
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.memo import Memo
from kruise.workloads.cloneset.numbers import Limits, limits_of
from kruise.workloads.cloneset.situation import Snapshot
from tests.support.clonesets import DATA_CLAIM, TEMPLATE
from tests.support.examples import story_settings
from tests.support.modelled import BROKEN, UID
from tests.workloads.cloneset.modelled import ModelledCloneSet

IMAGES = ("nginx:1", "nginx:2", "nginx:3", BROKEN)
GUARD, HOLD, OKAY = "example.com/guard", "example.com/hold", "example.com/okay"
"""Labels of the hooks: a pod is born with the first two, and somebody adds the third."""
GATES = ("CloneSetShortHash", "CloneSetPartitionRollback", "PreparingUpdateAsUpdate", "InPlaceUpdateEnvFromMetadata")
MANY = 400
"""More rounds than any story needs to come to rest."""


@dataclasses.dataclass
class Tally:
    examples: int = 0
    passes: int = 0
    writes: int = 0
    moves: int = 0
    rounds: int = 0


TALLY = Tally()


# The promises


class Checked:
    """A model whose manager is watched."""

    def __init__(self, model: ModelledCloneSet) -> None:
        self.model = model
        self.plan = Plan()
        self._snapshot: Snapshot | None = None
        self._available = 0
        self._deleted: set[str] = set()

    def reconcile(self, *, die_at: int | None = None, between: Callable[[], None] | None = None) -> Plan:
        TALLY.passes += 1
        late = between is not None

        def decided(snapshot: Snapshot, plan: Plan) -> None:
            self._on_plan(snapshot, plan)
            if between is not None:
                between()

        def wrote(outcome: Outcome) -> None:
            if outcome.result is Result.DONE:
                (self._on_late_write if late else self._on_write)(outcome.action)

        plan = self.model.reconcile(die_at=die_at, decided=decided, wrote=wrote)
        if die_at is None and not late and not list(plan.actions()):
            self._explained(plan)
        return plan

    # Of whole plans

    def _on_plan(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot, self.plan = snapshot, plan
        self._available = self.available()
        self._deleted = set()
        touched: dict[str, set[Verb]] = {}
        for action in plan.actions():
            if action.target.resource == PODS:
                touched.setdefault(action.target.name, set()).add(action.verb)
        both = {name for name, verbs in touched.items() if {Verb.PATCH, Verb.DELETE} <= verbs}
        assert not both, f"written and deleted in one plan: {both}"
        creates = [action.target for action in plan.actions() if action.verb is Verb.CREATE]
        assert len(creates) == len(set(creates)), "created twice in one plan"
        for held in plan.held:
            assert held.causes, f"{held.target} is held without a cause"
            for cause in held.causes:
                assert cause.code, cause
                assert cause.message, cause

    def _explained(self, plan: Plan) -> None:
        """Nothing is done, so every pod that is not where it should be is held for a reason."""
        held = {item.target.name for item in plan.held}
        limits = self.limits
        old = [pod for pod in self.kept() if not self.is_new(pod)]
        for pod in self.kept():
            labels, name = pod.metadata.labels, pod.metadata.name
            named = self.model.cloneset.spec.scale_strategy.pods_to_delete
            is_marked = keys.SPECIFIED_DELETE_LABEL in labels or name in named
            if is_marked or labels.get(keys.STATE_LABEL) != "Normal":
                assert name in held, f"nobody says why {name} stays as it is: {labels}"
            elif not self.is_new(pod) and len(old) > limits.partition:
                assert name in held, f"nobody says why {name} is not updated"
        if len(self.kept()) < self.replicas:
            assert held, "pods are missing and nobody says why"

    # Of single writes

    def _on_write(self, action: Action) -> None:
        TALLY.writes += 1
        self._on_late_write(action)
        limits, replicas = self.limits, self.replicas
        before, now = self._available, self.available()
        if now < before:
            least = replicas - limits.max_unavailable
            assert now >= least, f"{action.verb} {action.target}: {now} available, {least} are promised"
        self._available = now
        kept = self.kept()
        if action.verb is Verb.CREATE and action.target.resource == PODS:
            if self.model.cloneset.spec.scale_strategy.exclude_preparing_delete:
                kept = [pod for pod in kept if not _is_leaving(pod)]
            most = replicas + limits.max_surge
            assert len(kept) <= most, f"{len(kept)} pods, {most} are allowed"
            created = next(pod for pod in kept if pod.metadata.name == action.target.name)
            if self.is_new(created) and self._is_rolling_out():
                new = sum(map(self.is_new, kept))
                assert new <= replicas - limits.partition + limits.max_surge, f"{new} new pods: past the partition"
        if action.verb is Verb.PATCH and action.target.resource == PODS:
            self._partition_is_kept(action, kept, limits)

    def _partition_is_kept(self, action: Action, kept: list[Pod], limits: Limits) -> None:
        """A pod that goes over to the new revision, or is marked for it, leaves enough old ones behind."""
        assert self._snapshot is not None
        [before] = [pod for pod in self._snapshot.pods if pod.metadata.name == action.target.name]
        after = next(pod for pod in self.model.pods if pod.metadata.name == action.target.name)
        marked = keys.SPECIFIED_DELETE_LABEL
        became_new = self.is_new(after) and not self.is_new(before)
        went_back = self.is_new(before) and not self.is_new(after)
        was_marked = marked in after.metadata.labels and marked not in before.metadata.labels
        staying = [pod for pod in kept if not _is_leaving(pod)]
        new = sum(map(self.is_new, staying))
        old = len(staying) - new
        if became_new or (was_marked and not self.is_new(after)):
            assert old - was_marked >= limits.partition, f"{old} old pods left, partition {limits.partition}"
        if went_back:
            assert self.model.gates["CloneSetPartitionRollback"]
            assert new >= self.replicas - limits.partition, f"{new} new pods left, partition {limits.partition}"

    def _on_late_write(self, action: Action) -> None:
        """What holds even for a decision that came late."""
        name = action.target.name
        if action.target.resource == PODS and (pod := self.model.pod(name)) is not None:
            kinds = [item.type for item in pod.status.conditions]
            assert len(kinds) == len(set(kinds)), f"two conditions of one type: {kinds}"
        if action.verb is not Verb.DELETE:
            return
        if action.target.resource == PODS:
            self._deleted.add(name)
        elif action.target.resource == PERSISTENT_VOLUME_CLAIMS:
            users = [pod.metadata.name for pod in self.model.pods if is_active(pod) and name in claim_names(pod)]
            assert not users, f"claim {name} is deleted, and {users} mount it"
            if self.model.cloneset.spec.scale_strategy.enable_pvc_reuse:
                doomed = {f"data-{pod}" for pod in self._deleted} | self._marked_claims()
                assert name in doomed, f"claim {name} is deleted, and it was to be reused"
        else:
            used = {short_hash(pod.metadata.labels.get(keys.REVISION_LABEL, "")) for pod in self._owned()}
            assert short_hash(name) not in used, f"revision {name} is deleted, and a pod has it"
            assert self._snapshot is not None
            figures = self.plan.memo_as(Memo).figures
            assert name not in (self._snapshot.cloneset.status.current_revision, figures.update_revision)

    def _marked_claims(self) -> set[str]:
        """Claims of pods that end because somebody asked the CloneSet for it."""
        named = self.model.cloneset.spec.scale_strategy.pods_to_delete
        return {
            claim
            for pod in self.model.pods
            if pod.metadata.deletion_timestamp is not None
            and (
                keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels
                or pod.metadata.labels.get(keys.STATE_LABEL) == "PreparingDelete"
                or pod.metadata.name in named
            )
            for claim in claim_names(pod)
        }

    # Counting, apart from the code that is tested

    @property
    def limits(self) -> Limits:
        return limits_of(self.model.cloneset.spec)

    @property
    def replicas(self) -> int:
        return self.model.cloneset.spec.replicas or 0

    def _owned(self) -> list[Pod]:
        return [pod for pod in self.model.pods if any(o.uid == UID for o in pod.metadata.owner_references)]

    def kept(self) -> list[Pod]:
        return [pod for pod in self._owned() if is_active(pod) and pod.metadata.labels.get("app") == "web"]

    def is_new(self, pod: Pod) -> bool:
        newest = max(self.model.revisions, key=lambda revision: revision.revision)
        return short_hash(pod.metadata.labels.get(keys.REVISION_LABEL, "")) == short_hash(newest.metadata.name)

    def _is_rolling_out(self) -> bool:
        """Two revisions are at work; while there is only one, a partition means nothing."""
        current = self.model.cloneset.status.current_revision
        newest = max(self.model.revisions, key=lambda revision: revision.revision)
        return current in {revision.metadata.name for revision in self.model.revisions} - {newest.metadata.name}

    def available(self) -> int:
        return sum(map(self.serves, self.kept()))

    def serves(self, pod: Pod) -> bool:
        conditions = {item.type: item for item in pod.status.conditions}
        ready, in_place = conditions.get("Ready"), conditions.get(keys.IN_PLACE_READY)
        if pod.status.phase != "Running" or ready is None or ready.status != "True":
            return False
        if in_place is not None and in_place.status != "True":
            return False
        if pod.metadata.labels.get(keys.STATE_LABEL, "") not in ("", "Normal"):
            return False
        wait = self.model.cloneset.spec.min_ready_seconds
        since = ready.last_transition_time
        # A whole second more, because the server keeps whole seconds.
        return not wait or (since is not None and (self.model.now - since).total_seconds() >= wait + 1)


def _is_leaving(pod: Pod) -> bool:
    return pod.metadata.labels.get(keys.STATE_LABEL) == "PreparingDelete"


# What happens


def _pick(model: ModelledCloneSet, number: int) -> str:
    names = sorted(pod.metadata.name for pod in model.pods)
    return names[number % len(names)] if names else ""


def _label(model: ModelledCloneSet, name: str, **labels: str | None) -> None:
    def apply(document: Json) -> None:
        found = document["metadata"].setdefault("labels", {})
        for key, value in labels.items():
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value

    if name:
        model.change(PODS, name, apply)


def set_image(model: ModelledCloneSet, number: int) -> None:
    model.set_image(IMAGES[number % len(IMAGES)])


def set_environment(model: ModelledCloneSet, number: int) -> None:
    model.set_environment("LEVEL", str(number % 3))


def set_template_label(model: ModelledCloneSet, number: int) -> None:
    model.edit_template(lambda template: template["metadata"]["labels"].update(tier=str(number % 3)))


def set_replicas(model: ModelledCloneSet, number: int) -> None:
    model.edit_spec(lambda spec: spec.update(replicas=number % 6))


def _set_rolling(name: str, values: tuple[Any, ...]) -> Callable[[ModelledCloneSet, int], None]:
    def move(model: ModelledCloneSet, number: int) -> None:
        def apply(spec: Json) -> None:
            rolling = spec["updateStrategy"].get("rollingUpdate")
            if rolling is not None:
                rolling[name] = values[number % len(values)]
                if rolling.get("podUpdatePolicy") == "InPlaceOnly":
                    rolling["maxSurge"] = 0
                if not rolling.get("maxSurge") and rolling["maxUnavailable"] in (0, "0%"):
                    rolling["maxUnavailable"] = 1

        model.edit_spec(apply)

    return move


def set_scale_limit(model: ModelledCloneSet, number: int) -> None:
    value = (None, 1, 2, "50%")[number % 4]
    model.edit_spec(lambda spec: spec.setdefault("scaleStrategy", {}).update(maxUnavailable=value))


def set_reuse(model: ModelledCloneSet, number: int) -> None:
    model.edit_spec(lambda spec: spec.setdefault("scaleStrategy", {}).update(enablePVCReuse=bool(number % 2)))


def set_patience(model: ModelledCloneSet, number: int) -> None:
    model.edit_spec(lambda spec: spec.update(minReadySeconds=(0, 0, 3, 30)[number % 4]))


def name_for_deletion(model: ModelledCloneSet, number: int) -> None:
    name = _pick(model, number)

    def apply(spec: Json) -> None:
        scale = spec.setdefault("scaleStrategy", {})
        names = scale.get("podsToDelete") or []
        if name and name not in names:
            scale["podsToDelete"] = [*names, name]

    model.edit_spec(apply)


def mark_for_deletion(model: ModelledCloneSet, number: int) -> None:
    _label(model, _pick(model, number), **{keys.SPECIFIED_DELETE_LABEL: "true"})


def delete_pod(model: ModelledCloneSet, number: int) -> None:
    if name := _pick(model, number):
        model.delete_pod(name)


def lead_away(model: ModelledCloneSet, number: int) -> None:
    _label(model, _pick(model, number), app="other")


def crash(model: ModelledCloneSet, number: int) -> None:
    if pod := model.pod(_pick(model, number)):
        model.kubelets.crash(pod)


def fail(model: ModelledCloneSet, number: int) -> None:
    if pod := model.pod(_pick(model, number)):
        model.kubelets.fail(pod)


def kubelet(model: ModelledCloneSet, number: int) -> None:
    if name := _pick(model, number):
        model.kubelet(name)


def all_kubelets(model: ModelledCloneSet, number: int) -> None:
    for pod in model.pods:
        for _ in range(number % 3 + 1):
            model.kubelet(pod.metadata.name)


def attend_hooks(model: ModelledCloneSet, number: int) -> None:
    """Somebody does what the hooks ask for, at one pod."""
    if name := _pick(model, number):
        _attend(model, name)


def _attend(model: ModelledCloneSet, name: str) -> bool:
    pod = model.pod(name)
    assert pod is not None
    labels = pod.metadata.labels
    wanted: dict[str, str | None] = {}
    match labels.get(keys.STATE_LABEL):
        case "PreparingNormal":
            wanted = {OKAY: "true"}
        case "PreparingUpdate":
            wanted = {HOLD: None}
        case "Updated":
            wanted = {HOLD: "true"}
        case "PreparingDelete":
            wanted = {GUARD: None}
    if all(labels.get(key) == value for key, value in wanted.items()):
        return False
    _label(model, name, **wanted)
    return True


def wait(model: ModelledCloneSet, number: int) -> None:
    model.pass_time((0.4, 1.0, 4.0, 40.0)[number % 4])


MOVES: Mapping[str, Callable[[ModelledCloneSet, int], None]] = {
    move.__name__: move
    for move in (
        set_image,
        set_environment,
        set_template_label,
        set_replicas,
        set_scale_limit,
        set_reuse,
        set_patience,
        name_for_deletion,
        mark_for_deletion,
        delete_pod,
        lead_away,
        crash,
        fail,
        kubelet,
        all_kubelets,
        attend_hooks,
        wait,
    )
} | {
    "set_partition": _set_rolling("partition", (0, 1, 2, "50%", "99%", "100%")),
    "set_max_unavailable": _set_rolling("maxUnavailable", (1, 2, "20%", "50%", "100%", 0)),
    "set_max_surge": _set_rolling("maxSurge", (0, 1, 2, "50%")),
    "set_paused": _set_rolling("paused", (True, False)),
    "set_policy": _set_rolling("podUpdatePolicy", ("ReCreate", "InPlaceIfPossible", "InPlaceOnly")),
    "set_grace": _set_rolling("inPlaceUpdateStrategy", ({}, {"gracePeriodSeconds": 2})),
}
BY_ITSELF = ("kubelet", "all_kubelets", "attend_hooks", "wait")
PASS, CUT_PASS, LATE_PASS, ROUND = "pass", "cut pass", "late pass", "round"


# CloneSets and stories


@st.composite
def models(draw: st.DrawFn) -> ModelledCloneSet:
    template: Json = codec.decode(codec.encode(TEMPLATE), dict)
    template["spec"]["containers"][0]["image"] = IMAGES[0]
    spec: Json = {
        "replicas": draw(st.integers(0, 5)),
        "selector": {"matchLabels": {"app": "web"}},
        "template": template,
        "scaleStrategy": {
            "enablePVCReuse": draw(st.booleans()),
            "excludePreparingDelete": draw(st.integers(0, 3)) == 0,
        },
        "revisionHistoryLimit": draw(st.sampled_from((0, 1, 10))),
    }
    if draw(st.booleans()):
        spec["volumeClaimTemplates"] = [DATA_CLAIM]
        template["spec"]["containers"][0]["volumeMounts"] = [{"name": "data", "mountPath": "/data"}]
    hooks: Json = {}
    if draw(st.booleans()):
        hooks["preDelete"] = {"labelsHandler": {GUARD: "true"}, "markPodNotReady": draw(st.booleans())}
        template["metadata"]["labels"][GUARD] = "true"
    if draw(st.booleans()):
        hooks["inPlaceUpdate"] = {"labelsHandler": {HOLD: "true"}, "markPodNotReady": draw(st.booleans())}
        template["metadata"]["labels"][HOLD] = "true"
    if draw(st.integers(0, 3)) == 0:
        hooks["preNormal"] = {"labelsHandler": {OKAY: "true"}}
    if hooks:
        spec["lifecycle"] = hooks
    if draw(st.integers(0, 7)) == 0:
        spec["updateStrategy"] = {"type": "OnDelete"}
    else:
        policy = draw(st.sampled_from(("ReCreate", "InPlaceIfPossible", "InPlaceIfPossible", "InPlaceOnly")))
        rolling: Json = {
            "podUpdatePolicy": policy,
            "partition": draw(st.sampled_from((0, 0, 1, 2, "50%", "99%"))),
            "maxUnavailable": draw(st.sampled_from((1, 1, 2, "20%", "50%"))),
            "maxSurge": 0 if policy == "InPlaceOnly" else draw(st.sampled_from((0, 0, 1, 2))),
        }
        spec["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
    document = {
        "apiVersion": "apps.kruise.io/v1beta1",
        "kind": "CloneSet",
        "metadata": {"name": "web", "namespace": "demo"},
        "spec": spec,
        "status": {},
    }
    gates = {gate: draw(st.integers(0, 3)) == 0 for gate in GATES}
    return ModelledCloneSet(document, gates=gates)


_NUMBERS = st.integers(0, 11)
_STEPS = st.one_of(
    st.tuples(st.just(PASS), _NUMBERS),
    st.tuples(st.sampled_from((PASS, CUT_PASS, LATE_PASS)), _NUMBERS),
    st.tuples(st.just(ROUND), _NUMBERS),
    st.tuples(st.sampled_from(BY_ITSELF), _NUMBERS),
    st.tuples(st.sampled_from(sorted(MOVES)), _NUMBERS),
)


def _play(checked: Checked, step: str, number: int) -> None:
    TALLY.moves += 1
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
    """Everybody does their part once; whether anything happened besides what the manager did."""
    model = checked.model
    checked.reconcile()
    moved = [model.kubelet(pod.metadata.name) for pod in model.pods]
    attended = [_attend(model, pod.metadata.name) for pod in checked.kept()]
    model.pass_time(7.0)
    return any(moved) or any(attended)


def _come_to_rest(checked: Checked) -> None:
    """Everybody does their part until nothing happens any more."""
    model = checked.model
    for _ in range(MANY):
        TALLY.rounds += 1
        before = model.writes
        if not _round(checked) and model.writes == before:
            model.pass_time(60.0)
            checked.reconcile()
            if model.writes == before:
                return
    raise AssertionError(f"still busy: {[str(action) for action in checked.plan.actions()]}")


def _is_where_it_should_be(checked: Checked) -> None:
    model, kept, limits = checked.model, checked.kept(), checked.limits
    spec, status = model.cloneset.spec, model.cloneset.status
    unwell = [pod for pod in kept if not checked.serves(pod)]
    rolling = spec.update_strategy.rolling_update
    if any(pod.spec.containers[0].image == BROKEN for pod in unwell) or checked.plan.memo_as(Memo).update_error:
        # A pod that cannot work and that nobody may update uses up limits; an update that cannot be made in place
        # stops where it is. All that is asked for are the reasons.
        return
    if rolling is not None and rolling.paused:
        # Whoever pauses an update in the middle of a hook finds it there again.
        unwell = [pod for pod in unwell if pod.metadata.labels[keys.STATE_LABEL] != "PreparingUpdate"]
    assert not unwell, [pod.metadata.labels for pod in unwell]
    assert len(kept) == checked.replicas
    if limits.max_unavailable or limits.max_surge:
        # Otherwise no pod that serves may ever go.
        assert not [pod for pod in kept if keys.SPECIFIED_DELETE_LABEL in pod.metadata.labels]
        assert not spec.scale_strategy.pods_to_delete
    old = [pod for pod in kept if not checked.is_new(pod)]
    if rolling is not None and not rolling.paused and rolling.pod_update_policy != "InPlaceOnly":
        assert len(old) <= limits.partition
    counted = (status.replicas, status.available_replicas, status.updated_replicas)
    assert counted == (len(kept), checked.available(), len(kept) - len(old))
    assert status.observed_generation == model.cloneset.metadata.generation
    claims = {claim.metadata.name for claim in model.claims if claim.metadata.deletion_timestamp is None}
    used = {name for pod in kept for name in claim_names(pod)}
    assert used <= claims
    if not spec.scale_strategy.enable_pvc_reuse:
        others = {name for pod in model.pods for name in claim_names(pod)}
        assert claims <= others, f"claims that nobody uses: {claims - others}"


@story_settings(150)
@given(model=models(), established=st.booleans(), story=st.lists(_STEPS, min_size=10, max_size=60))
def check_story(model: ModelledCloneSet, established: bool, story: list[tuple[str, int]]) -> None:
    TALLY.examples += 1
    checked = Checked(model)
    checked.reconcile()
    if established:
        _come_to_rest(checked)
    for step, number in story:
        _play(checked, step, number)
    # A template that can work, so that there is a place to come to rest at.
    if BROKEN.encode() in bytes(model.cloneset.spec.template):
        model.set_image("nginx:4")
    _come_to_rest(checked)
    _is_where_it_should_be(checked)
    snapshot = model.snapshot()
    plan = decide(snapshot)
    assert not list(plan.actions())


def test_promises_hold_for_random_stories(record_property: Callable[[str, object], None]) -> None:
    begun = time.perf_counter()
    check_story()
    seconds = time.perf_counter() - begun
    for name, value in dataclasses.asdict(TALLY).items():
        record_property(name, value)
    print(
        f"\n{TALLY.examples:,} examples: {TALLY.moves:,} moves, {TALLY.passes:,} passes, {TALLY.writes:,} writes"
        f" checked, {TALLY.rounds:,} rounds to come to rest, {seconds:.1f} s"
    )
    assert TALLY.examples >= 10
