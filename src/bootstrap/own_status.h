// What this PE publishes and reads of its job page for reports (bootstrap/pe_status.h). Threads: any.
#pragma once

#include "bootstrap/pe_status.h"
#include "bootstrap/status_report.h"

namespace heddle::bootstrap {

// Where this PE publishes; null before it has joined.
PeStatus* own_status();

// Leaves of the job page to core dumps the head and what this PE publishes, five pages. After join.
void limit_dump();

// Records a call in this PE's ring of last calls; text: as in CallRecord. Calls in a row from one place are one record,
// of the last of them, and so are a collective and the waits inside it.
void record_call(CallRecord::Kind kind, const char* text);

// The source of a report by this PE, of all PEs of its page. After join.
StatusSource source_of_own_page(uint64_t lines_ns = StatusSource::kLinesNs);

}  // namespace heddle::bootstrap
