// The end of a program that has not called shmem_finalize: it is finalized then (deprecated, and what start_pes is made
// for), where the program ends well: main returned, or exit was called, with status 0.
//
// As late as can be: behind the program's own handlers (atexit) and destructors of static objects, which may use the
// library to their end, and finalize it. Where the library was loaded by dlopen, others that it needs may be gone by
// then: so there it is behind the handlers that were registered after shmem_init.
//
// Not finalized, and so a failure to the launcher: any other status, _exit, an end by a signal, a call of exit by what
// has interrupted a wait in the library, whose collective can then not be completed. Nothing at all happens in a child
// of fork, and where PEs are threads.
#pragma once

namespace heddle::runtime {

// From here on the end of this process is noticed. Repeatable.
void prepare_exit();

// Shows what the standard streams hold, but for those that another thread holds and may never let go.
void flush_output();

}  // namespace heddle::runtime
