"""`set partition`, `rollout promote` and `rollout abort`: how far a rollout may go, on to its end, and back.

A partition says how many pods keep their old template. What it means for pods is the kind's business; here it is a
field that the face of the kind names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from kruise.faces.face import Face
from kruise.faces.progress import Progress, is_observed, is_rolling
from kruise.machinery.documents import Json, Path, name_of, value_at, with_value
from kruise.machinery.wording import with_article
from kruise.verbs import undo
from kruise.verbs.errors import UsageError, VerbError
from kruise.verbs.history import Revision
from kruise.verbs.undo import Rollback

Partition = int | str

_FORM = re.compile(r"(?P<number>[0-9]{1,9})|(?P<percent>[0-9]{1,3})%")


def parse(text: str) -> Partition:
    """A number of pods, or a percentage."""
    found = _FORM.fullmatch(text)
    if found is None or (found["percent"] is not None and int(found["percent"]) > 100):
        raise UsageError(f'"{text}" is no partition: give a number of pods, such as 2, or a percentage up to 100%')
    return int(found["number"]) if found["number"] is not None else text


def set_partition(kind: Face, document: Json, partition: Partition) -> Json:
    path = _path(kind, document)
    if isinstance(partition, str) and not kind.partition_may_be_percent:
        one = with_article(str(kind))
        raise VerbError(f"{kind.named(name_of(document))}: the partition of {one} is a number, not a percentage")
    return with_value(document, path, partition)


def _path(kind: Face, document: Json) -> Path:
    named = kind.named(name_of(document))
    if kind.partition is None:
        if kind.partitions is not None:
            where = ".".join(kind.partitions)
            raise VerbError(
                f"{named} has several partitions: set them in {where}, or take all away: kruise rollout promote"
            )
        raise VerbError(f"{named} has no partition: {with_article(str(kind))} always goes on to all its pods")
    _must_roll(kind, document)
    return kind.partition


def _must_roll(kind: Face, document: Json) -> None:
    if not is_rolling(document):
        raise VerbError(
            f"{kind.named(name_of(document))} has type OnDelete: a pod gets the new template when somebody deletes it"
        )


def promote(kind: Face, document: Json) -> Json:
    """To the end: no pod is kept behind, and nothing is paused."""
    if kind.partition is None and kind.paused is None and kind.partitions is None:
        named = kind.named(name_of(document))
        raise VerbError(f"{named} has neither a partition nor a pause: its rollout goes on to the end anyway")
    _must_roll(kind, document)
    return _set_free(kind, document)


def _set_free(kind: Face, document: Json) -> Json:
    if kind.partition is not None and value_at(document, kind.partition, 0) != 0:
        document = with_value(document, kind.partition, 0)
    if kind.partitions is not None and any(value_at(document, kind.partitions, {}).values()):
        document = with_value(document, kind.partitions, dict.fromkeys(value_at(document, kind.partitions, {}), 0))
    if kind.paused is not None and value_at(document, kind.paused, False):
        document = with_value(document, kind.paused, False)
    return document


def abort(kind: Face, document: Json, revisions: Sequence[Revision]) -> Rollback:
    """Back to the template that pods had before the rollout that is under way, all of them: no pod is kept at the new
    one, and nothing is paused."""
    named = kind.named(name_of(document))
    if kind.history is None or kind.progress is None:
        raise VerbError(f"{named} keeps no history to go back to")
    _must_roll(kind, document)
    current, update = (
        str(value_at(document, path, "")) for path in (("status", "currentRevision"), kind.revision_field)
    )
    before = next((revision for revision in revisions if current and revision.name == current), None)
    if not is_observed(document):
        if before is None:
            raise VerbError(f"{named}: its controller has not seen the newest spec yet; try again in a moment")
    elif current in ("", update) and not _has_old_pods(kind.progress(document)):  # where none is named, pods tell
        back = "and there is no earlier revision to go back to"
        if len(revisions) > 1:
            back = f"to go back: kruise rollout undo {kind.word}/{name_of(document)}"
        raise VerbError(f"{named}: no rollout is under way that could be aborted; {back}")
    number = before.number if before is not None and (current != update or not is_observed(document)) else 0
    return undo.roll_back(kind, _set_free(kind, document), revisions, number)


def _has_old_pods(progress: Progress) -> bool:
    return progress.updated < progress.total
