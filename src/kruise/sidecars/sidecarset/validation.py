"""What a SidecarSet may not be, and may not become (SCS-19 to SCS-33). Pure.

Both versions are judged as `v1beta1`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kruise.api.apps.sidecarset import (
    MERGE_PATCH_JSON,
    NOT_UPDATE,
    OVERWRITE,
    PATCH_POLICIES,
    POD_INJECT_POLICIES,
    RETAIN,
    REVISION_POLICIES,
    ROLLING_UPDATE,
    SHARE_POLICIES,
    SidecarSet,
    SidecarSetSpec,
)
from kruise.api.core import formats, values
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, Path, invalid, not_supported, required
from kruise.api.core.validation import common, validate_pod_template
from kruise.inplace import order_rules
from kruise.machinery import codec, intorpercent
from kruise.machinery.patches.values import same
from kruise.sidecars.sidecarset import keys
from kruise.sidecars.sidecarset.content import (
    EXTRA_FIELDS,
    FIELD_PATH,
    Json,
    content_of,
    has_twins,
    is_hot,
    is_native,
    name_of,
    names_in_pods,
)
from kruise.sidecars.sidecarset.expressions import ExpressionError, evaluate
from kruise.sidecars.sidecarset.matching import base_of, is_empty
from kruise.sidecars.sidecarset.overlap import may_overlap, scopes_overlap
from kruise.sidecars.sidecarset.patterns import PatternError, compiled
from kruise.sidecars.sidecarset.resources import ANY_NAME, policy_of
from kruise.workloads.shared.validation import Candidate
from kruise.workloads.shared.wire import META, SELECTOR, SPEC, STRATEGY

Errors = Iterator[FieldError]
SidecarCandidate = Candidate[SidecarSetSpec]

_LONGEST_NAME = 63
_NAME = re.compile(r"[a-zA-Z0-9\-]+")
_STAND_IN = {"name": "kruise-stands-in", "image": "none"}
_INIT, _CONTAINERS, _VOLUMES = SPEC.child("initContainers"), SPEC.child("containers"), SPEC.child("volumes")
_PATCHES, _REVISION = SPEC.child("patchPodMetadata"), SPEC.child("injectionStrategy", "revision")


def name_problems(name: str) -> list[str]:
    """SCS-19."""
    if not _NAME.fullmatch(name):
        return [
            "sidecarset name must consist of alphanumeric characters or '-' (e.g. 'example-com', regex used for "
            r"validation is '^[a-zA-Z0-9\-]+$')"
        ]
    return [f"must be no more than {_LONGEST_NAME} characters"] if len(name) > _LONGEST_NAME else []


def spec_problems(new: SidecarCandidate, old: SidecarCandidate | None, *, allow_privileged: bool) -> Errors:
    """What can be told without a look at anything else."""
    spec = new.reading
    yield from _selector(SELECTOR, new.spec.get("selector"), is_required=True)
    yield from _selector(SPEC.child("namespaceSelector"), new.spec.get("namespaceSelector"))
    if not spec.containers and not spec.init_containers:
        yield required(SPEC, "no initContainer or container defined for SidecarSet")
    yield from _strategy(new)
    containers, first = _documents(new, "containers"), _documents(new, "initContainers")
    for position, container in enumerate(first):
        yield from _resources_policy(_INIT.at(position), container, is_init=True)
    for position, container in enumerate(containers):
        yield from _sidecar(_CONTAINERS.at(position), container)
    yield from _as_a_pod(containers, first, new.spec.get("volumes") or [], allow_privileged=allow_privileged)
    yield from _names(containers, first)
    yield from _patches(spec)
    yield from _revision(spec)
    if old is not None:
        yield from _changes(containers, _documents(old, "containers"))


def _documents(candidate: SidecarCandidate, name: str) -> list[Json]:
    return [item for item in candidate.spec.get(name) or () if isinstance(item, dict)]


def _selector(path: Path, given: Any, *, is_required: bool = False) -> Errors:
    if given is None:
        if is_required:
            yield required(path, "no selector defined for SidecarSet: name the labels of the pods to inject")
        return
    selector = values.normalise(given, "meta.LabelSelector", path=path)
    yield from common.label_selector(path, selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        yield invalid(path, {}, "empty selector is not valid for sidecarset.")


# The update strategy


def _strategy(new: SidecarCandidate) -> Errors:
    strategy = new.reading.update_strategy
    if strategy.type != ROLLING_UPDATE:
        return
    if any(is_native(container) for container in _documents(new, "initContainers")):
        yield required(
            STRATEGY,
            "The initContainer in-place upgrade is not currently supported. Set spec.updateStrategy.type to "
            f"{NOT_UPDATE}, or take restartPolicy: Always from the init container",
        )
    given = new.spec.get("updateStrategy") or {}
    yield from _selector(STRATEGY.child("selector"), given.get("selector"))
    if strategy.selector is not None and (isinstance(strategy.partition, str) or strategy.partition):
        yield invalid(
            STRATEGY.child("partition"),
            strategy.partition,
            "partition and selector cannot be used together: leave one of them out",
        )
    for name, value in (("partition", strategy.partition), ("maxUnavailable", strategy.max_unavailable)):
        if value is not None:
            for complaint in intorpercent.problems(value):
                yield invalid(STRATEGY.child(name), value, complaint)
    yield from order_rules.priority(STRATEGY.child("priorityStrategy"), strategy.priority_strategy)
    yield from order_rules.scatter(STRATEGY.child("scatterStrategy"), strategy.scatter_strategy)


# Containers


def _sidecar(path: Path, container: Json) -> Errors:
    if (policy := container.get("podInjectPolicy")) and policy not in POD_INJECT_POLICIES:
        yield invalid(
            path.child("podInjectPolicy"),
            policy,
            f"unsupported pod inject policy: use {' or '.join(POD_INJECT_POLICIES)}",
        )
    shared = container.get("shareVolumePolicy")
    kind = shared.get("type") if isinstance(shared, dict) else None
    if kind and kind not in SHARE_POLICIES:
        yield invalid(
            path.child("shareVolumePolicy"), kind, f"unsupported share volume policy: use {' or '.join(SHARE_POLICIES)}"
        )
    transferred = container.get("transferEnv")
    for position, item in enumerate(transferred if isinstance(transferred, list) else ()):
        yield from _transfer(path.child("transferEnv").at(position), item)
    yield from _resources_policy(path, container, is_init=False)


def _transfer(path: Path, item: Any) -> Errors:
    source = item.get("sourceContainerNameFrom") if isinstance(item, dict) else None
    reference = source.get("fieldRef") if isinstance(source, dict) else None
    if not isinstance(reference, dict):
        return
    where = path.child("sourceContainerNameFrom", "fieldRef")
    field_path = str(reference.get("fieldPath", ""))
    if reference.get("apiVersion", "v1") != "v1":
        yield invalid(
            where.child("fieldPath"),
            field_path,
            f"error converting fieldPath: unsupported pod version: {reference['apiVersion']}",
        )
        return
    found = FIELD_PATH.fullmatch(field_path)
    if found is None:
        yield invalid(
            where.child("fieldPath"),
            field_path,
            f"error converting fieldPath: field label not supported: {field_path}: use metadata.labels['<key>'] or "
            "metadata.annotations['<key>']",
        )
        return
    for complaint in formats.qualified_name(found["key"]):
        yield invalid(where, found["key"], complaint)


def _resources_policy(path: Path, container: Json, *, is_init: bool) -> Errors:
    """SCS-28."""
    where = path.child("resourcesPolicy")
    try:
        policy = policy_of(container)
    except codec.DecodeError as error:
        yield invalid(where, container.get("resourcesPolicy"), str(error))
        return
    if policy is None:
        return
    if is_init and not is_native(container):
        yield invalid(
            where,
            container["resourcesPolicy"],
            "resourcesPolicy is only for init containers with restartPolicy: Always",
        )
        return
    amounts = container.get("resources") or {}
    if amounts.get("limits") or amounts.get("requests"):
        yield invalid(
            where, container["resourcesPolicy"], "resourcesPolicy and resources cannot be configured together"
        )
    try:
        compiled(policy.target_containers_name_regex or ANY_NAME)
    except PatternError as error:
        yield invalid(
            where.child("targetContainersNameRegex"),
            policy.target_containers_name_regex,
            f"invalid regex pattern: {error}",
        )
    expressions = policy.resources_expr
    if expressions.limits is None and expressions.requests is None:
        yield invalid(
            where.child("resourcesExpr"),
            container["resourcesPolicy"].get("resourcesExpr"),
            "at least one of limits or requests must be configured",
        )
    for kind, wanted in (("limits", expressions.limits), ("requests", expressions.requests)):
        for resource, text in (("cpu", wanted.cpu), ("memory", wanted.memory)) if wanted is not None else ():
            if not text:
                continue
            try:
                evaluate(text, {resource: 1.0})
            except ExpressionError as error:
                yield invalid(where.child("resourcesExpr", kind, resource), text, f"invalid expression: {error}")


def _as_a_pod(containers: list[Json], first: list[Json], volumes: list[Any], *, allow_privileged: bool) -> Errors:
    """SCS-27: as if they made up one pod."""
    spec = {
        "containers": [_plain(item) for item in containers] or [_STAND_IN],
        "initContainers": [_plain(item) for item in first],
        "volumes": volumes,
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
    }
    template = default_template({"spec": spec})
    for error in validate_pod_template(template, "", restart_policies=("Always",), allow_privileged=allow_privileged):
        yield dataclasses.replace(error, path=Path(str(error.path).removeprefix(".")))


def _names(containers: list[Json], first: list[Json]) -> Errors:
    """Of the two containers of a hot upgrade, none may be called like another sidecar (SCS-27, SCS-56), and pods must
    be able to have both."""
    plain = {name_of(item) for item in (*first, *containers)}
    for kind, path, items in (("initContainers", _INIT, first), ("containers", _CONTAINERS, containers)):
        for position, item in enumerate(items):
            if has_twins(item, kind):
                yield from _twins(path.at(position), item)
            for name in names_in_pods(item, kind):
                if name != name_of(item) and name in plain:
                    yield invalid(
                        path.at(position).child("name"),
                        name_of(item),
                        f"pods have it as {' and '.join(names_in_pods(item, kind))}, and there is another sidecar "
                        f"{name}: give one of them another name",
                    )


def _twins(path: Path, container: Json) -> Errors:
    if len(name_of(container)) > _LONGEST_NAME - len("-1"):
        yield invalid(
            path.child("name"),
            name_of(container),
            f"pods have it twice, with -1 and -2 behind its name: must be no more than {_LONGEST_NAME - 2} characters",
        )
    image = container["upgradeStrategy"].get("hotUpgradeEmptyImage") or ""
    if isinstance(image, str) and image != image.strip():
        where = path.child("upgradeStrategy", "hotUpgradeEmptyImage")
        yield invalid(where, image, "must not have leading or trailing whitespace")


def _plain(container: Json) -> Json:
    return {name: value for name, value in container.items() if name not in EXTRA_FIELDS}


# Metadata patches and revisions


def _patches(spec: SidecarSetSpec) -> Errors:
    """SCS-29."""
    seen: set[str] = set()
    for patch in spec.patch_pod_metadata:
        if not patch.annotations:
            yield required(_PATCHES, "no annotations defined for SidecarSet")
        yield from common.annotation_set(_PATCHES.child("annotations"), patch.annotations)
        if patch.patch_policy not in PATCH_POLICIES:
            yield not_supported(_PATCHES.child("patchPolicy"), patch.patch_policy, PATCH_POLICIES)
        for key in patch.annotations:
            if key in seen:
                yield required(_PATCHES, f"patch annotation[{key}] already exist")
            seen.add(key)


def _revision(spec: SidecarSetSpec) -> Errors:
    """SCS-24, but for whether the revision exists."""
    wanted = spec.injection_strategy.revision
    if wanted is None:
        return
    if not wanted.revision_name and not wanted.custom_version:
        yield invalid(_REVISION, {}, "revisionName and customVersion cannot both be empty: name one of them")
    if wanted.policy and wanted.policy not in REVISION_POLICIES:
        yield not_supported(_REVISION.child("policy"), wanted.policy, REVISION_POLICIES)


# Updates


def _changes(new: Iterable[Json], old: Iterable[Json]) -> Errors:
    """SCS-30."""
    known = {name_of(container): container for container in old}
    for position, container in enumerate(new):
        name, path = name_of(container), _CONTAINERS.at(position)
        if name not in known:
            yield invalid(
                path.child("name"),
                name,
                f"container {name} is not found in the SidecarSet as it is stored: containers cannot be added or "
                "renamed, since pods that run have no place for them. Make another SidecarSet for it",
            )
        elif is_hot(container) != is_hot(known[name]):
            yield invalid(
                path.child("upgradeStrategy", "upgradeType"),
                (container.get("upgradeStrategy") or {}).get("upgradeType", ""),
                "upgradeType cannot be changed: pods that run have one container, or two",
            )


# Beside other SidecarSets


def canary_problems(new: SidecarSet, old: SidecarSet | None, base: SidecarSet | None) -> Errors:
    """SCS-20. `base` is the SidecarSet that it names, if there is such a one."""
    wanted, path = base_of(new), META.child("annotations").key(keys.BASE)
    if not wanted:
        return
    if wanted == new.metadata.name:
        yield invalid(path, wanted, "a SidecarSet cannot be the canary of itself")
    elif base is None:
        yield invalid(path, wanted, f"there is no SidecarSet {wanted} that this one could be the canary of")
    elif base_of(base):
        yield invalid(path, wanted, f"SidecarSet {wanted} is a canary itself")
    if new.spec.update_strategy.type != NOT_UPDATE:
        yield invalid(
            STRATEGY.child("type"), new.spec.update_strategy.type, f"the type of a canary must be {NOT_UPDATE}"
        )
    if old is not None and old.metadata.annotations.get(keys.BASE, "") != wanted:
        yield invalid(path, wanted, "the base of a SidecarSet cannot be changed: make a new one")


def conflicts(new: SidecarSet, others: Iterable[SidecarSet]) -> Errors:
    """SCS-31."""
    for other in others:
        name = other.metadata.name
        if name in (new.metadata.name, base_of(new)) or not _share_pods(new, other):
            continue
        yield from _conflict(new, other)


def _share_pods(left: SidecarSet, right: SidecarSet) -> bool:
    one, other = left.spec.selector, right.spec.selector
    if one is None or other is None or is_empty(one) or is_empty(other):
        return False
    return scopes_overlap(left.spec.namespace_selector, right.spec.namespace_selector) and may_overlap(one, other)


def _conflict(new: SidecarSet, other: SidecarSet) -> Errors:
    owner, ours, theirs = other.metadata.name, content_of(new), content_of(other)
    shared = f"{owner}, and pods may be selected by both: rename it, or change one of the selectors"
    taken = {
        called: name_of(container)
        for kind, known in (("initContainers", theirs.init_containers), ("containers", theirs.containers))
        for container in known
        for called in names_in_pods(container, kind)
    }
    for kind, path, mine, known in (
        ("initContainers", _INIT, ours.init_containers, theirs.init_containers),
        ("containers", _CONTAINERS, ours.containers, theirs.containers),
    ):
        for position, container in enumerate(mine):
            where, name = path.at(position).child("name"), name_of(container)
            if any(name_of(one) == name for one in known):
                yield invalid(where, name, f"container {name} already exist in {shared}")
            elif clash := next((called for called in names_in_pods(container, kind) if called in taken), ""):
                yield invalid(
                    where, name, f"pods would call it {clash}, as they do sidecar {taken[clash]} of sidecarset {shared}"
                )
    for position, (name, volume) in enumerate(ours.volumes.items()):
        if name in theirs.volumes and not same(volume, theirs.volumes[name]):
            yield invalid(
                _VOLUMES.at(position).child("name"),
                name,
                f"volume {name} is in conflict with sidecarset {owner}, which defines it otherwise",
            )
    known_patches = {key: patch.patch_policy for patch in theirs.patches for key in patch.annotations}
    for patch in ours.patches:
        for key in patch.annotations:
            policies = {patch.patch_policy, known_patches.get(key, RETAIN)}
            if OVERWRITE in policies and policies <= {OVERWRITE, MERGE_PATCH_JSON}:
                yield invalid(
                    _PATCHES, key, f"annotation {key} is in conflict with sidecarset {owner}, which sets it, too"
                )


def reading_of(candidate: SidecarCandidate) -> SidecarSet:
    """The object as controllers read it."""
    metadata = candidate.body.get("metadata") or {}
    kept = {name: metadata[name] for name in ("name", "uid", "labels", "annotations") if metadata.get(name)}
    return codec.decode(codec.encode({"metadata": kept, "spec": candidate.spec}), SidecarSet)


def patched_keys(spec: SidecarSetSpec) -> list[str]:
    return [key for patch in spec.patch_pod_metadata for key in patch.annotations]


def labels_of(candidate: SidecarCandidate) -> Mapping[str, str]:
    labels = (candidate.body.get("metadata") or {}).get("labels")
    return labels if isinstance(labels, dict) else {}
