// The profile as a page in the terminal, 100 columns wide. Threads: one.
#pragma once

#include "profiling/document.h"

namespace heddle::profiling {

std::string to_page(const Document& document);

// Prints the page on stderr and writes the document to the file that the settings name. Sorts the sites.
void print_and_write(JobProfile& job);

}  // namespace heddle::profiling
