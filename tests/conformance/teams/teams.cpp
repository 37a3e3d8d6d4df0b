// Teams: the predefined ones, every strided split of the world and random splits of splits against a model, matrices of
// every width, configurations, numbers translated between all pairs, pointers; thousands created and destroyed in
// constant memory, more than there is room for, and what finalize does with those left over.
#include "check.h"

#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

using namespace conformance;

namespace {

// Usable in static initializers.
shmem_team_t const static_world = SHMEM_TEAM_WORLD, static_shared = SHMEM_TEAM_SHARED, no_team = SHMEM_TEAM_INVALID;

// A team and what it must be: the world's numbers of its members.
struct Known {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    std::vector<int> pes;

    int rank_of(int world_pe) const {
        const auto found = std::find(pes.begin(), pes.end(), world_pe);
        return found == pes.end() ? -1 : static_cast<int>(found - pes.begin());
    }
    bool member() const { return rank_of(pe) >= 0; }
    int size() const { return static_cast<int>(pes.size()); }
};

std::vector<int> subset(const std::vector<int>& pes, int start, int stride, int size) {
    std::vector<int> chosen;
    for (int i = 0; i < size; ++i) chosen.push_back(pes[static_cast<size_t>(start + i * stride)]);
    return chosen;
}

Known world() {
    Known known;
    known.team = SHMEM_TEAM_WORLD;
    for (int i = 0; i < n_pes; ++i) known.pes.push_back(i);
    return known;
}

void check_numbers(const Known& known) {
    CHECK_EQ(known.team != SHMEM_TEAM_INVALID, known.member());
    CHECK_EQ(shmem_team_my_pe(known.team), known.rank_of(pe));
    CHECK_EQ(shmem_team_n_pes(known.team), known.member() ? known.size() : -1);
}

// Translations from a to b, of every number and of some that neither has.
void check_translation(const Known& a, const Known& b) {
    subject = "shmem_team_translate_pe";
    for (int rank = -1; rank <= a.size(); ++rank) {
        const bool in_range = rank >= 0 && rank < a.size();
        int right = in_range ? b.rank_of(a.pes[static_cast<size_t>(rank)]) : -1;
        if (!a.member() || !b.member())
            right = -1;  // this PE has no handle
        CHECK_EQ(shmem_team_translate_pe(a.team, rank, b.team), right);
    }
}

void check_pointers(const Known& known) {
    subject = "shmem_team_ptr";
    static long datum;
    for (int rank = 0; rank < known.size() && known.member(); ++rank)
        CHECK(shmem_team_ptr(known.team, &datum, rank) == shmem_ptr(&datum, known.pes[static_cast<size_t>(rank)]));
    for (int rank : {-1, known.size(), 1 << 20}) CHECK(shmem_team_ptr(known.team, &datum, rank) == nullptr);
    CHECK(shmem_team_ptr(SHMEM_TEAM_INVALID, &datum, 0) == nullptr);
    CHECK(shmem_team_ptr(known.team, &known, 0) == nullptr);  // not symmetric
}

// The team is one in which its members, and only they, meet.
void check_meeting(const Known& known) {
    subject = "collectives on the team";
    static int source[1], dest[64];
    if (!known.member())
        return;
    source[0] = pe + 1000;
    CHECK_EQ(shmem_int_fcollect(known.team, dest, source, 1), 0);
    for (size_t i = 0; i < known.pes.size(); ++i) CHECK_EQ(dest[i], known.pes[i] + 1000);
    CHECK_EQ(shmem_team_sync(known.team), 0);
}

Known split(const Known& parent, int start, int stride, int size) {
    subject = "shmem_team_split_strided";
    Known made;
    made.pes = subset(parent.pes, start, stride, size);
    made.team = SHMEM_TEAM_WORLD;  // to be overwritten
    if (parent.member())
        CHECK_EQ(shmem_team_split_strided(parent.team, start, stride, size, nullptr, 0, &made.team), 0);
    else
        made.team = SHMEM_TEAM_INVALID;
    check_numbers(made);
    return made;
}

void predefined() {
    subject = "predefined teams";
    CHECK(static_world == SHMEM_TEAM_WORLD && static_shared == SHMEM_TEAM_SHARED && no_team == SHMEM_TEAM_INVALID);
    CHECK(SHMEM_TEAM_WORLD != SHMEM_TEAM_SHARED && SHMEM_TEAM_WORLD != SHMEM_TEAM_INVALID);
    check_numbers(world());
    int sharing = 0;
    static long datum;
    for (int other = 0; other < n_pes; ++other) sharing += shmem_ptr(&datum, other) != nullptr;
    CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_SHARED), sharing);
    const int mine = shmem_team_my_pe(SHMEM_TEAM_SHARED);
    CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_SHARED, mine, SHMEM_TEAM_WORLD), pe);
    for (int i = 0; i < sharing; ++i) CHECK(shmem_team_ptr(SHMEM_TEAM_SHARED, &datum, i));
    CHECK_EQ(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    CHECK_EQ(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD), -1);
    CHECK_EQ(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID), -1);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
}

void every_strided_split() {
    const Known all = world();
    for (int start = 0; start < n_pes; ++start) {
        for (int stride = -n_pes; stride <= n_pes; ++stride) {
            for (int size = 1; size <= n_pes; ++size) {
                const int last = start + stride * (size - 1);
                if (last < 0 || last >= n_pes || (stride == 0 && size > 1) || (size == 1 && stride % 3 != 0))
                    continue;
                const Known made = split(all, start, stride, size);
                check_translation(made, all);
                check_translation(all, made);
                check_meeting(made);
                check_pointers(made);
                subject = "shmem_team_destroy";
                shmem_team_destroy(made.team);
            }
        }
    }
}

// Splits of splits of splits, all alive; every pair is translated.
void splits_of_splits(uint64_t times) {
    Random random = random_for(3);
    for (uint64_t round = 0; round < times; ++round) {
        std::vector<Known> alive = {world()};
        for (int depth = 0; depth < 7; ++depth) {
            const Known parent = alive[random.below(alive.size())];  // a copy: the vector grows
            const auto size = parent.size();
            const int start = static_cast<int>(random.below(static_cast<size_t>(size)));
            const int stride = static_cast<int>(random.below(static_cast<size_t>(2 * size + 1))) - size;
            const int most = stride > 0 ? (size - 1 - start) / stride + 1 : stride < 0 ? start / -stride + 1 : 1;
            const int count = 1 + static_cast<int>(random.below(static_cast<size_t>(most)));
            alive.push_back(split(parent, start, stride, count));
            check_meeting(alive.back());
        }
        for (const Known& a : alive)
            for (const Known& b : alive) check_translation(a, b);
        for (const Known& known : alive) check_meeting(known);
        alive.erase(alive.begin());
        while (!alive.empty()) {  // in any order, parents before their children too
            const size_t which = random.below(alive.size());
            shmem_team_destroy(alive[which].team);
            alive.erase(alive.begin() + static_cast<std::ptrdiff_t>(which));
            for (const Known& known : alive) check_meeting(known);
        }
    }
}

void matrices(const Known& parent) {
    for (int width = 1; width <= n_pes + 2 && parent.member(); ++width) {
        subject = "shmem_team_split_2d";
        const int size = parent.size(), used = std::min(width, size), rank = parent.rank_of(pe);
        Known row, column;
        CHECK_EQ(shmem_team_split_2d(parent.team, width, nullptr, 0, &row.team, nullptr, 0, &column.team), 0);
        const int first = rank / used * used;
        row.pes = subset(parent.pes, first, 1, std::min(used, size - first));
        column.pes = subset(parent.pes, rank % used, used, (size - rank % used + used - 1) / used);
        for (const Known* team : {&row, &column}) {
            check_numbers(*team);
            check_translation(*team, parent);
            check_meeting(*team);
            check_pointers(*team);
        }
        shmem_team_destroy(width % 2 ? row.team : column.team);
        shmem_team_destroy(width % 2 ? column.team : row.team);
    }
}

void configurations() {
    subject = "shmem_team_get_config";
    shmem_team_config_t config = {-5};
    CHECK_EQ(shmem_team_get_config(SHMEM_TEAM_WORLD, 0, &config), 0);
    CHECK_EQ(config.num_contexts, -5);  // no bit asked for it
    CHECK_EQ(shmem_team_get_config(SHMEM_TEAM_WORLD, 0, nullptr), 0);
    CHECK_EQ(shmem_team_get_config(SHMEM_TEAM_WORLD, SHMEM_TEAM_NUM_CONTEXTS, &config), 0);
    CHECK_EQ(config.num_contexts, 0);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    CHECK(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, &config) != 0);
    for (int contexts : {0, 1, 7, 1000}) {
        for (long mask : {0L, SHMEM_TEAM_NUM_CONTEXTS}) {
            const shmem_team_config_t wanted = {contexts};
            shmem_team_t strided, row, column;
            CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, &wanted, mask, &strided), 0);
            const shmem_team_config_t other = {contexts + 1};
            CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, &wanted, mask, &row, &other, mask, &column), 0);
            const int right = mask ? contexts : 0;
            const struct {
                shmem_team_t team;
                int contexts;
            } cases[] = {{strided, right}, {row, right}, {column, mask ? contexts + 1 : 0}};
            for (const auto& one : cases) {
                CHECK_EQ(shmem_team_get_config(one.team, SHMEM_TEAM_NUM_CONTEXTS, &config), 0);
                CHECK_EQ(config.num_contexts, one.contexts);
                shmem_team_destroy(one.team);
            }
        }
    }
}

// Teams one after the other, each used; memory does not grow.
void cycles(uint64_t times) {
    subject = "create and destroy";
    static int one = 1, sum;
    long before = 0;
    for (uint64_t i = 0; i < times; ++i) {
        if (i == times / 4)
            before = mapped_pages();
        shmem_team_t team;
        const bool reversed = i % 2;
        CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, reversed ? n_pes - 1 : 0, reversed ? -1 : 1, n_pes, nullptr,
                                          0, &team),
                 0);
        CHECK_EQ(shmem_int_sum_reduce(team, &sum, &one, 1), 0);
        CHECK_EQ(sum, n_pes);
        if (i % 50 == 0) {
            shmem_ctx_t ctx;
            CHECK_EQ(shmem_team_create_ctx(team, 0, &ctx), 0);
            CHECK_EQ(shmem_ctx_int_g(ctx, &one, 0), 1);
        }
        shmem_team_destroy(team);
    }
    CHECK(mapped_pages() - before < 100);
}

// As many teams as there can be of the first `size` PEs: alike on all PEs.
std::vector<shmem_team_t> use_up(int size) {
    std::vector<shmem_team_t> teams;
    static int made[64];
    for (;;) {
        shmem_team_t team = SHMEM_TEAM_WORLD;
        const int status = shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, size, nullptr, 0, &team);
        CHECK_EQ(team == SHMEM_TEAM_INVALID, status != 0 || pe >= size);
        if (status != 0)
            break;
        teams.push_back(team);
        CHECK(teams.size() < 5000);
    }
    const int mine = static_cast<int>(teams.size());
    for (int other = 0; other < n_pes; ++other) shmem_int_p(&made[pe], mine, other);
    shmem_barrier_all();
    for (int other = 0; other < n_pes; ++other) CHECK_EQ(made[other], mine);
    shmem_barrier_all();
    for (shmem_team_t team : teams) CHECK_EQ(shmem_team_n_pes(team), pe < size ? size : -1);
    return teams;
}

void destroy_some(std::vector<shmem_team_t>& teams, size_t left) {
    for (; teams.size() > left; teams.pop_back()) shmem_team_destroy(teams.back());
}

// More than there is room for: nonzero on all, and nothing is lost.
void too_many() {
    subject = "more teams than there is room for";
    CHECK(n_pes > 2);
    const size_t found = 512 * static_cast<size_t>(n_pes);  // pairs that use as many member slots as 1024 teams of all
    for (int round = 0; round < 2; ++round) {
        std::vector<shmem_team_t> teams = use_up(n_pes), pairs = use_up(2);
        CHECK_EQ(teams.size(), 1024);
        CHECK_EQ(pairs.size(), found);
        destroy_some(teams, 0);
        // With room for one row of a matrix too few, and for all rows but no column, there is neither.
        for (const size_t room : {static_cast<size_t>(n_pes / 2 - 1), static_cast<size_t>(n_pes / 2)}) {
            destroy_some(pairs, found - room);
            shmem_team_t row = SHMEM_TEAM_WORLD, column = SHMEM_TEAM_WORLD;
            CHECK(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column) != 0);
            CHECK(row == SHMEM_TEAM_INVALID && column == SHMEM_TEAM_INVALID);
        }
        destroy_some(pairs, 0);
        shmem_team_t row, column;
        CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column), 0);
        shmem_team_destroy(row);
        shmem_team_destroy(column);
    }
}

// What is not destroyed ends with the library.
void finalize_and_init() {
    subject = "teams at finalize";
    for (int round = 0; round < 8; ++round) {
        shmem_init();
        shmem_team_t team = SHMEM_TEAM_INVALID;
        shmem_ctx_t ctx;
        for (int i = 0; i < 120; ++i)
            CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, nullptr, 0, &team), 0);
        CHECK_EQ(shmem_team_create_ctx(team, SHMEM_CTX_PRIVATE, &ctx), 0);
        CHECK_EQ(shmem_ctx_create(0, &ctx), 0);
        CHECK_EQ(shmem_team_my_pe(team), n_pes - 1 - pe);
        check_meeting(world());
        if (round % 2)
            shmem_team_destroy(team);
        shmem_finalize();
    }
}

}  // namespace

int main() {
    start("teams");
    predefined();
    every_strided_split();
    splits_of_splits(4);
    matrices(world());
    Known reversed = split(world(), n_pes - 1, -1, n_pes);
    matrices(reversed);
    shmem_team_destroy(reversed.team);
    configurations();
    cycles(number("HEDDLE_TEST_CYCLES", 100));
    if (number("HEDDLE_TEST_TOO_MANY", 0))
        too_many();
    finish();
    finalize_and_init();
    return 0;
}
