"""The version of a tree comes from its tags."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from hack.version import OVERRIDE, Tags, decide, read_tags, version


@pytest.mark.parametrize(
    ("here", "behind", "is_changed", "following", "expected"),
    [
        pytest.param([], [], False, "0.1.0", "0.1.0.dev0", id="nothing released yet"),
        pytest.param(["v1.2.3"], ["v1.2.2", "v1.2.3"], False, "0.1.0", "1.2.3", id="a release"),
        pytest.param(["v1.2.3"], ["v1.2.3"], True, "0.1.0", "1.2.4.dev0", id="a release, and a file was changed"),
        pytest.param([], ["v1.2.3"], False, "0.1.0", "1.2.4.dev0", id="after a release"),
        pytest.param([], ["v1.2.3"], False, "1.3.0", "1.3.0.dev0", id="after a release, on the way to more"),
        pytest.param([], ["v1.2.3"], False, "1.2.3", "1.2.4.dev0", id="what was on its way is there"),
        pytest.param([], ["v1.9.0", "v1.10.0"], False, "0.1.0", "1.10.1.dev0", id="numbers are no words"),
        pytest.param(["v2.0.0rc1"], ["v1.0.0"], False, "0.1.0", "2.0.0rc1", id="a candidate"),
        pytest.param([], ["v2.0.0rc1"], False, "2.0.0", "2.0.0rc2.dev0", id="after a candidate"),
        pytest.param(["v2.0.0", "v2.0.0rc1"], ["v2.0.0"], False, "0.1.0", "2.0.0", id="a candidate that became it"),
        pytest.param([], ["v2.0.0rc2", "v2.0.0b3"], False, "0.1.0", "2.0.0rc3.dev0", id="candidates come after betas"),
        pytest.param(["vendor", "v1", "1.2.3"], ["v1.2"], False, "0.1.0", "0.1.0.dev0", id="tags of others"),
    ],
)
def test_which_version(here: list[str], behind: list[str], is_changed: bool, following: str, expected: str) -> None:
    assert decide(Tags(here, behind, is_changed), following) == expected


def test_without_git_it_is_the_next_one() -> None:
    assert decide(None, "1.3.0") == "1.3.0.dev0"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    root.mkdir()
    (root / "file").write_text("one")
    git(root, "init", "--quiet")
    git(root, "add", "file")
    git(root, "commit", "--quiet", "--message=one")
    return root


def git(root: Path, *arguments: str) -> None:
    name = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.com", "-c", "tag.gpgSign=false")
    subprocess.run(["git", "-C", str(root), *name, *arguments], check=True, capture_output=True)


def test_tags_are_read_from_git(repository: Path) -> None:
    assert read_tags(repository) == ([], [], False)
    git(repository, "tag", "v1.0.0")
    git(repository, "tag", "--annotate", "--message=x", "v1.0.1")
    assert version({}, repository) == "1.0.1"
    (repository / "file").write_text("two")
    assert version({}, repository) == "1.0.2.dev0"
    git(repository, "commit", "--quiet", "--all", "--message=two")
    assert read_tags(repository) == ([], ["v1.0.0", "v1.0.1"], False)
    (repository / "untracked").write_text("of nobody")
    git(repository, "tag", "v1.1.0")
    assert version({}, repository) == "1.1.0"


def test_an_sdist_has_its_own(repository: Path) -> None:
    git(repository, "tag", "v7.0.0")
    (repository / "PKG-INFO").write_text(
        "Metadata-Version: 2.4\nName: pykruise\nVersion: 1.2.3\n\nVersion: of the README\n"
    )
    assert version({OVERRIDE: "3.0.0"}, repository) == "1.2.3"


def test_a_repository_around_the_tree_does_not_count(repository: Path) -> None:
    git(repository, "tag", "v7.0.0")
    tree = repository / "unpacked"
    tree.mkdir()
    assert read_tags(tree) is None


def test_a_repository_that_git_cannot_read_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / ".git").write_text("gitdir: nowhere")
    assert read_tags(tmp_path) is None
    assert "git does not tell the tags" in capsys.readouterr().err


def test_it_can_be_given(tmp_path: Path) -> None:
    assert version({OVERRIDE: "3.0.0"}, tmp_path) == "3.0.0"
    assert version({OVERRIDE: "3.0.0rc1.dev0"}, tmp_path) == "3.0.0rc1.dev0"
    with pytest.raises(ValueError, match="is 'latest', which is no version"):
        version({OVERRIDE: "latest"}, tmp_path)
