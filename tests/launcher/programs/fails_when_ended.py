"""PE 1 of 3 exits with 5; the others, which are ended for it, with 9."""

import os
import signal
import time

import pe

signal.signal(signal.SIGTERM, lambda *_: os._exit(9))
pe.up()
pe.wait_for(3)
if pe.number == 1:
    os._exit(5)
time.sleep(600)
