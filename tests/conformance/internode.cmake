# The same programs on a job whose PEs are treated as several nodes (HEDDLE_TEST_PES_PER_NODE): all that they do to each other
# goes over UCX and TCP, as between machines. Shapes: each PE alone; two and two and the rest.
if(NOT TARGET heddle_ucx)
    return()
endif()
set(shapes 3:1 5:2) # PEs:PEs of a node
set(programs rma_inline strided_inline atomics_inline signals_inline waits_inline contention_inline rma_nbe_inline
    atomics_nbe_inline signals_nbe_inline requests_inline ordering_inline large_inline barriers_inline memory_inline setup_inline
    contexts_inline context_kinds_inline teams_inline team_contexts_inline locks_inline old_names_inline
    active_sets_inline data_movement_inline reductions_inline sequences data_movement_mt_inline reductions_mt_inline thread_groups schedules
    concurrent_load stress processes_inline fork_threads sentences many_sets)
if(HEDDLE_SANITIZER)
    set(shapes 3:1)
    set(leaks ASAN_OPTIONS=detect_leaks=0) # the network lives as long as its process, in tables that are mappings
    set(programs rma_inline atomics_nbe_inline requests_inline teams_inline sequences schedules)
endif()
set(many_round_trips atomics_inline atomics_nbe_inline contention_inline ordering_inline) # two PEs do for these
set(collectives data_movement_inline reductions_inline active_sets_inline sequences) # also with many nodes, and larger ones
foreach(program IN LISTS programs)
    set(shapes_of_program ${shapes})
    if(program IN_LIST collectives AND NOT HEDDLE_SANITIZER)
        list(APPEND shapes_of_program 8:1 8:3)
    endif()
    if(program IN_LIST many_round_trips)
        set(shapes_of_program 2:1)
    endif()
    foreach(shape IN LISTS shapes_of_program)
        string(REPLACE ":" ";" counts ${shape})
        list(GET counts 0 pes)
        list(GET counts 1 node_pes)
        math(EXPR own_context "${pes} % 2")
        set(short 2 3 8)
        if(program STREQUAL contention_inline) # thousands of round trips
            set(short)
        endif()
        conformance_test_at("${short}" internode.${program}.by_${node_pes} conformance_${program} ${pes} HEDDLE_TEST_PES_PER_NODE=${node_pes}
            HEDDLE_NET_TRANSPORTS=tcp HEDDLE_TEST_CTX=${own_context} SHMEM_SYMMETRIC_SIZE=64M ${leaks})
    endforeach()
endforeach()
# Collectives that are posted, under each policy: PEs alone, by two and by three.
foreach(program nonblocking nonblocking_requests nonblocking_schedules progress data_movement_nbe_inline reductions_nbe_inline)
    foreach(policy ${POLICIES})
        set(shapes_of_policy 3:1)
        if(policy STREQUAL auto AND NOT HEDDLE_SANITIZER)
            list(APPEND shapes_of_policy 5:2 7:3)
        endif()
        foreach(shape IN LISTS shapes_of_policy)
            string(REPLACE ":" ";" counts ${shape})
            list(GET counts 0 pes)
            list(GET counts 1 node_pes)
            string(REPLACE ":" "_" name ${policy})
            conformance_test_at("3;5" internode.${program}.${name}.by_${node_pes} conformance_${program} ${pes}
                HEDDLE_TEST_PES_PER_NODE=${node_pes} HEDDLE_NET_TRANSPORTS=tcp HEDDLE_PROGRESS=${policy}
                SHMEM_SYMMETRIC_SIZE=64M ${leaks})
        endforeach()
    endforeach()
    conformance_test(across.${program}.checked.by_2 conformance_${program} 4 HEDDLE_TEST_PES_PER_NODE=2
        HEDDLE_NET_TRANSPORTS=tcp HEDDLE_CHECK=1 SHMEM_SYMMETRIC_SIZE=64M ${leaks})
endforeach()
if(TARGET conformance_idle)
    foreach(policy manual auto thread:block)
        string(REPLACE ":" "_" name ${policy})
        conformance_test_of_rest(internode.idle.${name}.by_1 conformance_idle 2 HEDDLE_TEST_PES_PER_NODE=1 HEDDLE_NET_TRANSPORTS=tcp
            HEDDLE_PROGRESS=${policy})
    endforeach()
endif()
# Puts and gets straight into place, over UCX's shared memory; and over TCP, where UCX makes do with messages of its own.
foreach(transport shm tcp)
    foreach(program large_inline rma_inline signals_inline requests_inline contexts_inline sequences)
        conformance_test(across.native.${program}.${transport} conformance_${program} 3 HEDDLE_TEST_PES_PER_NODE=1
            HEDDLE_NET_PROTOCOL=rma HEDDLE_NET_TRANSPORTS=${transport} HEDDLE_TEST_CTX=1 SHMEM_SYMMETRIC_SIZE=64M
            ${leaks})
    endforeach()
    conformance_test(across.native.large_inline.by_2.${transport} conformance_large_inline 5 HEDDLE_TEST_PES_PER_NODE=2
        HEDDLE_NET_PROTOCOL=rma HEDDLE_NET_TRANSPORTS=${transport} HEDDLE_NET_CHANNELS=2 HEDDLE_TEST_CTX=1
        SHMEM_SYMMETRIC_SIZE=64M ${leaks})
endforeach()

# Over two rails, which share an interface here; ordered contexts on both, and on one.
set(programs_on_rails rma_inline order_of_contexts)
if(NOT HEDDLE_SANITIZER)
    list(APPEND programs_on_rails signals_inline requests_inline large_inline context_kinds_inline data_movement_inline sequences
        nonblocking_requests stress)
endif()
foreach(program IN LISTS programs_on_rails)
    conformance_test(across.rails.${program} conformance_${program} 3 HEDDLE_TEST_PES_PER_NODE=1 HEDDLE_NET_TRANSPORTS=tcp
        HEDDLE_NET_RAILS=2 HEDDLE_NET_DEVICES=lo,lo HEDDLE_ORDER=reorder HEDDLE_TEST_CTX=1 SHMEM_SYMMETRIC_SIZE=64M
        ${leaks})
endforeach()
foreach(order rail reorder)
    conformance_test(across.rails.order_of_contexts.${order} conformance_order_of_contexts 4 HEDDLE_TEST_PES_PER_NODE=2
        HEDDLE_NET_TRANSPORTS=tcp HEDDLE_NET_RAILS=3 HEDDLE_NET_DEVICES=lo,lo,lo HEDDLE_ORDER=${order}
        HEDDLE_NET_CHANNELS=2 SHMEM_SYMMETRIC_SIZE=64M ${leaks})
    conformance_test(across.rails.native.${order} conformance_order_of_contexts 2 HEDDLE_TEST_PES_PER_NODE=1
        HEDDLE_NET_PROTOCOL=rma HEDDLE_NET_TRANSPORTS=tcp HEDDLE_NET_RAILS=2 HEDDLE_NET_DEVICES=lo,lo
        HEDDLE_ORDER=${order} SHMEM_SYMMETRIC_SIZE=64M ${leaks})
endforeach()

# Each small operation in a message of its own.
conformance_test(internode.stress.uncoalesced conformance_stress 3 HEDDLE_TEST_PES_PER_NODE=1 HEDDLE_NET_TRANSPORTS=tcp
    HEDDLE_NET_COALESCE=no SHMEM_SYMMETRIC_SIZE=64M ${leaks})

conformance_program(conformance_message_counts message_counts.cpp)
if(HEDDLE_ALL_TESTS AND NOT HEDDLE_SANITIZER)
    add_test(NAME conformance.message_counts COMMAND ${Python3_EXECUTABLE} -B -m pytest -q -p no:cacheprovider
        ${CMAKE_CURRENT_SOURCE_DIR}/test_message_counts.py)
    set_tests_properties(conformance.message_counts PROPERTIES LABELS "conformance;rest" SKIP_RETURN_CODE 77
        ENVIRONMENT "HEDDLE_BUILD=${CMAKE_BINARY_DIR}")
endif()
