# Writes OUTPUT, the commit of SOURCE's repository, when it has changed: cmake -DSOURCE=... -DOUTPUT=... -P commit.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=* OUTPUT_VARIABLE commit
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-prefix OUTPUT_VARIABLE prefix OUTPUT_STRIP_TRAILING_WHITESPACE
    ERROR_QUIET)
if(failed OR prefix) # no git, no repository, or sources unpacked inside another one
    set(commit "")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "// Written by tools/commit.cmake.
#include \"bug_report.h\"
const char* const heddle::tools::kCommit = \"@commit@\";
")
