"""The cluster that all workers of a run share: one for all of them, and nobody but its keeper can end it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support import sharing
from tests.support.realcluster import ClusterError
from tests.support.realnodes import RealNodes
from tests.support.sharing import Keeper, Shared

pytestmark = pytest.mark.spread


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    keeper = Keeper()
    yield keeper
    keeper.close()


@pytest.mark.nodes
def test_another_worker_gets_the_same_cluster(shared: Shared, real_nodes: RealNodes) -> None:
    """With certificates of its own, since both may ask for one of the same user at the same moment."""
    other = Shared(shared.address).real_nodes()
    assert other is not real_nodes
    assert other.directory == real_nodes.directory
    assert other.kubeconfig_for("somebody") != real_nodes.kubeconfig_for("somebody")
    assert other.run_on_node("node-2", "hostname") == "node-2\n"
    assert other.registry.digest("nginx:1.25") == real_nodes.registry.digest("nginx:1.25")


@pytest.mark.nodes
def test_a_shared_cluster_is_nobodys_to_end(shared: Shared, real_nodes: RealNodes) -> None:
    other = Shared(shared.address).real_nodes()
    with pytest.raises(ClusterError, match="is shared with others: start one for this test alone"):
        other.kill_apiserver()
    with pytest.raises(ClusterError, match="is shared with others"):
        other.kill_kubelet("node-1")
    other.stop()
    assert real_nodes.request("GET", "/readyz").status == 200


def test_all_hear_what_went_wrong(keeper: Keeper, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is tried once: the others need not wait for the same failure."""
    tries = []

    def fail(self: RealNodes) -> RealNodes:
        tries.append(self)
        raise ClusterError("no machine for it")

    monkeypatch.setattr(sharing.RealNodes, "start", fail)
    for _ in range(2):
        with pytest.raises(ClusterError, match="no machine for it"):
            Shared(keeper.address).real_nodes()
    assert len(tries) == 1


def test_groups_of_all_workers_come_together(keeper: Keeper) -> None:
    Shared(keeper.address).send_groups({"a": "one", "b": "one"})
    Shared(keeper.address).send_groups({"a": "one", "c": "two"})
    assert keeper.groups == {"a": "one", "b": "one", "c": "two"}
