/* How the operations of a row become complete: at return, by quiet, or by their request (HEDDLE_TEST_REQUEST: null,
 * private or shared), in one of the many ways that complete a request, another each time. */
#ifndef CONFORMANCE_COMPLETION_H
#define CONFORMANCE_COMPLETION_H

#include "check.h"
#include "tables.h"

#include <cstddef>

namespace conformance {

// Makes conformance_request what HEDDLE_TEST_REQUEST says; gives it back.
void start_request();
void finish_request();

// Operations of this row are complete when it returns, at their target, too; and a collective.
void complete(const function_info& info);
void complete_collective(const function_info& info);

// Completes all that was posted to *request, in way `way` (modulo kWays). A PRIVATE request is SHMEMX_REQUEST_NULL
// behind it, or goes on to be used after a quiet; a SHARED one is alive.
constexpr size_t kWays = 14;
constexpr size_t kWaysByRequest = 10;  // of these the first, which need no quiet: it completes no collective
void complete_request(shmemx_request_t* request, bool is_shared, size_t way);

}  // namespace conformance

#endif
