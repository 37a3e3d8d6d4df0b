// How long each operation of the metronome takes, and which of its messages go wrong. The environment says so:
//
//     METRONOME        NAME=BASE[+BYTE],...: nanoseconds of an operation, and of each of its bytes; what is not named
//                      takes none
//     METRONOME_MODES  N:FACTOR: each Nth operation of a thread that moves data takes FACTOR times as long
//     METRONOME_COUNT  BYTES: at its end each PE says on stderr through how many contexts it has moved so many bytes at
//                      once, and through the default one how often
//     METRONOME_FAULT  KIND:N:BYTES: each Nth message of so many bytes (0: of any number) that is meant for a PE is
//                        drop    lost
//                        double  delivered, and once more by `late` later
//                        tear    delivered by half; the other half comes by `late` later
//                        late    delivered by `late` later
//                        early   each Nth barrier (BYTES is 0), sync (1) or collective (2) does not wait for the others
//                      Completion of a message that went wrong is reported as if it were right.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace metronome {

using Picoseconds = int64_t;

struct Cost {
    const char* name;
    double base_ns = 0;
    double byte_ns = 0;

    Picoseconds of(size_t bytes = 0) const {
        return std::llround(1e3 * (base_ns + byte_ns * static_cast<double>(bytes)));
    }
};

enum class Fault { kNone, kDrop, kDouble, kTear, kLate, kEarly };

[[noreturn]] inline void fatal(const std::string& what) {
    std::fprintf(stderr, "metronome: %s\n", what.c_str());
    _Exit(3);
}

struct Settings {
    // Of the caller. A message is at its target `flight` after the call that sends it; quiet waits for that.
    Cost put{"put"}, put_nbi{"put_nbi"}, get{"get"}, get_nbi{"get_nbi"}, atomic{"atomic"}, fetch{"fetch"};
    Cost signal{"signal"};  // of a put with signal, beside the put
    Cost flight{"flight"};
    Cost quiet{"quiet"}, fence{"fence"}, test{"test"};
    Cost request{"request"};  // the wait for a request, from its completion, or the call
    Cost post{"post"};        // of a non-blocking collective
    Cost wait{"wait"};        // from the arrival of the word, or the call
    Cost barrier{"barrier"}, sync{"sync"}, collective{"collective"};  // from the arrival of the last PE
    Cost init{"init"}, finalize{"finalize"};
    Cost look{"look"};        // at a clock
    Cost compute{"compute"};  // a unit of programs/progress/computation.hpp
    Cost pipe{"pipe"};        // a byte's way through a pipe to another process
    Cost awake{"awake"};      // CPU time that a thread burns at most while it is blocked
    Cost skew{"skew"};        // PE i leaves barriers and collectives so many times i later
    Cost thread{"thread"};    // thread i of a PE is so many times i longer in each operation that moves data
    Cost late{"late"};
    long mode_every = 0;
    double mode_factor = 1;
    size_t count_bytes = 0;  // METRONOME_COUNT
    Fault fault = Fault::kNone;
    long fault_every = 1;
    size_t fault_bytes = 0;

    Settings() {
        if (const char* text = std::getenv("METRONOME"))
            read_costs(text);
        if (const char* text = std::getenv("METRONOME_MODES")) {
            if (std::sscanf(text, "%ld:%lf", &mode_every, &mode_factor) != 2 || mode_every < 1)
                fatal(std::string("METRONOME_MODES=") + text + " is not N:FACTOR");
        }
        if (const char* text = std::getenv("METRONOME_COUNT"))
            count_bytes = std::strtoul(text, nullptr, 10);
        if (const char* text = std::getenv("METRONOME_FAULT"))
            read_fault(text);
    }

  private:
    void read_costs(const std::string& text) {
        Cost* const all[] = {&put,      &put_nbi, &get,     &get_nbi, &atomic, &fetch,   &signal, &flight,     &quiet,
                             &fence,    &test,    &request, &post,    &wait,   &barrier, &sync,   &collective, &init,
                             &finalize, &look,    &compute, &pipe,    &awake,  &skew,    &thread, &late};
        for (size_t at = 0; at < text.size();) {
            const size_t end = std::min(text.find(',', at), text.size());
            const std::string item = text.substr(at, end - at);
            const std::string name = item.substr(0, item.find('='));
            bool known = false;
            for (Cost* cost : all) {
                if (name != cost->name)
                    continue;
                known = std::sscanf(item.c_str() + name.size(), "=%lf+%lf", &cost->base_ns, &cost->byte_ns) >= 1;
            }
            if (!known)
                fatal("METRONOME: " + item + " is not NAME=BASE[+BYTE] of an operation");
            at = end + 1;
        }
    }

    void read_fault(const char* text) {
        static const struct {
            const char* name;
            Fault fault;
        } kNames[] = {{"drop", Fault::kDrop},
                      {"double", Fault::kDouble},
                      {"tear", Fault::kTear},
                      {"late", Fault::kLate},
                      {"early", Fault::kEarly}};
        char name[16] = "";
        const bool whole = std::sscanf(text, "%15[a-z]:%ld:%zu", name, &fault_every, &fault_bytes) == 3;
        for (const auto& entry : kNames) {
            if (std::strcmp(name, entry.name) == 0)
                fault = entry.fault;
        }
        if (!whole || fault == Fault::kNone || fault_every < 1)
            fatal(std::string("METRONOME_FAULT=") + text + " is not KIND:N:BYTES");
    }
};

}  // namespace metronome
