"""The kinds that bring images to nodes ahead of pods: ImagePullJob, ImageListPullJob, NodeImage.

Both versions of each have one shape, so nothing is converted: the API server changes the version and no more (NI-1).
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, ClassVar

from kruise.api.apps.shared import GROUP
from kruise.api.meta import LabelSelector, ObjectMeta
from kruise.api.resource import Resource
from kruise.api.schema import About, Int32, Int64
from kruise.machinery.codec import Struct, field

ALWAYS, NEVER = "Always", "Never"
"""Of `completionPolicy.type`."""
PULL_ALWAYS, PULL_IF_NOT_PRESENT = "Always", "IfNotPresent"
"""Of `imagePullPolicy`."""
DEFAULT_TIMEOUT, DEFAULT_BACKOFF_LIMIT, DEFAULT_PARALLELISM = 600, 3, 1
MOST_IMAGES = 256
"""Names in one NodeImage."""
MOST_LISTED = 255
"""Images in one ImageListPullJob."""
FINALIZER = "apps.kruise.io/deletion-protection"
FAKE_LABEL = "apps.kruise.io/fake-nodeimage"
"""A NodeImage with this label needs no node."""
EXCHANGE_NAMESPACE = "kruise-daemon-config"
"""Where the node daemon may read secrets, unless the manager is told otherwise."""
SOURCE_KEY = "imagepulljobs.kruise.io/source-key"
REFERENCES = "imagepulljobs.kruise.io/references"
MODE = "imagepulljobs.kruise.io/mode"
BATCH = "batch"
"""A copy of a secret that many jobs share."""

WAITING, PULLING, SUCCEEDED, FAILED = "Waiting", "Pulling", "Succeeded", "Failed"
"""Phases of a task."""


class SandboxConfig(Struct):
    """What the container runtime is told of whom an image is for."""

    labels: Annotated[dict[str, str], About("Labels of the sandbox that the runtime is told of.")] = field(
        default_factory=dict
    )
    annotations: Annotated[dict[str, str], About("Annotations of the sandbox that the runtime is told of.")] = field(
        default_factory=dict
    )


class NodeSelector(LabelSelector):
    """Nodes, by their names or by their labels."""

    names: Annotated[
        tuple[str, ...] | None, About("Names of nodes. Not together with labels; an empty list selects no node.")
    ] = None


class PullPolicy(Struct):
    """How one node pulls."""

    timeout_seconds: Annotated[Int32 | None, About("Seconds that one attempt may take. 600 if absent.")] = None
    backoff_limit: Annotated[
        Int32 | None, About("How often a failed attempt is repeated, with growing pauses. 3 if absent.")
    ] = None


class CompletionPolicy(Struct):
    """When a job ends."""

    type: Annotated[
        str,
        About(
            "Always: the job ends when every node has pulled, or failed to. Never: it goes on, brings the image to "
            "nodes that come later, and pulls it again every day. Always if absent."
        ),
    ] = ""
    active_deadline_seconds: Annotated[
        Int64 | None,
        About("Seconds after which the job gives up on all nodes that are not done. With type Always alone."),
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, About("Seconds after its end at which the job is deleted. With type Always alone.")
    ] = None


class PullTemplate(Struct):
    """How images come to nodes: what both kinds of jobs say alike."""

    pull_secrets: Annotated[
        tuple[str, ...], About("Names of secrets for the registry, in the namespace of the job.")
    ] = ()
    selector: Annotated[
        NodeSelector | None, About("The nodes that pull. All nodes if this and podSelector are absent.")
    ] = None
    pod_selector: Annotated[
        LabelSelector | None,
        About("Pods in the namespace of the job: the nodes that they are on pull. Not together with selector."),
    ] = None
    parallelism: Annotated[
        int | str | None, About("How many nodes pull at a time. 0 holds the job. 1 if absent; no percentage.")
    ] = None
    pull_policy: Annotated[PullPolicy | None, About("How one node pulls.")] = None
    completion_policy: Annotated[CompletionPolicy, About("When the job ends.", required=True)] = CompletionPolicy()
    sandbox_config: Annotated[
        SandboxConfig | None, About("What the container runtime is told of whom the image is for.")
    ] = None
    image_pull_policy: Annotated[
        str,
        About("IfNotPresent: a node that has the image is done. Always: it pulls once more. IfNotPresent if absent."),
    ] = ""


class ImagePullJobSpec(PullTemplate):
    """What is wanted."""

    image: Annotated[str, About("The image to pull.", required=True)] = ""


class ImagePullJobStatus(Struct):
    """What was last seen."""

    start_time: Annotated[datetime | None, About("When the manager first looked at the job.")] = None
    completion_time: Annotated[datetime | None, About("When the job ended.")] = None
    desired: Annotated[Int32, About("Number of nodes that are to pull.", required=True)] = 0
    active: Annotated[Int32, About("Number of nodes that pull, or are about to.")] = 0
    succeeded: Annotated[Int32, About("Number of nodes that have the image.")] = 0
    failed: Annotated[Int32, About("Number of nodes that could not pull it.")] = 0
    message: Annotated[str, About("How far the job is, in words.")] = ""
    failed_nodes: Annotated[tuple[str, ...], About("Names of the nodes that could not pull it.")] = ()


class ImagePullJob(Struct):
    """An ImagePullJob brings one image to many nodes, some at a time."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ImagePullJobSpec, About("What is wanted.")] = ImagePullJobSpec()
    status: Annotated[ImagePullJobStatus, About("What was last seen. Written by the controller.")] = (
        ImagePullJobStatus()
    )


class ImageListPullJobSpec(PullTemplate):
    """What is wanted."""

    images: Annotated[
        tuple[str, ...], About("The images to pull, at most 255. Each gets an ImagePullJob of its own.", required=True)
    ] = ()


class FailedImageStatus(Struct):
    """An image that some node could not pull."""

    image_pull_job: Annotated[str, About("Name of the ImagePullJob that knows more.")] = ""
    name: Annotated[str, About("The image.")] = ""
    message: Annotated[str, About("Where to look.")] = ""


class ImageListPullJobStatus(Struct):
    """What was last seen."""

    start_time: Annotated[datetime | None, About("When the manager first looked at the job.")] = None
    completion_time: Annotated[datetime | None, About("When the job ended.")] = None
    desired: Annotated[Int32, About("Number of images.", required=True)] = 0
    active: Annotated[Int32, About("Number of images that some node pulls.")] = 0
    completed: Annotated[Int32, About("Number of images that every node has pulled, or failed to.")] = 0
    succeeded: Annotated[Int32, About("Number of images that every node has.")] = 0
    failed_image_statuses: Annotated[
        tuple[FailedImageStatus, ...], About("The images that some node could not pull.")
    ] = ()


class ImageListPullJob(Struct):
    """An ImageListPullJob brings several images to many nodes, by an ImagePullJob for each image."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[ImageListPullJobSpec, About("What is wanted.")] = ImageListPullJobSpec()
    status: Annotated[ImageListPullJobStatus, About("What was last seen. Written by the controller.")] = (
        ImageListPullJobStatus()
    )


class ReferenceObject(Struct):
    """A secret that the node daemon may read."""

    namespace: Annotated[str, About("Namespace of the secret.")] = ""
    name: Annotated[str, About("Name of the secret.")] = ""
    mode: Annotated[
        str, About("batch: a copy that jobs share, which leaves with the image. Others leave when they are gone.")
    ] = ""


class TaskOwner(Struct):
    """A job that wants an image on the node."""

    is_atomic: ClassVar[bool] = True

    # `apiVersion` and `kind` are described here, since they are those of another object.
    api_version: Annotated[str, About("Group and version of the job.")] = ""
    kind: Annotated[str, About("Kind of the job.")] = ""
    namespace: Annotated[str, About("Namespace of the job.")] = ""
    name: Annotated[str, About("Name of the job.")] = ""
    uid: Annotated[str, About("UID of the job.")] = ""
    resource_version: Annotated[str, About("Not used.")] = ""
    field_path: Annotated[
        str,
        About("status.succeeded: the job counts this node as done, whatever later jobs make of the task."),
    ] = ""


class TagPullPolicy(Struct):
    """How the node pulls, and how long the task stays."""

    timeout_seconds: Annotated[Int32 | None, About("Seconds that one attempt may take. 600 if absent.")] = None
    backoff_limit: Annotated[
        Int32 | None, About("How often a failed attempt is repeated, with growing pauses. 3 if absent.")
    ] = None
    ttl_seconds_after_finished: Annotated[
        Int32 | None, About("Seconds after its end at which the task is removed. It must be set.")
    ] = None
    active_deadline_seconds: Annotated[
        Int64 | None, About("Seconds that all attempts together may take. No limit if absent.")
    ] = None


class TagSpec(Struct):
    """A task: one tag of an image that the node is to have."""

    tag: Annotated[str, About("The tag, or a digest.", required=True)] = ""
    created_at: Annotated[datetime | None, About("When the task began. Now, if absent.")] = None
    pull_policy: Annotated[TagPullPolicy | None, About("How the node pulls, and how long the task stays.")] = None
    owner_references: Annotated[
        tuple[TaskOwner, ...],
        About("The jobs that want it. A task whose jobs are all gone is removed; one that never had any stays."),
    ] = ()
    version: Annotated[Int64, About("Raise it to have the node pull once more.")] = 0
    image_pull_policy: Annotated[
        str, About("IfNotPresent: a node that has the image is done. Otherwise it pulls in any case.")
    ] = ""


class ImageSpec(Struct):
    """What the node is to do about an image."""

    pull_secrets: Annotated[tuple[ReferenceObject, ...], About("Secrets for the registry.")] = ()
    tags: Annotated[tuple[TagSpec, ...], About("The tags that the node is to have.", required=True)] = ()
    sandbox_config: Annotated[
        SandboxConfig | None, About("What the container runtime is told of whom the image is for.")
    ] = None


class NodeImageSpec(Struct):
    """What the node is to pull."""

    images: Annotated[dict[str, ImageSpec], About("By the name of the image, without tag. At most 256 names.")] = field(
        default_factory=dict
    )


class TagStatus(Struct):
    """How a task went."""

    tag: Annotated[str, About("The tag, or a digest.", required=True)] = ""
    phase: Annotated[str, About("Waiting, Pulling, Succeeded or Failed.", required=True)] = ""
    progress: Annotated[Int32, About("How much is done, in percent.")] = 0
    start_time: Annotated[datetime | None, About("When the node began.")] = None
    completion_time: Annotated[datetime | None, About("When it ended.")] = None
    version: Annotated[Int64, About("The version of the task that this answers.")] = 0
    image_id: Annotated[str, About("What the container runtime calls the image.")] = field(default="", name="imageID")
    message: Annotated[str, About("What went wrong.")] = ""


class ImageStatus(Struct):
    """How the tasks of an image went."""

    tags: Annotated[tuple[TagStatus, ...], About("By tag.", required=True)] = ()


class FirstSyncStatus(Struct):
    """A record of a first synchronisation. Nothing fills it."""

    sync_at: Annotated[datetime | None, About("When it was.")] = None
    status: Annotated[str, About("Succeeded or Failed.")] = ""
    message: Annotated[str, About("What went wrong.")] = ""


class NodeImageStatus(Struct):
    """What the node has done."""

    desired: Annotated[Int32, About("Number of tasks.", required=True)] = 0
    succeeded: Annotated[Int32, About("Number of tasks that succeeded.")] = 0
    failed: Annotated[Int32, About("Number of tasks that failed.")] = 0
    pulling: Annotated[Int32, About("Number of tasks that are pulled.")] = 0
    waiting: Annotated[Int32, About("Number of tasks that wait for their turn.")] = 0
    image_statuses: Annotated[dict[str, ImageStatus], About("By the name of the image, without tag.")] = field(
        default_factory=dict
    )
    first_sync_status: Annotated[FirstSyncStatus | None, About("Nothing fills it.")] = None


class NodeImage(Struct):
    """A NodeImage says which images a node is to pull, and how far it is. There is one for each node, of its name."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: Annotated[NodeImageSpec, About("What the node is to pull.")] = NodeImageSpec()
    status: Annotated[NodeImageStatus, About("What the node has done. Written by the node daemon.")] = NodeImageStatus()


IMAGE_PULL_JOBS = Resource(GROUP, "v1beta1", "imagepulljobs", "ImagePullJob", True, ImagePullJob)
IMAGE_LIST_PULL_JOBS = Resource(GROUP, "v1beta1", "imagelistpulljobs", "ImageListPullJob", True, ImageListPullJob)
NODE_IMAGES = Resource(GROUP, "v1beta1", "nodeimages", "NodeImage", False, NodeImage)
