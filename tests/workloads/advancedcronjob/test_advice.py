"""What is accepted in an AdvancedCronJob, and warned of."""

from __future__ import annotations

from typing import Any

import pytest

from kruise.api.apps.advancedcronjob import AdvancedCronJob
from kruise.machinery import codec
from kruise.machinery.documents import Json
from kruise.workloads.advancedcronjob.advice import warnings_of
from kruise.workloads.shared.validation import Candidate
from tests.workloads.advancedcronjob.modelled import document

SHORT = "a period below a second counts as a second"


def images(**fields: Any) -> Json:
    return document(template={"imageListPullJobTemplate": {"spec": {"images": ["nginx:1"], **fields}}})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (document("@every 999ms"), SHORT),  # ACJ-24
        (document("TZ=Asia/Shanghai @every -5m"), SHORT),
        (document("@every 0s"), SHORT),
        (document("@every 1s"), ""),
        (document("TZ=Asia/Shanghai @every 1.5h"), ""),
        (document("0 0 31 2 *"), "no day matches, so nothing ever runs"),  # ACJ-25
        (document("0 0 29 2 *"), ""),
        (document(name="n" * 53), "use at most 52 characters"),  # ACJ-76
        (document(name="n" * 52), ""),
        (document(startingDeadlineSeconds=0), "0 lets no run start"),  # ACJ-68
        (document(startingDeadlineSeconds=1), ""),
        (
            document(template={"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Always"}}}}}),
            'restartPolicy: each run will be refused: "Always": use Never or OnFailure',  # ACJ-33
        ),
        (images(parallelism="50%"), "each run will be refused: parallelism does not support percentage"),  # ACJ-34
        (images(parallelism=-1), "each run will be refused: parallelism must be non-negative"),
        (images(parallelism="5"), ""),
        (images(completionPolicy={"type": "Always", "activeDeadlineSeconds": 60}), "pullPolicy.timeoutSeconds"),
        (images(completionPolicy={"activeDeadlineSeconds": 60}), ""),  # it is refused
        (document("nonsense"), ""),  # it is refused
        (document("@every nonsense"), ""),
        (document("TZ=Asia/Shanghai"), ""),
    ],
)
def test_what_is_accepted_and_warned_of(given: Json, told: str) -> None:
    candidate = Candidate(body=given, reading=codec.convert(given, AdvancedCronJob).spec)
    warnings = [text for text in warnings_of(candidate, {}, {}) if text]
    assert [told in text for text in warnings] == ([True] if told else [])
