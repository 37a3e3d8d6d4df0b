// Simulates a network on which messages overtake one another. Reads scenarios, one a line, from stdin; prints a JSON
// object for each. People call it by `shmem-mt simulate`.
#include <sys/resource.h>

#include <chrono>
#include <iostream>
#include <new>

#include "programs/common/output.hpp"
#include "simulation.hpp"

namespace {

using shmem_mt::Json;

rusage usage() {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used;
}

double cpu_s() {
    const rusage used = usage();
    return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

Json simulate(const shmem_mt::Scenario& scenario) {
    const auto began = std::chrono::steady_clock::now();
    const double cpu_before = cpu_s();
    shmem_mt::Simulation simulation(scenario);
    simulation.run();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
    const auto& latency = simulation.latency();
    const auto& order = simulation.reordering();
    const double sent = static_cast<double>(simulation.sent()), rate = simulation.throughput().per_second();
    Json json;
    json.number("rate", rate).number("bandwidth", rate * scenario.size_bytes);
    json.number("latency_mean_s", latency.mean() * 1e-12).number("latency_p50_s", latency.quantile(0.5) * 1e-12);
    json.number("latency_p95_s", latency.quantile(0.95) * 1e-12)
        .number("latency_p99_s", latency.quantile(0.99) * 1e-12);
    json.number("sent", sent).number("delivered", static_cast<double>(simulation.throughput().done()));
    json.number("delivered_bytes", simulation.bytes_delivered());
    json.number("overtaken_share", static_cast<double>(order.overtaken) / sent);
    json.number("overtaken_distance",
                order.overtaken ? static_cast<double>(order.distance) / static_cast<double>(order.overtaken) : 0);
    json.number("overtaken_farthest", static_cast<double>(order.farthest));
    json.number("released_out_of_order", static_cast<double>(order.released_out_of_order));
    json.number("most_buffered", static_cast<double>(order.most_buffered));
    json.number("simulated_s", static_cast<double>(simulation.throughput().end()) * 1e-12);
    json.number("events", static_cast<double>(simulation.events()));
    json.number("wall_s", took.count()).number("cpu_s", cpu_s() - cpu_before);
    json.number("events_per_s", static_cast<double>(simulation.events()) / took.count());
    return json.number("peak_memory_bytes", static_cast<double>(usage().ru_maxrss) * 1024);
}

}  // namespace

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        try {
            simulate(shmem_mt::ScenarioReader(line).read()).print();
        } catch (const std::bad_alloc&) {
            shmem_mt::refuse("out of memory");
        }
    }
}
