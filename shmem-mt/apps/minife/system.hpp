// The equations of one PE's nodes, made of the elements of all PEs. The matrix's entries are found once, from the lists
// of elements and the announcements of other PEs; each assembly computes the values anew.
//
// Threads share the blocks of a colour (mesh.hpp). No two blocks of a colour add to one row, and the order of additions
// to an entry does not depend on the number of threads. A thread writes first to the rows that are its own in the
// solver.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "apps/common/slices.hpp"
#include "apps/krylov/halo.hpp"
#include "apps/krylov/row_slices.hpp"
#include "apps/krylov/system.hpp"
#include "apps/minife/contributions.hpp"
#include "apps/minife/element.hpp"
#include "apps/minife/mesh.hpp"
#include "programs/common/job.hpp"

namespace shmem_mt {

class FeSystem {
  public:
    // `syncs` are those that the exchange may have. Collective.
    FeSystem(Job& job, const FeCube& cube, FeMesh& mesh, const std::vector<Sync>& syncs) : job_(job), mesh_(mesh) {
        const std::vector<long>& firsts = cube.firsts();
        own_ = {firsts[static_cast<size_t>(job.me())], firsts[static_cast<size_t>(job.me()) + 1]};
        const std::vector<Columns> rows = touched_rows();
        contributions_ = std::make_unique<FeContributions>(job, entries_of_others(rows), firsts);
        system_ = std::make_unique<KrylovSystem>(job.team(), own_matrix(rows), firsts, job.me());
        find_places(rows);
        halo_ = std::make_unique<KrylovHalo>(job, *system_, syncs);
        fixed_.resize(static_cast<size_t>(system_->rows() + system_->ghosts()));
        right_side_.resize(static_cast<size_t>(system_->rows()));
    }

    const KrylovSystem& equations() const { return *system_; }
    KrylovHalo& halo() { return *halo_; }
    const double* right_side() const { return right_side_.data(); }

    // All steps. Between two times there must be a barrier of all PEs.
    template <class Fixed>
    void build(int thread, Fixed&& fixed) {
        assemble(thread);
        gather(thread);
        fix(thread, fixed);
        exchange_fixed(thread);
        eliminate(thread);
    }

    // The steps, in this order; all threads. Each ends with all of them past a barrier.
    void assemble(int thread) {
        clear(thread, &system_->matrix().values);
        clear(thread, &others_.values);
        job_.team().barrier();
        for (const Range& color : mesh_.colors()) {
            for_share(color, thread, job_.threads(), [&](long block) {
                const Range elements = mesh_.blocks()[static_cast<size_t>(block)];
                for (long i = elements.begin; i < elements.end; ++i)
                    add_element(mesh_.elements()[static_cast<size_t>(i)]);
            });
            job_.team().barrier();
        }
    }

    void gather(int thread) {
        Untouched<double>& values = system_->matrix().values;
        contributions_->gather(thread, others_.values.data(), [&](size_t received, double value) {
            values[static_cast<size_t>(received_places_[received])] += value;
        });
    }

    // fixed(point) is the temperature that is given there, or no number where there is none.
    template <class Fixed>
    void fix(int thread, Fixed&& fixed) {
        const Range mine = Range{0, system_->rows()}.share(thread, job_.threads());
        for (long row = mine.begin; row < mine.end; ++row)
            fixed_[static_cast<size_t>(row)] = fixed(mesh_.own_points()[static_cast<size_t>(row)]);
        job_.team().barrier();
    }

    void exchange_fixed(int thread) {
        halo_->send(thread, fixed_.data());
        halo_->receive(thread, fixed_.data());
        job_.team().barrier();
    }

    // What is given goes to the right side, symmetrically; its own equation keeps the diagonal.
    void eliminate(int thread) {
        SparseMatrix& matrix = system_->matrix();
        const Range mine = Range{0, system_->rows()}.share(thread, job_.threads());
        for (long row = mine.begin; row < mine.end; ++row) {
            const double own = fixed_[static_cast<size_t>(row)];
            double right_side = 0;
            for (long i = matrix.starts[static_cast<size_t>(row)]; i < matrix.starts[static_cast<size_t>(row) + 1];
                 ++i) {
                const long column = matrix.columns[static_cast<size_t>(i)];
                const double given = fixed_[static_cast<size_t>(column)];
                double& value = matrix.values[static_cast<size_t>(i)];
                if (column == row && !std::isnan(own))
                    right_side += value * own;
                else if (!std::isnan(own))
                    value = 0;
                else if (!std::isnan(given))
                    right_side -= std::exchange(value, 0) * given;
            }
            right_side_[static_cast<size_t>(row)] = right_side;
        }
        job_.team().barrier();
    }

  private:
    using Columns = std::vector<int32_t>;  // numbers, rising

    static constexpr int32_t kNone = -1;

    bool is_own(int32_t number) const { return number >= own_.begin && number < own_.end; }

    static void sort_out(Columns* columns) {
        std::sort(columns->begin(), columns->end());
        columns->erase(std::unique(columns->begin(), columns->end()), columns->end());
    }

    // Of each touched node, the elements that touch it: 8, or fewer at the sides of the PE's mesh.
    std::vector<std::array<int32_t, 8>> elements_of_nodes() const {
        std::vector<std::array<int32_t, 8>> elements(mesh_.numbers().size());
        for (auto& of_node : elements) of_node.fill(kNone);
        for (size_t i = 0; i < mesh_.elements().size(); ++i) {
            for (const int32_t node : mesh_.elements()[i]) {
                auto& of_node = elements[static_cast<size_t>(node)];
                *std::find(of_node.begin(), of_node.end(), kNone) = static_cast<int32_t>(i);
            }
        }
        return elements;
    }

    // The columns that own elements have in the row of each node that they touch.
    std::vector<Columns> touched_rows() const {
        const auto elements = elements_of_nodes();
        std::vector<Columns> rows(elements.size());
        job_.team().run([&](int thread) {
            for_share({0, static_cast<long>(rows.size())}, thread, job_.threads(), [&](long node) {
                Columns& columns = rows[static_cast<size_t>(node)];
                for (const int32_t element : elements[static_cast<size_t>(node)]) {
                    if (element == kNone)
                        break;
                    for (const int32_t column : mesh_.elements()[static_cast<size_t>(element)])
                        columns.push_back(mesh_.numbers()[static_cast<size_t>(column)]);
                }
                sort_out(&columns);
            });
        });
        return rows;
    }

    // Touched nodes that belong to others, by number.
    std::vector<size_t> nodes_of_others() const {
        std::vector<size_t> nodes;
        for (size_t node = 0; node < mesh_.numbers().size(); ++node) {
            if (!is_own(mesh_.numbers()[node]))
                nodes.push_back(node);
        }
        std::sort(nodes.begin(), nodes.end(),
                  [&](size_t a, size_t b) { return mesh_.numbers()[a] < mesh_.numbers()[b]; });
        return nodes;
    }

    std::vector<FeContributions::Entry> entries_of_others(const std::vector<Columns>& rows) const {
        std::vector<FeContributions::Entry> entries;
        for (const size_t node : nodes_of_others()) {
            for (const int32_t column : rows[node]) entries.push_back({mesh_.numbers()[node], column});
        }
        return entries;
    }

    // With the columns that the elements of others bring.
    SparseMatrix own_matrix(const std::vector<Columns>& touched) const {
        std::vector<Columns> rows(static_cast<size_t>(own_.length()));
        for (size_t node = 0; node < touched.size(); ++node) {
            if (is_own(mesh_.numbers()[node]))
                rows[static_cast<size_t>(mesh_.numbers()[node] - own_.begin)] = touched[node];
        }
        for (const FeContributions::Entry& entry : contributions_->received())
            rows[static_cast<size_t>(entry.row - own_.begin)].push_back(entry.column);
        const RowSlices slices(own_.length());
        SparseMatrix matrix;
        matrix.starts.resize(rows.size() + 1);
        job_.team().run([&](int thread) {
            const Range mine = slices.of_thread(thread, job_.threads());
            for (size_t row = static_cast<size_t>(mine.begin); row < static_cast<size_t>(mine.end); ++row) {
                sort_out(&rows[row]);
                matrix.starts[row + 1] = static_cast<long>(rows[row].size());
            }
        });
        for (size_t i = 1; i < matrix.starts.size(); ++i) matrix.starts[i] += matrix.starts[i - 1];
        matrix.columns.resize(static_cast<size_t>(matrix.starts.back()));
        matrix.values.resize(matrix.columns.size());
        job_.team().run([&](int thread) {
            const Range mine = slices.of_thread(thread, job_.threads());
            for (size_t row = static_cast<size_t>(mine.begin); row < static_cast<size_t>(mine.end); ++row) {
                std::copy(rows[row].begin(), rows[row].end(), matrix.columns.begin() + matrix.starts[row]);
                std::fill_n(matrix.values.begin() + matrix.starts[row], rows[row].size(), 0.0);
            }
        });
        return matrix;
    }

    // Where in vectors the touched nodes are, where in the matrix the received entries, and the rows of others.
    void find_places(const std::vector<Columns>& rows) {
        for (const int32_t number : mesh_.numbers()) places_.push_back(system_->place(number));
        for (const FeContributions::Entry& entry : contributions_->received())
            received_places_.push_back(
                place_in(system_->matrix(), entry.row - own_.begin, system_->place(entry.column)));
        others_.starts.push_back(0);
        for (const size_t node : nodes_of_others()) {
            // A ghost that no own element touches has no row: it stays empty.
            while (static_cast<long>(others_.starts.size()) - 1 < places_[node] - system_->rows())
                others_.starts.push_back(others_.starts.back());
            for (const int32_t column : rows[node]) others_.columns.push_back(system_->place(column));
            others_.starts.push_back(static_cast<long>(others_.columns.size()));
        }
        others_.values.resize(others_.columns.size());
    }

    static long place_in(const SparseMatrix& matrix, long row, int32_t column) {
        long i = matrix.starts[static_cast<size_t>(row)];
        while (matrix.columns[static_cast<size_t>(i)] != column) ++i;
        return i;
    }

    void clear(int thread, Untouched<double>* values) const {
        const Range mine = Range{0, static_cast<long>(values->size())}.share(thread, job_.threads());
        std::fill(values->begin() + mine.begin, values->begin() + mine.end, 0.0);
    }

    void add_element(const FeMesh::Element& element) {
        std::array<FePoint, 8> corners;
        std::array<int32_t, 8> places{};
        std::array<size_t, 8> rising{0, 1, 2, 3, 4, 5, 6, 7};  // corners in the order of a row's columns
        for (size_t corner = 0; corner < 8; ++corner) {
            const size_t node = static_cast<size_t>(element[corner]);
            corners[corner] = mesh_.points()[node];
            places[corner] = places_[node];
        }
        std::sort(rising.begin(), rising.end(), [&](size_t a, size_t b) {
            return mesh_.numbers()[static_cast<size_t>(element[a])] < mesh_.numbers()[static_cast<size_t>(element[b])];
        });
        const FeStiffness sums = stiffness(shapes_, corners);
        for (size_t a = 0; a < 8; ++a) {
            const bool own = places[a] < system_->rows();
            SparseMatrix& matrix = own ? system_->matrix() : others_;
            // One walk through the row finds all of its 8 columns.
            long i = matrix.starts[static_cast<size_t>(own ? places[a] : places[a] - system_->rows())];
            for (const size_t b : rising) {
                while (matrix.columns[static_cast<size_t>(i)] != places[b]) ++i;
                matrix.values[static_cast<size_t>(i)] += sums[a][b];
            }
        }
    }

    Job& job_;
    FeMesh& mesh_;
    const FeShapes shapes_;
    Range own_{};  // numbers
    std::unique_ptr<FeContributions> contributions_;
    std::unique_ptr<KrylovSystem> system_;
    std::unique_ptr<KrylovHalo> halo_;
    SparseMatrix others_;          // what is added to rows of other PEs; a row for each ghost, up to the last such
    std::vector<int32_t> places_;  // of touched nodes, in vectors
    std::vector<long> received_places_;  // in the values of the matrix
    Untouched<double> fixed_;            // with ghosts
    Untouched<double> right_side_;
};

}  // namespace shmem_mt
