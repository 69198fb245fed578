"""Names and sizes of images, annotations, addresses, specs."""

from __future__ import annotations

import pytest

from kruise.local.nodes import images
from kruise.local.nodes.images import Image, NodeImages, Refusal, find, full_name
from kruise.local.nodes.knobs import Ending, Knobs
from kruise.local.nodes.spec import Addresses, make_nodes, node_object, shown_images
from kruise.machinery.clock import VIRTUAL_EPOCH


@pytest.mark.parametrize(
    ("image", "name"),
    [
        ("nginx", "docker.io/library/nginx:latest"),
        ("nginx:1", "docker.io/library/nginx:1"),
        ("openkruise/app:v1", "docker.io/openkruise/app:v1"),
        ("localhost/app", "localhost/app:latest"),
        ("host:5000/a/b:c", "host:5000/a/b:c"),
        ("gcr.io/x@sha256:" + "a" * 64, "gcr.io/x@sha256:" + "a" * 64),
        ("nginx:1@sha256:" + "a" * 64, "docker.io/library/nginx@sha256:" + "a" * 64),
    ],
)
def test_full_names(image: str, name: str) -> None:
    assert full_name(image) == name


def test_an_image_is_what_its_name_says() -> None:
    one, again, other = find("nginx:1"), find("docker.io/library/nginx:1"), find("nginx:2")
    assert isinstance(one, Image)
    assert isinstance(other, Image)
    assert one == again
    assert one.id != other.id
    assert one.id.startswith("docker.io/library/nginx@sha256:")
    assert images.SMALLEST <= one.size <= images.LARGEST
    pinned = find("nginx@sha256:" + "a" * 64)
    assert isinstance(pinned, Image)
    assert pinned.id.endswith("a" * 64)


def test_tables_change_what_a_name_means() -> None:
    tables = [{"nginx:2": {"same-as": "nginx:1", "size": "10M"}}, {"nginx:3": {"error": "no"}, "nginx:2": {"error": 1}}]
    same = find("nginx:2", tables)
    plain = find("nginx:1")
    assert isinstance(same, Image)
    assert isinstance(plain, Image)
    assert (same.id, same.size) == (plain.id, 10_000_000)
    assert find("nginx:3", tables) == Refusal("no")
    assert isinstance(find("nginx:missing"), Refusal)
    assert isinstance(find("invalid.example.com/x"), Refusal)
    assert isinstance(find("registry.invalid/x"), Refusal)


def test_pulls_wait_for_each_other() -> None:
    node = NodeImages(1e6)
    one, two = Image("a:1", "a@1", 2_000_000), Image("b:1", "b@1", 1_000_000)
    first = node.begin(one, 100.0)
    second = node.begin(two, 100.0)
    third = node.begin(one, 100.0)
    assert (first.begins, first.ends) == (100.0, 102.25)
    assert (second.begins, second.ends) == (102.25, 103.5)
    assert third.ends - third.begins == images.RESOLVE_SECONDS
    assert node.arrived(one)
    assert not node.arrived(one)
    assert node.begin(one, 200.0).ends == 200.0 + images.RESOLVE_SECONDS


def test_knobs() -> None:
    given = {
        "sim.kruise.io/crash-loop": "3 after 10s",
        "sim.kruise.io/slow-start": "1m",
        "sim.kruise.io/slow-start.side": "5",
        "sim.kruise.io/never-ready.side": "true",
        "sim.kruise.io/image-size": "5Mi",
        "sim.kruise.io/images": "not json",
        "other": "x",
    }
    knobs = Knobs(given)
    assert knobs.ending("app") == Ending(3, 10.0)
    assert knobs.seconds("slow-start", "app") == 60.0
    assert knobs.seconds("slow-start", "side") == 5.0
    assert knobs.flag("never-ready", "side")
    assert not knobs.flag("never-ready", "app")
    assert knobs.size("image-size", "app") == 5 * 1024 * 1024
    assert knobs.images() == {}
    assert not Knobs({"other": "x"})
    assert Knobs({"sim.kruise.io/crash-loop": "true"}).ending("app") == Ending(1, 0.0)
    assert Knobs({"sim.kruise.io/exit": "0"}).ending("app") == Ending(0, 0.0)
    assert Knobs({"sim.kruise.io/exit": "when ready"}).ending("app") is None
    assert Knobs({"sim.kruise.io/slow-start": "soon"}).seconds("slow-start") is None


def test_addresses_go_round() -> None:
    addresses = Addresses("10.0.0.0/29")
    taken = [addresses.take() for _ in range(5)]
    assert taken == [f"10.0.0.{number}" for number in range(2, 7)]
    assert addresses.take() == ""
    addresses.free("10.0.0.4")
    assert addresses.take() == "10.0.0.4"


def test_nodes_are_all_different() -> None:
    nodes = make_nodes(600, zones=("a", "b", "c"), cpu="4")
    assert len({node.pod_cidr for node in nodes}) == len({node.address for node in nodes}) == 600
    assert [node.zone for node in nodes[:4]] == ["a", "b", "c", "a"]
    made = node_object(nodes[1], VIRTUAL_EPOCH)
    assert made["metadata"]["labels"]["topology.kubernetes.io/zone"] == "b"
    assert made["metadata"]["labels"]["kubernetes.io/hostname"] == "node-2"
    assert made["status"]["capacity"]["cpu"] == "4"
    assert made["status"]["nodeInfo"]["kubeletVersion"] == "v1.34.4"
    ready = made["status"]["conditions"][-1]
    assert (ready["type"], ready["reason"], ready["message"]) == (
        "Ready",
        "KubeletReady",
        "kubelet is posting ready status",
    )
    with pytest.raises(ValueError, match="3000 nodes"):
        make_nodes(3000)


def test_names_of_one_image_are_shown_together() -> None:
    shown = shown_images([Image("a:1", "a@x", 5), Image("a:2", "a@x", 5), Image("b:1", "b@y", 9)])
    assert shown == [
        {"names": ["b:1", "b@y"], "sizeBytes": 9},
        {"names": ["a:1", "a:2", "a@x"], "sizeBytes": 5},
    ]
