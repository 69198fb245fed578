"""What a release consists of, as somebody gets it who has only that: built, installed elsewhere, and run from there.

Nothing is fetched. The new environment sees, of the packages of this one, those that are locked for running.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest
import yaml

from hack import dist
from hack import version as tags
from kruise.api.apps.cloneset import CLONE_SETS
from kruise.kinds import features
from kruise.local.state import State
from kruise.machinery.client.client import Client
from kruise.machinery.client.http import HttpTransport
from kruise.machinery.client.kubeconfig import load
from kruise.manager.installation.chart import chart_files
from kruise.manager.installation.manifests import manifests

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "kruise"
COMPLETIONS = {
    "bash": ("kruise.bash", "share/bash-completion/completions/kruise"),
    "zsh": ("_kruise", "share/zsh/site-functions/_kruise"),
    "fish": ("kruise.fish", "share/fish/vendor_completions.d/kruise.fish"),
    "kubectl": ("kubectl_complete-kruise", "bin/kubectl_complete-kruise"),
}


@dataclass(frozen=True)
class Made:
    sdist: Path
    wheel: Path
    tree: Path
    """The sdist, unpacked."""


@dataclass(frozen=True)
class Environment:
    place: Path

    def run(self, command: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        own = {
            "PATH": f"{self.place / 'bin'}:{os.defpath}",
            "HOME": str(self.place),
            "LC_ALL": "C.UTF-8",
            "KUBECONFIG": str(self.place / "kubeconfig"),
            "KRUISE_STATE": str(self.place / "state"),
        }
        called = [str(self.place / "bin" / command), *arguments]
        return subprocess.run(
            called, env={**own, **variables}, cwd=self.place, capture_output=True, text=True, check=False
        )

    def says(self, command: str, *arguments: str, **variables: str) -> str:
        done = self.run(command, *arguments, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    place = tmp_path_factory.mktemp("dist")
    sdist, wheel, _ = dist.make(place)
    return Made(sdist, wheel, dist.unpack(sdist, tmp_path_factory.mktemp("sdist")))


@pytest.fixture(scope="module")
def installed(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    place = tmp_path_factory.mktemp("clean")
    venv.create(place, with_pip=False, symlinks=True)
    _lend_dependencies(Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)})))
    pip(place, "install", "--no-index", "--no-deps", "--no-compile", str(made.wheel))
    return Environment(place)


def pip(place: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", f"--python={place / 'bin' / 'python'}", "--disable-pip-version-check"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _lend_dependencies(site: Path) -> None:
    for line in (ROOT / "requirements" / "runtime.txt").read_text().splitlines():
        named = re.match(r"([A-Za-z0-9._-]+)==[^;]*(;?)", line)
        if named is None:
            continue
        try:
            files = distribution(named[1]).files or []
        except PackageNotFoundError:
            assert named[2], f"{named[1]} is locked, and not installed here"
            continue  # of other platforms
        for name in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (site / name).exists():
                (site / name).symlink_to(distribution(named[1]).locate_file(name))  # type: ignore[arg-type]


# What is in them


def test_the_wheel_has_every_file_of_the_package(made: Made) -> None:
    wanted = {
        f"kruise/{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(made.wheel) as wheel:
        found = set(wheel.namelist())
    assert wanted - found == set()
    assert {name for name in found - wanted if ".dist-info/" not in name and ".data/" not in name} == set()
    assert {Path(name).suffix for name in wanted} >= {".json", ".lua", ".xz"}


def test_the_same_files_make_the_same_bytes(made: Made, tmp_path: Path) -> None:
    """The wheel of the tree is that of the sdist; both are the same wherever and whenever they are made."""
    assert dist.build("wheel", ROOT, tmp_path).read_bytes() == made.wheel.read_bytes()
    assert dist.build("sdist", made.tree, tmp_path).read_bytes() == made.sdist.read_bytes()


def test_the_checksums_are_those_of_the_files(made: Made) -> None:
    lines = (made.wheel.parent / dist.SUMS).read_text().splitlines()
    assert sorted(lines) == sorted(f"{dist.digest(path)}  {path.name}" for path in (made.sdist, made.wheel))


def test_the_sdist_has_what_it_takes_to_test_and_to_build_everything(made: Made) -> None:
    """All that git has is in it, executable where it was, and the version that git knew from its tags."""
    if (ROOT / ".git").exists():
        listed = subprocess.run(["git", "-C", str(ROOT), "ls-files"], check=True, capture_output=True, text=True)
        names = [name for name in listed.stdout.splitlines() if (ROOT / name).exists()]
    else:
        names = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("*.py")]
    assert [name for name in names if not (made.tree / name).exists()] == []
    assert all(os.access(made.tree / name, os.X_OK) == os.access(ROOT / name, os.X_OK) for name in names)
    assert tags.version(root=made.tree) == tags.version()
    with tarfile.open(made.sdist) as archive:
        assert {(member.uid, member.gid, member.uname) for member in archive} == {(0, 0, "")}


def test_the_dockerfile_takes_what_the_wheel_is_made_of(made: Made, tmp_path: Path) -> None:
    """Without git's history, in which the tags are."""
    copied = re.findall(r"^COPY (?!--)(.*) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    let_in = (ROOT / ".dockerignore").read_text().splitlines()
    tree = tmp_path / "context"
    for name in " ".join(copied).split():
        assert f"!{name.rstrip('*')}" in let_in, f".dockerignore keeps {name} out"
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif "*" not in name:
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, tree / name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(tags.OVERRIDE, tags.version())
        assert dist.build("wheel", tree, tmp_path).read_bytes() == made.wheel.read_bytes()


@pytest.mark.parametrize(
    ("version", "is_told"),
    [("0.2.0", True), ("0.1.0", True), ("0.2", False), ("0.2.1", False), ("0.3.0.dev0", True)],
)
def test_a_release_needs_its_heading_in_the_changelog(version: str, is_told: bool) -> None:
    changelog = "# Changelog\n\n## Unreleased\n\n## 0.2.0 (2026-11-19)\n\n- of 0.2.1\n\n## 0.1.0\n"
    assert dist.is_told(version, changelog) is is_told


def test_the_changelog_has_a_place_for_what_comes_next() -> None:
    assert "\n## Unreleased\n" in dist.CHANGELOG.read_text()


# What it is once it is installed


def test_it_runs_with_the_locked_dependencies_alone(installed: Environment) -> None:
    pip(installed.place, "check")
    code = "import kruise, sys; print(kruise.__file__, *(path for path in sys.path if 'site-packages' in path))"
    places = installed.says("python", "-c", code).split()
    assert [place for place in places if not Path(place).is_relative_to(installed.place)] == []
    everything = "import pkgutil, kruise; print(*[m.name for m in pkgutil.walk_packages(kruise.__path__, 'kruise.')])"
    assert len(installed.says("python", "-W", "error", "-c", everything).split()) > 500


@pytest.mark.parametrize("command", ["kruise", "kubectl-kruise"])
def test_both_commands_are_there(installed: Environment, command: str) -> None:
    assert installed.says(command, "version") == f"kruise {tags.version()}\n"
    assert installed.says(command, "--version") == f"kruise, version {tags.version()}\n"
    assert "Usage: kruise [OPTIONS] COMMAND" in installed.says(command, "--help")


def test_every_command_has_help(installed: Environment) -> None:
    listed = installed.says("kruise", "--help").partition("Commands:")[2]
    names = re.findall(r"^  (\S+)  ", listed, re.MULTILINE)
    assert len(names) > 25
    # In one process: each alone would take as long as all of them.
    code = (
        "import sys\nfrom kruise.cli.main import cli\n"
        "for name in sys.argv[1:]:\n    cli.main([name, '--help'], standalone_mode=False)"
    )
    assert installed.says("python", "-c", code, *names).count("Usage:") >= len(names) - 2  # two have their own


def test_what_is_installed_into_clusters_is_whole(installed: Environment, monkeypatch: pytest.MonkeyPatch) -> None:
    """Definitions, the chart with its dashboards, scripts for Argo CD."""
    # This environment may be older than the tag.
    monkeypatch.setattr("kruise.manager.installation.manifests.release", tags.version)
    printed = yaml.load_all(installed.says("kruise", "install", "--print"), Loader=yaml.CSafeLoader)
    assert list(printed) == manifests(features())
    installed.says("kruise", "install", "--write-chart", "chart")
    chart = installed.place / "chart"
    written = {str(path.relative_to(chart)): path.read_text() for path in chart.rglob("*") if path.is_file()}
    assert written == chart_files(features(), tags.version())
    scripts = installed.says("kruise", "gitops", "argocd")
    lua = "resource.customizations.health.apps.kruise.io_"
    assert all(f"{lua}{kind}: |" in scripts for kind in ("CloneSet", "SidecarSet", "NodeImage"))


# Shells


@pytest.mark.parametrize("shell", COMPLETIONS)
def test_shells_find_what_completes(installed: Environment, shell: str) -> None:
    """What is packed is what `kruise completion` prints."""
    name, place = COMPLETIONS[shell]
    printed = installed.says("kruise", "completion", shell)
    assert (ROOT / "completions" / name).read_text() == printed, f"run: kruise completion {shell} > completions/{name}"
    assert (installed.place / place).read_text() == printed


def test_bash_completes(installed: Environment) -> None:
    script = (
        f"source {installed.place / COMPLETIONS['bash'][1]}\n"
        "COMP_WORDS=(kruise rollout st) COMP_CWORD=2\n_kruise_completion kruise\necho ${COMPREPLY[@]}\n"
        "complete -p kruise\n"
    )
    (installed.place / "bin" / "complete.sh").write_text(script)
    (installed.place / "bin" / "bash").symlink_to("/bin/bash")
    words, registered = installed.says("bash", "bin/complete.sh").splitlines()
    assert words == "status"
    assert registered.endswith("-F _kruise_completion kruise")


@pytest.mark.parametrize(
    ("variables", "answer"),
    [
        ({"_KRUISE_COMPLETE": "zsh_complete", "COMP_WORDS": "kruise pla", "COMP_CWORD": "1"}, "plain\nplan\n"),
        ({"_KRUISE_COMPLETE": "fish_complete", "COMP_WORDS": "kruise pla", "COMP_CWORD": "pla"}, "plain,plan"),
    ],
)
def test_the_other_shells_are_answered(installed: Environment, variables: dict[str, str], answer: str) -> None:
    assert installed.says("kruise", **variables).startswith(answer)


def test_kubectl_completes_its_plugin(installed: Environment) -> None:
    script = installed.place / "bin" / "kubectl_complete-kruise"
    assert script.stat().st_mode & stat.S_IXUSR
    assert installed.says(script.name, "rollout", "und") == "undo\n:4\n"


# A cluster


@pytest.fixture
def cluster(installed: Environment) -> Iterator[Path]:
    installed.says("kruise", "up", "--detach", "--port=0", "--no-merge")
    yield State(installed.place / "state").kubeconfig
    installed.says("kruise", "down")


async def test_a_workload_is_made_updated_in_place_planned_and_explained(installed: Environment, cluster: Path) -> None:
    client = Client(HttpTransport(load(cluster)))
    documents = yaml.safe_load_all((ROOT / "docs" / "manifests" / "tour.yaml").read_text())
    [tour] = [document for document in documents if document["kind"] == "CloneSet"]
    await client.create(CLONE_SETS, tour, "default")
    await client.close()
    here = {"KUBECONFIG": str(cluster)}
    assert "complete" in installed.says("kruise", "rollout", "status", "cloneset/web", **here)
    image = "nginx=nginx:1.26"
    assert "Result:      complete" in installed.says("kruise", "plan", "cloneset/web", "--image", image, **here)
    changed = installed.says("kubectl-kruise", "set", "image", "cloneset/web", image, "--wait", **here)
    assert "image updated" in changed
    assert "4 of 4" in installed.says("kruise", "why", "cloneset/web", **here)


def test_the_record_of_the_wheel_names_all_files(made: Made) -> None:
    with zipfile.ZipFile(made.wheel) as wheel:
        [record] = [name for name in wheel.namelist() if name.endswith(".dist-info/RECORD")]
        rows = csv.reader(wheel.read(record).decode().splitlines())
        assert {row[0] for row in rows} == set(wheel.namelist())
