// The end of a program that has not called shmem_finalize. If the program ends well, by a return from main or exit with
// status 0, it is finalized then (deprecated, and the way of start_pes).
//
// Finalized as late as possible: after the program's own handlers (atexit) and destructors of static objects, which may
// use the library, and finalize it. If the library was loaded by dlopen, libraries that it needs may be gone by then.
// Then it is finalized after the handlers that were registered after shmem_init.
//
// Not finalized, and so a failure to the launcher: any other status, _exit, a signal, and a call of exit from a handler
// that has interrupted a wait of the library: its collective cannot be completed. Nothing happens in the child of a
// fork, and where PEs are threads.
#pragma once

namespace heddle::runtime {

// Registers the handlers for the end of this process. Repeatable.
void prepare_exit();

// Flushes the standard streams, except those that another thread has locked and may never unlock.
void flush_output();

}  // namespace heddle::runtime
