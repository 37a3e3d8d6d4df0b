// How evenly the mini-apps share their work among many threads: counted, on one core, without a run. A line each, "NAME
// VALUE": what the thread with most to do has over the mean of all threads (imbalance), and what else is counted.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/is/kernels.hpp"
#include "apps/is/layout.hpp"
#include "apps/krylov/halo_parts.hpp"
#include "apps/mandelbrot/image.hpp"
#include "apps/minife/mesh.hpp"

namespace shmem_mt {
namespace {

void print(const char* name, double value) {
    std::printf("%s %.6g\n", name, value);
}

double imbalance(const std::vector<long>& loads) {
    long most = 0, all = 0;
    for (const long load : loads) {
        most = std::max(most, load);
        all += load;
    }
    return static_cast<double>(most) * static_cast<double>(loads.size()) / static_cast<double>(all);
}

// Of the keys that workers rank, and the streams that each of them packs.
void share_is(const std::string& name, int workers) {
    for (const IsClass& problem : kIsClasses) {
        if (problem.name != name)
            continue;
        const int log2 = log2_buckets(workers, problem.log2_range);
        std::vector<int32_t> keys(static_cast<size_t>(problem.keys()));
        draw_keys(problem, {0, problem.keys()}, keys.data());
        std::vector<uint32_t> counts(size_t{1} << log2);
        count_buckets(keys.data(), problem.keys(), problem.log2_range - log2, counts.data());
        const std::vector<long> sizes(counts.begin(), counts.end());
        IsDeal deal(workers, log2);
        deal.deal(sizes.data(), problem.keys());
        print("imbalance", deal.imbalance());
        print("buckets", static_cast<double>(deal.all_buckets()));
        print("streams", deal.streams()[deal.all_buckets() - 1] + 1.0);
        bool shared = false;  // a stream between two workers
        for (int worker = 1; worker < workers; ++worker) {
            const long first = deal.buckets(worker).begin;
            shared = shared || (first > 0 && first < deal.all_buckets() && deal.buckets(worker).length() > 0 &&
                                deal.streams()[first] == deal.streams()[first - 1]);
        }
        print("shared_streams", shared);
    }
}

// Of the elements that the threads of all PEs assemble: colour by colour, as barriers lie between; and whether two
// blocks of a colour touch one node.
void share_minife(long edge, int pes, int threads) {
    const FeCube cube(edge, pes);
    ThreadTeam team(1);
    double slowest = 0;
    long touched_twice = 0;
    for (int pe = 0; pe < pes; ++pe) {
        const FeMesh mesh(team, cube, pe);
        double longest = 0;
        for (const Range& color : mesh.colors()) {
            std::vector<long> loads(static_cast<size_t>(threads), 0L);
            std::vector<long> block_of(mesh.numbers().size(), -1L);
            for (int thread = 0; thread < threads; ++thread) {
                const Range own = color.share(thread, threads);
                for (long block = own.begin; block < own.end; ++block) {
                    const Range elements = mesh.blocks()[static_cast<size_t>(block)];
                    loads[static_cast<size_t>(thread)] += elements.length();
                    for (long i = elements.begin; i < elements.end; ++i) {
                        for (const int32_t node : mesh.elements()[static_cast<size_t>(i)]) {
                            long& other = block_of[static_cast<size_t>(node)];
                            touched_twice += other >= 0 && other != block;
                            other = block;
                        }
                    }
                }
            }
            longest += static_cast<double>(*std::max_element(loads.begin(), loads.end()));
        }
        slowest = std::max(slowest, longest);
    }
    print("imbalance", slowest * pes * threads / static_cast<double>(edge * edge * edge));
    print("touched_twice", static_cast<double>(touched_twice));
}

void share_halo(const std::vector<long>& lengths, int threads) {
    const HaloParts parts(lengths, threads);
    std::vector<long> loads(static_cast<size_t>(threads), 0L), covered(lengths.size(), 0L);
    for (int thread = 0; thread < threads; ++thread) {
        for (const HaloPart& part : parts.of(thread)) {
            loads[static_cast<size_t>(thread)] += part.elements.length();
            covered[part.list] += part.elements.length();
        }
    }
    print("messages", static_cast<double>(parts.messages()));
    print("whole", covered == lengths);
    print("imbalance", imbalance(loads));
}

}  // namespace
}  // namespace shmem_mt

int main(int argc, char** argv) {
    using namespace shmem_mt;
    const std::string app = argc > 1 ? argv[1] : "";
    const auto number = [&](int i) { return std::atol(argv[i]); };
    if (app == "is" && argc == 4)
        share_is(argv[2], static_cast<int>(number(3)));
    else if (app == "minife" && argc == 5)
        share_minife(number(2), static_cast<int>(number(3)), static_cast<int>(number(4)));
    else if (app == "mandelbrot" && argc == 4)
        print("rows", static_cast<double>(MandelbrotImage::rows_of_a_piece(number(2), static_cast<int>(number(3)))));
    else if (app == "halo" && argc > 3) {
        std::vector<long> lengths;
        for (int i = 3; i < argc; ++i) lengths.push_back(number(i));
        share_halo(lengths, static_cast<int>(number(2)));
    } else
        return 2;
    return 0;
}
