# Programs that wait, with the monitors' real code on a machine that seems to have the instructions (emulated.cpp). Two
# PEs, because where more run than there are cores nobody watches a line. Sanitizers want to be loaded first; the unit
# tests of the monitors run under them.
if(HEDDLE_SANITIZER OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
endif()
add_library(conformance_emulated SHARED emulated.cpp ${CMAKE_SOURCE_DIR}/tests/support/every_monitor.cpp
    ${CMAKE_SOURCE_DIR}/tests/support/monitor_emulation.cpp $<TARGET_OBJECTS:heddle_core>)
heddle_settings(conformance_emulated)
target_include_directories(conformance_emulated PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(conformance_emulated PRIVATE heddle_system)
get_target_property(options heddle LINK_OPTIONS)
target_link_options(conformance_emulated PRIVATE ${options})
# By its soname the loader knows that programs need no other libheddle.
set_target_properties(conformance_emulated PROPERTIES OUTPUT_NAME heddle SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/emulated)

foreach(program barriers waits locks signals)
    foreach(monitor umwait mwaitx)
        set(test ${program}.${monitor})
        conformance_test(${test} conformance_${program}_inline 2 HEDDLE_MONITOR=${monitor}
            LD_PRELOAD=$<TARGET_FILE:conformance_emulated>)
    endforeach()
endforeach()
