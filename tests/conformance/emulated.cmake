# Programs that wait, with the monitors' real code on a machine that seems to have the instructions (emulated.cpp). Two
# PEs, because where more run than there are cores nobody watches a line. Sanitizers want to be loaded first; the unit
# tests of the monitors run under them.
if(HEDDLE_SANITIZER OR NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    return()
endif()
add_library(conformance_emulated SHARED progress/emulated.cpp ${CMAKE_SOURCE_DIR}/tests/support/every_monitor.cpp
    ${CMAKE_SOURCE_DIR}/tests/support/monitor_emulation.cpp $<TARGET_OBJECTS:heddle_core>)
heddle_settings(conformance_emulated)
target_include_directories(conformance_emulated PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(conformance_emulated PRIVATE heddle_system)
get_target_property(options heddle LINK_OPTIONS)
target_link_options(conformance_emulated PRIVATE ${options})
# By its soname the loader knows that programs need no other libheddle.
set_target_properties(conformance_emulated PROPERTIES OUTPUT_NAME heddle SOVERSION 1
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/emulated)

conformance_program(conformance_monitored monitored.cpp)

# What heddle-info says of such a machine.
add_executable(conformance_emulated_info ${CMAKE_SOURCE_DIR}/tools/heddle_info.cpp
    ${CMAKE_SOURCE_DIR}/tests/support/every_monitor.cpp)
heddle_settings(conformance_emulated_info)
target_include_directories(conformance_emulated_info PRIVATE ${CMAKE_SOURCE_DIR}/tests)
target_link_libraries(conformance_emulated_info PRIVATE heddle_info_parts)
target_compile_definitions(conformance_emulated_info PRIVATE HEDDLE_LIBRARY_FOLDER="${CMAKE_INSTALL_LIBDIR}")
set(limit_umwait "C0.1 and C0.2, at most [0-9]+ us at a time")
set(limit_mwaitx "C0 and C1, at most [0-9]+ us at a time")
foreach(monitor umwait mwaitx)
    add_test(NAME conformance.info.${monitor} COMMAND conformance_emulated_info)
    set_tests_properties(conformance.info.${monitor} PROPERTIES LABELS conformance
        ENVIRONMENT HEDDLE_MONITOR=${monitor}
        PASS_REGULAR_EXPRESSION "waiting +spin, ${monitor} [(]${limit_${monitor}}[)], yield, sleep")
endforeach()
