"""What the programs of this folder share. conftest.py copies them into a test's folder, where oshrun starts them."""

import os
import signal
import time

number = int(os.environ["HEDDLE_PE"])


def up():
    """Leaves the process's number in a file, for the test to find; whole, because it is renamed."""
    with open(f"new.{os.getpid()}", "w") as file:
        file.write(f"{os.getpid()}\n")
    os.rename(f"new.{os.getpid()}", f"pid.{os.getpid()}")


def wait_for(count):
    """Until so many processes are up."""
    while len([name for name in os.listdir() if name.startswith("pid.")]) < count:
        time.sleep(0.01)


def ignore_signals():
    for sent in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM):
        signal.signal(sent, signal.SIG_IGN)
