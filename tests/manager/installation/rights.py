"""Which story needs which right to write, and what stops without it.

A row for every right of `kruise.manager.installation.grants` that is used: test_rights.py takes it away, sees that the
story stops and that it is told why, and gives it back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from kruise.api.apps.images import IMAGE_PULL_JOBS, NODE_IMAGES
from kruise.api.apps.probes import NODE_POD_PROBES, POD_PROBE_MARKERS
from kruise.api.native.nodes import NODES
from kruise.api.native.storage import STORAGE_CLASSES
from kruise.local.storage_binding import DEFAULT_STORAGE_CLASS
from kruise.machinery.client.errors import ApiError
from kruise.manager.installation import grants
from kruise.manager.installation.granting import Right
from tests.operations.recreate import scenes
from tests.protection.podunavailablebudget import test_kinds_of_others as others
from tests.scenarios import (
    all as clonesets,
)
from tests.scenarios import (
    broadcast,
    budgets,
    daemons,
    distribution,
    ephemeral,
    images,
    podstate,
    probing,
    schedules,
    united,
)
from tests.scenarios.settings import gates_text
from tests.scenarios.stage import Scenario
from tests.sidecars.launch_priority import stories as priorities
from tests.sidecars.sidecarset import stories as sidecars
from tests.sidecars.terminator import stories as terminator
from tests.spread.workloadspread import stories as spread
from tests.spread.workloadspread import test_custom as custom
from tests.support.world import LocalWorld

OURS, POLICY = grants.OURS, grants.POLICY
Play = Callable[[LocalWorld], Awaitable[None]]


@dataclasses.dataclass(frozen=True, slots=True)
class Story:
    name: str
    play: Play
    gates: str = ""
    flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    group: str
    resource: str
    verb: str
    story: Story
    stops: str
    is_only_told: bool = False
    """Nothing waits for it."""

    @property
    def right(self) -> Right:
        return Right(self.group, self.resource, self.verb)

    @property
    def id(self) -> str:
        return f"{self.verb}-{self.resource.replace('/', '-')}{f'.{self.group}' if self.group else ''}"


def _of(module: Any, name: str) -> Story:
    scenario: Scenario = module.SCENARIOS[name]

    async def play(world: LocalWorld) -> None:
        await world.client.create(STORAGE_CLASSES, dict(DEFAULT_STORAGE_CLASS))
        await scenario.play(scenario.stage(world, gates=world.options.gates))

    return Story(name, play, gates_text(scenario.gates), scenario.flags)


def _sidecars(name: str) -> Story:
    async def nobody_dies() -> None:
        raise AssertionError("this story needs no other manager")

    return Story(name, lambda world: sidecars.STORIES[name](sidecars.Sidecars(world, nobody_dies)))


def _terminated(name: str) -> Story:
    return Story(name, terminator.STORIES[name], "SidecarTerminator=true")


async def _restarted(world: LocalWorld) -> None:
    scene = scenes.Scene(world)
    await scene.ready(scenes.pod(scenes.container("app")))
    await world.create(scenes.request("app", ttlSecondsAfterFinished=5))
    await scene.completed()

    async def gone() -> None:
        assert not await scene.requests()

    await world.until(gone)


async def _told_and_gone(world: LocalWorld) -> None:
    stage = ephemeral.EphemeralStage(world, gates=world.options.gates)
    await stage.start(replicas=1)
    await stage.begin(ttlSecondsAfterFinished=1)
    await stage.gone(within=300)


async def _nodes_have_images(world: LocalWorld) -> None:
    async def there() -> None:
        assert len(await world.list(NODE_IMAGES)) == 6

    await world.until(there, within=300)


async def _pulled_and_gone(world: LocalWorld) -> None:
    await _nodes_have_images(world)
    spec = {"image": "nginx:1.25", "completionPolicy": {"type": "Always", "ttlSecondsAfterFinished": 1}}
    head = {"apiVersion": IMAGE_PULL_JOBS.api_version, "kind": IMAGE_PULL_JOBS.kind, "metadata": {"name": "pull"}}
    await world.create({**head, "spec": spec})

    async def gone() -> None:
        assert not await world.list(IMAGE_PULL_JOBS)

    await world.until(gone, within=3600)


async def _a_node_leaves(world: LocalWorld) -> None:
    async def each_has(count: int) -> None:
        for kind in (NODE_IMAGES, NODE_POD_PROBES):
            assert len(await world.list(kind)) == count

    await world.until(lambda: each_has(6))
    await world.client.delete(NODES, "node-6")
    await world.until(lambda: each_has(5), within=300)


async def _a_silent_node(world: LocalWorld) -> None:
    await _nodes_have_images(world)
    world.cluster.nodes.stop_daemon("node-6")
    spec = {"image": "nginx:1.25", "parallelism": 6, "completionPolicy": {"type": "Always"}}
    head = {"apiVersion": IMAGE_PULL_JOBS.api_version, "kind": IMAGE_PULL_JOBS.kind, "metadata": {"name": "pull"}}
    await world.create({**head, "spec": spec})

    async def given_up() -> None:
        found = await world.get(NODE_IMAGES, "node-6")
        assert found.get("status", {}).get("failed") == 1

    await world.until(given_up, within=3600, every=5)


async def _budget_by_scale(world: LocalWorld) -> None:
    await others.guarded(world, scale=True)

    async def counted() -> None:
        assert await others.total(world) == 4

    await world.until(counted, within=600)


async def _listed_kind(world: LocalWorld) -> None:
    stage = custom.Stage(world)
    await stage.prepare(replicasPath="spec.replicas")
    await stage.make(custom.JOBS, "train", spec={"replicas": 4})

    async def accepted() -> None:
        try:
            await stage.spread("50%", "50%")
        except ApiError as error:
            raise AssertionError(error.message) from error

    await world.until(accepted, within=600)


async def _marker_holds_on(world: LocalWorld) -> None:
    await world.create(probing.ProbeStage(world, gates=world.options.gates).marker())

    async def held() -> None:
        assert (await world.get(POD_PROBE_MARKERS, "m"))["metadata"].get("finalizers")

    await world.until(held, within=600)


PROBES_END = Story("a marker waits until nodes have forgotten it", _marker_holds_on)
LISTED_KIND = Story("a WorkloadSpread over a workload of somebody else", _listed_kind)
PULLED_TIME = Story("an ImagePullJob goes after its time", _pulled_and_gone, "ImagePullJobGate=true")
NODE_LEAVES = Story("a node leaves", _a_node_leaves)
SILENT = Story("a daemon does not answer", _a_silent_node, "ImagePullJobGate=true")
BY_SCALE = Story("a budget over a workload of somebody else", _budget_by_scale)
EPHEMERAL_TIME = Story("an EphemeralJob goes after its time", _told_and_gone)
RESTART = Story("containers are restarted, and the request goes after its time", _restarted)


def _rows(group: str, resource: str, verbs: Mapping[str, tuple[Story, str]]) -> Iterator[Row]:
    for verb, (story, stops) in verbs.items():
        yield Row(group, resource, verb, story, stops)


def _kind(plural: str, story: Story, status: str, **verbs: tuple[Story, str]) -> Iterator[Row]:
    """A kind of ours: its status, and what else is written of it."""
    yield Row(OURS, f"{plural}/status", "patch", story, status)
    yield from _rows(OURS, plural, verbs)


def _owner(plural: str, story: Story, group: str = OURS) -> Row:
    return Row(group, f"{plural}/finalizers", "update", story, "it makes nothing, where clusters guard owners")


PODS = _of(clonesets, "each_pod_has_claims_of_its_own")
CLAIMS = _of(clonesets, "a_released_pod_keeps_its_claims")
IN_PLACE = _of(clonesets, "containers_are_updated_by_priority")
ENVIRONMENT = _of(clonesets, "readers_of_one_annotation_restart_together")
RESIZE = _of(clonesets, "resources_are_resized_without_leaving_service")
UPDATES = _of(daemons, "a_surge_brings_the_new_pod_first")
OLD_REVISIONS = _of(clonesets, "old_revisions_are_cut_to_the_limit")
BACK = _of(clonesets, "going_back_uses_the_old_revision_again")
COPIES = _of(distribution, "copies_are_kept_as_they_should_be")
SECRETS = _of(images, "secrets_come_to_where_nodes_may_read_them")
PULLS = _of(images, "nodes_of_pods_are_followed")
PULL_TIME = _of(images, "a_deadline_ends_a_job_whatever_its_nodes_do")
LISTED = _of(images, "jobs_of_a_list_wait_for_its_end")
EVERY_NODE = _of(images, "every_ready_node_has_a_node_image")
PROBES = _of(probing, "results_become_conditions_and_marks")
EPHEMERAL = _of(ephemeral, "it_is_deleted_after_its_time")
BROADCAST = _of(broadcast, "it_goes_after_its_time")
BY_THE_CLOCK = _of(schedules, "old_runs_go")
BROADCAST_BY_THE_CLOCK = _of(schedules, "on_every_node_by_the_clock")
IMAGES_BY_THE_CLOCK = _of(schedules, "images_by_the_clock")
DAEMONS = _of(daemons, "pods_are_adopted_and_let_go")
PLACES = _of(podstate, "made_for_annotations")
CLONE_SETS = _of(united, "clone_sets_as_subsets")
STATEFUL_SETS = _of(united, "stateful_sets_as_subsets")
ADVANCED_STATEFUL_SETS = _of(united, "advanced_stateful_sets_as_subsets")
DEPLOYMENTS = _of(united, "deployments_as_subsets")
ANOTHER_KIND = _of(united, "another_kind_and_children_of_nobody")
GUARDED = _of(budgets, "one_goes_and_the_next_is_refused")
SIDECARS = _sidecars("a_bad_image_is_corrected")
HOT = _sidecars("a_hot_upgrade_hands_over")
BARRIERS = Story("by_priority", priorities.STORIES["by_priority"])
TERMINATED = _terminated("a_job_ends")
SUBSETS = Story("two_zones", spread.STORIES["two_zones"])

ROWS: tuple[Row, ...] = (
    *_rows(
        "",
        "pods",
        {
            "create": (PODS, "a CloneSet has no pods"),
            "delete": (PODS, "surplus pods stay"),
            "patch": (IN_PLACE, "nothing is updated in place"),
        },
    ),
    Row("", "pods/status", "patch", PODS, "no pod becomes ready: its readiness gate stays shut"),
    Row("", "pods/ephemeralcontainers", "patch", EPHEMERAL, "an EphemeralJob reaches no pod"),
    Row("", "pods/resize", "patch", RESIZE, "resources stay as they are"),
    _owner("pods", CLAIMS, ""),
    *_rows(
        "",
        "persistentvolumeclaims",
        {
            "create": (PODS, "pods with claims are not made"),
            "delete": (PODS, "claims of deleted pods stay"),
            "patch": (CLAIMS, "claims that may be used again go with their pod"),
        },
    ),
    *_rows(
        "",
        "configmaps",
        {
            "create": (BARRIERS, "containers that wait for their turn wait for ever"),
            "patch": (BARRIERS, "containers that wait for their turn wait for ever"),
            "delete": (COPIES, "copies stay where they should not be any more"),
        },
    ),
    *_rows(
        "",
        "secrets",
        {
            "create": (SECRETS, "daemons cannot pull from private registries"),
            "patch": (SECRETS, "daemons go on with old passwords"),
            "delete": (SECRETS, "passwords stay where nobody needs them any more"),
        },
    ),
    Row(
        "",
        "configmaps",
        "get",
        LISTED_KIND,
        "nothing about kinds of others is accepted",
    ),
    Row("", "events", "create", PODS, "nothing is told by events", is_only_told=True),
    Row("", "events", "patch", UPDATES, "events are not counted", is_only_told=True),
    *_rows(
        "apps",
        "controllerrevisions",
        {
            "create": (PODS, "a workload has no revision, and so no pods"),
            "patch": (BACK, "a rollback has no revision"),
            "delete": (OLD_REVISIONS, "old revisions pile up"),
        },
    ),
    *_rows(
        "apps",
        "deployments",
        {
            "create": (DEPLOYMENTS, "a UnitedDeployment has no subsets"),
            "patch": (DEPLOYMENTS, "its subsets do not follow it"),
            "delete": (DEPLOYMENTS, "subsets stay that are not wanted any more"),
        },
    ),
    *_rows(
        "apps",
        "statefulsets",
        {
            "create": (STATEFUL_SETS, "a UnitedDeployment has no subsets"),
            "patch": (STATEFUL_SETS, "its subsets do not follow it"),
            "delete": (STATEFUL_SETS, "subsets stay that are not wanted any more"),
        },
    ),
    *_rows(
        "batch",
        "jobs",
        {
            "create": (BY_THE_CLOCK, "an AdvancedCronJob starts no Job"),
            "delete": (BY_THE_CLOCK, "old runs pile up"),
        },
    ),
    *_kind("advancedcronjobs", BY_THE_CLOCK, "it does not know when it ran last"),
    *_kind(
        "broadcastjobs",
        BROADCAST,
        "it never ends",
        create=(BROADCAST_BY_THE_CLOCK, "an AdvancedCronJob starts no BroadcastJob"),
        delete=(BROADCAST, "it stays beyond its time"),
    ),
    *_kind(
        "clonesets",
        PODS,
        "rollouts cannot be followed",
        create=(CLONE_SETS, "a UnitedDeployment has no subsets"),
        patch=(CLONE_SETS, "its subsets do not follow it"),
        delete=(CLONE_SETS, "subsets stay that are not wanted any more"),
    ),
    *_kind(
        "containerrecreaterequests",
        RESTART,
        "requests never end",
        create=(TERMINATED, "sidecars of a job that ended run on"),
        patch=(RESTART, "a request that ended keeps the next one from its pod"),
        delete=(RESTART, "requests stay beyond their time"),
    ),
    *_kind("daemonsets", DAEMONS, "rollouts cannot be followed", patch=(DAEMONS, "it adopts no pods")),
    *_kind(
        "ephemeraljobs",
        EPHEMERAL,
        "it never ends",
        patch=(EPHEMERAL, "it does not begin: it could not clean up"),
        delete=(EPHEMERAL_TIME, "it stays beyond its time"),
    ),
    *_kind(
        "imagelistpulljobs",
        LISTED,
        "it never ends",
        create=(IMAGES_BY_THE_CLOCK, "an AdvancedCronJob starts none"),
        patch=(LISTED, "the hash of its template is not noted"),
        delete=(LISTED, "it stays beyond its time"),
    ),
    *_kind(
        "imagepulljobs",
        PULLS,
        "it never ends",
        create=(LISTED, "an ImageListPullJob makes none"),
        patch=(PULLS, "it does not begin: it could not clean up"),
        delete=(PULLED_TIME, "it stays beyond its time"),
    ),
    *_rows(
        OURS,
        "nodeimages",
        {
            "create": (EVERY_NODE, "nodes have none, so nothing is pulled there"),
            "patch": (PULLS, "no image is asked for"),
            "delete": (NODE_LEAVES, "those of nodes that are gone stay"),
        },
    ),
    Row(OURS, "nodeimages/status", "patch", SILENT, "what a silent daemon was asked for is never given up"),
    *_rows(
        OURS,
        "nodepodprobes",
        {
            "create": (PROBES, "nodes have none, so no probe runs"),
            "patch": (PROBES, "no probe is asked for"),
            "delete": (NODE_LEAVES, "those of nodes that are gone stay"),
        },
    ),
    *_kind("podprobemarkers", PROBES, "nobody knows how many pods it has"),
    Row(
        OURS,
        "podprobemarkers",
        "patch",
        PROBES_END,
        "a marker that is deleted goes before nodes have forgotten it",
    ),
    *_kind(
        "persistentpodstates",
        PLACES,
        "pods do not come back to their nodes",
        create=(PLACES, "annotations of a StatefulSet are without effect"),
        patch=(PLACES, "changed annotations are without effect"),
        delete=(PLACES, "it stays when nobody asks for it any more"),
    ),
    Row(OURS, "resourcedistributions/status", "patch", COPIES, "nobody knows where copies are"),
    *_kind("sidecarsets", SIDECARS, "upgrades cannot be followed"),
    *_kind(
        "statefulsets",
        ADVANCED_STATEFUL_SETS,
        "rollouts cannot be followed",
        create=(ADVANCED_STATEFUL_SETS, "a UnitedDeployment has no subsets"),
        patch=(ADVANCED_STATEFUL_SETS, "its subsets do not follow it"),
        delete=(ADVANCED_STATEFUL_SETS, "subsets stay that are not wanted any more"),
    ),
    *_kind("uniteddeployments", CLONE_SETS, "rollouts cannot be followed", patch=(ANOTHER_KIND, "it adopts nothing")),
    Row(OURS, "workloadspreads/status", "patch", SUBSETS, "pods have no places in subsets: they are refused"),
    Row(POLICY, "podunavailablebudgets/status", "patch", GUARDED, "nothing is let go"),
    Row(others.GAMES.group, "gamesets/scale", "get", BY_SCALE, "a budget does not know how many pods there should be"),
    _owner("advancedcronjobs", BY_THE_CLOCK),
    _owner("broadcastjobs", BROADCAST),
    _owner("clonesets", PODS),
    _owner("daemonsets", DAEMONS),
    _owner("imagelistpulljobs", LISTED),
    _owner("resourcedistributions", COPIES),
    _owner("sidecarsets", SIDECARS),
    _owner("statefulsets", ADVANCED_STATEFUL_SETS),
    _owner("uniteddeployments", CLONE_SETS),
)

DAEMON_ROWS: tuple[Row, ...] = (
    Row(OURS, "nodeimages", "list", PULLED_TIME, "nothing is pulled"),
    Row(OURS, "nodeimages/status", "patch", PULLED_TIME, "nobody hears that an image is there"),
    Row(OURS, "containerrecreaterequests", "list", RESTART, "nothing is restarted"),
    Row(OURS, "containerrecreaterequests/status", "patch", RESTART, "nothing is restarted"),
    Row(OURS, "nodepodprobes", "list", PROBES, "no probe runs"),
    Row(OURS, "nodepodprobes/status", "patch", PROBES, "nobody hears of what probes found"),
    Row("", "pods", "list", RESTART, "nothing is restarted: which pods are there is not known"),
    Row("", "pods/status", "patch", ENVIRONMENT, "what containers were made from is not known"),
    Row("", "events", "create", PULLED_TIME, "nothing is told by events", is_only_told=True),
)
"""The same for the node daemon."""

_ROLE = "tests/real/machinery/test_install.py::test_the_manager_needs_no_more_than_its_role"
_MADE_AGAIN = "tests/admission/test_sync.py::test_a_replica_that_begins_makes_again_what_has_been_taken_away"
_REGISTERED = "admissionregistration.k8s.io"

ELSEWHERE: Mapping[tuple[str, str, str], str] = {
    ("*", "*/scale", "get"): (
        "tests/protection/podunavailablebudget/test_kinds_of_others.py::"
        "test_they_are_asked_by_their_scale_which_may_always_be_read"
    ),
    ("", "*", "list"): "tests/scenarios/deletion.py::a_definition_is_protected_by_its_objects",
    (_REGISTERED, "mutatingwebhookconfigurations", "patch"): _ROLE,
    (_REGISTERED, "validatingwebhookconfigurations", "patch"): _ROLE,
    (_REGISTERED, "mutatingwebhookconfigurations", "create"): _MADE_AGAIN,
    (_REGISTERED, "validatingwebhookconfigurations", "create"): _MADE_AGAIN,
    ("apiextensions.k8s.io", "customresourcedefinitions", "patch"): _ROLE,
    ("authentication.k8s.io", "tokenreviews", "create"): _ROLE,
    ("authorization.k8s.io", "subjectaccessreviews", "create"): _ROLE,
    ("coordination.k8s.io", "leases", "get"): _ROLE,
    ("coordination.k8s.io", "leases", "create"): _ROLE,
    ("coordination.k8s.io", "leases", "patch"): _ROLE,
}
"""Rights whose stories are told by other tests, on a real API server most of them."""

OF_DAEMONS_ELSEWHERE: Mapping[tuple[str, str, str], str] = {
    ("", "events", "patch"): "tests/machinery/test_events.py::test_the_recorder_writes_counts_and_recreates",
    ("", "secrets", "get"): "tests/real/images/test_registries.py::test_a_private_registry",
}
