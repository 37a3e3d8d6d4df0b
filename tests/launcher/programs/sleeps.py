"""sleeps.py [ignoring|interruptible|stopping|PE]: is up, and sleeps. ignoring: no signal that ends a job has an effect;
interruptible: SIGINT ends it, as it does programs that are not Python; stopping: stops itself; a number: but for that
PE, which ends."""

import os
import signal
import sys
import time

import pe

how = "".join(sys.argv[1:])
if how == "ignoring":
    pe.ignore_signals()
if how == "interruptible":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
pe.up()
if how == "stopping":
    os.kill(os.getpid(), signal.SIGSTOP)
elif how != str(pe.number):
    time.sleep(600)
