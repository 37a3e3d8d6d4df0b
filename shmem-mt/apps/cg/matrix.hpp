// The matrix of the NAS Parallel Benchmark CG, as its report specifies it: the sum over i of w_i v_i v_i^T, then 0.1 -
// shift on the diagonal. The weights w_i fall geometrically from 1 to 0.1; v_i has `nonzer` random entries at random
// places, and 0.5 at place i. Every PE draws all vectors, which costs little, and adds up its own rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "apps/cg/layout.hpp"
#include "apps/common/npb_random.hpp"
#include "apps/common/sparse_matrix.hpp"
#include "programs/common/thread_team.hpp"

namespace shmem_mt {

struct CgClass {
    const char* name;
    long n;       // rows
    long nonzer;  // random entries of a vector
    double shift;
    int steps;    // of the power method
    double zeta;  // what they must lead to
};

constexpr CgClass kCgClasses[] = {
    {"S", 1400, 7, 10, 15, 8.5971775078648},     {"W", 7000, 8, 12, 15, 10.362595087124},
    {"A", 14000, 11, 20, 15, 17.130235054029},   {"B", 75000, 13, 60, 75, 22.712745482631},
    {"C", 150000, 15, 110, 75, 28.973605592845}, {"D", 1500000, 21, 500, 100, 52.514532105794},
};
constexpr int kCgIterations = 25;  // of conjugate gradients in each step

class CgGenerator {
  public:
    explicit CgGenerator(const CgClass& problem) : problem_(problem) {
        const size_t n = static_cast<size_t>(problem.n);
        rows_of_.resize(n);
        vectors_.resize(n);
        NpbRandom random;
        random.next();  // the benchmark leaves out the first number
        for (long i = 0; i < problem.n; ++i) draw(random, i);
    }

    // Bytes on each PE, about: two entries for each that is drawn, in vectors that have grown by doubling.
    static double memory_need(const CgClass& problem) {
        long capacity = 1;
        while (capacity < problem.nonzer + 1) capacity *= 2;
        return static_cast<double>(problem.n) *
               static_cast<double>(2 * (sizeof(std::vector<Entry>) + capacity * static_cast<long>(sizeof(Entry))));
    }

    // Of all rows together, at most.
    static double entries(const CgClass& problem) {
        return static_cast<double>(problem.n) * static_cast<double>((problem.nonzer + 1) * (problem.nonzer + 1));
    }

    // Rows [first, first + count); those beyond the last one are empty. Each thread of the team makes and writes its own.
    SparseMatrix rows(ThreadTeam& team, long first, long count) const {
        const auto own = [&](int thread) { return rows_of_thread(count, thread, team.size()); };
        std::vector<SparseMatrix> parts(static_cast<size_t>(team.size()));
        team.run([&](int thread) { make_rows(first, own(thread), &parts[static_cast<size_t>(thread)]); });
        std::vector<size_t> begins = {0};  // of the threads' entries
        for (const SparseMatrix& part : parts) begins.push_back(begins.back() + part.values.size());
        SparseMatrix matrix;
        matrix.starts.resize(static_cast<size_t>(count) + 1);
        matrix.values.resize(begins.back());
        matrix.columns.resize(begins.back());
        team.run([&](int thread) {
            SparseMatrix part = std::move(parts[static_cast<size_t>(thread)]);
            const size_t begin = begins[static_cast<size_t>(thread)];
            const long row = own(thread).begin;
            for (size_t i = 0; i < part.starts.size(); ++i)
                matrix.starts[static_cast<size_t>(row) + i + 1] = static_cast<long>(begin) + part.starts[i];
            std::copy(part.values.begin(), part.values.end(), matrix.values.begin() + static_cast<long>(begin));
            std::copy(part.columns.begin(), part.columns.end(), matrix.columns.begin() + static_cast<long>(begin));
        });
        return matrix;
    }

  private:
    struct Entry {
        int32_t place;
        double value;
    };

    // Places beyond the end, or drawn already, are drawn anew, together with their values.
    void draw(NpbRandom& random, long i) {
        std::vector<Entry>& vector = vectors_[static_cast<size_t>(i)];
        long range = 1;
        while (range < problem_.n) range *= 2;
        while (static_cast<long>(vector.size()) < problem_.nonzer) {
            const double value = random.next();
            const auto place = static_cast<int32_t>(static_cast<double>(range) * random.next());
            if (place < problem_.n && find(vector, place) == nullptr)
                vector.push_back({place, value});
        }
        if (Entry* const own = find(vector, static_cast<int32_t>(i)))
            own->value = 0.5;
        else
            vector.push_back({static_cast<int32_t>(i), 0.5});
        for (const Entry& entry : vector)
            rows_of_[static_cast<size_t>(entry.place)].push_back({static_cast<int32_t>(i), entry.value});
    }

    static Entry* find(std::vector<Entry>& vector, int32_t place) {
        for (Entry& entry : vector) {
            if (entry.place == place)
                return &entry;
        }
        return nullptr;
    }

    // Those rows, counted from `first`, at the end of *matrix; `starts` gets the end of each.
    void make_rows(long first, const Range& rows, SparseMatrix* matrix) const {
        std::vector<double> sums(static_cast<size_t>(problem_.n), 0.0);
        for (long row = first + rows.begin; row < first + rows.end; ++row) {
            if (row < problem_.n)
                add_row(row, sums, matrix);
            matrix->starts.push_back(static_cast<long>(matrix->values.size()));
        }
    }

    // `sums` is zero before and after.
    void add_row(long row, std::vector<double>& sums, SparseMatrix* matrix) const {
        const size_t begin = matrix->columns.size();
        for (const Entry& source : rows_of_[static_cast<size_t>(row)]) {
            const double weight = std::pow(0.1, static_cast<double>(source.place) / static_cast<double>(problem_.n));
            for (const Entry& entry : vectors_[static_cast<size_t>(source.place)]) {
                double& sum = sums[static_cast<size_t>(entry.place)];
                if (sum == 0)
                    matrix->columns.push_back(entry.place);
                sum += weight * source.value * entry.value;
            }
        }
        sums[static_cast<size_t>(row)] += 0.1 - problem_.shift;
        std::sort(matrix->columns.begin() + static_cast<long>(begin), matrix->columns.end());
        for (size_t i = begin; i < matrix->columns.size(); ++i) {
            double& sum = sums[static_cast<size_t>(matrix->columns[i])];
            matrix->values.push_back(sum);
            sum = 0;
        }
    }

    const CgClass& problem_;
    std::vector<std::vector<Entry>> vectors_;  // the entries of vector i
    std::vector<std::vector<Entry>> rows_of_;  // at row i: which vectors have an entry there, and its value
};

}  // namespace shmem_mt
