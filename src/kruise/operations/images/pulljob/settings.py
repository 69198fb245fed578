"""What an ImagePullJob is told to do, each with a title, as `kruise describe rollout` shows it."""

from __future__ import annotations

from kruise.api.apps.images import ALWAYS, DEFAULT_BACKOFF_LIMIT, DEFAULT_PARALLELISM, DEFAULT_TIMEOUT, ImagePullJobSpec
from kruise.faces.face import Setting
from kruise.machinery import codec
from kruise.machinery.documents import Json
from kruise.machinery.wording import listed


def settings(document: Json) -> list[Setting]:
    spec = codec.convert(document["spec"], ImagePullJobSpec)
    policy = spec.pull_policy
    timeout = policy.timeout_seconds if policy is not None else None
    retries = policy.backoff_limit if policy is not None else None
    found = [
        ("Image", spec.image),
        ("Nodes", _nodes(spec)),
        ("Parallelism", str(DEFAULT_PARALLELISM if spec.parallelism is None else spec.parallelism)),
        (
            "Attempts",
            f"{1 + (DEFAULT_BACKOFF_LIMIT if retries is None else retries)}, "
            f"of at most {DEFAULT_TIMEOUT if timeout is None else timeout}s each",
        ),
        ("Completion", spec.completion_policy.type or ALWAYS),
    ]
    if spec.pull_secrets:
        found.append(("Pull Secrets", listed(spec.pull_secrets)))
    return found


def _nodes(spec: ImagePullJobSpec) -> str:
    if spec.pod_selector is not None:
        return f"of pods {codec.encode(spec.pod_selector).decode()}"
    if spec.selector is None:
        return "all"
    if spec.selector.names is not None:
        return listed(spec.selector.names) or "none"
    return codec.encode(spec.selector).decode()
