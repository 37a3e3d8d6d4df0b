"""A process that is found by a subreaper alone: two forks, a session of its own, no output. The PE itself ends."""

import os
import time

import pe

if os.fork():
    os._exit(os.wait()[1])
os.setsid()
if os.fork():
    os._exit(0)
for fd in (0, 1, 2):
    os.close(fd)
pe.up()
time.sleep(600)
