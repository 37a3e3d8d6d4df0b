"""``python3 -m shmem_mt``: the same as the ``shmem-mt`` command."""

from shmem_mt.cli import entry

entry()
