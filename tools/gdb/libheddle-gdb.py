"""What gdb loads by itself with the library beside which this file is installed (libheddle.so.VERSION-gdb.py)."""

import os

import gdb

gdb.execute("source " + os.path.join(os.path.dirname(os.path.realpath(gdb.current_objfile().filename)),
                                     "heddle", "gdb", "heddle_gdb.py"))
