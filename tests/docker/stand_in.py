"""A stand-in for the SGLang image: busybox, this Python and the packages that dflashctl needs, without a network."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import distribution
from pathlib import Path

SKIPPED = (
    "test",
    "tests",
    "idlelib",
    "turtledemo",
    "site-packages",
    "dist-packages",
    "__pycache__",
    "ensurepip",
    "lib2to3",
    "EXTERNALLY-MANAGED",  # Debian's word to pip, which nobody has given to an image
)
NEEDED = ("dflashctl", "pip", "hatchling", "setuptools")


def make_root(root):
    """A root file system below `root` in which `python3 -m pip install --no-index --no-build-isolation` works."""
    for name in ("bin", "etc", "proc", "dev", "root", "usr/local/bin", "tmp"):
        (root / name).mkdir(parents=True)
    (root / "tmp").chmod(0o1777)
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/tmp:/bin/sh\n")
    busybox = shutil.which("busybox")
    shutil.copy(busybox, root / "bin/busybox")
    for name in ("sh", "rm", "ls", "cat", "id", "sleep", "mkdir", "kill", "env", "true"):
        (root / "bin" / name).symlink_to("busybox")
    stdlib, program = Path(sysconfig.get_path("stdlib")), Path(os.path.realpath(sys.executable))
    copy_tree(stdlib, root)
    packages = root / packages_of(program).relative_to("/")
    for name in closure(NEEDED):
        if name != "dflashctl":
            copy_package(name, packages)
    copy_file(program, root)
    (root / "usr/local/bin/python3").symlink_to(program)
    for path in [program, *stdlib.rglob("*.so"), *packages.rglob("*.so*")]:
        for library in libraries(path):
            copy_file(library, root)
    subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)  # any user may run it


def packages_of(program):
    """Where that interpreter looks for packages when it is no virtual environment's: Debian's has a folder of its own."""
    said = subprocess.run(
        [program, "-I", "-c", "import site; print(site.getsitepackages()[0])"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return Path(said.stdout.strip())


def closure(names):
    """The distributions that these need, by name."""
    found, queue = {}, list(names)
    while queue:
        name = re.split(r"[\s\[;<>=!~(]", queue.pop())[0].lower().replace("_", "-")
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except ModuleNotFoundError:
            continue
        queue += [need for need in found[name].requires or () if "extra ==" not in need]
    return list(found)


def copy_package(name, packages):
    for entry in distribution(name).files or ():
        source = Path(entry.locate())
        target = packages / str(entry)
        if source.is_file() and ".." not in str(entry) and "__pycache__" not in str(entry):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)


def copy_tree(source, root):
    shutil.copytree(
        source,
        root / source.relative_to("/"),
        ignore=shutil.ignore_patterns(*SKIPPED, "*.pyc"),
        dirs_exist_ok=True,
    )


def copy_file(path, root):
    target = root / Path(path).relative_to("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(path), target)


def libraries(path):
    said = subprocess.run(["ldd", str(path)], capture_output=True, text=True, check=False).stdout
    return [Path(found) for found in re.findall(r"(?:=> |^\s*)(/\S+) \(", said, re.MULTILINE)]
