"""What a child looks like, and the patch that makes it so (UD-55 to UD-60, UD-73).

A child is changed where the template says something else than it did, or where it is not as the template says. What
others have written there, and the template does not name, stays.
"""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

from kruise.api.apps.conversion.uniteddeployment import newer_template
from kruise.api.apps.uniteddeployment import Subset
from kruise.api.core.go_json import go_json
from kruise.api.core.schema import POD_TEMPLATE_SPEC, struct_merge_schema
from kruise.api.meta import LabelSelector
from kruise.api.native.apps import ControllerRevision
from kruise.machinery import codec
from kruise.machinery.codec import Raw
from kruise.machinery.patches import merge, strategic
from kruise.machinery.patches.errors import PatchError
from kruise.machinery.patches.values import same, without_nulls
from kruise.machinery.revisions import template_of
from kruise.spread.uniteddeployment import keys
from kruise.spread.uniteddeployment.children import Child, ChildKind, Json


class ShapeError(ValueError):
    """A child cannot be made; the text says why."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a child is to be."""

    subset: Subset
    revision: str
    pods: int
    partition: int
    patch: str
    """Text of the subset's patch; empty: it has none."""
    max_unavailable: int | None = None
    """In place of what the template says (UD-73)."""
    keeps_stuck_pods: bool = False


def patch_text(patch: Raw) -> str:
    """In one form, whatever the form it was written in (UD-60)."""
    if not bytes(patch) or bytes(patch) == b"null":
        return ""
    return codec.canonical(codec.decode(patch, object)).decode()


def metadata_of(template: Json, kind: ChildKind, selector: LabelSelector, wanted: Wanted) -> Json:
    """Labels and annotations that a child has to have."""
    given = _mapping(_mapping(template.get(kind.member)).get("metadata"))
    return {
        "labels": {
            **_mapping(given.get("labels")),
            **selector.match_labels,
            keys.REVISION: wanted.revision,
            keys.SUBSET: wanted.subset.name,
        },
        "annotations": {**_mapping(given.get("annotations")), keys.PATCH: wanted.patch},
    }


def spec_of(template: Json, kind: ChildKind, selector: LabelSelector, wanted: Wanted) -> Json:
    """The spec of a child. Raises ShapeError."""
    given = _mapping(_mapping(_as_now(template).get(kind.member)).get("spec"))
    spec: Json = without_nulls(copy.deepcopy(given))
    own: Json = _plain(selector)
    spec["selector"] = {**own, "matchLabels": {**own.get("matchLabels", {}), keys.SUBSET: wanted.subset.name}}
    spec["replicas"] = wanted.pods
    kind.put_partition(spec, wanted.partition)
    if wanted.keeps_stuck_pods and kind.strategy:
        _limit(spec, kind, wanted.max_unavailable)
    spec["template"] = _pod_template(spec.get("template"), wanted)
    return spec


def _limit(spec: Json, kind: ChildKind, pods: int | None) -> None:
    """Stuck pods of an old template may go, however many they are; else what the template says."""
    *way, name = kind.strategy
    holder = spec
    for step in way:
        holder[step] = dict(_mapping(holder.get(step)))
        holder = holder[step]
    if spec.get("strategy", {}).get("type") == "Recreate":
        spec["strategy"] = {"type": "Recreate"}
    elif pods is not None:
        holder[name] = pods
    else:
        holder.setdefault(name, kind.max_unavailable)


def _pod_template(given: Any, wanted: Wanted) -> Json:
    template = dict(_mapping(given))
    metadata = dict(_mapping(template.get("metadata")))
    metadata["labels"] = {
        **_mapping(metadata.get("labels")),
        keys.SUBSET: wanted.subset.name,
        keys.REVISION: wanted.revision,
    }
    template["metadata"] = metadata
    spec = dict(_mapping(template.get("spec")))
    if wanted.subset.node_selector_term.match_expressions:
        spec["affinity"] = _on_nodes(_mapping(spec.get("affinity")), wanted.subset)
    if wanted.subset.tolerations:
        spec["tolerations"] = [*(spec.get("tolerations") or ()), *_plain(wanted.subset.tolerations)]
    template["spec"] = spec
    return patched(template, wanted.patch)


def patched(template: Json, text: str) -> Json:
    """The template with a subset's patch (UD-59). Raises ShapeError."""
    if not text:
        return template
    patch = codec.decode(text, object)
    if not isinstance(patch, dict):
        raise ShapeError("its patch is no object: write metadata and spec, as in a pod template")
    try:
        found: Json = strategic.apply(template, patch, struct_merge_schema(POD_TEMPLATE_SPEC))
    except PatchError as error:
        raise ShapeError(f"its patch cannot be applied to the pod template: {error}") from error
    return found


def _on_nodes(affinity: Json, subset: Subset) -> Json:
    """Every term of the required node affinity, extended by those of the subset (UD-57)."""
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    nodes = _mapping(affinity.get("nodeAffinity"))
    selector = _mapping(nodes.get(required))
    more = _plain(subset.node_selector_term.match_expressions)
    terms = selector.get("nodeSelectorTerms") or [{}]
    extended = [{**term, "matchExpressions": [*(term.get("matchExpressions") or ()), *more]} for term in terms]
    return {**affinity, "nodeAffinity": {**nodes, required: {**selector, "nodeSelectorTerms": extended}}}


# Changes of a child that is there


def change_of(child: Child, metadata: Json, spec: Json, before: Json | None) -> Json | None:
    """The merge patch that makes a child what is wanted; None: it is. `before` is the spec that it was given last;
    None where nobody knows it."""
    known = child.object.metadata
    labels = {key: value for key, value in metadata["labels"].items() if known.labels.get(key) != value}
    annotations = {key: value for key, value in metadata["annotations"].items() if known.annotations.get(key) != value}
    patch: Json = {}
    if labels or annotations:
        patch["metadata"] = {name: part for name, part in (("labels", labels), ("annotations", annotations)) if part}
    if changed := _difference(child.spec(), spec, before):
        patch["spec"] = changed
    return patch or None


def has_list(change: Any) -> bool:
    if isinstance(change, dict):
        return any(map(has_list, change.values()))
    return isinstance(change, list)


def _difference(there: Json, wanted: Json, before: Json | None) -> Json:
    """What has to be written. Where `there` has nothing, the field is absent, or of no interest to those who read
    children; then it counts whether it is what it was."""
    changed: Json = {}
    for name, value in wanted.items():
        known = before.get(name) if before is not None else None
        if name not in there:
            is_as_before = before is not None and same(known, value)
            if not is_as_before and (_says_something(value) or _says_something(known)):
                changed[name] = value
        elif isinstance(value, dict) and isinstance(there[name], dict):
            inner = _difference(there[name], value, known if isinstance(known, dict) else None)
            if inner:
                changed[name] = inner
        elif not _covers(there[name], value):
            changed[name] = _merged(there[name], value, known)
    for name in before or ():
        if name not in wanted:
            changed[name] = None
    return changed


def _merged(there: Any, wanted: Any, before: Any) -> Any:
    """A list with what is wanted, whose items keep what defaults and others have written into them. Others' own items
    stay behind those that are wanted."""
    sides = [_named(side) for side in (there, wanted, before if isinstance(before, list) else [])]
    if any(side is None for side in sides) or not isinstance(wanted, list):
        return wanted
    known, new, old = (side or {} for side in sides)
    found = [_with(known[name], item, old.get(name)) if name in known else item for name, item in new.items()]
    return [*found, *(item for name, item in known.items() if name not in new and name not in old and before)]


def _named(items: Any) -> dict[str, Json] | None:
    """Items by their names; None where they have none."""
    if not isinstance(items, list) or not all(isinstance(item, dict) and "name" in item for item in items):
        return None
    found = {str(item["name"]): item for item in items}
    return found if len(found) == len(items) else None


def _with(there: Json, wanted: Json, before: Json | None) -> Json:
    result: Json = merge.apply(there, _difference(there, wanted, before))
    return result


def _says_something(value: Any) -> bool:
    return value is not None and value is not False and value not in (0, "", {}, [])


def _covers(there: Any, wanted: Any) -> bool:
    """Whether everything that is wanted is there; the API server may have added defaults."""
    if isinstance(wanted, dict) and isinstance(there, dict):
        return all(
            _covers(there[name], value) if name in there else not _says_something(value)
            for name, value in wanted.items()
        )
    if isinstance(wanted, list) and isinstance(there, list):
        return len(there) == len(wanted) and all(_covers(*pair) for pair in zip(there, wanted, strict=True))
    return same(there, wanted)


# Revisions


def revision_data(template: Json) -> bytes:
    """What a revision holds: the whole template, in one form (UD-75)."""
    return go_json({"spec": {"template": {**_tidy(_as_now(template)), "$patch": "replace"}}})


def in_one_form(revision: ControllerRevision) -> ControllerRevision:
    """A revision as it would be written today: an older version wrote CloneSets the older way (UD-5)."""
    template = template_of(revision)
    return revision if template is None else codec.evolve(revision, data=Raw(revision_data(template)))


def _as_now(template: Json) -> Json:
    """With CloneSets as they are written now, and without the default that the API server fills in."""
    newer = newer_template(template)
    clones = _mapping(newer.get("cloneSetTemplate"))
    inner = _mapping(clones.get("spec"))
    scaling = inner.get("scaleStrategy")
    if not isinstance(scaling, dict) or scaling.get("enablePVCReuse") is not False:
        return newer
    scaling = {name: value for name, value in scaling.items() if name != "enablePVCReuse"}
    return {**newer, "cloneSetTemplate": {**clones, "spec": {**inner, "scaleStrategy": scaling}}}


def _tidy(value: Any) -> Any:
    """Without what says nothing: nulls, empty objects, and times that nobody has written."""
    if isinstance(value, dict):
        kept = {name: _tidy(item) for name, item in value.items() if name != "creationTimestamp"}
        return {name: item for name, item in kept.items() if item is not None and item != {}}
    if isinstance(value, list):
        return [_tidy(item) for item in value]
    return value


def _plain(value: Any) -> Any:
    return codec.decode(codec.encode(value), object)


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}
