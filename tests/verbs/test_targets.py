"""Which objects a command line means."""

from __future__ import annotations

import pytest

from kruise import kinds
from kruise.faces.face import Face
from kruise.faces.native import DEPLOYMENT, STATEFUL_SET
from kruise.verbs import lookup, targets
from kruise.verbs.errors import UsageError
from kruise.verbs.targets import Target
from kruise.workloads.cloneset.face import FACE as CLONE_SET


@pytest.mark.parametrize(
    "word",
    ["cloneset", "clonesets", "clone", "CloneSet", "clonesets.apps.kruise.io", "clonesets.v1alpha1.apps.kruise.io"],
)
def test_a_kind_has_many_names(word: str) -> None:
    assert lookup.find(word) is CLONE_SET


def test_a_group_must_fit() -> None:
    """`statefulset.apps.kruise.io` is another kind than the native one."""
    assert lookup.find("statefulset.apps") is STATEFUL_SET
    assert lookup.find("statefulset.apps.kruise.io").is_ours
    with pytest.raises(UsageError, match='there is no kind "statefulset'):
        lookup.find("statefulset.example.com")


def test_a_kind_that_is_nearly_right_is_suggested() -> None:
    with pytest.raises(UsageError, match="did you mean deployments"):
        lookup.find("deploymens")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["clone/web", "deploy/api"], (Target(CLONE_SET, "web"), Target(DEPLOYMENT, "api"))),
        (["clone", "web", "api"], (Target(CLONE_SET, "web"), Target(CLONE_SET, "api"))),
        (["deploy,clone", "web"], (Target(DEPLOYMENT, "web"), Target(CLONE_SET, "web"))),
    ],
)
def test_objects_by_name(words: list[str], expected: tuple[Target, ...]) -> None:
    assert targets.parse(words).targets == expected


def test_objects_by_selector_and_all() -> None:
    assert targets.parse(["clone"], selector="app=web").selector == "app=web"
    assert targets.parse(["clone,deploy"], everything=True).kinds == (CLONE_SET, DEPLOYMENT)
    assert targets.parse(["all"], everything=True).kinds == lookup.workloads()


@pytest.mark.parametrize(
    ("words", "options", "message"),
    [
        ([], {}, "name the workload as KIND/NAME"),
        (["clone"], {}, "which CloneSet?"),
        (["clone/web", "api"], {}, '"api" is no KIND/NAME'),
        (["clone/"], {}, '"clone/" is no KIND/NAME'),
        (["clone/a/b"], {}, '"clone/a/b" is no KIND/NAME'),
        (["clone/web"], {"everything": True}, "together with --all or --selector"),
        (["clone", "web"], {"selector": "a=b"}, "together with --all or --selector"),
        (["clone"], {"selector": "a=b", "everything": True}, "cannot set --all and --selector"),
    ],
)
def test_what_makes_no_sense_is_named(words: list[str], options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        targets.parse(words, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


def test_assignments_stand_behind_objects() -> None:
    assert targets.split_assignments(["clone/web", "a=b", "c=d"]) == (["clone/web"], ["a=b", "c=d"])
    assert targets.split_assignments(["clone", "web", "A=1", "B-", "-"], removals=True) == (
        ["clone", "web"],
        ["A=1", "B-", "-"],
    )
    with pytest.raises(UsageError, match='"clone/web" stands too late'):
        targets.split_assignments(["a=b", "clone/web"])


def test_files_may_hold_several_objects_and_lists() -> None:
    one = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a"}}
    documents = [None, {"kind": "List", "items": [one, one]}, one]
    assert list(targets.flattened(documents, "f")) == [one, one, one]
    with pytest.raises(UsageError, match="holds no Kubernetes object"):
        list(targets.flattened(["text"], "f"))


def test_the_namespace_of_a_file_must_not_contradict() -> None:
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "one"}}
    assert targets.from_manifest(document) == Target(DEPLOYMENT, "a", "one")
    with pytest.raises(UsageError, match="does not match the namespace"):
        targets.from_manifest(document, namespace="two")
    with pytest.raises(UsageError, match=r"has no metadata\.name"):
        targets.from_manifest({"apiVersion": "apps/v1", "kind": "Deployment"}, origin="f")
    with pytest.raises(UsageError, match="does not know v1 Node"):
        targets.from_manifest({"apiVersion": "v1", "kind": "Node"})


def test_one_object_only() -> None:
    with pytest.raises(UsageError, match="rollout status takes one object, not 2"):
        targets.only([Target(CLONE_SET, "a"), Target(CLONE_SET, "b")], "rollout status")


def test_near_names_are_suggested() -> None:
    assert targets.suggestion("wbe", ["web", "api"]) == "; did you mean web?"
    assert targets.suggestion("zzz", ["web", "api"]) == ""


@pytest.mark.parametrize("face", [face for face in kinds.faces() if face.is_ours], ids=str)
def test_what_is_advised_to_type_means_the_kind(face: Face) -> None:
    """Also where Kubernetes has a kind of the same name."""
    assert lookup.find(face.word) is face
