"""The Dockerfile: each step of its default stage, in a fresh Debian 13 instead of a container."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import ROOT, source_files
from tests.testbed.roots import DEBIAN_13, MIRROR, root

pytestmark = [pytest.mark.debootstrap, pytest.mark.slow]

CONFIG = 'language: PYTHON\nname: "f"\nvariable { name: "x" type: FLOAT min: 0 max: 1 }\n'
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"


def steps(stage: str) -> list[tuple[str, str]]:
    """Return the instructions of a stage, such as ``("RUN", "apt-get update && ...")``."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    (body,) = re.findall(rf"^FROM \S+ AS {stage}\n(.*?)(?=^FROM |\Z)", text, re.M | re.S)
    lines = [line for line in body.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2].strip()) for line in lines]


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return the file system after all steps, mounted."""
    folder = tmp_path_factory.mktemp("image")
    top = folder / "top"
    for name in ("upper", "work", "top"):
        (folder / name).mkdir()
    layers = f"lowerdir={root(DEBIAN_13)},upperdir={folder}/upper,workdir={folder}/work"
    subprocess.run(["mount", "-t", "overlay", "overlay", "-o", layers, str(top)], check=True)
    try:
        (top / "etc/apt/sources.list").write_text(f"deb {MIRROR} {DEBIAN_13} main\n")
        shutil.copy("/etc/resolv.conf", top / "etc/resolv.conf")
        for instruction, text in steps("cpu"):
            apply(top, instruction, text)
        yield top
    finally:
        subprocess.run(["umount", "--lazy", str(top)], check=True)


def apply(top: Path, instruction: str, text: str) -> None:
    match instruction:
        case "RUN":
            done = inside(top, text)
            assert done.returncode == 0, done.stdout[-3000:]
        case "COPY":
            assert text == ". /src"
            for name in source_files():
                target = top / "src" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        case "WORKDIR":
            (top / text.lstrip("/")).mkdir()
        case "ENV" | "CMD":
            pass
        case _:
            raise AssertionError(f"the test does not know {instruction}")


def inside(top: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script in the file system, with the network and the certificates of this machine."""
    (top / CERTIFICATES).parent.mkdir(parents=True, exist_ok=True)
    (top / "opt/host.crt").touch()
    here = shlex.quote(str(top))
    prepare = [
        f"mount -t proc proc {here}/proc",
        f"mount --rbind /dev {here}/dev",
        f"mount --bind /{CERTIFICATES} {here}/opt/host.crt",
        f"exec chroot {here} /bin/sh -c {shlex.quote(script)}",
    ]
    names = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "http_proxy", "https_proxy", "no_proxy")
    passed = {name: os.environ[name] for name in names if name in os.environ}
    return subprocess.run(
        ["unshare", "--mount", "sh", "-ec", "\n".join(prepare)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1000,
        env={
            **passed,
            "PATH": "/opt/starmint/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "PIP_CERT": "/opt/host.crt",
        },
    )


def test_a_user_without_a_name_searches_in_a_mounted_directory(image: Path) -> None:
    work = image / "work"
    (work / "config.pb").write_text(CONFIG)
    (work / "f.py").write_text("def main(job_id, params):\n    return float(params['x'][0])\n")
    for path in (work, *work.iterdir()):
        os.chown(path, 4321, 4321)
    search = "cd /work && exec setpriv --reuid 4321 --regid 4321 --clear-groups spearmint"
    done = inside(image, f"{search} --method=random --max-finished-jobs=3 .")
    assert done.returncode == 0, done.stdout
    assert "Best of 3 complete trials" in done.stdout
    done = inside(image, f"{search} report .")
    assert done.returncode == 0, done.stdout
    assert (work / "report/index.html").stat().st_uid == 4321


@pytest.mark.parametrize("program", ["spearmint", "starcluster", "sge-jobs", "pycuda-nn"])
def test_each_command_runs(image: Path, program: str) -> None:
    done = inside(image, f"{program} --help")
    assert done.returncode == 0, done.stdout


def test_the_image_contains_no_source(image: Path) -> None:
    assert not (image / "src").exists()
    assert not list((image / "var/lib/apt/lists").iterdir())


def test_the_stage_for_gpus_differs_in_packages_only() -> None:
    cpu, gpu = steps("cpu"), steps("gpu")
    assert [name for name, _ in cpu] == [name for name, _ in gpu]
    for (_, of_cpu), (_, of_gpu) in zip(cpu, gpu, strict=True):
        assert set(re.findall(r"[\w-]+", of_cpu)) <= set(re.findall(r"[\w-]+", of_gpu)) | {
            "python3"
        }
