"""Twelve processes, each a child of the one before, that ignore SIGTERM; the last of PE 1 fails."""

import os
import signal
import time

import pe

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _depth in range(12):
    if os.fork():
        time.sleep(600)
pe.up()
if pe.number == 1:
    time.sleep(0.3)
    os._exit(1)
time.sleep(600)
