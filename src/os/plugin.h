// Plugins: libraries that are loaded when needed, from the folder of this library or, where a distribution wants
// private libraries apart, a folder in it (CMake's HEDDLE_PLUGIN_FOLDER). Parts: the plugins that a build leaves out
// where it does not find the libraries under them.
#pragma once

#include <cstddef>
#include <string>

namespace heddle::os {

// Loads the plugin with this file name from beside this library; a path is used as it is. Symbols are bound on
// first use. Null on failure, with the reason in dlerror(). The folder is named because dlopen's search depends on the
// caller, which may be a sanitizer.
void* load_plugin(const char* file);

struct Part {
    const char* file;       // of its plugin
    const char* stands_on;  // a library, as its project writes it
    const char* use;        // the jobs that need the part
    const char* needs;      // the packages that a build with the part needs, by distribution
    const char* package;    // of Heddle's own, the one with the part; empty: no package has it
};
inline constexpr Part kNetworkPart = {"libheddle_ucx.so", "UCX", "jobs on several hosts",
                                      "libucx-dev (Debian, Ubuntu; Fedora: ucx-devel)", "heddle-ucx"};
inline constexpr Part kPmixPart = {"libheddle_pmix.so", "PMIx", "jobs by mpirun, prterun and srun --mpi=pmix",
                                   "libpmix-dev (Debian, Ubuntu; Fedora: pmix-devel)", "heddle-pmix"};

// For programs in the bin folder of an installation: the path of a program of that folder (oshrun, oshcc, with the
// suffix that a distribution gives them, CMake's HEDDLE_TOOL_SUFFIX). False without /proc.
bool find_tool(const char* name, char* path, size_t bytes);

// For these programs, too: the path of a file of its library folder. False without /proc.
bool find_in_library_folder(const char* file, char* path, size_t bytes);

// For these programs, too: the path of a part's plugin. False without /proc.
bool find_plugin_of(const Part& part, char* path, size_t bytes);

// Whether the plugin's file is there, beside this program. True where that cannot be known.
bool is_built(const Part& part);

// What is said of a part that is not there, behind "this Heddle was": without which library, for which jobs, and the
// remedy. That is Heddle's own package where the parts are packages (CMake's HEDDLE_PACKAGED_PARTS).
std::string describe_missing(const Part& part);

}  // namespace heddle::os
