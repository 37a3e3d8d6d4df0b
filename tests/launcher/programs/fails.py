"""fails.py exit|signal NUMBER [ignoring]: PE 2 of 4 ends in that way once all are up; the others wait for ever.
ignoring: all ignore signals, and PE 2 says in a file when it fails."""

import os
import sys
import time

import pe

if "ignoring" in sys.argv:
    pe.ignore_signals()
pe.up()
if pe.number == 2:
    pe.wait_for(4)
    if "ignoring" in sys.argv:
        with open("failed", "w") as file:
            file.write(str(time.monotonic()))
    if sys.argv[1] == "exit":
        os._exit(int(sys.argv[2]))
    os.kill(os.getpid(), int(sys.argv[2]))
while True:
    time.sleep(1)
