"""Dumps decide the same again: in another process, with other hashes of texts, another time zone and another language.

Over every pass of stories on the local cluster, and over random courses of a CloneSet.
"""

from __future__ import annotations

import base64
import gzip
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kruise import replaying
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.api.meta import Key
from kruise.machinery.codec import decode, encode
from kruise.machinery.journal import Journal, ReplayError
from kruise.machinery.plan import Plan
from kruise.machinery.redaction import LAST_APPLIED, hide, redacted
from kruise.workloads.cloneset.controller import NAME
from kruise.workloads.cloneset.situation import Snapshot
from tests.scenarios import budgets, daemons, images, podstate
from tests.scenarios.all import SCENARIOS
from tests.scenarios.local import play_locally
from tests.sidecars.launch_priority.stories import by_priority
from tests.sidecars.terminator.stories import a_job_ends
from tests.support.applied_twice import GATES
from tests.support.every_kind import one_of_each_kind
from tests.support.recorded_passes import recorded_passes
from tests.support.world import LocalWorld, run_local
from tests.workloads.cloneset.modelled import ModelledCloneSet
from tests.workloads.cloneset.test_properties import MOVES, models
from tests.workloads.statefulset.stories import a_life_with_storage

ELSEWHERE: Sequence[Mapping[str, str]] = (
    {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati", "LC_ALL": "C"},
    {"PYTHONHASHSEED": "4242", "TZ": "America/St_Johns", "LC_ALL": "tr_TR.UTF-8", "PYTHONUTF8": "1"},
)
LIVES = (
    (a_life_with_storage, ""),
    (one_of_each_kind, GATES),
    (by_priority, ""),
    (a_job_ends, "SidecarTerminator=true"),
)
"""Of other kinds, with the gates that they need."""
STORIES = (
    "claims_are_used_again_until_reuse_is_switched_off",
    "a_grace_period_lies_between_unready_and_the_new_image",
    "containers_are_updated_by_priority",
    "an_environment_from_a_label_restarts_its_reader_only",
    "a_delete_hook_by_label_holds_a_scale_in",
    "scattered_pods_are_spread_over_the_rollout",
    "a_crowded_domain_loses_a_pod_first",
    "surge_brings_new_pods_before_old_ones_go",
    "resources_are_resized_without_leaving_service",
)

OTHER_STORIES = (
    (budgets.SCENARIOS, "one_goes_and_the_next_is_refused"),
    (podstate.SCENARIOS, "pods_come_back_to_their_nodes"),
    (images.SCENARIOS, "secrets_come_to_where_nodes_may_read_them"),
)
STORIES_OF_DAEMONS = ("an_image_changes_in_place", "a_surge_brings_the_new_pod_first", "a_failed_pod_is_replaced")


def decided_elsewhere(dumps: Sequence[bytes], directory: Path, environment: Mapping[str, str]) -> list[str]:
    """What `kruise replay` says about each in a process of its own."""
    folder = directory / environment["PYTHONHASHSEED"]
    folder.mkdir()
    for number, dump in enumerate(dumps):
        (folder / f"{number:05}.json").write_bytes(dump)
    done = subprocess.run(
        [sys.executable, "-m", "kruise.cli.main", "replay", *sorted(path.name for path in folder.iterdir())],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return [line for line in done.stdout.splitlines() if line.startswith("equal: ")]


def test_every_pass_of_stories_is_decided_the_same_elsewhere(tmp_path: Path) -> None:
    with recorded_passes() as passes:
        for story in STORIES:
            play_locally(SCENARIOS[story], dict(SCENARIOS[story].gates))
        for story in STORIES_OF_DAEMONS:
            play_locally(daemons.SCENARIOS[story], {})
        for scenarios, story in OTHER_STORIES:
            play_locally(scenarios[story], scenarios[story].gates)
        for life, gates in LIVES:
            run_local(life, feature_gates=gates)
    assert {one.controller for one in passes} == {spec.name for spec in replaying.specs()}
    dumps = [one.dump for one in passes]
    for environment in ELSEWHERE:
        assert len(decided_elsewhere(dumps, tmp_path, environment)) == len(dumps) > 200


def test_random_courses_are_decided_the_same_bit_for_bit(tmp_path: Path) -> None:
    """Here by the byte, order of mappings included, and a part of them elsewhere."""
    dumps: list[bytes] = []

    def note(snapshot: Snapshot, plan: Plan) -> None:
        journal, key = Journal(), Key("demo", "web")
        journal.record(
            controller=NAME, key=key, reconcile_id="7", time=snapshot.now, duration=0.0, snapshot=snapshot, plan=plan
        )
        dump = journal.dump(NAME, key)
        again = replaying.again(dump)
        assert again.plan_equal
        assert again.digest_equal
        assert encode(again.plan) == encode(again.recorded)
        dumps.append(dump)

    @settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(model=models(), steps=st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.integers(0, 11)), max_size=12))
    def play(model: ModelledCloneSet, steps: list[tuple[str, int]]) -> None:
        for step, number in [("wait", 0), ("all_kubelets", 2), *steps]:
            model.reconcile(decided=note)
            MOVES[step](model, number)

    play()
    some = dumps[:: max(1, len(dumps) // 150)]
    assert len(decided_elsewhere(some, tmp_path, ELSEWHERE[0])) == len(some) > 100


SECRET = "hunter2-very-secret"


def container(image: str, secret: str) -> dict[str, Any]:
    return {"name": "main", "image": image, "args": [f"--key={secret}"], "env": [{"name": "TOKEN", "value": secret}]}


def test_a_dump_without_secrets_decides_the_same() -> None:
    """All but the few passes that compute something from it: a new revision is named by a hash of the template."""
    manifest = {
        "apiVersion": CLONE_SETS.api_version,
        "kind": "CloneSet",
        "metadata": {"name": "web", "annotations": {LAST_APPLIED: f'{{"token":"{SECRET}"}}'}},
        "spec": {
            "replicas": 4,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {"rollingUpdate": {"podUpdatePolicy": "InPlaceIfPossible", "maxUnavailable": 2}},
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"example.com/token": SECRET}},
                "spec": {"containers": [container("nginx:1.25", SECRET)]},
            },
        },
    }

    async def roll(world: LocalWorld) -> None:
        """In place by another image, and then by new pods with another secret."""
        await world.create(manifest)
        await world.sleep(20)
        for image, secret in (("nginx:1.26", SECRET), ("nginx:1.26", f"{SECRET}-new")):
            template = {"spec": {"containers": [container(image, secret)]}}
            await world.patch(CLONE_SETS, "web", {"spec": {"template": template}})
            await world.sleep(20)

    with recorded_passes() as passes:
        run_local(roll)
    done = refused = 0
    for one in passes:
        if one.controller != NAME:
            continue  # looks at nodes, which have no secrets
        assert SECRET.encode() in one.dump
        if b'"verb":"create","target":{"group":"apps","version":"v1","plural":"controllerrevisions"' in one.dump:
            with pytest.raises(ReplayError, match="would not decide the same"):
                redacted(one.dump, replaying.specs(), key=b"k" * 32)
            refused += 1
            continue
        hidden = redacted(one.dump, replaying.specs(), key=b"k" * 32)
        done += 1
        assert SECRET.encode() not in hidden
        assert decode(hidden, dict)["redacted"] is True
        again = replaying.again(hidden)
        assert again.plan_equal
        assert again.digest_equal
    assert (refused, done > 30) == (3, True)


def test_secrets_of_an_update_that_waits_on_its_pods_are_hidden_and_it_goes_on_the_same() -> None:
    """Its pods keep what is left to do: annotations of the template, also in base64."""
    drawn = {"fieldRef": {"fieldPath": "metadata.annotations['example.com/colour']"}}
    main = {"name": "main", "image": "nginx:1.25", "env": [{"name": "A", "valueFrom": drawn}]}
    manifest = {
        "apiVersion": CLONE_SETS.api_version,
        "kind": "CloneSet",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "updateStrategy": {
                "rollingUpdate": {
                    "podUpdatePolicy": "InPlaceIfPossible",
                    "maxUnavailable": 1,
                    "inPlaceUpdateStrategy": {"gracePeriodSeconds": 10},
                }
            },
            "template": {
                "metadata": {"labels": {"app": "web"}, "annotations": {"example.com/colour": "blue"}},
                "spec": {"containers": [main]},
            },
        },
    }

    async def roll(world: LocalWorld) -> None:
        await world.create(manifest)
        await world.sleep(20)
        template = {
            "metadata": {"annotations": {"example.com/token": SECRET}},
            "spec": {"containers": [{**main, "image": "nginx:1.26"}]},
        }
        await world.patch(CLONE_SETS, "web", {"spec": {"template": template}})
        await world.sleep(60)

    with recorded_passes() as passes:
        run_local(roll)
    waiting = done = 0
    for one in passes:
        if b'"verb":"create","target":{"group":"apps","version":"v1","plural":"controllerrevisions"' in one.dump:
            continue  # its name is a hash of the template
        hidden = redacted(one.dump, replaying.specs(), key=b"k" * 32)
        done += 1
        patches = [base64.b64decode(text) for text in re.findall(rb'metaDataPatch\\":\\"([^\\]+)', one.dump)]
        waiting += any(SECRET.encode() in patch for patch in patches)
        left = [base64.b64decode(text) for text in re.findall(rb'metaDataPatch\\":\\"([^\\]+)', hidden)]
        assert len(left) == len(patches)
        assert not any(SECRET.encode() in text for text in (hidden, *left))
        assert replaying.again(hidden).plan_equal
    assert (waiting > 3, done > 15) == (True, True)


def test_annotations_that_are_nobodys_business_are_hidden_and_others_kept() -> None:
    document = {
        "metadata": {
            "annotations": {
                "example.com/token": SECRET,
                "read-by-a-container": "blue",
                "apps.kruise.io/state": "{}",
                "kubectl.kubernetes.io/last-applied-configuration": f'{{"env":"{SECRET}"}}',
                "empty": "",
            }
        },
        "spec": {
            "containers": [
                {
                    "env": [
                        {"name": "A", "value": SECRET},
                        {
                            "name": "B",
                            "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['read-by-a-container']"}},
                        },
                    ],
                    "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
                    "lifecycle": {"preStop": {"exec": {"command": ["curl", SECRET]}}},
                }
            ]
        },
    }
    hidden = hide(document, key=b"1" * 32)
    assert SECRET not in str(hidden)
    notes = hidden["metadata"]["annotations"]
    assert notes["read-by-a-container"] == "blue"
    assert notes["apps.kruise.io/state"] == "{}"
    assert notes["empty"] == ""
    assert notes["example.com/token"].startswith("redacted-")
    # The same everywhere, so that templates compare as before; another key gives another text.
    assert hidden["spec"]["containers"][0]["env"][0]["value"] == notes["example.com/token"]
    assert hide(document, key=b"2" * 32)["metadata"]["annotations"]["example.com/token"] != notes["example.com/token"]


def dump_of_a_pass() -> bytes:
    """Of a paused rollout, with the plan of today."""
    path = Path(__file__).parent / "golden" / "paused.json.gz"
    dump = gzip.decompress(path.read_bytes())
    return replaying.accepted(dump, replaying.again(dump))


def test_golden_files(tmp_path: Path) -> None:
    said: list[str] = []
    dump = dump_of_a_pass()
    folder = tmp_path / "golden"
    place = replaying.write_golden(folder, "one", dump, overwrite=False, note=said.append)
    assert replaying.read(place) == dump
    assert replaying.check(place) == ()
    assert "written" in said[0]
    assert (folder / "test_golden.py").read_text() == (Path(__file__).parent / "golden" / "test_golden.py").read_text()
    first = place.read_bytes()
    replaying.write_golden(folder, "one", dump, overwrite=False, note=said.append)
    assert (place.read_bytes(), len(said)) == (first, 1)
    other = dump.replace(b'"paused":true', b'"paused":false')
    with pytest.raises(ReplayError, match="exists already and is another dump"):
        replaying.write_golden(folder, "one", other, overwrite=False, note=said.append)
    replaying.write_golden(folder, "one", other, overwrite=True, note=said.append)
    assert any("paused -> " in line for line in replaying.check(place))
    accepted = replaying.accepted(other, replaying.again(other))
    assert replaying.again(accepted).plan_equal
    (tmp_path / "file").write_text("")
    with pytest.raises(ReplayError, match="cannot be written"):
        replaying.write_golden(tmp_path / "file", "one", dump, overwrite=False, note=said.append)
