"""Spack's recipe, packaging/spack/package.py, with stand-ins for the names that Spack gives it: it is executed, CMake
knows what it passes, and its tests of an installation pass. Spack itself is in no registry of packages here: what its
solver and its audits say is not tested."""

import importlib.util
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path

import pytest
from version import VERSION

BUILD = Path(os.environ["HEDDLE_BUILD"])
SOURCE = Path(os.environ["HEDDLE_SOURCE"])
RECIPE = SOURCE / "packaging/spack/package.py"
DIRECTIVES = ["license", "version", "variant", "depends_on", "requires", "conflicts", "generator"]


class Words(str):
    """A folder whose parts are attributes, as Spack's prefix."""
    def __getattr__(self, name):
        return Words(f"{self}/{name}")


class CMakePackage:
    """What the recipe uses of Spack's class."""

    def define(self, name, value):
        return f"-D{name}={'ON' if value else 'OFF'}"

    def define_from_variant(self, name, variant):
        return self.define(name, self.variants[variant])


def command(path, required):
    assert required and os.access(path, os.X_OK), path

    def call(*arguments, output=None, error=None):
        done = subprocess.run([path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=600)
        assert done.returncode == 0, f"{path} {arguments}: {done.returncode}\n{done.stdout}"
        return done.stdout
    return call


def check_outputs(expected, actual):
    assert expected in actual, f"{expected!r} is not in:\n{actual}"


def keep(package, folder):
    shutil.copytree(SOURCE / folder, Path(package.test_suite.current_test_cache_dir) / folder)


@pytest.fixture
def recipe(monkeypatch):
    """The recipe's class, and what it has said by each directive."""
    said = {name: [] for name in DIRECTIVES}
    spack = types.ModuleType("spack.package")
    for name in DIRECTIVES:
        setattr(spack, name, lambda *words, name=name, **options: said[name].append((words, options)))
    spack.run_after = lambda phase: lambda function: function
    spack.which, spack.check_outputs, spack.cache_extra_test_sources = command, check_outputs, keep
    spack.join_path = os.path.join
    base = types.ModuleType("spack_repo.builtin.build_systems.cmake")
    base.CMakePackage = CMakePackage
    for name in ("spack", "spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "spack.package", spack)
    monkeypatch.setitem(sys.modules, base.__name__, base)
    spec = importlib.util.spec_from_file_location("heddle_recipe", RECIPE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Heddle, said


def test_the_version_is_that_of_the_sources(recipe):
    assert [words[0] for words, _ in recipe[1]["version"]] == [VERSION]


@pytest.mark.parametrize("on", [True, False], ids=["all", "least"])
def test_cmake_knows_what_it_passes(recipe, on, tmp_path):
    package, said = recipe
    package = package()
    package.variants = {words[0]: on for words, _ in said["variant"]}
    arguments = package.cmake_args()
    done = subprocess.run(["cmake", "-S", SOURCE, "-B", tmp_path, "-G", "Ninja", *arguments], capture_output=True,
                          text=True, timeout=600)
    assert done.returncode == 0 and "not used by the project" not in done.stderr, done.stderr
    rules = (tmp_path / "build.ninja").read_text()
    found = {"ucx": "libheddle_ucx.so:" in rules, "pmix": "libheddle_pmix.so:" in rules,
             "fortran": "libheddle_fortran.a:" in rules}
    have = {name: (BUILD / "lib" / file).exists() for name, file in
            {"ucx": "libheddle_ucx.so", "pmix": "libheddle_pmix.so", "fortran": "libheddle_fortran.a"}.items()}
    assert found == {name: on and there for name, there in have.items()}


def test_what_depends_on_a_variant_names_one(recipe):
    variants = {words[0] for words, _ in recipe[1]["variant"]}
    whens = [options["when"] for _, options in recipe[1]["depends_on"] if "when" in options]
    assert {when.lstrip("+~") for when in whens} == {"ucx", "pmix", "fortran"} <= variants


def test_its_tests_pass_on_an_installation(recipe, tmp_path, monkeypatch):
    package = recipe[0]()
    package.prefix = Words(tmp_path / "prefix")
    package.test_suite = types.SimpleNamespace(current_test_cache_dir=str(tmp_path / "cache"))
    subprocess.run(["cmake", "--install", BUILD, "--prefix", package.prefix], check=True, stdout=subprocess.DEVNULL)
    package.keep_sources_of_tests()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    tests = [getattr(package, name) for name in dir(package) if name.startswith("test_") and name != "test_suite"]
    assert len(tests) == 2
    for test in tests:
        assert test.__doc__
        test()
