"""What a UnitedDeployment may not be, and may not become (UD section 5). Pure.

A `cloneSetTemplate` is judged when its children are made, by those who know CloneSets; what they say is quoted in the
conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kruise.api.apps.shared import UPDATE_STRATEGIES
from kruise.api.apps.statefulset import POD_MANAGEMENT_POLICIES
from kruise.api.apps.uniteddeployment import MANUAL, Subset, UnitedDeploymentSpec
from kruise.api.core import formats, values
from kruise.api.core.defaults import default_template
from kruise.api.core.field_errors import FieldError, Path, forbidden, invalid, not_supported, required
from kruise.api.core.validation import common, scheduling, validate_pod_template
from kruise.api.meta import LabelSelector
from kruise.machinery import codec
from kruise.machinery.selectors import Selector, SelectorError, from_label_selector
from kruise.spread.uniteddeployment.children import KINDS
from kruise.spread.uniteddeployment.numbers import SizeError, is_adaptive, parsed, reserves
from kruise.spread.uniteddeployment.paths import SCHEDULE, STRATEGY, SUBSETS
from kruise.workloads.shared import validation
from kruise.workloads.shared.validation import Candidate, quoted
from kruise.workloads.shared.wire import SELECTOR, SPEC, TEMPLATE

Errors = Iterator[FieldError]
UnitedCandidate = Candidate[UnitedDeploymentSpec]

_MEMBERS = tuple(kind.member for kind in KINDS)
_STATEFUL, _ADVANCED, _CLONES, _DEPLOYMENT = _MEMBERS
_JUDGED = (_STATEFUL, _ADVANCED, _DEPLOYMENT)
_MUTABLE = {
    _STATEFUL: (
        "replicas",
        "template",
        "updateStrategy",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
    ),
    _ADVANCED: ("replicas", "template", "updateStrategy"),
}
_NO_MAXIMUM = 1_000_000


def problems(
    new: UnitedCandidate, old: UnitedCandidate | None = None, *, allow_privileged: bool = True
) -> tuple[FieldError, ...]:
    def spec(one: UnitedCandidate, other: UnitedCandidate | None) -> Errors:
        return _spec(one, other, allow_privileged=allow_privileged)

    return validation.problems(new, old, spec, name=formats.dns_subdomain)


def _spec(new: UnitedCandidate, old: UnitedCandidate | None, *, allow_privileged: bool) -> Errors:
    spec = new.reading
    if spec.replicas is not None:
        yield from common.non_negative(SPEC.child("replicas"), spec.replicas)
    complaints = list(_selector(new))
    yield from complaints
    selector = None if complaints else from_label_selector(spec.selector)
    if old is None or (new.template, new.spec.get("selector")) != (old.template, old.spec.get("selector")):
        yield from _template(new, selector, allow_privileged=allow_privileged)
    yield from _subsets(spec)
    yield from _sizes(spec)
    yield from _strategies(spec, new.template)
    if old is not None:
        yield from _changes(new, old)


def _selector(new: UnitedCandidate) -> Errors:
    """UD-26."""
    given = new.spec.get("selector")
    if given is None:
        yield required(SELECTOR, "name the labels of the children and of their pods")
        return
    selector = values.normalise(given, "meta.LabelSelector", path=SELECTOR)
    yield from common.label_selector(SELECTOR, selector)
    if not selector:
        yield invalid(SELECTOR, given, "empty selector is invalid for uniteddeployment")
        return
    try:
        from_label_selector(codec.convert(selector, LabelSelector))
    except (SelectorError, codec.DecodeError) as error:
        yield invalid(SELECTOR, given, str(error))


# The template


def _template(new: UnitedCandidate, selector: Selector | None, *, allow_privileged: bool) -> Errors:
    """UD-27 to UD-30."""
    template = _mapping(new.template)
    given = [member for member in _MEMBERS if template.get(member) is not None]
    if not given:
        yield required(TEMPLATE, f"should provide one of {', '.join(_MEMBERS[:-1])}, or {_MEMBERS[-1]}")
    elif len(given) > 1:
        words = f"should provide only one of {', '.join(_MEMBERS[:-1])}, or {_MEMBERS[-1]}: found {', '.join(given)}"
        yield invalid(TEMPLATE, given, words)
    else:
        yield from _member(given[0], _mapping(template[given[0]]), selector, allow_privileged=allow_privileged)


def _member(member: str, given: Mapping[str, Any], selector: Selector | None, *, allow_privileged: bool) -> Errors:
    if member not in _JUDGED:
        return
    path, spec = TEMPLATE.child(member), _mapping(given.get("spec"))
    if selector is not None:
        yield from _labels(path.child("metadata", "labels"), given, selector)
        yield from _labels(path.child("spec", "template", "metadata", "labels"), spec.get("template"), selector)
    replicas = spec.get("replicas")
    if replicas is not None:
        yield invalid(path.child("spec", "replicas"), replicas, f"replicas in {member} will not be used")
    if member != _DEPLOYMENT:
        yield from _stateful(member, path.child("spec"), spec)
    yield from _pod_template(path.child("spec", "template"), spec, member, allow_privileged=allow_privileged)


def _labels(path: Path, holder: Any, selector: Selector) -> Errors:
    labels = _mapping(_mapping(_mapping(holder).get("metadata")).get("labels"))
    if not selector.matches({key: value for key, value in labels.items() if isinstance(value, str)}):
        yield invalid(path, dict(labels), "`selector` does not match template `labels`")


def _stateful(member: str, path: Path, spec: Mapping[str, Any]) -> Errors:
    strategy = _mapping(spec.get("updateStrategy"))
    partition = _mapping(strategy.get("rollingUpdate")).get("partition")
    if strategy.get("type") == "RollingUpdate" and partition is not None:
        where = path.child("updateStrategy", "rollingUpdate", "partition")
        yield invalid(where, partition, f"partition in {member} will not be used")
    if member != _STATEFUL:
        return
    if (management := spec.get("podManagementPolicy")) and management not in POD_MANAGEMENT_POLICIES:
        yield invalid(path.child("podManagementPolicy"), management, f"must be {quoted(POD_MANAGEMENT_POLICIES)}")
    if (kind := strategy.get("type")) and kind not in UPDATE_STRATEGIES:
        yield invalid(path.child("updateStrategy"), {"type": kind}, f"type must be {quoted(UPDATE_STRATEGIES)}")


def _pod_template(path: Path, spec: Mapping[str, Any], member: str, *, allow_privileged: bool) -> Errors:
    """With the API server's own defaults, as the pods will be."""
    wanted = default_template(spec.get("template"), path=path)
    claims = [_mapping(_mapping(claim).get("metadata")).get("name") for claim in spec.get("volumeClaimTemplates") or ()]
    yield from validate_pod_template(
        wanted,
        path,
        restart_policies=("Always",),
        claim_volumes=[name for name in claims if isinstance(name, str)],
        allow_privileged=allow_privileged,
    )
    if wanted["spec"].get("activeDeadlineSeconds") is not None:
        words = f"activeDeadlineSeconds in {member} is not supported: its pods run until they are deleted"
        yield forbidden(path.child("spec", "activeDeadlineSeconds"), words)


# Subsets


def _subsets(spec: UnitedDeploymentSpec) -> Errors:
    """UD-31, UD-32."""
    seen: set[str] = set()
    for position, subset in enumerate(spec.topology.subsets):
        path = SUBSETS.at(position)
        where = path.child("name")
        if not subset.name:
            yield required(where)
        yield from (
            invalid(where, subset.name, f"invalid subset name {words}") for words in formats.dns_label(subset.name)
        )
        if subset.name and subset.name in seen:
            yield invalid(where, subset.name, f"duplicated subset name {subset.name}")
        seen.add(subset.name)
        yield from _placement(path, subset)


def _placement(path: Path, subset: Subset) -> Errors:
    if subset.tolerations:
        given = [values.normalise(codec.to_builtins(one), "core.Toleration") for one in subset.tolerations]
        yield from scheduling.tolerations(path.child("tolerations"), given)
    term = values.normalise(codec.to_builtins(subset.node_selector_term), "core.NodeSelectorTerm")
    if term:
        yield from scheduling.node_term(path.child("nodeSelectorTerm"), term, check_values=False)


def _sizes(spec: UnitedDeploymentSpec) -> Errors:
    """UD-33, UD-34."""
    subsets = spec.topology.subsets
    total = spec.replicas
    complaints = list(_unreadable(subsets, total))
    yield from complaints
    if is_adaptive(spec):
        for position, subset in enumerate(subsets):
            if subset.replicas is not None:
                words = "use minReplicas and maxReplicas to enable the adaptive strategy"
                yield forbidden(SUBSETS.at(position).child("replicas"), words)
    if complaints or (total is not None and total < 0):
        return
    by_size = [subset for subset in subsets if subset.replicas is not None]
    by_capacity = [s for s in subsets if s.min_replicas is not None or s.max_replicas is not None]
    if by_size and by_capacity:
        words = "subset.replicas and subset.minReplicas/subset.maxReplicas are mutually exclusive in a UnitedDeployment"
        yield invalid(SUBSETS, [subset.name for subset in subsets], words)
    elif by_capacity:
        yield from _capacities(subsets, total)
    else:
        yield from _replicas(subsets, by_size, total)


def _unreadable(subsets: Sequence[Subset], total: int | None) -> Errors:
    for position, subset in enumerate(subsets):
        path = SUBSETS.at(position)
        sizes: dict[str, int] = {}
        for name, value in (
            ("replicas", subset.replicas),
            ("minReplicas", subset.min_replicas),
            ("maxReplicas", subset.max_replicas),
        ):
            if value is None:
                continue
            try:
                sizes[name] = parsed(value, max(total or 0, 0))
            except SizeError as error:
                yield invalid(path.child(name), value, str(error))
                continue
            if isinstance(value, str) and total is None:
                words = f"{value} needs replicas of the UnitedDeployment: give them, or a number here"
                yield invalid(path.child(name), value, words)
        if sizes.get("minReplicas", 0) > sizes.get("maxReplicas", _NO_MAXIMUM):
            most = sizes.get("maxReplicas")
            words = (
                f"must not be more than {_NO_MAXIMUM}"
                if most is None
                else f"must not be more than maxReplicas, which comes to {most}"
            )
            yield invalid(path.child("minReplicas"), subset.min_replicas, words)


def _capacities(subsets: Sequence[Subset], total: int | None) -> Errors:
    if total is None:
        yield required(SPEC.child("replicas"), "minReplicas and maxReplicas of subsets need it")
        return
    if all(subset.max_replicas is not None for subset in subsets):
        words = "at least one subset.maxReplicas must be empty: that subset takes what the others do not"
        yield invalid(SUBSETS, len(subsets), words)


def _replicas(subsets: Sequence[Subset], given: Sequence[Subset], total: int | None) -> Errors:
    if total is None:
        if len(given) < len(subsets) or not subsets:
            words = "if UnitedDeployment replicas is not provided, replicas of all subsets should be provided"
            yield invalid(SUBSETS, len(given), words)
        return
    found = sum(parsed(subset.replicas, total) for subset in given if subset.replicas is not None)
    if found > total:
        words = f"sum of indicated subset replicas {found} should not be greater than UnitedDeployment replicas {total}"
        yield invalid(SUBSETS, found, words)
    elif given and len(given) == len(subsets) and found != total:
        words = (
            f"if replicas of all subsets are provided, the sum of indicated subset replicas {found} should equal "
            f"UnitedDeployment replicas {total}"
        )
        yield invalid(SUBSETS, found, words)


# Strategies


def _strategies(spec: UnitedDeploymentSpec, template: Any) -> Errors:
    """UD-34, UD-35."""
    if reserves(spec):
        for member in (_STATEFUL, _ADVANCED):
            if _mapping(template).get(member) is not None:
                words = f"reserveUnschedulablePods needs cloneSetTemplate or deploymentTemplate, not {member}"
                yield invalid(SCHEDULE, codec.to_builtins(spec.topology.schedule_strategy), words)
    strategy = spec.update_strategy
    if strategy.type not in ("", MANUAL):
        yield not_supported(STRATEGY.child("type"), strategy.type, (MANUAL,))
    known = {subset.name for subset in spec.topology.subsets}
    manual = strategy.manual_update
    for name in manual.partitions if manual is not None else ():
        if name not in known:
            where = STRATEGY.child("manualUpdate", "partitions")
            words = f"there is no subset {name}: the subsets are {', '.join(sorted(known)) or 'none'}"
            yield invalid(where, dict(manual.partitions) if manual is not None else {}, words)


# Changes


def _changes(new: UnitedCandidate, old: UnitedCandidate) -> Errors:
    """UD-35a, UD-35b."""
    before = {subset.name: subset for subset in old.reading.topology.subsets}
    for position, subset in enumerate(new.reading.topology.subsets):
        known = before.get(subset.name)
        if known is None:
            continue
        path = SUBSETS.at(position)
        words = "may not be changed in an update: remove the subset, and add one of another name"
        if subset.node_selector_term != known.node_selector_term:
            yield forbidden(path.child("nodeSelectorTerm"), words)
        if subset.tolerations != known.tolerations:
            yield forbidden(path.child("tolerations"), words)
    for member, mutable in _MUTABLE.items():
        one, other = (_mapping(_mapping(candidate.template).get(member)).get("spec") for candidate in (new, old))
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            yield from _immutable(member, one, other, mutable)


def _immutable(member: str, new: Mapping[str, Any], old: Mapping[str, Any], mutable: tuple[str, ...]) -> Errors:
    changed = [
        name
        for name in dict.fromkeys((*old, *new))
        if name not in mutable and (new.get(name) or None) != (old.get(name) or None)
    ]
    if changed:
        words = (
            f"updates to {member} spec for fields other than {quoted(mutable, 'and')} are forbidden, but found "
            f"{', '.join(changed)}"
        )
        yield forbidden(TEMPLATE.child(member, "spec"), words)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
