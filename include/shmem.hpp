/* A thin C++20 interface of OpenSHMEM, an extension of Heddle: every construct here is one, and stands on the C names
 * of shmem.h and shmemx.h, which may be used beside it.
 *
 *   environment              init and finalize
 *   array<T>                 an array on the symmetric heap
 *   context, context_ref     puts, gets and atomics of ranges; the _ref types do not own their handle
 *   team, team_ref           collectives of ranges
 *   request, capture         completion of a group of operations
 *   task, executor           coroutines that co_await requests
 *
 * Types are dispatched at compile time: a type of the standard's tables uses its own function, another trivially
 * copyable type is moved as bytes, and an operation that computes takes no other types.
 *
 * Errors. Ranges that do not fit, empty teams and tasks that cannot begin throw shmem::misuse, whose text names PE, call,
 * place, value and what would be right. What the library cannot provide throws std::runtime_error, memory std::bad_alloc. All other
 * mistakes are those of the C functions, and end the job.
 *
 * Collective destructors (array, team, environment) run on all PEs in the same order, as objects of one scope do. While
 * an exception unwinds the stack, the others cannot follow: array and team keep their memory then, and environment ends
 * the job with a message.
 *
 * Threads: those of the C functions. docs/user/cpp.md has examples. */
#ifndef HEDDLE_SHMEM_HPP
#define HEDDLE_SHMEM_HPP

#if !defined(__cplusplus) || __cplusplus < 202002L || !defined(__cpp_exceptions)
#error "shmem.hpp needs C++20, and exceptions"
#endif

#include <heddle/cpp/base.hpp>
#include <heddle/cpp/context.hpp>
#include <heddle/cpp/coroutine.hpp>
#include <heddle/cpp/team.hpp>

#endif
