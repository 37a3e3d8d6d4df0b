# find_package(Heddle) gives the target Heddle::heddle.
get_filename_component(_heddle_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Heddle::heddle)
    add_library(Heddle::heddle SHARED IMPORTED)
    set_target_properties(Heddle::heddle PROPERTIES
        IMPORTED_LOCATION "${_heddle_prefix}/lib/libheddle.so"
        INTERFACE_INCLUDE_DIRECTORIES "${_heddle_prefix}/include")
endif()
# The Fortran modules, where they were built: Heddle::fortran.
if(EXISTS "${_heddle_prefix}/lib/libheddle_fortran.a" AND NOT TARGET Heddle::fortran)
    add_library(Heddle::fortran STATIC IMPORTED)
    set_target_properties(Heddle::fortran PROPERTIES
        IMPORTED_LOCATION "${_heddle_prefix}/lib/libheddle_fortran.a"
        INTERFACE_INCLUDE_DIRECTORIES "${_heddle_prefix}/include"
        INTERFACE_LINK_LIBRARIES Heddle::heddle)
endif()
set(Heddle_OSHRUN "${_heddle_prefix}/bin/oshrun")
unset(_heddle_prefix)
