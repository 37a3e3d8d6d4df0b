// Static data of every kind is symmetric and keeps its values over init: initialised, zeroed, large, function-static,
// constant pointers, C++ objects with constructors. So do protections. What nobody has touched, init does not look at.
// Linked in several ways by CMake.
#include "check.h"
#include "tables.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <cerrno>
#include <string>
#include <vector>

using namespace conformance;

namespace {

int initialised[3] = {11, 22, 33};
char text[] = "a text that can be written";
long zeroed;
unsigned char large[9 * 1024 * 1024 + 13];
int large_initialised[50000] = {1, 2, 3};  // with -mcmodel=medium in another segment
constexpr size_t kGiB = size_t{1} << 30;
char untouched[kGiB];
constexpr size_t kPage = 65536;  // of any machine
alignas(kPage) char guarded[3 * kPage];
const int table[] = {5, 6, 7};
int* const to_initialised = &initialised[1];
const char* pointer = text;
double last_of_data __attribute__((section(".data"))) = 2.5;

// Built before main, and so before init; points into itself.
struct Node {
    Node* self = this;
    std::string name = "a name too long for the string's own buffer, so it is on the C heap";
    std::vector<int> numbers = {1, 2, 3};
    int count = 0;
};
Node node;
std::string short_name = "short";
thread_local int of_thread = 9;

int& function_static() {
    static int value = 1000 + initialised[0];
    return value;
}

void check_values_kept() {
    subject = "values over init";
    CHECK_EQ(initialised[0] + initialised[1] + initialised[2], 66);
    CHECK(strcmp(text, "a text that can be written") == 0 && pointer == text);
    CHECK_EQ(zeroed, 4);  // set before init
    CHECK_EQ(large[0], 0);
    CHECK_EQ(large[sizeof large - 1], 21);  // set before init
    CHECK_UNTOUCHED("a large array", large, 0, sizeof large - 1);
    CHECK(table[2] == 7 && to_initialised == &initialised[1]);
    CHECK(node.self == &node && node.name.size() > 40 && node.numbers.size() == 3 && short_name == "short");
    CHECK_EQ(function_static(), 1011);
    CHECK_EQ(of_thread, 9);
    CHECK(last_of_data == 2.5);
}

// A page that cannot be read or written stays so, and what it holds stays, too.
void guard() {
    guarded[0] = 'a';
    guarded[kPage] = 'b';
    CHECK_EQ(mprotect(guarded + kPage, kPage, PROT_NONE), 0);
}

void check_guard() {
    subject = "guard page";
    int channel[2];
    CHECK_EQ(pipe(channel), 0);
    CHECK_EQ(write(channel[1], guarded, 1), 1);
    CHECK(write(channel[1], guarded + kPage, 1) == -1 && errno == EFAULT);  // the kernel says what a load would meet
    CHECK_EQ(write(channel[1], guarded + 2 * kPage, 1), 1);
    close(channel[0]);
    close(channel[1]);
    CHECK_EQ(mprotect(guarded + kPage, kPage, PROT_READ | PROT_WRITE), 0);
    CHECK(guarded[0] == 'a' && guarded[kPage] == 'b');
}

long page_faults() {
    rusage usage;
    CHECK_EQ(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_minflt;
}

// Each variable is written by the previous PE and read by the next.
template <class T>
void check_symmetric(const char* name, T* variable, T value) {
    subject = name;
    const int next = (pe + 1) % n_pes, previous = (pe + n_pes - 1) % n_pes;
    const T mine = static_cast<T>(value + static_cast<T>(pe)),
            theirs = static_cast<T>(value + static_cast<T>(previous));
    CHECK_EQ(shmem_addr_accessible(variable, next), 1);
    shmem_barrier_all();
    shmem_putmem(variable, &mine, sizeof mine, next);
    shmem_barrier_all();
    T got;
    memcpy(&got, variable, sizeof got);
    CHECK(got == theirs);
    shmem_getmem(&got, variable, sizeof got, next);
    CHECK(got == mine);
    shmem_barrier_all();
}

}  // namespace

int main() {
    zeroed = 4;
    large[sizeof large - 1] = 21;
    function_static();
    guard();
    const size_t first = kPage - reinterpret_cast<uintptr_t>(untouched) % kPage;  // its neighbours' page is theirs
    madvise(untouched + first, kGiB - 2 * kPage, MADV_NOHUGEPAGE);
    const long faults = page_faults();
    start("static_data");
    const long taken = page_faults() - faults;
    if (taken > static_cast<long>(kGiB / kPage))  // a 16th of the pages of 4 KiB
        fail(__FILE__, __LINE__, "init took %ld page faults with 1 GiB of untouched static data", taken);
    check_guard();
    check_values_kept();
    check_symmetric("initialised", &initialised[2], 500);
    check_symmetric("zeroed", &zeroed, 600L);
    check_symmetric("large, first", &large[0], static_cast<unsigned char>(3));
    check_symmetric("large, middle", &large[sizeof large / 2], static_cast<unsigned char>(5));
    check_symmetric("large, last", &large[sizeof large - 1], static_cast<unsigned char>(7));
    check_symmetric("function-static", &function_static(), 700);
    check_symmetric("member of an object", &node.count, 800);
    check_symmetric("large and initialised", &large_initialised[49999], 44);
    CHECK_EQ(large_initialised[0] + large_initialised[1] + large_initialised[2], 6);
    check_symmetric("untouched", &untouched[kGiB / 2], static_cast<char>(9));
    check_symmetric("guarded before", &guarded[kPage + 1], static_cast<char>(8));
    check_symmetric("through a constant pointer", to_initialised, 900);
    check_symmetric("last of .data", &last_of_data, 1.25);
    check_symmetric("a character", &text[3], 'A');
    CHECK(node.self == &node && short_name == "short");
    node.numbers.resize(1000, 5);
    CHECK_EQ(node.numbers[999], 5);
    CHECK_EQ(shmem_addr_accessible(&of_thread, pe), 0);
    return finish();
}
