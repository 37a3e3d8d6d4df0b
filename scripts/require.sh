#!/bin/sh
# Sees to what `make` needs: scripts/require.sh build|test|cross|launchers|deb|rpm|packages ...
# Installs what is missing with apt-get when it may (root, Debian); otherwise says exactly what to install, and exits 1.
# Without the packages of `optional`, too, a build goes on: they are of the parts that heddle-info --missing names.
set -u

missing='' optional=''
need() { # need COMMAND PACKAGE...
    command -v "$1" >/dev/null 2>&1 || { shift; missing="$missing $*"; }
}
has() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; } # has PACKAGE
# What the plugins are built with: the network (UCX), and launchers that speak PMIx.
packages_of_parts() {
    command -v pkg-config >/dev/null 2>&1 || printf ' pkg-config'
    pkg-config --exists ucx 2>/dev/null || printf ' libucx-dev ucx-utils'
    pkg-config --exists pmix 2>/dev/null || printf ' libpmix-dev'
}
installs() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }
apt_install() { # apt_install PACKAGES, a list in one word; the output appears when that fails
    log=$(mktemp) || return 1
    echo "installing:$1"
    # shellcheck disable=SC2086
    { apt-get update -qq &&
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends -o DPkg::Lock::Timeout=300 $1; } >"$log" 2>&1
    failed=$?
    [ $failed = 0 ] || cat "$log" >&2
    rm -f "$log"
    return $failed
}
for kind do
    case $kind in
        build)
            need g++ g++
            need cmake cmake
            need ninja ninja-build
            need python3 python3
            python3 -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv"
            optional=$(packages_of_parts)
            ;;
        test)
            [ -e /usr/include/gtest/gtest.h ] || missing="$missing libgtest-dev"
            need clang-format-19 clang-format-19
            need clang-tidy-19 clang-tidy-19
            need clang++-19 clang-19
            ls /usr/lib/llvm-19/lib/clang/19/lib/*/libclang_rt.tsan* >/dev/null 2>&1 || missing="$missing libclang-rt-19-dev"
            need gfortran gfortran
            need valgrind valgrind
            need abidiff abigail-tools
            need meson meson
            need modulecmd environment-modules
            need gdb gdb
            need spin spin
            need chromium chromium
            need mandoc mandoc
            need groff groff-base
            need man man-db
            # The network, and jobs on several hosts (tests/multihost).
            missing="$missing$(packages_of_parts)" optional=''
            need mpirun openmpi-bin
            mpicc -fsyntax-only -include mpi.h -x c /dev/null >/dev/null 2>&1 || missing="$missing libopenmpi-dev"
            need ip iproute2
            need unshare util-linux
            need bwrap bubblewrap
            ;;
        cross)
            need aarch64-linux-gnu-g++ g++-aarch64-linux-gnu
            need qemu-aarch64 qemu-user
            ;;
        launchers)
            need mpiexec.hydra mpich
            need mpirun openmpi-bin
            PATH=$PATH:/usr/sbin need sshd openssh-server
            need ssh-keygen openssh-client
            PATH=$PATH:/usr/sbin need slurmctld slurmctld
            PATH=$PATH:/usr/sbin need slurmd slurmd
            PATH=$PATH:/usr/sbin need munged munge
            need srun slurm-client
            # Of srun --mpi=pmi2 and --mpi=pmix.
            ls /usr/lib/*/slurm-wlm/mpi_pmix.so >/dev/null 2>&1 || missing="$missing slurm-wlm-basic-plugins"
            ;;
        deb)
            need chrpath chrpath
            need dh debhelper
            need dh_python3 dh-python
            need dpkg-buildpackage dpkg-dev
            need git git
            need lintian lintian
            has pybuild-plugin-pyproject || missing="$missing pybuild-plugin-pyproject"
            has python3-all || missing="$missing python3-all"
            has python3-setuptools || missing="$missing python3-setuptools"
            missing="$missing$(packages_of_parts)"
            ;;
        rpm)
            need chrpath chrpath
            need cpio cpio
            need git git
            need rpmbuild rpm
            need rpmlint rpmlint
            missing="$missing$(packages_of_parts)"
            ;;
        packages)
            PATH=$PATH:/usr/sbin need debootstrap debootstrap
            ;;
        *)
            echo "require.sh: no such kind: $kind (build, test, cross, launchers, deb, rpm, packages)" >&2
            exit 2
            ;;
    esac
done

if [ -n "$missing" ]; then
    if installs; then
        apt_install "$missing" || exit 1
    else
        echo "Heddle needs packages that are missing here. On Debian 12:" >&2
        echo "    sudo apt-get install$missing$optional" >&2
        exit 1
    fi
fi
if [ -n "$optional" ] && ! { installs && apt_install "$optional"; }; then
    echo "Heddle is built without its parts for several hosts. With them, on Debian 12:" >&2
    echo "    sudo apt-get install$optional" >&2
fi

python3 - <<'CHECK' || exit 1
import sys
if sys.version_info < (3, 11):
    sys.exit(f"Heddle needs Python 3.11 or later; python3 is {sys.version.split()[0]}")
CHECK
have=$(cmake --version | sed -n '1s/[^0-9]*//p')
case $(printf '3.25\n%s\n' "$have" | sort -V | head -n 1) in
    3.25) ;;
    *) echo "Heddle needs CMake 3.25 or later; cmake is $have" >&2; exit 1 ;;
esac
