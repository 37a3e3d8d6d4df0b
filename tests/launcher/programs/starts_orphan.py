"""A child ends before its own child does, which writes its number into a file and ends as well; the PE lives on."""

import os
import time

import pe

if os.fork():
    os.wait()
    pe.up()
    time.sleep(600)
if os.fork() == 0:
    time.sleep(0.2)
    with open("new", "w") as file:
        file.write(f"{os.getpid()}")
    os.rename("new", "orphan")
os._exit(0)
