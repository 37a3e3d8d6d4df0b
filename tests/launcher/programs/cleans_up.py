"""cleans_up.py SECONDS [failing]: at SIGTERM takes so long, says so, exits with 0. failing: PE 0 of 3 exits with 6."""

import os
import signal
import sys
import time

import pe


def clean(*_):
    time.sleep(float(sys.argv[1]))
    print(f"clean {pe.number}", flush=True)
    os._exit(0)


signal.signal(signal.SIGTERM, clean)
pe.up()
if "failing" in sys.argv:
    pe.wait_for(3)
    if pe.number == 0:
        os._exit(6)
time.sleep(600)
