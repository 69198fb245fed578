"""What lets the API refuse every run of an AdvancedCronJob, as far as that can be told before the first one. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kruise.api.apps.advancedcronjob import AdvancedCronJob
from kruise.api.apps.images import ALWAYS, ImageListPullJobSpec
from kruise.api.apps.pulling import completion_problem, parallelism_problem
from kruise.api.core.field_errors import Path
from kruise.machinery import codec
from kruise.machinery.codec import Struct
from kruise.machinery.documents import value_at
from kruise.workloads.advancedcronjob.children import KINDS, ChildKind

LONGEST_NAME = 52
"""Of an AdvancedCronJob: the names of its runs have eleven characters more, and 63 are allowed (ACJ-76)."""
_POLICY = ("template", "spec", "restartPolicy")
_TEMPLATE = Path("spec").child("template")


class Refusal(Struct):
    place: str
    problem: str

    def __str__(self) -> str:
        return f"{self.place}: each run will be refused: {self.problem}"


def refusals(job: AdvancedCronJob) -> Iterator[Refusal]:
    if len(job.metadata.name) > LONGEST_NAME:
        yield Refusal(place="metadata.name", problem=f"names of runs are longer: use at most {LONGEST_NAME} characters")
    for kind in KINDS:
        template = kind.template(job)
        if template is None:
            continue
        problem = _restart_policy(template.spec) if kind.path else _image_list(template.spec)
        if problem:
            yield Refusal(place=str(_place(kind)), problem=problem)


def _place(kind: ChildKind) -> Path:
    where = _TEMPLATE.child(kind.field, "spec")
    return where.child(*_POLICY) if kind.path else where


def _restart_policy(spec: codec.Raw) -> str:
    """ACJ-33."""
    document = codec.decode(spec, object) if bytes(spec) else {}
    policy = value_at(document if isinstance(document, dict) else {}, _POLICY, "")
    if policy in ("Never", "OnFailure"):
        return ""
    told = f'"{policy}"' if policy else "nothing, which becomes Always"
    return f"{told}: use Never or OnFailure"


def _image_list(spec: codec.Raw) -> str:
    """ACJ-34."""
    try:
        wanted = codec.decode(spec, ImageListPullJobSpec)
    except codec.DecodeError:
        return ""  # refused when it is written
    # Without a type it gets a time-out as well, and is refused where that does not fit.
    is_given = wanted.completion_policy.type == ALWAYS
    return parallelism_problem(wanted) or (completion_problem(wanted) if is_given else "")
