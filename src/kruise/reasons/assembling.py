"""From what is known about a workload to the answer: causes of the plan, joined with what is wrong with the pods."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from kruise.api.native.pod import Pod, is_active
from kruise.faces.face import Face, Pods
from kruise.faces.progress import DEADLINE_EXCEEDED
from kruise.inplace import keys
from kruise.inplace.availability import is_available
from kruise.machinery.causes import LABEL_CHANGES, WAITED_FOR, Act, Cause, Meaning
from kruise.machinery.client.requests import Verb
from kruise.machinery.codec import evolve
from kruise.machinery.documents import Json, name_of, namespace_of, value_at
from kruise.machinery.revision_names import is_revision
from kruise.machinery.wording import full_name, namespace_flag, plural
from kruise.reasons import causes, native
from kruise.reasons.decision import About, Decision, Step
from kruise.reasons.diagnosis import NOTHING_KNOWN, Place, Surroundings, diagnose
from kruise.reasons.links import OBJECT, Answer, HeldObject, Link, PodPlace, Remark, Source
from kruise.reasons.manager import UNKNOWN, Manager
from kruise.workloads.shared import causes as shared

_SAYS_LESS = (causes.LIFECYCLE_STATE, shared.UPDATING)
"""What a pod shows of these, its plan tells better."""
_REFUSALS = {
    "FailedScale": causes.CREATE_REFUSED,
    "ReplicaFailure": causes.CREATE_REFUSED,
    "FailedUpdate": causes.UPDATE_REFUSED,
}


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What was read."""

    kind: Face
    document: Json
    pods: tuple[Pod, ...]
    """Those that belong to the workload."""
    now: datetime
    source: Source
    decision: Decision | None = None
    """None: the kind has no plan here; Kubernetes' own controllers leave none."""
    generation_seen: int = 0
    """The generation that the plan was made for; 0: the status tells."""
    around: Mapping[str, Surroundings] = dataclasses.field(default_factory=dict)
    """By uid of the pod."""
    new_pods: frozenset[str] | None = None
    """Names of the pods at the newest template, for kinds without a plan."""
    manager: Manager = UNKNOWN
    missing_controller: str = ""
    """That the cluster has none for a kind of Kubernetes' own, in words."""
    unreadable: tuple[str, ...] = ()
    is_first: bool = False
    """There is no earlier template to go back to."""
    untouched: str = ""
    """Pods that it would reach, were they made anew, in a sentence."""


def assemble(facts: Facts) -> Answer:
    return _Assembling(facts).answer()


def place_of(kind: Face, document: Json, *, is_first: bool = False) -> Place:
    namespace = namespace_of(document)
    return Place(
        target=f"{kind.word}/{name_of(document)}",
        flags=namespace_flag(namespace),
        can_undo=kind.history is not None and not is_first,
    )


def standalone(pod: Pod, *, around: Surroundings, now: datetime) -> tuple[Link, ...]:
    """What is wrong with a pod that belongs to nobody known."""
    return diagnose(pod, min_ready_seconds=0, now=now, around=around, place=Place())


def lacks_controller(reason: str) -> Link:
    """That the local cluster only keeps an object, in its words."""
    remedy = "use a kind that it runs (docs/local-cluster.md lists them), or another cluster"
    return Link(meaning=causes.NO_CONTROLLER, message=reason, act=causes.NO_CONTROLLER.act, remedy=remedy)


class _Assembling:
    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._document = facts.document
        self._place = place_of(facts.kind, facts.document, is_first=facts.is_first)
        self._min_ready = int(value_at(self._document, facts.kind.min_ready, 0) or 0)
        self._pods = {self._called(pod.metadata.namespace, pod.metadata.name): pod for pod in facts.pods}
        self._counted = {name: pod for name, pod in self._pods.items() if is_active(pod)}
        self._available = {name for name, pod in self._counted.items() if is_available(pod, self._min_ready, facts.now)}
        planned = facts.decision.revision if facts.decision is not None else ""
        self._revision = planned or str(value_at(self._document, facts.kind.revision_field, ""))
        self._new = frozenset(name for name, pod in self._pods.items() if self._is_new(pod))
        self._links: dict[str, list[Link]] = {}
        self._shared: dict[int, Link] = {}
        """By the identity of a cause, which lives as long as the decision: one may hold thousands of pods."""

    def _called(self, namespace: str, name: str) -> str:
        """What is in no namespace may have pods in all of them."""
        return name if self._facts.kind.resource.namespaced else full_name(namespace, name)

    def _key(self, about: About) -> str:
        return self._called(about.namespace, about.name)

    def answer(self) -> Answer:
        facts = self._facts
        progress = facts.kind.progress(self._document) if facts.kind.progress is not None else None
        wanted = progress.wanted if progress is not None else self._number(("spec", "replicas"), 1)
        if facts.kind.pods is Pods.NONE:
            wanted = 0  # what it counts are no pods
        self._add(OBJECT, self._of_the_manager())
        if facts.decision is not None:
            self._add_held(facts.decision)
            self._add_steps(facts.decision)
        else:
            for name, links in native.held(
                facts.kind, self._document, self._counted, facts.new_pods, self._counted.keys() - self._available
            ):
                self._add(name, links)
        self._add_diagnoses()
        self._add(OBJECT, self._of_conditions())
        self._add(OBJECT, self._missing(wanted))
        if facts.decision is not None:
            self._add_forgotten()
        self._lead_limits_on()
        return Answer(
            target=self._place.target,
            kind=facts.kind.label,
            namespace=namespace_of(self._document),
            name=name_of(self._document),
            revision=self._revision,
            wanted=wanted,
            expected=progress.expected if progress is not None else wanted,
            updated=self._updated(),
            available=len(self._available),
            pods={name: self._place_of(name) for name in sorted(self._counted)},
            waiting={
                name: HeldObject(pod=name, links=tuple(links)) for name, links in sorted(self._links.items()) if links
            },
            source=facts.source,
            remarks=tuple(self._remarks()),
            standing=self._standing(progress.message if progress is not None else ""),
            hidden_manager=self._hidden_manager(),
            now=facts.now,
        )

    def _standing(self, message: str) -> str:
        if self._facts.kind.standing is not None:
            return self._facts.kind.standing(self._document)
        return message if self._is_told_in_words() else ""

    def _is_told_in_words(self) -> bool:
        """Jobs, and kinds that only look at pods of others, have no revisions to count."""
        kind = self._facts.kind
        is_looking_on = kind.pods is Pods.SELECTED and kind.is_ours and kind.history is None
        return kind.runs_to_end or kind.pods is Pods.NONE or is_looking_on

    def _add(self, name: str, links: Iterable[Link]) -> None:
        found = list(links)  # first: what is found may change what is known
        known = self._links.setdefault(name, [])
        # One thing may hold a pod twice, as a budget that lets it neither be deleted nor updated.
        known += [link for link in found if not any(link == one for one in known)]

    def _number(self, path: tuple[str, ...], default: int = 0) -> int:
        found = value_at(self._document, path, default)
        return found if isinstance(found, int) else default

    def _updated(self) -> int:
        if self._facts.new_pods is not None:
            return len(self._facts.new_pods & self._counted.keys())
        return len(self._new & self._counted.keys())

    def _is_new(self, pod: Pod) -> bool:
        contribution = self._facts.kind.contribution
        if contribution is not None:
            return contribution.is_current(pod.metadata.annotations, self._document)
        return is_revision(pod.metadata.labels.get(self._facts.kind.revision_label, ""), self._revision)

    def _place_of(self, name: str) -> PodPlace:
        pod = self._counted[name]
        labels = pod.metadata.labels
        contribution = self._facts.kind.contribution
        if contribution is not None:
            revision = contribution.revision_of(pod.metadata.annotations, name_of(self._document))
        else:
            revision = labels.get(self._facts.kind.revision_label, "") or labels.get(keys.TEMPLATE_HASH_LABEL, "")
        return PodPlace(revision=revision, is_available=name in self._available, node=pod.spec.node_name)

    # The plan

    def _add_held(self, decision: Decision) -> None:
        for about, held in decision.held:
            if about.is_pod and (name := self._key(about)) in self._pods:
                self._add(name, tuple(self._link(cause, name) for cause in held if not self._is_over(cause, name)))
            elif about.name == name_of(self._document) and about.plural == self._facts.kind.resource.plural:
                self._add(OBJECT, tuple(self._link(cause, OBJECT) for cause in held))
            elif self._facts.kind.pods is Pods.NONE:
                # It has no pods: whatever it looks after is told of as itself.
                self._add(OBJECT, tuple(self._link(cause, OBJECT) for cause in held))

    def _is_over(self, cause: Cause, name: str) -> bool:
        """Pods may be newer than the decision about them."""
        return cause.meaning.is_for_want_of_a_node and bool(self._pods[name].spec.node_name)

    def _link(self, cause: Cause, name: str) -> Link:
        known = self._shared.get(id(cause))
        if known is not None:
            return known
        meaning, pod = cause.meaning, self._pods.get(name)
        target, flags, called = self._place.target, self._place.flags, name
        if pod is not None and ("{pod}" in meaning.remedy or "{by_hand}" in meaning.remedy):
            flags, called = namespace_flag(pod.metadata.namespace), pod.metadata.name
        told = meaning.remedy.format(target=target, flags=flags, pod=called, by_hand=_by_hand(cause, called, flags))
        link = Link(
            meaning=meaning,
            message=f"it waits for {cause.message}" if meaning == shared.GRACE else cause.message,
            act=meaning.act,
            remedy=told or cause.remedy,
            leads_to=_waited_for(cause),
            details=cause.details,
        )
        if "{pod}" not in meaning.remedy and "{by_hand}" not in meaning.remedy:
            self._shared[id(cause)] = link  # it is the same for whomever it holds
        return link

    def _add_steps(self, decision: Decision) -> None:
        """What the plan is about to do to pods. Writes of a journalled plan that arrived are told by the pods."""
        if self._facts.kind.pods is Pods.NONE:
            return
        creates = [step for step in decision.steps if step.verb == Verb.CREATE.value]
        to_come = [step for step in creates if self._key(step.about) not in self._pods]
        if to_come and not self._facts.manager.is_down:
            message = f"{plural(len(to_come), 'pod', 'is', 'are')} about to be created: {to_come[0].reason}"
            self._add(OBJECT, (self._own(causes.CREATING, message),))
        for step in decision.steps:
            name = self._key(step.about)
            pod = self._pods.get(name)
            if pod is None or step.verb == Verb.CREATE.value or self._links.get(name):
                continue
            if decision.seen is not None and decision.seen.get(pod.metadata.uid) != pod.metadata.resource_version:
                continue
            if not self._is_settled_but_for(step, name):
                verb = "deleted" if step.verb == Verb.DELETE.value else "changed"
                self._add(name, (self._own(causes.MOVING, f"it is about to be {verb}: {step.reason}"),))

    def _is_settled_but_for(self, step: Step, name: str) -> bool:
        """Bookkeeping on a pod that serves at its revision is nothing that anybody waits for."""
        return step.verb == Verb.PATCH.value and name in self._available and name in self._new

    # The pods

    def _add_diagnoses(self) -> None:
        facts = self._facts
        for name, pod in self._pods.items():
            if name in self._available or (not is_active(pod) and not self._blocks(name, pod)):
                continue
            found = diagnose(
                pod,
                min_ready_seconds=self._min_ready,
                now=facts.now,
                around=facts.around.get(pod.metadata.uid, NOTHING_KNOWN),
                place=self._place,
            )
            self._links[name] = list(_joined(name, self._links.get(name, []), found))

    def _blocks(self, name: str, pod: Pod) -> bool:
        """A pod on its way out is told of where somebody waits for it, or where its time is over."""
        until = pod.metadata.deletion_timestamp
        return until is not None and (bool(self._links.get(name)) or until <= self._facts.now)

    # The workload

    def _of_the_manager(self) -> Iterator[Link]:
        manager, facts = self._facts.manager, self._facts
        if not facts.kind.is_ours:
            manager = UNKNOWN
        if manager.lacks:
            message = f"the manager runs no {manager.lacks}, so it looks at no {facts.kind}: a feature gate is off"
            yield self._own(
                causes.CONTROLLER_OFF, message, remedy="switch the gate on (--feature-gates of the manager)"
            )
        elif manager.is_down:
            yield self._own(causes.MANAGER_DOWN, manager.words, remedy=manager.remedy)
        if facts.decision is not None and facts.decision.fault:
            target = self._place.target
            remedy = f"it is a fault of its code: kruise journal {target} --dump FILE keeps what it saw, for a report"
            yield self._own(causes.MANAGER_FAILS, f"the manager fails: {facts.decision.fault}", remedy=remedy)
        generation = self._number(("metadata", "generation")) if self._tells_what_it_saw() else 0
        seen = max(self._number(("status", "observedGeneration")), facts.generation_seen)
        if facts.kind.runs_to_end and value_at(self._document, ("status",), {}):
            seen = generation  # jobs do not tell which spec they have seen
        if seen < generation and facts.missing_controller:
            yield lacks_controller(facts.missing_controller)
        elif seen < generation and not manager.is_down:
            who = "the manager" if facts.kind.is_ours else f"the controller of {facts.kind}s"
            message = f"{who} has not looked at the newest spec yet: it is generation {generation}, seen is {seen}"
            remedy = f"if this lasts more than a few seconds: {manager.check}" if facts.kind.is_ours else ""
            yield self._own(causes.NOT_OBSERVED, message, remedy=remedy)
        if value_at(self._document, ("metadata", "deletionTimestamp")):
            finalizers = value_at(self._document, ("metadata", "finalizers"), [])
            held = f"; finalizers hold it: {', '.join(finalizers)}" if finalizers else ""
            remedy = "whoever put the finalizers there must take them away when their work is done" if held else ""
            act = Act.SOMEBODY if held else Act.NOBODY
            yield self._own(causes.DELETING, f"{self._place.target} is being deleted{held}", remedy=remedy, act=act)

    def _tells_what_it_saw(self) -> bool:
        """A job without pods does not say for which spec its status is."""
        if not self._facts.kind.tells_generation:
            return False
        status = value_at(self._document, ("status",), {})
        return self._facts.kind.pods is not Pods.NONE or not status or "observedGeneration" in status

    def _of_conditions(self) -> Iterator[Link]:
        decision = self._facts.decision
        for condition in value_at(self._document, ("status", "conditions"), ()):
            refusal = _REFUSALS.get(str(condition.get("type")))
            if refusal is None or condition.get("status") != "True":
                continue
            message = str(condition.get("message") or condition.get("reason") or "no reason is told")
            if decision is not None and decision.told_error == message:
                continue  # the plan says it better, pod by pod
            if refusal == causes.CREATE_REFUSED:
                self._links[OBJECT] = [link for link in self._links[OBJECT] if link.meaning != causes.CREATING]
            yield self._own(refusal, message, remedy=_remedy_of(message, self._place))

    def _missing(self, wanted: int) -> Iterator[Link]:
        missing = wanted - len(self._counted)
        if self._facts.kind.pods is Pods.SELECTED:
            return  # whoever owns them makes them
        if self._facts.kind.runs_to_end:
            return  # pods that have finished are not missing
        if missing <= 0 or value_at(self._document, ("metadata", "deletionTimestamp")):
            return
        if any(link.meaning != causes.NOT_OBSERVED for link in self._links.get(OBJECT, ())):
            return
        # A pod that is to take over claims waits for its predecessor, which has its name.
        before = {name for name, links in self._links.items() if links and name not in self._counted}
        when = "as soon as nothing is in the way"
        if native.makes_one_by_one(self._facts.kind, self._document):
            before |= {name for name in self._counted if self._links.get(name)}
            when = "one by one, each when the ones before are available"
        link = self._own(causes.CREATING, f"{plural(missing, 'pod', 'is', 'are')} missing; created {when}")
        yield evolve(link, leads_to=tuple(name for name in self._links if name in before and name != OBJECT))

    def _add_forgotten(self) -> None:
        """Pods of an old template that the plan says nothing about: it dealt with others first."""
        for name in self._counted:
            if not self._revision or name in self._new or self._links.get(name):
                continue
            leads = (OBJECT,) if self._links.get(OBJECT) else ()
            message = "it has an older revision; the manager deals with other things first"
            self._add(name, (evolve(self._own(shared.NEXT, message), leads_to=leads),))

    def _lead_limits_on(self) -> None:
        """A limit that no pod uses up is taken by pods that the same plan moves, or by pods that are missing; or it
        leaves no room at all."""
        decision = self._facts.decision
        users: tuple[str, ...] = ()
        if decision is not None:
            moved = tuple(dict.fromkeys(self._key(step.about) for step in decision.steps))
            users = moved or self._chosen_and_held(decision)
        for name, links in self._links.items():
            for index, link in enumerate(links):
                if link.meaning in (causes.MOVING, shared.NEXT) and self._facts.manager.is_down:
                    links[index] = evolve(link, leads_to=(OBJECT,))
                elif link.meaning.relief and not link.leads_to and not link.details.get("limit"):
                    links[index] = self._led_on(name, link, users)

    def _led_on(self, name: str, link: Link, users: tuple[str, ...]) -> Link:
        if link.meaning != shared.SCALE_LIMIT and users:
            return evolve(link, leads_to=users)
        if name != OBJECT and self._links.get(OBJECT):
            return evolve(link, leads_to=(OBJECT,))
        return evolve(link, act=Act.SOMEBODY, remedy=link.remedy or link.meaning.relief)

    def _chosen_and_held(self, decision: Decision) -> tuple[str, ...]:
        """Pods whose turn it was, and which something else holds: they keep their place in the wave."""
        return tuple(
            name
            for about, held in decision.held
            if about.is_pod
            and not any(cause.meaning.is_before_turn for cause in held)
            and (name := self._key(about)) in self._links
        )

    def _own(self, why: Meaning, message: str, *, remedy: str = "", act: Act | None = None) -> Link:
        return Link(meaning=why, message=message, act=act or why.act, remedy=remedy)

    def _remarks(self) -> Iterator[Remark]:
        for condition in value_at(self._document, ("status", "conditions"), ()):
            if condition.get("type") == "Progressing" and condition.get("reason") == DEADLINE_EXCEEDED:
                text = condition.get("message") or "the progress deadline is over"
                yield Remark(code="deadline-exceeded", message=f"{text}; that stops nothing by itself")
        if self._facts.untouched:
            yield Remark(code="untouched", message=self._facts.untouched)
        for what in self._facts.unreadable:
            yield Remark(code="not-readable", message=what)
        if any(self._links.values()) and (hidden := self._hidden_manager()):
            yield Remark(code="manager-hidden", message=f"{hidden}; ask who may: {self._facts.manager.check}")

    def _hidden_manager(self) -> str:
        manager = self._facts.manager
        is_hidden = manager.is_hidden and not manager.is_down and self._facts.kind.is_ours
        return manager.words if is_hidden else ""


def _waited_for(cause: Cause) -> tuple[str, ...]:
    """They count even where they are gone since: then what they kept others from is free again."""
    named = (cause.details.get(key, ()) for key in WAITED_FOR)
    return tuple(dict.fromkeys(str(one) for names in named if isinstance(names, list | tuple) for one in names))


def _joined(name: str, planned: list[Link], found: tuple[Link, ...]) -> Iterator[Link]:
    """Causes of the plan and what is wrong with the pod, without saying one thing twice."""
    is_on_its_way = any(link.meaning.is_own_step for link in planned)
    shown = {link.meaning for link in found}
    replaced = shown & {shared.UNSCHEDULED, shared.TERMINATING}
    if causes.SCHEDULING_GATE in shown:
        replaced |= {shared.UNSCHEDULED}
    if any(link.meaning.is_for_want_of_a_node and link.meaning != shared.UNSCHEDULED for link in planned):
        # The plan knows more of why it has no node: the scheduler's words are in it.
        found = tuple(link for link in found if link.meaning != shared.UNSCHEDULED)
    is_troubled = any(link.act is Act.SOMEBODY for link in found)
    for link in planned:
        if link.meaning.is_own_step and link.act is Act.NOBODY and is_troubled:
            # It would end by itself, were it not for what follows.
            yield evolve(link, leads_to=(name,))
        elif link.meaning not in replaced:
            yield link
    for link in found:
        if planned and link.meaning in _SAYS_LESS:
            continue
        if is_on_its_way and link.act is not Act.SOMEBODY:
            continue
        yield link


def _by_hand(cause: Cause, pod: str, flags: str) -> str:
    changes = cause.details.get(LABEL_CHANGES)
    if isinstance(changes, list | tuple) and changes:
        return f"kubectl label pod {pod}{flags} {' '.join(map(str, changes))}"
    return f"kubectl edit pod {pod}{flags}"


def _remedy_of(message: str, place: Place) -> str:
    again = "it is tried again by itself, with growing pauses"
    if "exceeded quota" in message:
        return f"raise the quota, free some of it, or lower the replicas (kubectl describe quota{place.flags}); {again}"
    if "webhook" in message:
        return f"see what the webhook objects to, or whether it answers at all; {again}"
    return f"correct what the message names; {again}"
