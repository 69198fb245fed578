"""Nothing that waits is ever without a cause, and every chain of causes comes to an end that helps.

The stories are those of the CloneSet's own promises: users change the spec, containers crash, hooks are not answered,
the manager dies in between. After every step somebody asks why.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from kruise.machinery.causes import Act
from kruise.machinery.codec import decode, encode
from kruise.machinery.digest import plan_to_data
from kruise.machinery.plan import Plan
from kruise.model.world import Json
from kruise.reasons.assembling import Facts, assemble
from kruise.reasons.data import as_data
from kruise.reasons.decision import Decision, of_plan
from kruise.reasons.dump import Dumped, read
from kruise.reasons.links import OBJECT, Answer, Source
from kruise.reasons.words import GROUPS, answer_lines, groups, pod_lines
from kruise.workloads.cloneset.decide import decide
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from kruise.workloads.cloneset.situation import Snapshot
from tests.support.examples import story_settings
from tests.workloads.cloneset.modelled import ModelledCloneSet
from tests.workloads.cloneset.test_properties import _STEPS, Checked, _come_to_rest, _play, models

SEEN: set[str] = set()
ASKED = [0]


def ask(model: ModelledCloneSet, decision: Decision, seen: int = 0) -> Answer:
    document: Json = decode(encode(model.cloneset), dict)
    return assemble(
        Facts(
            kind=CLONE_SET,
            document=document,
            pods=tuple(pod for pod in model.pods if any(ref.controller for ref in pod.metadata.owner_references)),
            now=model.now,
            source=Source(words="a story"),
            decision=decision,
            generation_seen=seen,
        )
    )


def dumped(snapshot: Snapshot, plan: Plan) -> Dumped:
    """As the journal of a manager tells it."""
    return read(encode({"snapshot": snapshot, "plan": plan_to_data(plan, causes_once=True)}), CLONE_SET.causes)


def check_answer(checked: Checked, answer: Answer) -> None:
    ASKED[0] += 1
    is_observed = checked.model.cloneset.status.observed_generation == checked.model.cloneset.metadata.generation
    for pod in checked.kept():
        name = pod.metadata.name
        if not checked.serves(pod):
            assert name in answer.waiting, f"nobody says why {name} does not serve"
        if is_observed and not checked.is_new(pod):
            assert name in answer.waiting, f"nobody says why {name} is not updated"
    if not is_observed:
        assert OBJECT in answer.waiting, "nobody says that the manager has not looked"
    if len(checked.kept()) < checked.replicas:
        assert OBJECT in answer.waiting, "nobody says why pods are missing"
    if len(checked.kept()) > checked.replicas:
        assert answer.waiting, "nobody says why there are too many pods"
    for name, waiting in answer.waiting.items():
        assert waiting.links
        ends = answer.ends(name)
        assert ends, f"the chain of {name} has no end: {waiting}"
        for end in ends:
            assert end.remedy or end.act is Act.NOBODY, f"nobody says what to do: {end}"
        SEEN.update(link.code for link in waiting.links)
        assert pod_lines(answer, name)[2:] or name == OBJECT
    lines = answer_lines(answer)
    assert len(groups(answer)) <= GROUPS or "-o json" in lines[-1] + lines[-2]
    every = {name for group in groups(answer) for name in group.pods}
    assert bool(every) == bool(answer.waiting)
    data = json.loads(json.dumps(as_data(answer)))
    assert {item["pod"] or OBJECT for item in data["waiting"]} == set(answer.waiting)
    assert data["waits"] is bool(answer.waiting)


@story_settings(40)
@given(model=models(), established=st.booleans(), story=st.lists(_STEPS, min_size=5, max_size=40))
def check_story(model: ModelledCloneSet, established: bool, story: list[tuple[str, int]]) -> None:
    checked = Checked(model)
    checked.reconcile()
    if established:
        _come_to_rest(checked)
    for step, number in story:
        _play(checked, step, number)
        snapshot = model.snapshot()
        plan = decide(snapshot)
        answer = ask(model, of_plan(plan))
        check_answer(checked, answer)
        dump = dumped(snapshot, plan)
        assert dump.generations[model.cloneset.metadata.uid] == model.cloneset.metadata.generation
        assert (dump.pods or ()) == snapshot.pods
        from_journal = ask(model, dump.decision)
        assert from_journal.waiting == answer.waiting, "the journal tells another story"


def test_every_chain_comes_to_an_end(record_property: Callable[[str, object], None]) -> None:
    check_story()
    record_property("asked", ASKED[0])
    print(f"\nasked {ASKED[0]:,} times; causes seen: {', '.join(sorted(SEEN))}")
    assert ASKED[0] > 100
    assert {"max-unavailable", "partition", "hook", "moving"} <= SEEN
