"""The user's kubeconfig: what `kruise up` puts in and `kruise down` takes out, and that nothing else changes."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from kruise.local import user_kubeconfig
from kruise.local.user_kubeconfig import Merged, UserKubeconfigError, merge, withdraw
from kruise.machinery.client import kubeconfig
from kruise.machinery.client.config import NothingConfiguredError

OURS = {
    "clusters": [{"name": "kruise", "cluster": {"server": "https://127.0.0.1:7443"}}],
    "users": [{"name": "kruise", "user": {"token": "t"}}],
    "contexts": [{"name": "kruise", "context": {"cluster": "kruise", "user": "kruise", "namespace": "default"}}],
}
THEIRS = """\
apiVersion: v1
kind: Config
preferences:
  odd: [on, 0o17, 2024-01-01, "1e3", 'yes']
clusters:
- name: production
  cluster:
    server: https://production
users:
- name: production
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: login
      args: [--for, kubectl]
      interactiveMode: Never
contexts:
- name: production
  context:
    cluster: production
    user: production
current-context: production
"""
SECTIONS = ("clusters", "users", "contexts")
STATE = Path("/home/a/.local/state/kruise")


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config"
    path.write_text(THEIRS)
    return path


def read(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def names(path: Path) -> dict[str, list[str]]:
    return {section: [entry["name"] for entry in read(path)[section]] for section in SECTIONS}


def test_it_becomes_the_current_context_beside_the_others(config: Path) -> None:
    assert merge(OURS, STATE, [config]) == Merged(config, "kruise")
    assert names(config) == {section: ["production", "kruise"] for section in SECTIONS}
    found = kubeconfig.load(config)
    assert (found.server, found.token, found.context) == ("https://127.0.0.1:7443", "t", "kruise")
    assert found.is_local_cluster
    assert not kubeconfig.load(config, context="production").is_local_cluster


def test_what_others_wrote_comes_back_letter_by_letter(config: Path) -> None:
    """Values that YAML may read in two ways, too: what `on` means is not for us to say."""
    merge(OURS, STATE, [config])
    withdraw(STATE, [config])
    assert config.read_text() == THEIRS.replace("current-context: production", "current-context: ''")


def test_another_context_that_was_chosen_meanwhile_stays_chosen(config: Path) -> None:
    merge(OURS, STATE, [config])
    config.write_text(config.read_text().replace("current-context: kruise", "current-context: production"))
    withdraw(STATE, [config])
    assert config.read_text() == THEIRS


def test_a_file_that_is_not_there_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    config = tmp_path / ".kube" / "config"
    merge(OURS, STATE, [config])
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
    assert [path.name for path in config.parent.iterdir()] == ["config"]
    withdraw(STATE, [config])
    with pytest.raises(NothingConfiguredError, match="kruise up starts a local cluster"):
        kubeconfig.load(config)


def test_a_file_that_all_may_read_does_not_stay_so(config: Path) -> None:
    config.chmod(0o644)
    merge(OURS, STATE, [config])
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_a_link_stays_a_link(config: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(config)
    merge(OURS, STATE, [link])
    assert link.is_symlink()
    assert read(config)["current-context"] == "kruise"


@pytest.mark.parametrize("empty", ["", "null\n", "{}", "clusters: null\nusers: []\ncontexts: null\n"])
def test_an_empty_file_will_do(config: Path, empty: str) -> None:
    config.write_text(empty)
    merge(OURS, STATE, [config])
    assert names(config) == {section: ["kruise"] for section in SECTIONS}


def test_the_same_cluster_again_is_not_there_twice(config: Path) -> None:
    """It died and left its context behind."""
    merge(OURS, STATE, [config])
    merge(OURS, STATE, [config])
    assert names(config)["contexts"] == ["production", "kruise"]


def test_a_second_cluster_and_a_name_that_is_taken(config: Path) -> None:
    others = config.with_name("others")
    others.write_text("users: [{name: kruise-2, user: {}}]\n")
    assert merge(OURS, STATE, [config, others]).context == "kruise"
    assert merge(OURS, Path("/other"), [config, others]).context == "kruise-3"
    assert read(config)["contexts"][-1]["context"]["cluster"] == "kruise-3"
    withdraw(STATE, [config, others])
    assert names(config)["contexts"] == ["production", "kruise-3"]
    assert read(config)["current-context"] == "kruise-3"


def test_entries_without_our_mark_are_never_taken_out(config: Path) -> None:
    merge(OURS, STATE, [config])
    mine = config.read_text().replace(str(STATE), "/elsewhere")
    config.write_text(mine)
    before = config.stat().st_mtime_ns
    withdraw(STATE, [config])
    assert (config.read_text(), config.stat().st_mtime_ns) == (mine, before)


def test_of_several_files_the_first_that_exists_is_written(config: Path) -> None:
    missing, later = config.with_name("missing"), config.with_name("later")
    later.write_text("current-context: x\n")
    assert merge(OURS, STATE, [missing, config, later]).path == config
    assert not missing.exists()
    config.unlink()
    later.unlink()
    assert merge(OURS, STATE, [missing, later]).path == later


def test_a_current_context_in_another_file_goes_too(config: Path) -> None:
    first = config.with_name("first")
    first.write_text("current-context: kruise\n")
    merge(OURS, STATE, [config])
    withdraw(STATE, [first, config])
    assert read(first) == {"current-context": ""}


@pytest.mark.parametrize("text", ["a: [", "- 1\n", "--- a\n--- b\n"])
def test_a_file_that_is_no_kubeconfig_is_left_alone(config: Path, text: str) -> None:
    config.write_text(text)
    with pytest.raises(UserKubeconfigError, match="config is no"):
        merge(OURS, STATE, [config])
    assert config.read_text() == text
    assert [path.name for path in config.parent.iterdir()] == ["config"]


def test_a_lock_of_another_program_is_waited_for(config: Path) -> None:
    lock = config.with_name("config.lock")
    lock.touch()
    threading.Timer(0.1, lock.unlink).start()
    merge(OURS, STATE, [config])
    assert read(config)["current-context"] == "kruise"
    assert not lock.exists()


def test_a_lock_that_stays_is_named(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_kubeconfig, "_LOCK_SECONDS", 0.0)
    config.with_name("config.lock").touch()
    with pytest.raises(UserKubeconfigError, match=r"config\.lock is there: .* Remove the lock if none is"):
        merge(OURS, STATE, [config])
    assert config.read_text() == THEIRS


@pytest.mark.parametrize("locked", ["link", "config"])
def test_a_link_is_locked_as_kubectl_does_it(
    config: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locked: str
) -> None:
    """Under the name that it was given; and under that of the file itself, for whoever was given that."""
    monkeypatch.setattr(user_kubeconfig, "_LOCK_SECONDS", 0.0)
    link = tmp_path / "links" / "link"
    link.parent.mkdir()
    link.symlink_to(config)
    lock = {"link": link, "config": config}[locked].with_name(f"{locked}.lock")
    lock.touch()
    with pytest.raises(UserKubeconfigError, match=rf"{locked}\.lock is there"):
        merge(OURS, STATE, [link])
    assert config.read_text() == THEIRS
    lock.unlink()
    merge(OURS, STATE, [link])
    assert not list(tmp_path.rglob("*.lock"))


def test_a_full_disk_leaves_the_file_as_it_was(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(UserKubeconfigError, match="No space left on device"):
        merge(OURS, STATE, [config])
    assert config.read_text() == THEIRS
    assert [path.name for path in config.parent.iterdir()] == ["config"]


def test_many_at_once_do_not_lose_each_other(config: Path) -> None:
    states = [Path(f"/state/{number}") for number in range(8)]
    threads = [threading.Thread(target=merge, args=(OURS, state, [config])) for state in states]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names(config)["contexts"])) == 9
    for state in states:
        withdraw(state, [config])
    assert config.read_text() == THEIRS.replace("current-context: production", "current-context: ''")


FOREIGN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", min_size=1), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)  # it writes files
@given(foreign=st.dictionaries(st.sampled_from(["preferences", "extensions", "x"]), FOREIGN), flow=st.booleans())
def test_whatever_else_is_in_the_file_stays(
    tmp_path_factory: pytest.TempPathFactory, foreign: dict[str, Any], flow: bool
) -> None:
    config = tmp_path_factory.mktemp("any") / "config"
    config.write_text(yaml.safe_dump(foreign, default_flow_style=flow, allow_unicode=True), encoding="utf-8")
    merge(OURS, STATE, [config])
    withdraw(STATE, [config])
    empty: dict[str, Any] = {"clusters": [], "users": [], "contexts": [], "current-context": ""}
    start = foreign or {}
    assert yaml.safe_load(config.read_text(encoding="utf-8")) == {**empty, **start}
