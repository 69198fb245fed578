"""Where we chose to differ from what was recorded of jobs; the documents of the kinds' differences tell it."""

from __future__ import annotations

from collections.abc import Mapping

from tests.recordings.checking import Chosen

_TOLD = "the same, and condition and event tell how many they are"
_ONCE = "once, when it pauses and when it goes on"
_OF_RUNS = Chosen(
    r"\[events\] AdvancedCronJob/\w+ Normal Successful(Create|Delete) \w+ job [\w-]+: recorded 0 times, ours 1 times",
    "of runs made, refused and deleted",
)
_STOPPED = (
    Chosen(r"\[(status|end)\] BroadcastJob/\w+: .*\"failed\": [123], \"phase\": \"failed\"", _TOLD),
    Chosen(r"\[events\] BroadcastJob/\w+ Warning (failed pod is found|DeadlineExceeded) .* \d pods failed", _TOLD),
)
_PAUSED = Chosen(r"\[events\] BroadcastJob/\w+ \w+ (Continue|Paused) .*: recorded [349] times, ours [12] times", _ONCE)
CHOSEN: Mapping[str, tuple[Chosen, ...]] = {
    "advancedcronjob": (_OF_RUNS,),
    "advancedcronjob-broadcastjob-replace": (_OF_RUNS,),
    "advancedcronjob-imagelistpulljob": (_OF_RUNS,),
    "advancedcronjob-job-forbid": (
        _OF_RUNS,
        Chosen(
            r"\[status\] AdvancedCronJob/cron: \{\"active\": \[\], .* does not come",
            "noticed at once: the run that waited starts in the same moment",
        ),
    ),
    "broadcastjob-complete": (Chosen(r"\[refusal\] create .*: recorded 500, ours 422", "HTTP 422"),),
    "broadcastjob-failure": (*_STOPPED, _PAUSED),
    "broadcastjob-failurepolicy-pause": (_PAUSED,),
    "broadcastjob-never-node-label": (
        Chosen(r"\[status\] BroadcastJob/job: \{\"active\": -1, .* does not come", "never below 0"),
    ),
    "broadcastjob-resources-deadline": _STOPPED,
    "broadcastjob-restartlimit-failfast": (
        *_STOPPED,
        Chosen(
            r"\[events\] BroadcastJob/job Normal SuccessfulDelete .*: recorded 2 times, ours 3 times",
            "it is deleted with the others, and counts once",
        ),
    ),
}
