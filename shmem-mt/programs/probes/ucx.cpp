// Prints the version of UCX; compiles where its headers and libraries are.
#include <ucp/api/ucp.h>

#include <cstdio>

int main() {
    std::puts(ucp_get_version_string());
    return 0;
}
