"""`set`: what changes in an object, and that nothing else does."""

from __future__ import annotations

import pytest

from kruise.faces.native import POD, SERVICE
from kruise.machinery.documents import value_at
from kruise.verbs import environment, identity, images, resources
from kruise.verbs.environment import Edits
from kruise.verbs.errors import UsageError, VerbError
from kruise.workloads.cloneset.face import FACE as CLONE_SET
from tests.verbs.objects import cloneset, container, template

SPEC = ("spec", "template", "spec")


def two() -> dict[str, object]:
    pods = template(
        container("main", "nginx:1.25", unknownField={"kept": True}),
        container("side", "envoy:1"),
        initContainers=[container("init", "busybox:1")],
    )
    return cloneset(pods=pods)


# Images


def test_an_image_is_set_and_no_other_field_is_touched() -> None:
    """A tool that read the object into types of its own would drop what it does not know."""
    document = two()
    changed = images.change(CLONE_SET, document, {"main": "nginx:1.26"})
    assert value_at(changed, SPEC)["containers"] == [
        {"name": "main", "image": "nginx:1.26", "unknownField": {"kept": True}},
        {"name": "side", "image": "envoy:1"},
    ]
    assert {**changed, "spec": None} == {**document, "spec": None}


def test_a_star_means_all_containers_and_a_name_may_be_an_init_container() -> None:
    everywhere = value_at(images.change(CLONE_SET, two(), {"*": "x:1"}), SPEC)
    assert [one["image"] for one in everywhere["containers"] + everywhere["initContainers"]] == ["x:1"] * 3
    assert value_at(images.change(CLONE_SET, two(), {"init": "x:1"}), SPEC)["initContainers"][0]["image"] == "x:1"


def test_a_pod_is_its_own_template() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [container()]}}
    assert images.change(POD, pod, {"main": "x:1"})["spec"]["containers"][0]["image"] == "x:1"


def test_a_wrong_container_lists_the_right_ones() -> None:
    with pytest.raises(VerbError) as caught:
        images.change(CLONE_SET, two(), {"mian": "x:1"})
    assert str(caught.value) == (
        'unable to find container named "mian" in cloneset.apps.kruise.io/web; its containers are main, side, init'
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "say which image"),
        (["main="], '"main=" is no CONTAINER=IMAGE'),
        (["a=1", "a=2"], 'container "a" is given two images'),
        (["*=1", "a=2"], "all containers are already specified by *"),
    ],
)
def test_images_that_make_no_sense(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        images.parse(words)
    assert message in str(caught.value)


# Environment


def test_variables_are_set_removed_and_keep_their_places() -> None:
    document = cloneset(pods=template(container(env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}])))
    changed = environment.change(CLONE_SET, document, environment.parse(["C=3", "A=x=y", "B-"]))
    assert value_at(changed, SPEC)["containers"][0]["env"] == [
        {"name": "A", "value": "x=y"},
        {"name": "C", "value": "3"},
    ]
    emptied = environment.change(CLONE_SET, document, environment.parse(["A-", "B-"]))
    assert "env" not in value_at(emptied, SPEC)["containers"][0]


def test_variables_of_chosen_containers_only() -> None:
    changed = value_at(environment.change(CLONE_SET, two(), environment.parse(["A=1"]), pattern="s*"), SPEC)
    assert [one["name"] for one in changed["containers"] + changed["initContainers"] if "env" in one] == ["side"]


def test_no_overwrite() -> None:
    document = cloneset(pods=template(container(env=[{"name": "A", "value": "1"}])))
    same = environment.change(CLONE_SET, document, environment.parse(["A=1"]), overwrite=False)
    assert same == document
    with pytest.raises(VerbError, match=r"'A' already has a value \(1\), and --overwrite is false"):
        environment.change(CLONE_SET, document, environment.parse(["A=2"]), overwrite=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [(["A"], "neither NAME=VALUE nor NAME-"), (["1x=2"], '"1x" is no name'), (["A=1", "A-"], '"A" is both set and')],
)
def test_variables_that_make_no_sense(words: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        environment.parse(words)
    assert message in str(caught.value)


def test_variables_from_a_configmap_or_secret() -> None:
    source = {"kind": "ConfigMap", "metadata": {"name": "conf"}, "data": {"log.level": "debug", "port": "1"}}
    entries = environment.from_source(source, ["log.level"])
    imported = environment.with_prefix(Edits(entries), "APP_")
    reference = {"configMapKeyRef": {"name": "conf", "key": "log.level"}}
    assert imported.wanted == ({"name": "APP_LOG_LEVEL", "valueFrom": reference},)
    assert len(environment.from_source({**source, "kind": "Secret"})) == 2
    with pytest.raises(VerbError, match=r"ConfigMap conf has no key nope; its keys are log\.level, port"):
        environment.from_source(source, ["nope"])
    with pytest.raises(UsageError, match="unsupported resource specified in --from"):
        environment.from_source({"kind": "Node"})


def test_listing_variables() -> None:
    variables = [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
        {"name": "D", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "E", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "x"}}},
    ]
    document = cloneset(pods=template(container(env=variables), container("side")))
    assert environment.sources(CLONE_SET, document) == {("Secret", "s", "k"), ("ConfigMap", "c", "k")}
    assert environment.listing(CLONE_SET, document, "main", {("Secret", "s", "k"): "hidden"}) == [
        "# CloneSet web, container main",
        "A=1",
        "B=hidden",
        "# C from configmap c, key k",
        "# D from field path metadata.name",
        "# E from resource field limits.cpu in container x",
    ]


def test_lines_of_a_file_of_variables() -> None:
    assert environment.parse_lines("A=1\n\n# no\n B=2 \n") == ["A=1", "B=2"]


# Resources


def test_amounts_are_merged() -> None:
    document = cloneset(pods=template(container(resources={"limits": {"cpu": "1", "memory": "1Gi"}})))
    changed = resources.change(
        CLONE_SET, document, limits=resources.parse("cpu=2", "--limits"), requests=resources.parse("", "--requests")
    )
    assert value_at(changed, SPEC)["containers"][0]["resources"] == {"limits": {"cpu": "2", "memory": "1Gi"}}


@pytest.mark.parametrize(("text", "message"), [("cpu", "is no RESOURCE=AMOUNT"), ("cpu=much", "--limits: cpu: ")])
def test_amounts_that_make_no_sense(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        resources.parse(text, "--limits")
    assert message in str(caught.value)


def test_something_must_be_set() -> None:
    with pytest.raises(UsageError, match="you must specify an update to requests or limits"):
        resources.check({}, {})


# Service account and selector


def test_the_service_account_and_its_older_name() -> None:
    document = cloneset(pods=template(serviceAccountName="a", serviceAccount="a"))
    spec = value_at(identity.change_service_account(CLONE_SET, document, "b"), SPEC)
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("b", "b")
    fresh = value_at(identity.change_service_account(CLONE_SET, cloneset(), "b"), SPEC)
    assert (fresh["serviceAccountName"], "serviceAccount" in fresh) == ("b", False)


def test_the_selector_of_a_service() -> None:
    service = {"kind": "Service", "metadata": {"name": "web", "resourceVersion": "7"}, "spec": {"selector": {"a": "b"}}}
    changed = identity.change_selector(SERVICE, service, identity.parse_selector("app=web,tier=front"))
    assert changed["spec"]["selector"] == {"app": "web", "tier": "front"}
    with pytest.raises(VerbError, match="only supported for Services"):
        identity.change_selector(CLONE_SET, cloneset(), {})
    with pytest.raises(VerbError, match="expected resource version to be 6, was 7"):
        identity.check_version(SERVICE, service, "6")
    for text in ("app in (a,b)", "a=b=c"):
        with pytest.raises(UsageError):
            identity.parse_selector(text)
