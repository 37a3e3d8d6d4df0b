"""Heddle in gdb (docs/debugging.md): pretty-printers for contexts, teams, requests and streams, and the command
heddle-status. Read by `source` or by the script that gdb loads with the library; needs gdb 12 or later."""

import os
import sys

# Not by __file__, which is of the script that sources this one.
sys.path.insert(0, os.path.dirname(os.path.realpath(sys._getframe().f_code.co_filename)))
import heddle_printers
import heddle_status

del sys.path[0]
heddle_printers.register()
heddle_status.register()
