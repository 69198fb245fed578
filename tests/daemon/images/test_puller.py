"""What a node pulls, when it tries again and when it gives up; credentials for registries."""

from __future__ import annotations

import asyncio
import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.api.apps.images import (
    ImageSpec,
    ImageStatus,
    NodeImageSpec,
    NodeImageStatus,
    ReferenceObject,
    SandboxConfig,
    TagPullPolicy,
    TagSpec,
    TagStatus,
    TaskOwner,
)
from kruise.api.core.images import ImageReference
from kruise.api.meta import Key, ObjectMeta
from kruise.api.native.config import Secret
from kruise.daemon.images import plugins
from kruise.daemon.images.conclude import conclude
from kruise.daemon.images.credentials import CredentialsError, credentials_for, matches, normalised
from kruise.daemon.images.decide import Attempt, Attempted, Snapshot, decide
from kruise.daemon.images.objects import NodeImage
from kruise.daemon.images.part import find, perform, spec
from kruise.daemon.parts import Place, Scene, Settings
from kruise.daemon.runtime import CallError, Image
from kruise.machinery.client.errors import NotFoundError, Status
from kruise.machinery.clock import ManualClock, RealClock, run_virtual
from kruise.machinery.codec import convert, evolve
from kruise.machinery.plan import Outcome, Outcomes, PhaseOutcomes, Plan, Result

NOW = datetime(2030, 1, 1, 12, tzinfo=UTC)
JOB = TaskOwner(api_version="apps.kruise.io/v1beta1", kind="ImagePullJob", namespace="demo", name="j", uid="uid-j")


def at(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def task(tag: str = "1", **policy: Any) -> TagSpec:
    version = policy.pop("version", 0)
    return TagSpec(
        tag=tag, created_at=NOW, version=version, pull_policy=TagPullPolicy(**policy), owner_references=(JOB,)
    )


def seen(
    *tasks: TagSpec,
    attempts: dict[str, Attempted] | None = None,
    now: float = 0.0,
    status: NodeImageStatus | None = NodeImageStatus(),  # noqa: B008 - structs are immutable
    limit: int = 0,
    sandbox: SandboxConfig | None = None,
) -> Snapshot:
    images = {"nginx": ImageSpec(tags=tasks, sandbox_config=sandbox)} if tasks else {}
    return Snapshot(
        node_image=NodeImage(
            metadata=ObjectMeta(name="node-1", uid="u", resource_version="4"),
            spec=NodeImageSpec(images=images),
            status=status,
        ),
        attempts=attempts or {},
        now=at(now),
        limit=limit,
    )


def tried(
    number: int, began: float, ended: float | None = None, error: str = "", **fields: Any
) -> dict[str, Attempted]:
    tag, version = fields.pop("tag", "1"), fields.pop("version", 0)
    done = Attempted(began=at(began), ended=at(ended) if ended is not None else None, error=error, **fields)
    return {f"{version} nginx:{tag} {number}": done}


def told(plan: Plan) -> dict[str, Any] | None:
    """The status that is written."""
    for action in plan.actions():
        found: dict[str, Any] = action.body[0]["value"]
        return found
    return None


def phase_of(plan: Plan, tag: str = "1") -> str:
    status = told(plan)
    assert status is not None
    return {one["tag"]: one["phase"] for one in status["imageStatuses"]["nginx"]["tags"]}[tag]


def test_the_first_look_writes_zeros_and_later_ones_nothing() -> None:  # DMN-48
    zeros = {"desired": 0, "succeeded": 0, "failed": 0, "pulling": 0, "waiting": 0}
    assert told(decide(seen(status=None))) == zeros
    assert told(decide(seen())) is None


def test_a_task_begins_at_once_and_is_told_of_when_it_lasts() -> None:  # DMN-35, DMN-36
    plan = decide(seen(task(timeout_seconds=30)))
    [job] = plan.jobs
    assert (job.name, job.seconds) == ("0 nginx:1 0", 30.0)
    assert told(plan) is None
    later = decide(seen(task(), attempts=tried(0, 0.2), now=1.2))
    assert phase_of(later) == "Pulling"
    assert told(later) is not None


def test_only_a_changed_spec_wakes_the_puller() -> None:  # DMN-30
    before = seen(task()).node_image
    stores: Any = None
    told_of = evolve(before, status=NodeImageStatus(desired=1))
    leaving = evolve(before, metadata=evolve(before.metadata, deletion_timestamp=NOW))
    [source] = spec(Place.of("node-1", Settings())).sources
    assert list(source.keys(None, before, stores)) == [Key("", "node-1")]
    assert list(source.keys(before, told_of, stores)) == []
    assert list(source.keys(before, seen(task("2")).node_image, stores)) == [Key("", "node-1")]
    assert list(source.keys(before, leaving, stores)) == [Key("", "node-1")]


def test_a_quick_pull_is_one_write() -> None:  # DMN-31, DMN-41, DMN-42, DMN-50
    plan = decide(seen(task(), attempts=tried(0, 0.0, 0.4, image_id="sha256:ab"), now=0.4))
    [write] = plan.actions()
    assert (write.subresource, write.uid, write.resource_version) == ("status", "u", "4")
    status = told(plan)
    assert status is not None
    assert (status["desired"], status["succeeded"], status["pulling"]) == (1, 1, 0)
    [tag] = status["imageStatuses"]["nginx"]["tags"]
    assert tag == {
        "tag": "1",
        "phase": "Succeeded",
        "progress": 100,
        "startTime": "2030-01-01T12:00:00Z",
        "completionTime": "2030-01-01T12:00:01Z",
        "imageID": "nginx@sha256:ab",
    }


def test_pauses_double_and_none_follows_the_last_attempt() -> None:  # DMN-38
    attempts: dict[str, Attempted] = {}
    began, pauses = 0.0, []
    for number in range(4):
        ended = began + 0.5
        attempts |= tried(number, began, ended, "not found")
        plan = decide(seen(task(backoff_limit=3), attempts=attempts, now=ended))
        if number == 3:
            assert phase_of(plan) == "Failed"
            break
        [wake] = plan.wakes
        pauses.append(wake.after)
        again = decide(seen(task(backoff_limit=3), attempts=attempts, now=ended + wake.after))
        assert [job.name for job in again.jobs] == [f"0 nginx:1 {number + 1}"]
        began = ended + wake.after
    assert pauses == [1.0, 2.0, 4.0]


@pytest.mark.parametrize(("limit", "attempts"), [(0, 1), (1, 2), (-1, 4), (None, 4)])
def test_how_often_it_is_tried(limit: int | None, attempts: int) -> None:  # DMN-37, section 14 no. 6
    known: dict[str, Attempted] = {}
    for number in range(attempts):
        known |= tried(number, number * 100.0, number * 100.0 + 1, "denied")
        plan = decide(seen(task(backoff_limit=limit), attempts=known, now=number * 100.0 + 1))
        is_last = number == attempts - 1
        assert (told(plan) is not None and phase_of(plan) == "Failed") is is_last


def test_a_deadline_between_attempts_ends_it_at_once() -> None:  # DMN-38, section 14 no. 7
    known = tried(0, 0, 1, "x") | tried(1, 2, 3, "x") | tried(2, 5, 5.5, "x")
    spec = task(backoff_limit=6, timeout_seconds=6, active_deadline_seconds=6)
    waiting = decide(seen(spec, attempts=known, now=5.6))
    assert min(wake.after for wake in waiting.wakes) == pytest.approx(0.4)
    ended = told(decide(seen(spec, attempts=known, now=6)))
    assert ended is not None
    assert ended["imageStatuses"]["nginx"]["tags"][0]["message"] == "pulling exceeds the activeDeadlineSeconds"


def test_an_attempt_has_no_more_time_than_the_deadline_leaves() -> None:  # DMN-38
    [job] = decide(seen(task(active_deadline_seconds=60, backoff_limit=3), attempts=tried(0, 0, 50, "x"), now=51)).jobs
    assert job.seconds == pytest.approx(9.0)


def test_a_cut_attempt_says_so() -> None:  # DMN-39
    known = tried(0, 0, 30, "not done within 30 s", timed_out=True)
    status = told(decide(seen(task(backoff_limit=0, timeout_seconds=30), attempts=known, now=30)))
    assert status is not None
    assert status["imageStatuses"]["nginx"]["tags"][0]["message"] == "pulling image nginx:1 is canceled"


def test_what_is_finished_stays_and_the_rest_begins_anew_after_a_restart() -> None:  # DMN-33, DMN-34
    done = TagStatus(tag="1", phase="Succeeded", completion_time=NOW)
    half = TagStatus(tag="2", phase="Pulling", start_time=NOW)
    status = NodeImageStatus(
        desired=2, succeeded=1, pulling=1, image_statuses={"nginx": ImageStatus(tags=(done, half))}
    )
    plan = decide(seen(task("1"), task("2"), status=status, now=30))
    assert [job.name for job in plan.jobs] == ["0 nginx:2 0"]


def test_a_higher_version_stops_the_old_run() -> None:  # DMN-33, section 14 no. 4
    plan = decide(seen(task(version=1), attempts=tried(0, 0), now=5))
    assert plan.drops == ("0 nginx:1 0",)
    assert [job.name for job in plan.jobs] == ["1 nginx:1 0"]


def test_a_task_that_is_gone_is_stopped_and_its_status_too() -> None:  # DMN-32, section 14 no. 5
    status = NodeImageStatus(
        desired=1, image_statuses={"nginx": ImageStatus(tags=(TagStatus(tag="1", phase="Pulling"),))}
    )
    plan = decide(seen(attempts=tried(0, 0), status=status, now=5))
    assert plan.drops == ("0 nginx:1 0",)
    written = told(plan)
    assert written is not None
    assert "imageStatuses" not in written


def test_the_runtime_is_told_of_the_sandbox() -> None:  # DMN-45
    sandbox = SandboxConfig(labels={"l": "1"}, annotations={"a": "2"})
    [job] = decide(seen(task(), sandbox=sandbox)).jobs
    assert isinstance(job.call, Attempt)
    assert (job.call.node, job.call.labels, job.call.annotations) == ("node-1", {"l": "1"}, {"a": "2"})


@settings(max_examples=40)
@given(limit=st.integers(0, 4), running=st.integers(0, 4), waiting=st.integers(0, 5))
def test_never_more_pulls_at_a_time_than_allowed(limit: int, running: int, waiting: int) -> None:  # DMN-35
    running = min(running, limit) if limit else running
    tags = [f"t{number}" for number in range(running + waiting)]
    attempts: dict[str, Attempted] = {}
    for tag in tags[:running]:
        attempts |= tried(0, 0, tag=tag)
    plan = decide(seen(*(task(tag) for tag in tags), attempts=attempts, limit=limit, now=5))
    assert len(plan.jobs) == (min(waiting, limit - running) if limit else waiting)
    status = told(plan)
    if running or waiting > len(plan.jobs):
        assert status is not None
        assert status["waiting"] == waiting - len(plan.jobs)


@pytest.mark.parametrize("now", [0.0, 0.4, 5.0])
def test_a_task_that_must_wait_is_told_at_once(now: float) -> None:  # DMN-35, DMN-10a
    """No pass comes before the one whose turn it is has ended: nobody would say it later."""
    plan = decide(seen(task("a"), task("b"), limit=1, now=now))
    assert len(plan.jobs) == 1
    assert phase_of(plan, "b") == "Waiting"


def outcomes(plan: Plan) -> Outcomes:
    return Outcomes(
        tuple(
            PhaseOutcomes(
                phase.name,
                tuple(tuple(Outcome(action=one, result=Result.DONE) for one in chain) for chain in phase.chains),
            )
            for phase in plan.phases
        )
    )


def test_events_tell_of_the_end_once() -> None:  # NI-E2, NI-E3
    good = seen(task(), attempts=tried(0, 0, 0.025, image_id="sha256:ab"), now=0.025)
    plan = decide(good)
    [note] = conclude(good, plan, outcomes(plan)).events
    assert (note.reason, note.message) == ("PullImageSucceed", "Image nginx:1, ecalpsedTime 25ms")
    assert conclude(good, plan, Outcomes()).events == ()
    bad = seen(task(backoff_limit=0), attempts=tried(0, 0, 1, "denied"), now=1)
    plan = decide(bad)
    notes = conclude(bad, plan, outcomes(plan)).events
    assert [(note.reason, note.message, note.uid) for note in notes] == [
        ("PullImageFailed", "Image nginx:1 denied", "uid-j"),
        ("PullImageFailed", "Image nginx:1 denied", ""),
    ]


def test_an_image_is_found_under_every_name_and_by_digest() -> None:  # DMN-40
    digest = "sha256:" + "a" * 64
    image = Image(
        id="sha256:id",
        repo_tags=("docker.io/library/nginx:1",),
        repo_digests=(f"docker.io/library/nginx@{digest}",),
    )
    assert find([image], ImageReference("nginx", "1")) is image
    assert find([image], ImageReference("nginx", digest)) is image
    assert find([image], ImageReference("nginx", "2")) is None
    assert find([image], ImageReference("foo/nginx", "1")) is None


# Credentials


def config(auths: dict[str, Any], *, legacy: bool = False) -> Secret:
    kind, key = ("dockercfg", ".dockercfg") if legacy else ("dockerconfigjson", ".dockerconfigjson")
    body = auths if legacy else {"auths": auths}
    return Secret(
        metadata=ObjectMeta(name="s", namespace="x"),
        type=f"kubernetes.io/{kind}",
        data={key: json.dumps(body).encode()},
    )


def login(user: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:pass".encode()).decode()}


@pytest.mark.parametrize(
    ("key", "repository", "fits"),
    [
        ("reg.io", "reg.io/a/b", True),
        ("https://reg.io/v2/", "reg.io/a/b", True),
        ("reg.io/a", "reg.io/a/b", True),
        ("reg.io/c", "reg.io/a/b", False),
        ("*.reg.io", "eu.reg.io/a", True),
        ("*.reg.io", "a.eu.reg.io/a", False),
        ("reg.io", "reg.io:5000/a", False),
        ("reg.io:5000", "reg.io:5000/a", True),
        ("e*.reg.io:5000/a", "eu.reg.io:5000/a/b", True),
    ],
)
def test_which_registries_an_entry_is_for(key: str, repository: str, fits: bool) -> None:  # DMN-46
    assert matches(normalised(key), repository) is fits


def test_the_more_specific_entry_is_tried_first() -> None:  # DMN-46, section 14 no. 9
    secret = config({"reg.io": login("all"), "reg.io/team": login("team"), "other.io": login("no")})
    assert [auth.username for auth in credentials_for("reg.io/team/app", [secret])] == ["team", "all"]


def test_docker_hub_has_a_name_of_its_own() -> None:  # DMN-46
    secret = config({"https://index.docker.io/v1/": login("hub")})
    assert [auth.username for auth in credentials_for("docker.io/library/nginx", [secret])] == ["hub"]


def test_odd_secrets_match_nothing_and_broken_ones_are_named() -> None:  # section 11 no. 13
    wrong_shape = config({"auths": {"reg.io": login("x")}}, legacy=True)
    assert credentials_for("reg.io/a", [wrong_shape]) == ()
    assert credentials_for("reg.io/a", [config({"reg.io": {"username": "u", "password": "p"}})])[0].username == "u"
    assert credentials_for("reg.io/a", [Secret(type="Opaque", data={"k": b"v"})]) == ()
    broken = Secret(
        metadata=ObjectMeta(name="s", namespace="x"),
        type="kubernetes.io/dockerconfigjson",
        data={".dockerconfigjson": b"secret!"},
    )
    with pytest.raises(CredentialsError, match=r"^pull secret x/s holds no JSON object$"):
        credentials_for("reg.io/a", [broken])


@pytest.mark.parametrize(("auth", "problem"), [
    ("not base64!", "has an auth that is not base64"),
    (base64.b64encode(b"\xff\xfe").decode(), "has an auth that is not base64"),
    (base64.b64encode(b"user-only").decode(), "has an auth that is not user:password"),
])  # fmt: skip
def test_an_entry_that_cannot_be_read_stops_the_pull(auth: str, problem: str) -> None:  # DMN-45
    """To ask without it would only show that the registry refuses strangers."""
    with pytest.raises(CredentialsError, match=rf"^pull secret x/s: the entry for reg\.io {problem}$"):
        credentials_for("reg.io/a", [config({"reg.io": {"auth": auth}})])
    wrapped = base64.encodebytes(b"user:" + b"p" * 90).decode()
    assert credentials_for("reg.io/a", [config({"reg.io": {"auth": wrapped}})])[0].username == "user"


def test_a_plugin_is_asked_as_the_kubelet_asks(tmp_path: Path) -> None:  # DMN-47
    answer = {
        "kind": "CredentialProviderResponse",
        "cacheKeyType": "Registry",
        "cacheDuration": "1h",
        "auth": {"*.reg.io": {"username": "from-plugin", "password": "p"}},
    }
    program = tmp_path / "helper"
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/asked\ncat <<'END'\n{json.dumps(answer)}\nEND\n")
    program.chmod(0o755)
    path = tmp_path / "config.yaml"
    path.write_text(
        "kind: CredentialProviderConfig\nproviders:\n- name: helper\n  matchImages: ['*.reg.io']\n"
        "  apiVersion: credentialprovider.kubelet.k8s.io/v1\n  defaultCacheDuration: 5m\n"
    )

    async def ask(image: ImageReference) -> list[str]:
        found = await plugins.credentials(str(path), str(tmp_path), image, RealClock())
        return [auth.username for auth in found]

    assert asyncio.run(ask(ImageReference("eu.reg.io/a", "1"))) == ["from-plugin"]
    assert json.loads((tmp_path / "asked").read_text())["image"] == "eu.reg.io/a:1"
    assert asyncio.run(ask(ImageReference("nginx", "1"))) == []
    assert asyncio.run(ask(ImageReference("eu.reg.io/b", "1"))) == ["from-plugin"]


def test_plugins_that_cannot_be_read_are_none(tmp_path: Path) -> None:
    """DMN-47: a pull goes on without them."""
    path = tmp_path / "config.yaml"
    path.write_text("providers: [\n- : {")
    assert asyncio.run(plugins.credentials(str(path), "", ImageReference("nginx", "1"), RealClock())) == ()


def test_an_answer_that_was_taken_away_is_given_again() -> None:
    """NI-13: whoever edits a NodeImage may edit its status, too. DMN-30: the daemon's own writes are no news."""
    [source] = spec(Place.of("node-1", Settings())).all_sources
    done = TagStatus(tag="1", phase="Succeeded", completion_time=NOW)
    busy = NodeImageStatus(desired=1, image_statuses={"nginx": ImageStatus(tags=(TagStatus(tag="1"),))})
    over = NodeImageStatus(desired=1, image_statuses={"nginx": ImageStatus(tags=(done,))})
    found = {
        (name, other): bool(source.keys(_with(before), _with(after), cast(Any, None)))
        for name, before in (("none", None), ("busy", busy), ("over", over))
        for other, after in (("none", None), ("busy", busy), ("over", over))
    }
    assert {pair for pair, is_news in found.items() if is_news} == {("over", "none"), ("over", "busy")}
    assert [job.name for job in decide(seen(task(), status=None)).jobs] == ["0 nginx:1 0"]


def _with(status: NodeImageStatus | None) -> NodeImage:
    return seen(task(), status=status).node_image


def test_a_task_may_be_tried_as_often_as_somebody_likes() -> None:
    """DMN-38: the pause between attempts stays half a minute."""
    attempts: dict[str, Attempted] = {}
    for number in range(1100):
        attempts |= tried(number, 0, 1, "no")
    plan = decide(seen(task(backoff_limit=5000), attempts=attempts, now=2))
    assert [wake.after for wake in plan.wakes] == [29]


@pytest.mark.parametrize("back", [10.0, 3600.0])
def test_a_clock_that_is_put_back_holds_nothing_up(back: float) -> None:
    """DMN-36, DMN-38: what would be due in an hour is due now."""
    failed = seen(task(), attempts=tried(0, back, back, "no"), now=0)
    assert [job.name for job in decide(failed).jobs] == ["0 nginx:1 1"]
    running = decide(seen(task(), attempts=tried(0, back), now=0))
    assert (phase_of(running), running.wakes) == ("Pulling", ())


class Registry:
    """A runtime whose registry wants a password; and the secrets that the daemon can read."""

    def __init__(self, password: str, secrets: dict[str, str]) -> None:
        self.name = "containerd"
        self.password = password
        self.secrets = secrets
        self.reads = 0
        self.silent = 0

    async def list_images(self) -> tuple[Image, ...]:
        return ()

    async def pull_image(self, reference: str, *, sandbox: Any, auth: Any = None) -> str:
        if self.silent:
            self.silent -= 1
            raise CallError("Unavailable", "PullImage: connection refused")
        if auth is None or auth.password != self.password:
            raise CallError("Unknown", "pull access denied")
        return reference

    async def get(self, resource: Any, name: str, namespace: str) -> Secret:
        self.reads += 1
        if name not in self.secrets:
            raise NotFoundError(Status(code=404, reason="NotFound"))
        return config({"reg.io": {"username": "u", "password": self.secrets[name]}})

    def pull(self, clock: Any, run: Any = asyncio.run) -> str:
        """The error; empty where it was pulled."""
        node: Any = SimpleNamespace(name="n", runtimes={"containerd": self}, network=None)
        place = Place.of("n", Settings())
        nodes: Any = SimpleNamespace(find=lambda name: node)
        scene = Scene(place=place, nodes=nodes, stores=cast(Any, None), client=cast(Any, self), clock=clock)
        call = Attempt(node="n", name="reg.io/app", tag="1", secrets=(ReferenceObject(namespace="x", name="s"),))
        try:
            run(perform(scene, call))
        except OSError as error:
            return str(error)
        return ""


def test_a_secret_that_is_gone_is_told_of() -> None:
    """DMN-44: it fails no pull by itself, but a registry that refuses strangers does not know what was meant."""
    assert Registry("right", {}).pull(RealClock()) == (
        'Failed to pull image reference "reg.io/app:1": rpc error: code = Unknown desc = pull access denied '
        "(pull secrets that could not be read: x/s)"
    )


def test_a_password_that_was_refused_is_read_again() -> None:
    """DMN-44: what works is remembered; what was refused may have been put right since."""
    registry, clock = Registry("right", {"s": "wrong"}), RealClock()
    assert registry.pull(clock) == "rpc error: code = Unknown desc = pull access denied"
    registry.secrets["s"] = "right"
    assert registry.pull(clock) == ""
    assert registry.pull(clock) == ""
    assert registry.reads == 2


@pytest.mark.parametrize("back", [0.0, 86_400.0])
def test_a_secret_is_remembered_for_some_minutes(back: float) -> None:
    """DMN-44: and no longer, where the clock is put back by a day."""
    registry, clock = Registry("right", {"s": "right"}), ManualClock()
    asked = {}
    for seconds in (0.0, 299.0, 301.0, 601.0):
        passed = ManualClock(clock.now() - timedelta(seconds=back if seconds else 0.0))
        passed.advance(seconds)
        assert registry.pull(passed) == ""
        asked[seconds] = registry.reads
    assert (asked[0.0], asked[299.0], asked[601.0]) == (1, 1, 2)


@pytest.mark.parametrize("secrets", [{}, {"s": ""}])
def test_a_runtime_that_restarts_costs_no_attempt(secrets: dict[str, str]) -> None:
    """DMN-99: a task that may be tried once is pulled all the same."""
    registry = Registry("", secrets)
    registry.silent = 3
    error = registry.pull(RealClock(), run=run_virtual)
    assert registry.silent == 0
    assert "refused" not in error


class Node:
    """A node that pulls for a while, and people who change what it is to pull."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.tasks: dict[str, TagSpec] = {}
        self.status: NodeImageStatus | None = None
        self.attempts: dict[str, Attempted] = {}
        self.now = 0.0

    def look(self) -> None:
        plan = decide(
            seen(*self.tasks.values(), attempts=self.attempts, now=self.now, status=self.status, limit=self.limit)
        )
        for name in plan.drops:
            del self.attempts[name]
        for job in plan.jobs:
            assert job.name not in self.attempts, "begun twice"
            self.attempts[job.name] = Attempted(began=at(self.now))
        if (status := told(plan)) is not None:
            self.status = convert(status, NodeImageStatus)

    @property
    def pulling(self) -> list[str]:
        return sorted(name for name, one in self.attempts.items() if one.ended is None)


@settings(max_examples=60)
@given(data=st.data())
def test_never_more_at_a_time_whatever_people_change(data: st.DataObject) -> None:
    """DMN-33 to DMN-35: tasks that come, go, are asked for again, fail and are tried again; the daemon dies between.
    In the end all are over, each by its own version."""
    node = Node(limit=data.draw(st.integers(0, 3)))
    for _ in range(data.draw(st.integers(1, 25))):
        tag = data.draw(st.sampled_from(["a", "b", "c", "d", "e"]))
        match data.draw(st.sampled_from(["add", "remove", "again", "end", "fail", "wait", "die"])):
            case "add":
                node.tasks.setdefault(tag, task(tag, backoff_limit=2))
            case "remove":
                node.tasks.pop(tag, None)
            case "again" if tag in node.tasks:
                node.tasks[tag] = task(tag, backoff_limit=2, version=node.tasks[tag].version + 1)
            case "end" | "fail" as how if node.pulling:
                name = data.draw(st.sampled_from(node.pulling))
                node.attempts[name] = evolve(
                    node.attempts[name], ended=at(node.now), error="" if how == "end" else "no"
                )
            case "wait":
                node.now += data.draw(st.sampled_from([0.2, 1.0, 40.0]))
            case "die":
                node.attempts.clear()
        node.look()
        assert not node.limit or len(node.pulling) <= node.limit
        assert len({name.rpartition(" ")[0] for name in node.pulling}) == len(node.pulling), "one task pulled twice"
    for _ in range(60):
        for name in node.pulling:
            node.attempts[name] = evolve(node.attempts[name], ended=at(node.now))
        node.now += 40.0
        node.look()
    assert not node.attempts
    entries = node.status.image_statuses["nginx"].tags if node.status is not None and node.tasks else ()
    assert [(one.tag, one.version, one.completion_time is not None) for one in entries] == [
        (tag, node.tasks[tag].version, True) for tag in sorted(node.tasks)
    ]


@pytest.mark.parametrize("seconds", [10**12, 2**63 - 1])
def test_a_deadline_may_be_any_number(seconds: int) -> None:
    begun = seen(task(active_deadline_seconds=seconds), attempts=tried(0, 0), now=5)
    assert phase_of(decide(begun)) == "Pulling"
