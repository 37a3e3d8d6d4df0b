/* The profiling interface: a second name for an exported function, at the same address. A profiler defines shmem_X and
 * calls pshmem_X. C and C++. */
#ifndef HEDDLE_ENTRY_TWIN_H
#define HEDDLE_ENTRY_TWIN_H

#define HEDDLE_TWIN(name) extern __typeof(name) p##name __attribute__((__alias__(#name), __copy__(name)));

#endif
