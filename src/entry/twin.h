/* The profiling interface: a second name for an exported function, at the same address. A profiler defines shmem_X and
 * calls pshmem_X. C and C++. */
#ifndef HEDDLE_ENTRY_TWIN_H
#define HEDDLE_ENTRY_TWIN_H

/* gcc compares the attributes of an alias with those of its target, and can copy them. */
#ifdef __has_attribute
#if __has_attribute(__copy__)
#define HEDDLE_COPY_ATTRIBUTES(name) __copy__(name),
#endif
#endif
#ifndef HEDDLE_COPY_ATTRIBUTES
#define HEDDLE_COPY_ATTRIBUTES(name)
#endif

#define HEDDLE_TWIN(name)         \
    extern __typeof(name) p##name \
        __attribute__((HEDDLE_COPY_ATTRIBUTES(name) __alias__(#name), __visibility__("default")));

#endif
