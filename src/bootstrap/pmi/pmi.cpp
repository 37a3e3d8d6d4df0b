#include "bootstrap/pmi/pmi.h"

#include "base/settings.h"
#include "bootstrap/job_page.h"
#include "bootstrap/launch_environment.h"
#include "bootstrap/pmi/connection.h"
#include "os/process.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace heddle::bootstrap::pmi {

namespace {

constexpr const char* kHostKey = "heddle.host";
constexpr size_t kMaxDigits = 900;  // of a value: a whole line then fits the 1024 bytes of older process managers
constexpr size_t kSizeDigits = 8;   // the number of bytes, at the begin of the first part
constexpr size_t kKeyBytes = 64;    // PMI_MAX_KEYLEN of both versions
constexpr size_t kMaxNameBytes = 256;

struct Client {
    Connection connection;
    int pe = 0;
    int n_pes = 0;
    size_t part_bytes = 0;
    char name[kMaxNameBytes];  // of the job's space of keys
    std::vector<int> peers;
    void (*on_lost)(const char* how) = nullptr;
    pthread_t watcher;
    int stop = -1;  // an event that ends the watcher; -1: there is none
};
Client client;

Version version() {
    return client.connection.version();
}

// The command as each version calls it, and its answer.
struct Command {
    const char *request, *answer;
};
Command in_version(Command first, Command second) {
    return version() == Version::k1 ? first : second;
}

// Connects, and reads this PE's number and theirs.
bool connect(const Reason& reason) {
    const uint64_t timeout_s = base::settings.launch_timeout_s;
    long pe = 0, n_pes = 0;
    Answer answer;
    if (const int fd = inherited_pmi_socket(); fd >= 0) {
        if (!read_env_number("PMI_SIZE", 1, kMaxPes, &n_pes, reason) ||
            !read_env_number("PMI_RANK", 0, n_pes - 1, &pe, reason) || !client.connection.open(fd, timeout_s, reason))
            return false;
    } else {
        const char* const port = getenv("PMI_PORT");
        long id = 0;
        if (!port)
            return reason.fail("PMI_FD=%s is no socket that is open here, and there is no PMI_PORT",
                               getenv("PMI_FD") ? getenv("PMI_FD") : "");
        if (!read_env_number("PMI_ID", 0, kMaxPes, &id, reason) || !client.connection.connect(port, timeout_s, reason))
            return false;
        Request request(Version::k1, "initack");
        request.add("pmiid", id);
        if (!client.connection.exchange(request, "initack", &answer, reason) ||
            !client.connection.receive("set", &answer, reason))
            return false;
        const bool has_size = answer.find_number("size", 1, kMaxPes, &n_pes);
        if (!has_size || !client.connection.receive("set", &answer, reason) ||
            !answer.find_number("rank", 0, n_pes - 1, &pe) || !client.connection.receive("set", &answer, reason))
            return reason.fail("the answer to initack does not tell size and rank");
    }
    client.pe = static_cast<int>(pe);
    client.n_pes = static_cast<int>(n_pes);
    return true;
}

// Asks for a version. *agreed: the version that the process manager has chosen.
bool negotiate(long asked, long* agreed, const Reason& reason) {
    Request request(Version::k1, "init");
    request.add("pmi_version", asked);
    request.add("pmi_subversion", asked == 1 ? 1L : 0L);
    Answer answer;
    const bool is_answered = client.connection.exchange(request, "response_to_init", &answer, reason);
    if (answer.command() == "response_to_init" && answer.find_number("pmi_version", 1, 2, agreed))
        return is_answered || *agreed != asked;  // a refusal names the version that would be right
    return is_answered ? reason.fail("the answer to init has no pmi_version of 1 or 2") : false;
}

bool agree_on_version(const Reason& reason) {
    long agreed = 0;
    const long asked = base::settings.launch == base::Launch::kPmi2 ? 2 : 1;
    if (!negotiate(asked, &agreed, reason))
        return false;
    if (agreed != asked) {
        const long other = agreed;
        if (!negotiate(other, &agreed, reason))
            return false;
        if (agreed != other)
            return reason.fail("it agrees to no version of PMI: asked for %ld, it names %ld", other, agreed);
    }
    client.connection.set_version(agreed == 1 ? Version::k1 : Version::k2);
    return true;
}

bool set_part_bytes(long max_value, long max_key, const Reason& reason) {
    const size_t digits = std::min(static_cast<size_t>(max_value) - 1, kMaxDigits);
    client.part_bytes = digits / 2;
    return (max_key >= 32 && client.part_bytes > kSizeDigits) ||
           reason.fail("keys of %ld and values of %ld bytes are too short", max_key, max_value);
}

bool set_name(std::string_view name, const Reason& reason) {
    if (name.empty() || name.size() >= sizeof client.name)
        return reason.fail("the name of the job's keys has %zu bytes: right would be 1 to %zu", name.size(),
                           sizeof client.name - 1);
    memcpy(client.name, name.data(), name.size());
    client.name[name.size()] = '\0';
    return true;
}

bool start_version_1(const Reason& reason) {
    Answer answer;
    Request maxes(Version::k1, "get_maxes");
    long max_value = 0, max_key = 0;
    if (!client.connection.exchange(maxes, "maxes", &answer, reason))
        return false;
    if (!answer.find_number("vallen_max", 1, 1 << 20, &max_value) ||
        !answer.find_number("keylen_max", 1, 1 << 20, &max_key))
        return reason.fail("the answer to get_maxes does not tell vallen_max and keylen_max");
    Request name(Version::k1, "get_my_kvsname");
    return set_part_bytes(max_value, max_key, reason) &&
           client.connection.exchange(name, "my_kvsname", &answer, reason) && set_name(answer.find("kvsname"), reason);
}

bool start_version_2(const Reason& reason) {
    Answer answer;
    Request start(Version::k2, "fullinit");
    if (const char* const job = getenv("PMI_JOBID"))
        start.add("pmijobid", std::string_view(job));
    start.add("pmirank", static_cast<long>(client.pe));
    start.add("threaded", std::string_view("TRUE"));
    long pe = 0, n_pes = 0;
    if (!client.connection.exchange(start, "fullinit-response", &answer, reason))
        return false;
    if (!answer.find_number("size", client.n_pes, client.n_pes, &n_pes) ||
        !answer.find_number("rank", client.pe, client.pe, &pe))
        return reason.fail("fullinit answers another rank or size than PMI_RANK=%d and PMI_SIZE=%d", client.pe,
                           client.n_pes);
    Request name(Version::k2, "job-getid");
    return set_part_bytes(1024, kKeyBytes, reason) &&  // PMI2_MAX_VALLEN, PMI2_MAX_KEYLEN
           client.connection.exchange(name, "job-getid-response", &answer, reason) &&
           set_name(answer.find("jobid"), reason);
}

bool put(const char* key, std::string_view value, const Reason& reason) {
    const Command command = in_version({"put", "put_result"}, {"kvs-put", "kvs-put-response"});
    Request request(version(), command.request);
    if (version() == Version::k1)
        request.add("kvsname", std::string_view(client.name));
    request.add("key", std::string_view(key));
    request.add("value", value);
    Answer answer;
    return client.connection.exchange(request, command.answer, &answer, reason);
}

// The value of the key, until the next get with this answer.
bool get_value(const char* key, Answer* answer, std::string_view* value, const Reason& reason) {
    const Command command = in_version({"get", "get_result"}, {"kvs-get", "kvs-get-response"});
    Request request(version(), command.request);
    request.add(version() == Version::k1 ? "kvsname" : "jobid", std::string_view(client.name));
    if (version() == Version::k2)
        request.add("srcid", -1L);
    request.add("key", std::string_view(key));
    if (!client.connection.exchange(request, command.answer, answer, reason))
        return false;
    *value = answer->find("value");
    return !value->empty() || reason.fail("%s: the process manager has no such key", key);
}

int value_of_digit(char digit) {
    return digit >= '0' && digit <= '9' ? digit - '0' : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool decode(std::string_view digits, unsigned char* bytes) {
    for (size_t i = 0; i < digits.size() / 2; ++i) {
        const int high = value_of_digit(digits[2 * i]), low = value_of_digit(digits[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        bytes[i] = static_cast<unsigned char>(high * 16 + low);
    }
    return digits.size() % 2 == 0;
}

size_t bytes_of_part(size_t part, size_t begin, size_t bytes) {
    return std::min(client.part_bytes - (part == 0 ? kSizeDigits / 2 : 0), bytes - begin);
}

bool publish_bytes(const char* key, const void* value, size_t bytes, const Reason& reason) {
    const auto* const from = static_cast<const unsigned char*>(value);
    size_t begin = 0;
    for (size_t part = 0; begin < bytes; ++part) {
        char name[kKeyBytes], digits[kMaxDigits + 1];
        snprintf(name, sizeof name, "%s.%d.%zu", key, client.pe, part);
        size_t used = 0;
        if (part == 0)
            used = static_cast<size_t>(snprintf(digits, sizeof digits, "%08zx", bytes));
        const size_t end = begin + bytes_of_part(part, begin, bytes);
        for (; begin < end; ++begin, used += 2) snprintf(digits + used, sizeof digits - used, "%02x", from[begin]);
        if (!put(name, {digits, used}, reason))
            return false;
    }
    return true;
}

size_t get_bytes(int pe, const char* key, void* value, size_t max_bytes, const Reason& reason) {
    auto* const to = static_cast<unsigned char*>(value);
    size_t begin = 0, bytes = 1;
    for (size_t part = 0; begin < bytes; ++part) {
        char name[kKeyBytes];
        snprintf(name, sizeof name, "%s.%d.%zu", key, pe, part);
        Answer answer;
        std::string_view digits;
        if (!get_value(name, &answer, &digits, reason))
            return 0;
        unsigned char size[kSizeDigits / 2] = {};
        if (part == 0) {
            bytes = decode(digits.substr(0, kSizeDigits), size) && digits.size() >= kSizeDigits
                        ? size_t{size[0]} << 24 | size_t{size[1]} << 16 | size_t{size[2]} << 8 | size[3]
                        : 0;
            digits.remove_prefix(std::min(kSizeDigits, digits.size()));
        }
        const size_t expected = bytes == 0 || bytes > max_bytes ? 0 : bytes_of_part(part, begin, bytes);
        if (expected == 0 || digits.size() != 2 * expected || !decode(digits, to + begin)) {
            reason.fail("%s has %zu digits, of %zu bytes: right would be 1 to %zu bytes in hexadecimal digits", name,
                        digits.size(), bytes, max_bytes);
            return 0;
        }
        begin += expected;
    }
    return bytes;
}

bool pass_fence(bool has_deadline, const Reason& reason) {
    const Command command = in_version({"barrier_in", "barrier_out"}, {"kvs-fence", "kvs-fence-response"});
    Request request(version(), command.request);
    return client.connection.pass_barrier(request, command.answer, has_deadline, reason);
}

// What the PEs of one host agree in, also those in containers with host names of their own.
uint64_t hash_of_host() {
    if (const uint64_t boot = os::hash_of_boot(); boot != 0)
        return boot;
    utsname names = {};
    uname(&names);
    return os::hash_of({names.nodename, strnlen(names.nodename, sizeof names.nodename)});
}

bool find_peers(const Reason& reason) {
    const uint64_t own = hash_of_host();
    if (!publish_bytes(kHostKey, &own, sizeof own, reason) || !pass_fence(true, reason))
        return false;
    client.peers.clear();
    for (int pe = 0; pe < client.n_pes; ++pe) {
        uint64_t host = own;
        if (pe != client.pe && get_bytes(pe, kHostKey, &host, sizeof host, reason) != sizeof host)
            return false;
        if (host == own)
            client.peers.push_back(pe);
    }
    // The fence of PMI-2 promises keys, and is not a barrier: hydra's returns at once, and the get waits instead.
    if (version() == Version::k2 && client.peers.size() < static_cast<size_t>(client.n_pes) && !getenv("SLURM_STEP_ID"))
        return reason.fail(
            "the PEs are on several hosts, between which only Slurm's PMI-2 has a barrier: right would be "
            "HEDDLE_LAUNCH=pmi");
    return true;
}

// Waits for the end of the process manager, or of this client.
void* watch(void*) {
    pollfd its[] = {{client.connection.fd(), POLLRDHUP, 0}, {client.stop, POLLIN, 0}};
    while (poll(its, 2, -1) < 0 && errno == EINTR) {
    }
    if (its[1].revents == 0)
        client.on_lost("the launcher has died");
    return nullptr;
}

bool start_watcher(const Reason& reason) {
    client.stop = eventfd(0, EFD_CLOEXEC);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are the program's
    const int status = client.stop < 0 ? errno : pthread_create(&client.watcher, nullptr, watch, nullptr);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return status == 0 || reason.fail("no thread to watch the process manager: %s", strerror(status));
}

// A reason in the words of this client, and where it is to be told.
struct Failure {
    char why[256] = "";
    char* error;
    size_t error_bytes;
    Failure(char* text, size_t bytes) : error(text), error_bytes(bytes) {}
    Reason reason() { return {why, sizeof why}; }
    bool tell() const {
        snprintf(error, error_bytes, "PE %d of %d and the process manager that started it (PMI-%d): %s", client.pe,
                 client.n_pes, static_cast<int>(version()), why);
        return false;
    }
};

bool init(LauncherJob* job, uint64_t, void (*lost)(const char*), char* error, size_t error_bytes) {
    Failure failure(error, error_bytes);
    const Reason reason = failure.reason();
    client.on_lost = lost;
    if (!connect(reason) || !agree_on_version(reason) ||
        !(version() == Version::k1 ? start_version_1(reason) : start_version_2(reason)) || !find_peers(reason) ||
        !start_watcher(reason))
        return failure.tell();
    *job = {client.pe, client.n_pes, client.peers.data(), static_cast<int>(client.peers.size()), false};
    return true;
}

bool publish(const char* key, const void* value, size_t bytes, Reach, char* error, size_t error_bytes) {
    Failure failure(error, error_bytes);
    return publish_bytes(key, value, bytes, failure.reason()) || failure.tell();
}

bool fence(bool collect, char* error, size_t error_bytes) {
    Failure failure(error, error_bytes);
    return pass_fence(collect, failure.reason()) || failure.tell();
}

size_t get(int pe, const char* key, void* value, size_t max_bytes, char* error, size_t error_bytes) {
    Failure failure(error, error_bytes);
    const size_t bytes = get_bytes(pe, key, value, max_bytes, failure.reason());
    if (bytes == 0)
        failure.tell();
    return bytes;
}

// hydra's proxy loses what it has not read of a PE's output when the job is aborted. It reads all that is there once
// between two answers.
void let_output_be_read() {
    constexpr uint64_t kTimeoutS = 5;  // the process manager may be what the join has failed by
    client.connection.set_timeout(kTimeoutS);
    const Command command = in_version({"get_maxes", "maxes"}, {"job-getid", "job-getid-response"});
    for (int answers = 0; answers < 2; ++answers) {
        Request request(version(), command.request);
        Answer answer;
        char why[256];
        if (!client.connection.exchange(request, command.answer, &answer, {why, sizeof why}))
            return;
    }
}

void abort_job(int status, const char*) {
    if (client.part_bytes == 0)  // they have not agreed on the protocol
        return;
    if (client.stop < 0)  // the join has failed: no other thread uses the connection
        let_output_be_read();
    Request request(version(), "abort");
    if (version() == Version::k1)
        request.add("exitcode", static_cast<long>(status));
    else
        request.add("isworld", std::string_view("TRUE"));
    client.connection.send_last(request);
}

void finalize() {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = write(client.stop, &one, sizeof one);
    pthread_join(client.watcher, nullptr);
    close(client.stop);
    const Command command = in_version({"finalize", "finalize_ack"}, {"finalize", "finalize-response"});
    Request request(version(), command.request);
    char why[256];
    Answer answer;
    client.connection.exchange(request, command.answer, &answer, {why, sizeof why});
    client.connection.close();
}

}  // namespace

bool is_offered() {
    return inherited_pmi_socket() >= 0 || (getenv("PMI_PORT") && getenv("PMI_ID"));
}

uint64_t identify_host() {
    return hash_of_host();
}

constexpr LauncherApi launcher = {"pmi", init, publish, fence, get, abort_job, finalize};

}  // namespace heddle::bootstrap::pmi
