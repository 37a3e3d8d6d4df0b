"""shows_signal.py NUMBER: prints the signal when it comes, and exits with 0."""

import os
import signal
import sys
import time

import pe


def got(sent, _):
    print(sent, flush=True)
    os._exit(0)


signal.signal(int(sys.argv[1]), got)
pe.up()
time.sleep(600)
