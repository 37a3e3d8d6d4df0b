// Whether the library has the requests and multithreaded collectives of Heddle's shmemx.h, and the non-blocking
// collectives and progress policies. Other libraries have other headers of that name. What a library lacks is skipped
// by name.
#pragma once

#include <shmem.h>

#ifndef SHMEM_MT_HAVE_SHMEMX
#if __has_include(<shmemx.h>)
#include <shmemx.h>
#endif
#ifdef HEDDLE_SHMEMX
#define SHMEM_MT_HAVE_SHMEMX 1
#else
#define SHMEM_MT_HAVE_SHMEMX 0
#endif
#elif SHMEM_MT_HAVE_SHMEMX
#include <shmemx.h>
#endif

#ifndef SHMEM_MT_HAVE_PROGRESS
#define SHMEM_MT_HAVE_PROGRESS SHMEM_MT_HAVE_SHMEMX
#endif
#ifndef SHMEM_MT_HAVE_PROGRESS_NETWORK
#define SHMEM_MT_HAVE_PROGRESS_NETWORK 0
#endif
// Exchanges with neighbors, alltoallv, and plans.
#if SHMEM_MT_HAVE_SHMEMX && defined SHMEMX_PLAN_NULL
#define SHMEM_MT_HAVE_PLANS 1
#else
#define SHMEM_MT_HAVE_PLANS 0
#endif

namespace shmem_mt {
constexpr const char* kNoPlans = "the library has no exchanges and plans (shmemx.h)";
}
