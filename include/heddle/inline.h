/* The OpenSHMEM names of the hot path, inlined and exported from one source.
 *
 * Two kinds of code include this file. In a program it defines the functions of heddle/generated/inline_names.h for
 * inlining only (gnu_inline). Where the compiler does not inline a function, or the program takes its address, the
 * exported symbol is used. So pshmem_ twins, function pointers and dlsym see one function. In
 * src/entry/generated/inline_exports.c HEDDLE_INLINE is empty, and the lines of heddle/generated/inline_names.h become
 * the exported symbols.
 *
 * A program calls the exported symbols when it is compiled without optimization, or with -DHEDDLE_NO_INLINE; and its
 * inlined code calls them where a tool replaces shmem_ functions (HEDDLE_OUT_OF_LINE, docs/decisions/0083). Under
 * ThreadSanitizer functions are inlined at any level of optimization, since it sees inlined code alone. */
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
