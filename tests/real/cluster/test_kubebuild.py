"""Building and caching the Kubernetes binaries, with a `go` command that the test plays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import kubebuild
from tests.support.kubebuild import BuildError, MissingPrerequisiteError

ROOT = Path(__file__).resolve().parents[3]

# Says what it was asked to build, and writes a file where `go build` would.
GO = """#!/bin/sh
if [ "$1" = version ]; then echo "go version go1.24.1 linux/amd64"; exit 0; fi
echo "$CGO_ENABLED $*" >> "$(dirname "$0")/asked"
while [ "$1" != -o ]; do shift; done
echo partial > "$2"
[ -e "$(dirname "$0")/fail" ] && { echo "undefined: everything"; exit 1; }
sleep 0.2
printf '#!/bin/sh\\n' > "$2"; chmod +x "$2"
"""


@pytest.fixture
def go_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and the played `go` first on PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    (directory / "go").write_text(GO)
    (directory / "go").chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return directory


def asked(go_directory: Path) -> list[str]:
    """The commands that were built, in order."""
    lines = (go_directory / "asked").read_text().splitlines()
    assert all(line.startswith("0 build") and "-trimpath" in line for line in lines), "CGO is off, paths are trimmed"
    assert all(f"version.gitVersion={kubebuild.kubernetes_version()} " in line for line in lines)
    return [line.rpartition("/")[2] for line in lines]


def test_builds_once_and_then_reuses(go_directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """kubelet and kube-proxy are built only when asked for."""
    kubebuild.ensure_binaries()
    paths = kubebuild.ensure_binaries()
    assert asked(go_directory) == list(kubebuild.CONTROL_PLANE_BINARIES) == list(paths)
    assert {path.parent for path in paths.values()} == {kubebuild.cache_directory()}
    progress = capsys.readouterr().err
    assert "building kube-apiserver v1.34.4 (1 of 4)" in progress
    assert "built kubectl v1.34.4 (4 of 4) in " in progress
    with pytest.raises(MissingPrerequisiteError, match=r"kubelet v1.34.4 not built yet .* build --nodes`"):
        kubebuild.find_binaries(["kubectl", "kubelet"])


def test_a_changed_module_makes_the_cache_stale(
    go_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new sum or requirement builds again; a new comment does not."""
    module = tmp_path / "module"
    module.mkdir()
    for name in ("go.mod", "go.sum"):
        (module / name).write_bytes((kubebuild.MODULE_DIRECTORY / name).read_bytes())
    monkeypatch.setattr(kubebuild, "MODULE_DIRECTORY", module)
    kubebuild.ensure_binaries(["kubectl"])
    (module / "go.mod").write_text("// Another comment.\n" + (module / "go.mod").read_text())
    assert kubebuild.is_current("kubectl")
    (module / "go.sum").write_text((module / "go.sum").read_text() + "example.org/x v1.0.0 h1:AAAA=\n")
    assert not kubebuild.is_current("kubectl")
    kubebuild.ensure_binaries(["kubectl"])
    assert asked(go_directory) == ["kubectl", "kubectl"]
    assert kubebuild.is_current("kubectl")


def test_a_failed_build_shows_the_output_and_leaves_no_binary(go_directory: Path) -> None:
    """Half a binary is never taken for a whole one, and the next try builds again."""
    (go_directory / "fail").touch()
    with pytest.raises(BuildError, match=r"(?s)go build of kubectl failed with code 1.*undefined: everything"):
        kubebuild.ensure_binaries(["kubectl"])
    cached = {path.name for path in kubebuild.cache_directory().iterdir()}
    assert cached == {".lock", "kubectl.build.log"}
    (go_directory / "fail").unlink()
    kubebuild.ensure_binaries(["kubectl"])
    assert kubebuild.is_current("kubectl")


def test_two_builders_do_not_race(go_directory: Path) -> None:
    """The second waits for the first and finds the work done."""
    program = "from tests.support.kubebuild import ensure_binaries; ensure_binaries(['kubectl', 'kube-scheduler'])"
    builders = [subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) for _ in range(2)]
    assert [builder.wait(30) for builder in builders] == [0, 0]
    assert asked(go_directory) == ["kubectl", "kube-scheduler"]


def test_an_old_go_is_refused(go_directory: Path) -> None:
    """It could not fetch the toolchain that the module asks for."""
    (go_directory / "go").write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    with pytest.raises(MissingPrerequisiteError, match=r"too old \(go version go1\.19\.8 .*install Go 1\.24 or newer"):
        kubebuild.ensure_binaries(["kubectl"])
