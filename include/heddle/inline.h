/* The names of the hot path, inlined and exported from one source.
 *
 * This file is read twice. In a program it defines the functions of heddle/generated/inline_names.h for inlining only
 * (gnu_inline): where the compiler does not inline one, or its address is taken, the exported symbol is used, so that
 * pshmem_ twins, function pointers and dlsym see one function. In src/entry/generated/inline_exports.c the keyword is
 * empty, and the same lines become those exported symbols. Without optimization (but for ThreadSanitizer, which sees what is inlined alone), or
 * with -DHEDDLE_NO_INLINE (for profilers that replace shmem_ functions), programs call them. */
#ifndef HEDDLE_INLINE_H
#define HEDDLE_INLINE_H

#include <heddle/abi.h>

#if defined(HEDDLE_EXPORT_INLINE) || \
    ((defined(__OPTIMIZE__) || defined(HEDDLE_UNDER_TSAN)) && !defined(HEDDLE_NO_INLINE))

#include <heddle/hot_path.h>

#ifdef HEDDLE_EXPORT_INLINE
#define HEDDLE_INLINE
#else
#define HEDDLE_INLINE extern __inline__ __attribute__((__gnu_inline__, __always_inline__))
#endif

#ifdef __cplusplus
extern "C" {
#endif

#include <heddle/generated/inline_names.h>

#ifdef __cplusplus
}
#endif

#endif
#endif
