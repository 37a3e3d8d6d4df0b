"""A run folder has one writer: the process that holds DIR/lock.

The kernel's lock (flock) ends with the process, however that ends, and launchers do not inherit it. The package
filelock is the same call without the name of the holder.
"""

import fcntl
import os
import platform
import weakref

from shmem_mt.errors import UserError

_held: weakref.WeakValueDictionary = weakref.WeakValueDictionary()  # (device, inode) of the folder -> Lock


class Lock:
    """Held as long as the object lives."""

    def __init__(self, directory):
        self._file = open(os.path.join(directory, "lock"), "a+", encoding="utf-8")  # noqa: SIM115
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise UserError(f"{directory} is being written by {holder}; use another --out") from error
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()} of {platform.node()}\n")
        self._file.flush()


def lock(directory):
    """The lock of that folder, which this process may take several times. Raises UserError that names the holder."""
    try:
        status = os.stat(directory)
        key = (status.st_dev, status.st_ino)
        found = _held.get(key)
        if found is None:
            found = _held[key] = Lock(directory)
        return found
    except OSError as error:
        raise UserError(f"cannot lock the run folder {directory}: {error.strerror}") from error
