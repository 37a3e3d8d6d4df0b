#include "profiling/page.h"

#include "base/error.h"
#include "base/settings.h"
#include "profiling/text.h"

#include <algorithm>
#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstring>

namespace heddle::profiling {

namespace {

constexpr size_t kNameColumn = 65, kLeastOfName = 3;  // of a line of the table: where the call begins
constexpr size_t kRows = 20, kMostAdvice = 10, kColumns = 100;
constexpr int kMostInMatrix = 8;
constexpr uint64_t kLeastNs = 1000;  // of a PE, on average, for a place that is told

std::string seconds(double s) {
    if (s >= 1)
        return print("%.2f s", s);
    if (s >= 1e-3)
        return print("%.2f ms", s * 1e3);
    return print("%.2f us", s * 1e6);
}

std::string bytes(double count) {
    if (count < 1024)
        return print("%.0f B", count);
    if (count < 1024 * 1024)
        return print("%.1f KiB", count / 1024);
    return count < 1024. * 1024 * 1024 ? print("%.1f MiB", count / (1024 * 1024))
                                       : print("%.1f GiB", count / (1024. * 1024 * 1024));
}

double percent(double part, double whole) {
    return whole > 0 ? 100 * part / whole : 0;
}

const char* path_of(const Counts& counts) {
    const auto most = std::max_element(counts.paths.begin(), counts.paths.end());
    return *most == 0 ? "" : kPathNames[most - counts.paths.begin()];
}

// Breaks a text into lines, the later ones indented.
std::string wrap(const std::string& text, size_t indent) {
    std::string wrapped;
    size_t column = indent, at = 0;
    while (at < text.size()) {
        const size_t end = std::min(text.find(' ', at), text.size());
        if (column != indent && column + 1 + end - at > kColumns) {
            wrapped.append(1, '\n').append(indent, ' ');
            column = indent;
        } else if (column != indent) {
            wrapped += ' ';
            ++column;
        }
        wrapped += text.substr(at, end - at);
        column += end - at;
        at = end + 1;
    }
    return wrapped + '\n';
}

std::string head(const JobProfile& job) {
    const double pes = static_cast<double>(job.pes), wall = job.wall_s();
    const double of_all = static_cast<double>(job.library.sum) * 1e-9 / pes;
    std::string text = print("heddle profile of %s: %llu PE%s, %s\nin the library %.1f %%",
                             program_invocation_short_name, static_cast<unsigned long long>(job.pes),
                             job.pes == 1 ? "" : "s", seconds(wall).c_str(), percent(of_all, wall));
    if (job.pes > 1)
        text += print(" (PE %lld %.1f %%, PE %lld %.1f %%)", static_cast<long long>(job.library.least_pe),
                      percent(static_cast<double>(job.library.least) * 1e-9, wall),
                      static_cast<long long>(job.library.most_pe),
                      percent(static_cast<double>(job.library.most) * 1e-9, wall));
    text +=
        print("\nthreads of a PE: up to %llu; heap: up to %s of a PE\n",
              static_cast<unsigned long long>(job.threads.most), bytes(static_cast<double>(job.memory.most)).c_str());
    return text;
}

// To the columns of the page, by letters of the function where its place would be cut off.
std::string shorten(const std::string& line) {
    if (line.size() <= kColumns)
        return line;
    const size_t place = std::min(line.find(" at "), line.size()), from = kNameColumn + kLeastOfName;
    const size_t over = line.size() - kColumns + 2;
    if (place < from || place - from < over)
        return line.substr(0, kColumns);
    return line.substr(0, place - over) + ".." + line.substr(place);
}

std::string table(const Document& document) {
    const JobProfile& job = document.job;
    const auto pes = static_cast<double>(job.pes);
    std::string text = "\n     time  share  calls/PE       size    path  PEs of most, least  call\n";
    size_t rows = 0;
    while (rows < std::min<size_t>(job.n_sites, kRows) && job.sites[rows].time.sum >= job.pes * kLeastNs) ++rows;
    for (size_t i = 0; i < rows; ++i) {
        const Site& site = job.sites[i];
        const Counts& counts = site.counts;
        const double time =
            static_cast<double>(site.time.sum) * 1e-9 / pes / static_cast<double>(std::max<uint64_t>(site.threads, 1));
        const std::string size =
            counts.bytes == 0 ? "" : bytes(static_cast<double>(counts.bytes) / static_cast<double>(counts.calls));
        const std::string line =
            print("%9s %5.1f%% %9.0f %10s %7s  %7lld, %7lld  %s", seconds(time).c_str(), percent(time, job.wall_s()),
                  static_cast<double>(counts.calls) / pes, size.c_str(), path_of(counts),
                  static_cast<long long>(site.time.most_pe), static_cast<long long>(site.time.least_pe),
                  name_of(site, document.places[i]).c_str());
        text += shorten(line) + "\n";
    }
    if (job.n_sites > rows)
        text += print("  and %llu more places\n", static_cast<unsigned long long>(job.n_sites - rows));
    if (job.lost_calls != 0)
        text += print("  and %llu calls at places for which there was no room\n",
                      static_cast<unsigned long long>(job.lost_calls));
    return text;
}

std::string matrix(const JobProfile& job) {
    if (job.pes < 2 || job.pes > kMostInMatrix)
        return "";
    std::string text = "\nbytes from (rows) to PE";
    for (size_t target = 0; target < job.pes; ++target) text += print(" %9zu", target);
    text += '\n';
    for (size_t from = 0; from < job.pes; ++from) {
        text += print("%23zu", from);
        for (size_t target = 0; target < job.pes; ++target)
            text += print(" %9s", bytes(static_cast<double>(job.pairs[from][target].bytes)).c_str());
        text += '\n';
    }
    return text;
}

std::string advice(const Document& document) {
    if (document.advice.empty())
        return "\nno rule has anything to advise\n";
    std::string text = "\nadvice, with what it may save of each PE's time\n";
    for (size_t i = 0; i < std::min(document.advice.size(), kMostAdvice); ++i) {
        const Advice& one = document.advice[i];
        text += print("%2zu. %9s %4.1f%%  ", i + 1, seconds(one.gain_s).c_str(),
                      percent(one.gain_s, document.job.wall_s()));
        text += wrap(one.text, 21);
    }
    return text;
}

}  // namespace

std::string to_page(const Document& document) {
    return head(document.job) + table(document) + matrix(document.job) + advice(document);
}

void print_and_write(JobProfile& job) {
    const NumberFormat as_in_c;
    const char* const name = base::settings.profile;
    const Document document = make_document(job);
    std::string page = to_page(document);
    const std::string json = to_json(document);
    if (write_file("HEDDLE_PROFILE", name,
                   [&](FILE* file) { return fwrite(json.data(), 1, json.size(), file) == json.size(); }))
        page += print("\nall of it as JSON: %s\n", name);
    fputs(page.c_str(), stderr);
}

}  // namespace heddle::profiling
