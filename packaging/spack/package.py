"""Heddle for Spack: packages/heddle/package.py of a repository of packages (Spack 1.0 and later)."""

from spack_repo.builtin.build_systems.cmake import CMakePackage

from spack.package import *


class Heddle(CMakePackage):
    """OpenSHMEM 1.6 for programs with many threads per process: the library, the launcher oshrun and the wrappers
    oshcc, oshc++ and oshfort."""

    homepage = "https://heddle.invalid"
    url = "https://heddle.invalid/heddle-0.1.0.tar.gz"

    license("BSD-3-Clause")

    # Of the tarball that `make release` makes; it writes this line and the URL into a copy of this file.
    version("0.1.0", sha256="0000000000000000000000000000000000000000000000000000000000000000")

    variant("ucx", default=True, description="Jobs on several hosts, by UCX")
    variant("pmix", default=True, description="Start by mpirun and by srun --mpi=pmix")
    variant("fortran", default=True, description="The Fortran modules and oshfort")
    variant("compat", default=False, description="Names of other OpenSHMEM: shmemcc, -loshmem, find_package(OpenSHMEM)")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("fortran", type="build", when="+fortran")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.11:", type="build")
    depends_on("ucx@1.12:", when="+ucx")
    depends_on("pmix@3:", when="+pmix")

    requires("platform=linux", msg="Heddle needs Linux")
    requires("target=x86_64:", "target=aarch64:", policy="one_of", msg="Heddle is for x86-64 and aarch64")
    conflicts("%gcc@:10", msg="Heddle needs C++20")
    conflicts("+fortran", when="%fortran=llvm", msg="The Fortran modules are of gfortran")

    generator("ninja")

    def cmake_args(self):
        return [
            self.define("HEDDLE_BUILD_TESTS", False),
            self.define_from_variant("HEDDLE_BUILD_UCX", "ucx"),
            self.define_from_variant("HEDDLE_BUILD_PMIX", "pmix"),
            self.define_from_variant("HEDDLE_BUILD_FORTRAN", "fortran"),
            self.define_from_variant("HEDDLE_COMPAT_NAMES", "compat"),
        ]

    @run_after("install")
    def keep_sources_of_tests(self):
        cache_extra_test_sources(self, "examples")

    def test_example(self):
        """a program that oshcc has compiled runs with 4 PEs"""
        sources = join_path(self.test_suite.current_test_cache_dir, "examples")
        oshcc = which(self.prefix.bin.oshcc, required=True)
        oshcc("-O2", join_path(sources, "prefix.c"), "-o", "prefix")
        oshrun = which(self.prefix.bin.oshrun, required=True)
        check_outputs("prefix: pass on 4 PEs", oshrun("-n", "4", "./prefix", output=str.split, error=str.split))

    def test_info(self):
        """heddle-info finds nothing wrong with this machine"""
        info = which(join_path(self.prefix.bin, "heddle-info"), required=True)
        check_outputs("found nothing wrong", info("--check", output=str.split, error=str.split))
