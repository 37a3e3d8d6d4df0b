// SHMEM-MT startup: seconds of shmem_init, of the first barrier and of shmem_finalize, those of the slowest PE, and the
// memory that a PE then has to itself (Private_Clean and Private_Dirty of /proc/self/smaps_rollup, which include pages
// that no other process has). A program start is one sample.
//
// The program has no Job, which would allocate and communicate before anything is measured. The time of finalize
// follows the last line, "done": some libraries end in it.
#include <fcntl.h>
#include <shmem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "programs/common/clock.hpp"
#include "programs/common/cores.hpp"
#include "programs/common/options.hpp"
#include "programs/common/output.hpp"
#include "programs/common/partners.hpp"

namespace shmem_mt {
namespace {

const std::vector<std::string> kTimes = {"init", "first_barrier", "finalize"};
const char* const kLaunch = "launch";  // the driver times it: from the launcher's start to its end
const std::vector<std::string> kMemories = {"before_init", "after_init", "after_barrier"};

// What a PE tells PE 0.
struct Own {
    double seconds[2] = {};  // init, first_barrier
    long bytes[3] = {};      // kMemories; 0: unknown
    Cores cores;
    long shares_file = 0;  // it has opened PE 0's
    long told = 0;
};

constexpr int kPathBytes = 256;

long private_bytes() {
    FILE* const file = std::fopen("/proc/self/smaps_rollup", "r");
    if (file == nullptr)
        return 0;
    char line[256];
    long sum = 0;
    for (long kib; std::fgets(line, sizeof line, file) != nullptr;) {
        if (std::sscanf(line, "Private_Clean: %ld", &kib) == 1 || std::sscanf(line, "Private_Dirty: %ld", &kib) == 1)
            sum += 1024 * kib;
    }
    std::fclose(file);
    return sum;
}

template <class Call>
double seconds_of(Call&& call) {
    const double start = now_seconds();
    call();
    return now_seconds() - start;
}

void print_library() {
    char name[SHMEM_MAX_NAME_LEN + 1] = "";
    int major = 0, minor = 0;
    shmem_info_get_name(name);
    shmem_info_get_version(&major, &minor);
    const std::string version = std::to_string(major) + "." + std::to_string(minor);
    Json().text("event", "start").text("library", name).text("specification", version).print();
}

void skip(const std::string& what, const std::string& reason) {
    Json().text("event", "skip").text("benchmark", "startup").text("what", what).text("reason", reason).print();
}

// PE 0's side: what all have told, as points.
class Points {
  public:
    Points(const Options& options, const Own* owns, int n_pes) : options_(options), n_pes_(n_pes) {
        for (int pe = 0; pe < (options.fault == Fault::kOnePeReduction ? 1 : n_pes); ++pe) owns_.push_back(owns[pe]);
        for (const Own& own : owns_) told_ += own.told;
        for (const Own& own : owns_) one_machine_ = one_machine_ && own.shares_file;
        std::vector<Cores> cores;
        for (const Own& own : owns_) cores.push_back(own.cores);
        oversubscribed_ = too_few_cores(cores, 1);
        std::vector<long> hosts;
        for (const Cores& one : cores) hosts.push_back(one.host);
        hosts_ = static_cast<long>(pes_by_host(hosts).size());
    }

    bool one_machine() const { return one_machine_; }
    long printed() const { return printed_; }

    void print_before_finalize() {
        for (size_t i = 0; i < 2; ++i)
            print(kTimes[i], "time", "s", {}, largest([&](const Own& own) { return own.seconds[i]; }));
        for (size_t i = 0; i < kMemories.size(); ++i) {
            std::vector<double> bytes;
            for (const Own& own : owns_) bytes.push_back(static_cast<double>(own.bytes[i]));
            std::sort(bytes.begin(), bytes.end());
            if (bytes.front() <= 0) {
                skip(kMemories[i], "/proc/self/smaps_rollup cannot be read");
                continue;
            }
            print(kMemories[i], "memory", "bytes", "median", bytes[bytes.size() / 2]);
            print(kMemories[i], "memory", "bytes", "largest", bytes.back());
        }
    }

    // `pe`: which one's it is; empty: the slowest one's.
    void print(const std::string& op, const char* metric, const char* unit, const std::string& pe, double value) {
        if (!options_.wants_op(op))
            return;
        Json params, point;
        params.integer("pes", n_pes_).integer("threads", 1).text("op", op);
        params.boolean("oversubscribed", oversubscribed_);
        if (hosts_ > 1)
            params.integer("hosts", hosts_);
        if (!pe.empty())
            params.text("pe", pe);
        point.text("event", "point").text("benchmark", "startup").object("params", params).text("metric", metric);
        point.text("unit", unit).numbers("samples", {value});
        if (options_.validate)
            point.boolean("valid", told_ == n_pes_);
        else
            point.raw("valid", "null");
        point.print();
        ++printed_;
    }

  private:
    template <class Value>
    double largest(Value&& value) const {
        double most = 0;
        for (const Own& own : owns_) most = std::max(most, value(own));
        return most;
    }

    const Options& options_;
    const int n_pes_;
    std::vector<Own> owns_;
    long told_ = 0;
    bool one_machine_ = true;
    bool oversubscribed_ = false;
    long hosts_ = 1;
    long printed_ = 0;
};

// A new file, to which all may append, and its path; -1 when there can be none.
int make_file(char* path) {
    const char* const folder = std::getenv("TMPDIR");
    const int length = std::snprintf(path, kPathBytes, "%s/shmem-mt-startup-XXXXXX", folder ? folder : "/tmp");
    return length < kPathBytes ? mkostemp(path, O_APPEND) : -1;
}

// The largest of what n_pes PEs write. A PE that dies instead is for the launcher to notice.
double largest_written(int fd, int n_pes) {
    std::vector<double> values(static_cast<size_t>(n_pes));
    const off_t bytes = static_cast<off_t>(values.size() * sizeof(double));
    for (struct stat status; fstat(fd, &status) == 0 && status.st_size < bytes;) usleep(1000);
    if (pread(fd, values.data(), static_cast<size_t>(bytes), 0) != bytes)
        return -1;
    return *std::max_element(values.begin(), values.end());
}

void run(const Options& options) {
    Own own;
    private_bytes();  // its own buffers are there from here on
    own.bytes[0] = private_bytes();
    own.seconds[0] = seconds_of([] { shmem_init(); });
    own.bytes[1] = private_bytes();
    own.seconds[1] = seconds_of([] { shmem_barrier_all(); });
    own.bytes[2] = private_bytes();
    own.told = 1;

    const int me = shmem_my_pe(), n_pes = shmem_n_pes();
    own.cores = cores_of(me);
    const size_t owns_bytes = sizeof(Own) * static_cast<size_t>(n_pes);
    auto* const owns = static_cast<Own*>(shmem_malloc(owns_bytes));
    auto* const path = static_cast<char*>(shmem_malloc(kPathBytes));
    if (owns == nullptr || path == nullptr) {
        std::fprintf(stderr, "shmem-mt: PE %d: shmem_malloc failed: raise SHMEM_SYMMETRIC_SIZE\n", me);
        shmem_global_exit(1);
    }
    std::memset(static_cast<void*>(owns), 0, owns_bytes);
    // What is known after finalize goes through a file.
    int fd = me == 0 ? make_file(path) : -1;
    shmem_barrier_all();
    if (me != 0) {
        shmem_getmem(path, path, kPathBytes, 0);
        fd = open(path, O_WRONLY | O_APPEND);
    }
    own.shares_file = fd >= 0;
    shmem_putmem(owns + me, &own, sizeof own, 0);
    shmem_barrier_all();

    Points points(options, owns, n_pes);
    if (me == 0) {
        if (fd >= 0)
            unlink(path);
        print_library();
        points.print_before_finalize();
        if (!points.one_machine())
            skip("finalize", "its PEs share no folder for temporary files");
        Json().text("event", "done").integer("points", points.printed()).print();
    }
    const double seconds = seconds_of([] { shmem_finalize(); });
    if (fd >= 0 && write(fd, &seconds, sizeof seconds) != sizeof seconds)
        std::perror("shmem-mt: startup");
    if (me == 0 && points.one_machine())
        points.print("finalize", "time", "s", {}, largest_written(fd, n_pes));
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    std::vector<std::string> ops = kTimes;
    ops.push_back(kLaunch);
    ops.insert(ops.end(), kMemories.begin(), kMemories.end());
    run(parse_options(argc, argv, Options(), ops));
    return 0;
}
