"""collects_signals.py NUMBER...: ends when all of the signals have come, and prints them."""

import signal
import sys
import time

import pe

wanted = set(map(int, sys.argv[1:]))
got = set()
for number in wanted:
    signal.signal(number, lambda sent, _: got.add(sent))
pe.up()
while got != wanted:
    time.sleep(0.01)
print(sorted(got), flush=True)
