// Functions compiled for each vector unit, of which the loader picks one; not under sanitizers, which are not ready
// when the loader picks. None of the units named fuses a * b + c, so all give the same bits.
#pragma once

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
#define SHMEM_MT_VECTORS [[gnu::target_clones("avx2", "default")]]
#ifdef __clang__
#define SHMEM_MT_LONG_LOOPS SHMEM_MT_VECTORS
#else
#define SHMEM_MT_LONG_LOOPS [[gnu::target_clones("avx2", "default"), gnu::optimize("O3")]]  // gcc: loops of any length
#endif
#else
#define SHMEM_MT_VECTORS [[gnu::noinline]]
#define SHMEM_MT_LONG_LOOPS [[gnu::noinline]]
#endif
