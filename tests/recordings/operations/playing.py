"""Plays a recording of images, restarts and probes on ours.

Those of real nodes are played on the local cluster, with its node model and our daemon under them. Those of simulated
nodes had no daemon: what the recorder reported in its place is reported here, too.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from datetime import timedelta
from typing import Any

from kruise.api.apps.containerrecreaterequest import REQUESTS
from kruise.api.apps.images import IMAGE_LIST_PULL_JOBS, IMAGE_PULL_JOBS, NODE_IMAGES
from kruise.api.apps.probes import NODE_POD_PROBES, POD_PROBE_MARKERS
from kruise.api.native.config import SECRETS
from kruise.api.native.nodes import NODES
from kruise.api.native.pod import PODS
from kruise.api.resource import Resource
from kruise.machinery.client.errors import ApiError
from kruise.machinery.client.requests import PatchType, Request, Verb
from kruise.machinery.times import format_time
from tests.recordings.course import CoursePlayer, CourseRecording, Json, Moment
from tests.recordings.environment import Watched
from tests.support.world import LocalWorld

ALPHA = "v1alpha1"
KINDS: Mapping[str, Resource[Any]] = {
    one.kind: one
    for one in (
        PODS,
        SECRETS,
        NODES,
        IMAGE_PULL_JOBS,
        IMAGE_LIST_PULL_JOBS,
        NODE_IMAGES,
        *(dataclasses.replace(one, version=ALPHA) for one in (REQUESTS, POD_PROBE_MARKERS, NODE_POD_PROBES)),
    )
}
COMPONENTS = (
    "kruise-daemon-imagepuller",
    "kruise-daemon-crr",
    "kruise-daemon-podprobe",
    "imagelistpulljob-controller",
    "imagepulljob-controller",
    "nodeimage-controller",
)
IMAGES = ("ImagePullJob", "ImageListPullJob", "NodeImage")
RESTARTS = ("ContainerRecreateRequest", "Pod")
PROBES = ("PodProbeMarker", "NodePodProbe", "Pod")
OF_NODES = ("NodeImage", "NodePodProbe")
NATURAL = ("name", "tag", "type")
"""The first of these that the items of a list have tells them apart."""
DIGEST = "sha256:" + "1" * 64
SETTLED = 45.0
"""Seconds until a new node has its objects."""
_MASKS = (
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"), "<time>"),
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b"), "<uid>"),
    (re.compile(r"sha256:(?:[0-9a-f]{64}|<hex>)"), "sha256:<hash>"),
    (re.compile(r"containerd://[\w.-]+"), "containerd://<id>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "<ip>"),
    (re.compile(r"\b(reg-[a-z]+)-[0-9a-f]{6}\b"), r"\1-<hash>"),
    (re.compile(r"ecalpsedTime [\d.]+[a-zµ]+"), "ecalpsedTime <time>"),
)
_WORD = re.compile(r"(?:^| )(KruisePodReady|[\w.-]+\.[\w.-]+/[\w-]+)=(True|False)")
_CONTAINER = re.compile(r"(?:^| )container (\S+)\[[^\]]*?restartCount=(\d+)")
_NODE_LABELS = re.compile(r"kubernetes\.io/|^type$|^node\.kruise\.io/")

Act = Callable[["Player"], Awaitable[None]]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What a recording leaves open."""

    compared: Sequence[str]
    is_real: bool = True
    targets: Mapping[int, str] = dataclasses.field(default_factory=dict)
    """What a step's patch is for."""
    ages: Mapping[int, Sequence[float]] = dataclasses.field(default_factory=dict)
    """How many seconds ago the times in a step's patch are."""
    acts: Mapping[int, Act] = dataclasses.field(default_factory=dict)
    """Steps that words do not tell."""
    before: Mapping[int, Act] = dataclasses.field(default_factory=dict)
    """What the node model must be told before a step."""
    missing: Sequence[str] = ()
    """Images that no registry has."""
    tail: float = 4.0


class Player(CoursePlayer):
    components = COMPONENTS
    brief = 0.35

    def __init__(self, recording: CourseRecording, stage: Stage, world: LocalWorld) -> None:
        super().__init__(recording, world)
        self.stage = stage
        self.tail = stage.tail
        self.resources = {kind: KINDS[kind] for kind in stage.compared}
        self._used: set[int] = set()
        self._title, self._reports = "", True
        self._children: dict[str, str] = {}
        """What a job of a list is called, by the name that it was given."""
        self._pods: list[str] = []

    async def prepare(self) -> None:
        if not self.stage.is_real:
            for node in await self.world.list(NODES):
                await self.be_ready(node["metadata"]["name"])
        if self.stage.missing:
            table = {image: {"error": True} for image in self.stage.missing}
            for node in await self.world.list(NODES):
                marks = {"annotations": {"sim.kruise.io/images": json.dumps(table)}}
                await self.world.patch(NODES, node["metadata"]["name"], {"metadata": marks})
        await asyncio.sleep(SETTLED)

    def background(self) -> Sequence[Coroutine[Any, Any, None]]:
        if "Pod" in self.resources:
            return ()
        pods = Watched(self.world, PODS)
        pods.listeners.append(self.saw)
        return (pods.run(),)

    # Steps

    async def step(self, step: str, moment: Moment) -> None:
        self._title = moment.text
        reports = moment.text.startswith(("the daemon of ", "clean ", "node reports "))
        self._reports = reports and moment.refusal[0] != 409
        number = int(moment.target[1:])
        try:
            await self._do(number, step, moment)
        except ApiError as error:
            code, text = error.status.code, re.sub(r"^admission webhook \S+ denied the request: ", "", error.message)
        else:
            code, text = 0, ""
        recorded, words = moment.refusal
        if recorded != 409 and (code, text[: len(words)]) != (recorded, words):
            self.differ("answer", f"{moment.text}: recorded {recorded} {words!r}, ours {code} {text!r}")

    async def _do(self, number: int, step: str, moment: Moment) -> None:
        title = moment.text
        if number in self.stage.before:
            await self.stage.before[number](self)
        if number in self.stage.acts:
            await self.stage.acts[number](self)
        elif title.startswith("node reports "):
            pass
        elif (body := _body(title) or _body(step)) is not None:
            await self.patch(self.stage.targets.get(number) or self._latest(), self._timed(body, number))
        elif title.startswith(("create ", "for ", "with ", "activeDeadlineSeconds ", "second ")):
            for manifest in self.asked_for(title):
                await self.create_pod(manifest, moment.at)
        elif found := re.match(r"delete (\w+)[ /](\S+)$", title):
            await self.world.delete(KINDS[found[1]], self._our_pod(found[2]))
        elif title.startswith("clean up by hand"):
            for node in await self.world.list(NODE_IMAGES):
                await self.patch(f"NodeImage/{node['metadata']['name']}", {"spec": {"images": None}})
        else:
            known = ("the daemon of ", "the tag ", "how long each took")
            assert title.startswith(known), f"nobody knows how to play {title!r}"

    def asked_for(self, title: str) -> list[Json]:
        """The manifests that a step is about: those that it names, or the next one of its kind."""
        kind = re.match(r"create (?:a |an )?(\w+?)s? ", title)
        kinds = {one["kind"] for one in self.recording.manifests}
        wanted = kind[1] if kind is not None and kind[1] in kinds else "ContainerRecreateRequest"
        free = [n for n, one in enumerate(self.recording.manifests) if n not in self._used and one["kind"] == wanted]
        named = [n for n in free if re.search(rf"\b{self.recording.manifests[n]['metadata']['name']}\b", title)]
        chosen = named if re.match(r"create \w+s ", title) else (named or free)[:1]
        self._used.update(chosen)
        assert chosen, f"no manifest is left for {title!r}"
        return [copy.deepcopy(self.recording.manifests[n]) for n in chosen]

    async def create_pod(self, manifest: Json, at: float) -> None:
        """Or anything else; a pod where it was bound to."""
        if manifest["kind"] == "Pod" and "nodeName" not in manifest["spec"] and (node := self._place(manifest, at)):
            manifest["spec"]["nodeName"] = node
        text = re.sub(r"sha256:<\w+>", DIGEST, json.dumps(manifest))
        await self.create_named(json.loads(text))

    async def create_named(self, manifest: Json) -> None:
        """With our names of pods."""
        await self.create(json.loads(self._with_pods(json.dumps(manifest))))

    async def make_node(self, name: str, labels: Mapping[str, str]) -> None:
        """A node that has been ready for a minute."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": dict(labels)}}
        await self.create(node)
        await self.be_ready(name)

    async def be_ready(self, name: str) -> None:
        since = format_time(self.world.clock.now() - timedelta(seconds=60))
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": since, "lastHeartbeatTime": since}
        await self.world.patch(NODES, name, {"status": {"conditions": [ready]}}, subresource="status")

    def _place(self, pod: Json, at: float) -> str:
        """The node that the pod was bound to."""
        target = f"Pod/{pod['metadata']['name']}"
        for moment in self.recording.moments:
            name = moment.document.get("spec", {}).get("nodeName") if moment.target == target else ""
            if name and moment.at >= at:
                return str(name)
        return ""

    async def create(self, manifest: Json) -> None:
        resource = KINDS.get(manifest["kind"])
        if resource is None:
            await self.world.create(manifest)
            return
        version = manifest["apiVersion"].rpartition("/")[2]
        place = dataclasses.replace(resource, version=version)
        body = json.dumps(manifest).encode()
        await self.world.client.send(Request(Verb.CREATE, place, self.world.place_of(place), body=body))

    async def patch(self, target: str, body: Any, *, subresource: str = "") -> None:
        kind, _, name = target.partition("/")
        form = PatchType.JSON if isinstance(body, list) else PatchType.MERGE
        await self.world.patch(KINDS[kind], self._our_pod(name), body, patch_type=form, subresource=subresource)

    def _latest(self) -> str:
        """The newest of the kind that the recording is about, unless a stage names another."""
        return next(key for key in reversed(self.known) if not key.startswith(("NodeImage/", "NodePodProbe/", "Pod/")))

    def _timed(self, body: Any, number: int) -> Any:
        text = json.dumps(body)
        for age in self.stage.ages.get(number, ()):
            text = text.replace("<time>", format_time(self.world.clock.now() - timedelta(seconds=age)), 1)
        return json.loads(text)

    # What others did

    async def happens(self, kind: str, name: str, moment: Moment) -> None:
        if self.stage.is_real or kind not in OF_NODES or "status" not in moment.document:
            return
        if self._reports:
            status = copy.deepcopy(self.known[f"{kind}/{name}"].get("status") or {})
            age = 25 * 3600 if "25 hours ago" in self._title else 0
            when = format_time(self.world.clock.now() - timedelta(seconds=age))
            told = json.loads(self._with_pods(json.dumps(await self._listed(kind, status)).replace("<time>", when)))
            await self.patch(f"{kind}/{name}", {"status": told}, subresource="status")

    async def _listed(self, kind: str, status: Json) -> Json:
        """With lists where the log has maps."""
        if kind == "NodePodProbe":
            uids = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await self.world.list(PODS)}
            found = [
                {**one, "uid": uids[self._our_pod(one["name"])], "probeStates": _items(one["probeStates"], "name")}
                for one in _items(status.get("podProbeStatuses") or {}, "name")
            ]
            return {"podProbeStatuses": found}
        counts = dict.fromkeys(("desired", "succeeded", "failed", "pulling", "waiting"), 0)
        images = {
            name: {"tags": _items(one["tags"], "tag")} for name, one in (status.get("imageStatuses") or {}).items()
        }
        return {**counts, **status, "imageStatuses": images or None}

    # Names

    def saw(self, kind: str, found: Json) -> None:
        owners = found["metadata"].get("ownerReferences")
        if kind == "ADDED" and owners and owners[0]["kind"] == "ImageListPullJob":
            self._children[found["metadata"]["name"]] = f"{owners[0]['name']}-of-{found['spec']['image']}"
        if kind == "ADDED" and found["kind"] == "Pod" and found["metadata"]["name"] not in self._pods:
            self._pods.append(found["metadata"]["name"])

    def name(self, text: str) -> str:
        for moment in self.recording.moments:
            if moment.text.startswith("ADDED") and moment.target.startswith("ImagePullJob/"):
                owners = moment.document["metadata"].get("ownerReferences")
                if owners:
                    owner = owners[0]["name"] if isinstance(owners, list) else next(iter(owners))
                    given = moment.target.partition("/")[2]
                    text = text.replace(given, f"{owner}-of-{moment.document['spec']['image']}")
        return text

    def told_event(self, text: str) -> str:
        for given, plain in self._children.items():
            text = text.replace(given, plain)
        return text

    def key_of(self, found: Json) -> str:
        return self.told_event(self._with_recorded_pods(super().key_of(found)))

    def told(self, found: Json) -> Json:
        document = copy.deepcopy(found)
        if found["kind"] == "Pod":
            document["restarts"] = {
                one["name"]: one["restartCount"] for one in found.get("status", {}).get("containerStatuses", ())
            }
            document["conditions"] = {
                one["type"]: one["status"]
                for one in found.get("status", {}).get("conditions", ())
                if one["type"] == "KruisePodReady" or "." in one["type"]
            }
        text = self._with_recorded_pods(self.told_event(json.dumps(document)))
        result: Json = json.loads(text)
        return result

    def _with_pods(self, text: str) -> str:
        """Recordings number the pods of a workload."""
        return re.sub(r"\bpod-(\d+)\b", lambda found: self._our_pod(found[0]), text)

    def _our_pod(self, name: str) -> str:
        found = re.fullmatch(r"pod-(\d+)", name)
        return self._pods[int(found[1]) - 1] if found else name

    def _with_recorded_pods(self, text: str) -> str:
        for number, name in enumerate(self._pods, 1):
            if re.search(r"-[a-z0-9]{5}$", name):
                text = text.replace(name, f"pod-{number}")
        return text

    # Pictures

    def recorded_document(self, kind: str, moment: Moment) -> Json:
        document = moment.document
        if kind != "Pod":
            return document
        words = moment.text.partition(" {")[0]
        return {
            **document,
            "conditions": dict(_WORD.findall(words)),
            "restarts": {name: int(count) for name, count in _CONTAINER.findall(words)},
        }

    def picture(self, kind: str, found: Json) -> Mapping[str, Any]:
        metadata = found.get("metadata") or {}
        labels = {key: value for key, value in (metadata.get("labels") or {}).items() if not _NODE_LABELS.search(key)}
        marks = {
            key: value
            for key, value in (metadata.get("annotations") or {}).items()
            if not key.startswith(("sim.kruise.io/", "kubectl.kubernetes.io/"))
        }
        if "controller-revision-hash" in labels:
            labels["controller-revision-hash"] = "<hash>"
        if kind == "Pod":
            parts = {"labels": _without_workload(labels), "annotations": _without_workload(marks)}
            parts |= {name: found[name] for name in ("conditions", "restarts") if found.get(name)}
        else:
            parts = {
                "labels": labels,
                "annotations": marks,
                "finalizers": metadata.get("finalizers") or [],
                "spec": found.get("spec") or {},
                "status": _bare(keyed(found.get("status") or {})) or {},
            }
        shown = {aspect: _masked(keyed(part)) for aspect, part in parts.items()}
        return {aspect: _without_uids(part) for aspect, part in shown.items()} if kind == "NodePodProbe" else shown

    def counted(self, kind: str, names: set[str]) -> set[str]:
        told = {key for key, _ in self.recorded}
        return names & told if kind in OF_NODES else names

    def message(self, text: str) -> str:
        return str(_masked(text.replace("\\n", "\n").rstrip("\n")))


def keyed(value: Any) -> Any:
    """Lists whose items have names as maps by them, as logs show them."""
    if isinstance(value, Mapping):
        return {key: keyed(item) for key, item in value.items()}
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        for key in NATURAL:
            if all(key in item for item in value):
                return {item[key]: {k: keyed(v) for k, v in item.items() if k != key} for item in value}
    return value


def _items(value: Any, key: str) -> list[Json]:
    return [{key: name, **item} for name, item in value.items()] if isinstance(value, dict) else list(value)


def _bare(value: Any) -> Any:
    """Without what says nothing: zeros, empty texts and parts."""
    if isinstance(value, Mapping):
        found = {key: _bare(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item not in (0, "", None, {}, [])}
    return value


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        found = {key if not isinstance(key, str) else _masked(key): _masked(item) for key, item in value.items()}
        ttl = found.get("ttlSecondsAfterFinished")
        if "timeoutSeconds" in found and isinstance(ttl, int) and ttl >= 300 and ttl != 600:
            found["ttlSecondsAfterFinished"] = "<random>"
        return found
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if isinstance(value, str):
        for pattern, mask in _MASKS:
            value = pattern.sub(mask, value)
    return value


def _without_workload(marks: Mapping[str, str]) -> Json:
    """What the workload of a pod has put there."""
    theirs = ("apps.kruise.io/", "lifecycle.apps.kruise.io/", "controller-revision-hash", "pod-template-hash")
    return {key: value for key, value in marks.items() if not key.startswith(theirs)}


def _without_uids(value: Any) -> Any:
    """Logs leave them out."""
    if isinstance(value, Mapping):
        return {key: _without_uids(item) for key, item in value.items() if key != "uid"}
    return value


def _body(text: str) -> Any:
    found = re.search(r"(?:\((?:merge|json)\): |: `)([\[{].*?)`?$", text)
    return json.loads(found[1]) if found is not None and not found[1].endswith("…") else None
