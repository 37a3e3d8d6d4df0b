// What collectives.h declares.
#include "collectives.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

namespace conformance {

namespace {

Group group_of(shmem_team_t team, int start, int stride, int size) {
    Group group = {team, start, stride, size, -1};
    for (int rank = 0; rank < size; ++rank)
        if (start + rank * stride == pe)
            group.rank = rank;
    return group;
}

// The members start, start + stride, ... of parent. Collective over its members.
Group split(const Group& parent, int start, int stride, int size) {
    shmem_team_t team = SHMEM_TEAM_INVALID;
    if (parent.member())
        CHECK_EQ(shmem_team_split_strided(parent.team, start, stride, size, nullptr, 0, &team), 0);
    const Group group = group_of(team, parent.start + start * parent.stride, parent.stride * stride, size);
    CHECK_EQ(team != SHMEM_TEAM_INVALID, group.member());
    return group;
}

// The PEs of this node, where they are numbered one behind the other.
Group shared_group() {
    const int first = shmem_team_translate_pe(SHMEM_TEAM_SHARED, 0, SHMEM_TEAM_WORLD);
    return group_of(SHMEM_TEAM_SHARED, first, 1, shmem_team_n_pes(SHMEM_TEAM_SHARED));
}

}  // namespace

Group world_group() {
    return group_of(SHMEM_TEAM_WORLD, 0, 1, n_pes);
}

std::vector<Group> make_groups() {
    const Group world = world_group();
    std::vector<Group> groups = {world, shared_group()};
    groups.push_back(split(world, n_pes - 1, -1, n_pes));
    groups.push_back(split(world, 0, 2, (n_pes + 1) / 2));
    if (n_pes > 1) {
        groups.push_back(split(world, 1, 1, n_pes - 1));
        groups.push_back(split(world, 1, 2, n_pes / 2));
        groups.push_back(split(groups[2], 0, 2, (n_pes + 1) / 2));  // of the reversed team
    }
    // A team of one for each PE: a matrix one PE wide has rows of one.
    shmem_team_t row = SHMEM_TEAM_INVALID, column = SHMEM_TEAM_INVALID;
    CHECK_EQ(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, nullptr, 0, &row, nullptr, 0, &column), 0);
    groups.push_back(group_of(row, pe, 1, 1));
    groups.push_back(group_of(column, 0, 1, n_pes));
    return groups;
}

std::vector<Group> make_groups_of_thread(uint64_t thread) {
    std::vector<Group> groups = make_groups();
    if (thread == 0)
        return groups;
    CHECK_EQ(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, nullptr, 0, &groups[0].team), 0);
    groups.erase(groups.begin() + 1);  // the shared team is the first thread's
    return groups;
}

void destroy_groups(std::vector<Group>& groups) {
    for (Group& group : groups)
        if (group.team != SHMEM_TEAM_WORLD && group.team != SHMEM_TEAM_SHARED)
            shmem_team_destroy(group.team);
    groups.clear();
}

void Buffer::take(size_t offset_bytes, size_t bytes) {
    CHECK(offset_bytes <= 16 * 16 && bytes <= capacity());
    offset_ = offset_bytes;
    bytes_ = bytes;
    memset(data() - kGuard, kFresh, bytes + 2 * kGuard);
}

void Buffer::check_guards(const char* what) const {
    CHECK_UNTOUCHED(what, data() - kGuard, kFresh, kGuard);
    CHECK_UNTOUCHED(what, data() + bytes_, kFresh, kGuard);
}

size_t Move::nelems_of(int rank) const {
    if (op != MOVE_COLLECT)
        return nelems;
    Random random = random_for(stream, static_cast<uint64_t>(rank), 77);
    const size_t kind = random.below(4);
    return kind == 0 ? 0 : kind == 1 ? nelems : random.below(nelems + 1);
}

size_t Move::source_bytes(int rank, int size) const {
    const size_t blocks = op == MOVE_ALLTOALL || op == MOVE_ALLTOALLS ? static_cast<size_t>(size) : 1;
    const size_t elements = nelems_of(rank) * blocks;
    if (op == MOVE_ALLTOALLS && elements != 0)
        return ((elements - 1) * static_cast<size_t>(sst) + 1) * element_bytes;
    return elements * element_bytes;
}

size_t Move::dest_bytes(int size) const {
    size_t elements = nelems;
    if (op == MOVE_COLLECT) {
        elements = 0;
        for (int rank = 0; rank < size; ++rank) elements += nelems_of(rank);
    } else if (op != MOVE_BROADCAST) {
        elements *= static_cast<size_t>(size);
    }
    if (op == MOVE_ALLTOALLS && elements != 0)
        elements = (elements - 1) * static_cast<size_t>(dst) + 1;
    return elements * element_bytes;
}

void Move::fill_source(int rank, int size, void* to) const {
    random_for(stream, static_cast<uint64_t>(rank)).fill(to, source_bytes(rank, size));
}

void Move::expect(int rank, int size, unsigned char* dest) const {
    std::vector<unsigned char> from;
    const size_t mine = static_cast<size_t>(rank);
    if (op == MOVE_BROADCAST) {
        if (!spares_root || rank != root)
            fill_source(root, size, dest);
        return;
    }
    for (int other = 0; other < size; ++other) {
        from.resize(source_bytes(other, size) + 8);
        fill_source(other, size, from.data());
        const size_t count = nelems_of(other);
        if (op == MOVE_ALLTOALLS) {
            for (size_t i = 0; i < count; ++i) {
                const size_t to = (static_cast<size_t>(other) * nelems + i) * static_cast<size_t>(dst);
                const size_t at = (mine * nelems + i) * static_cast<size_t>(sst);
                memcpy(dest + to * element_bytes, from.data() + at * element_bytes, element_bytes);
            }
        } else {
            const size_t block = op == MOVE_ALLTOALL ? mine * count * element_bytes : 0;
            memcpy(dest, from.data() + block, count * element_bytes);
            dest += count * element_bytes;
        }
    }
}

namespace {

// Around the sizes at which algorithms change: inline, a few lines, bounce buffers, pushed, pulled.
size_t random_bytes(Random& random, bool large, size_t element_bytes) {
    constexpr size_t kEdges[] = {48, 240, 2048, 4096, 8192, 16384, 32768, 65536, 262144};
    const size_t choice = random.below(16);
    if (choice < 4)
        return choice * element_bytes;
    if (choice < 8)
        return random.below(300);
    const size_t edge = kEdges[choice < 15 && !large ? random.below(3) : random.below(std::size(kEdges))];
    return edge + random.below(3) * element_bytes - element_bytes;
}

}  // namespace

Move random_move(move_op op, size_t element_bytes, int size, size_t capacity, Random& random, bool large) {
    Move move;
    move.op = op;
    move.element_bytes = element_bytes;
    move.nelems = random_bytes(random, large, element_bytes) / element_bytes;
    const auto members = static_cast<size_t>(size);
    if (op == MOVE_ALLTOALL && random.below(2))
        move.nelems = (move.nelems + members - 1) / members;  // the edges are those of all blocks
    if (op == MOVE_ALLTOALLS) {
        move.dst = 1 + static_cast<ptrdiff_t>(random.below(5));
        move.sst = random.below(3) ? 1 + static_cast<ptrdiff_t>(random.below(5)) : move.dst;
        move.nelems = std::min(move.nelems, 2048 / element_bytes);
    }
    move.root = static_cast<int>(random.below(members));
    move.stream = random.next();
    const size_t strides = static_cast<size_t>(std::max(move.dst, move.sst));
    move.nelems = std::min(move.nelems, capacity / element_bytes / members / strides);
    return move;
}

size_t random_reduce_count(size_t element_bytes, size_t capacity, Random& random, bool large) {
    const size_t bytes = std::min(random_bytes(random, large, element_bytes), capacity - element_bytes);
    const size_t count = bytes / element_bytes;
    return count > 3 && random.below(2) ? count - 1 + count % 2 : count;  // odd ones more often
}

namespace {

template <class T>
constexpr size_t kValueBytes =
    std::is_same<T, long double>::value && std::numeric_limits<T>::digits == 64 ? 10 : sizeof(T);

}  // namespace

size_t value_bytes(const function_info& info) {
    return info.kind == 'f' && info.bytes == sizeof(long double) ? kValueBytes<long double> : info.bytes;
}

namespace {

// One number; `place` is a number that all members share for this element.
template <class T>
T real_value(Random& random, uint64_t place, int rank, int size, bool may_be_nan) {
    using Limits = std::numeric_limits<T>;
    const T sign = random.next() & 1 ? T(-1) : T(1);
    switch (place % 12) {
        case 0: {  // one member has something special
            const T special[] = {
                Limits::infinity(), -Limits::infinity(), Limits::max(), Limits::denorm_min(), T(-0.0), T(0),
                Limits::quiet_NaN()};
            if (static_cast<int>((place >> 8) % static_cast<uint64_t>(size)) == rank)
                return special[(place >> 32) % (may_be_nan ? 7 : 6)];
            break;
        }
        case 1:
            return sign * T(0);
        case 2:
            return random.next() & 2 ? sign * Limits::infinity() : sign;
        case 3:
            return sign * (Limits::max() / T(1 + random.below(4)));
        case 4:
            return sign * Limits::denorm_min() * T(random.below(100));
        default:
            break;
    }
    const T mantissa = T(1) + T(random.next() >> 11) / T(uint64_t{1} << 53);
    return sign * std::ldexp(mantissa, static_cast<int>(random.below(41)) - 20);
}

uint64_t integer_value(Random& random, size_t bytes) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * bytes);
    const uint64_t pool[] = {0, 1, mask, mask >> 1, (mask >> 1) + 1, mask - 1, 2, (mask >> 1) + 2};
    const uint64_t value = random.next();
    return (value >> 60) < 4 ? pool[(value >> 50) % std::size(pool)] : value & mask;
}

template <class T>
void store(void* to, size_t index, T value) {
    memcpy(static_cast<unsigned char*>(to) + index * sizeof(T), &value, kValueBytes<T>);
}

template <class T>
T load(const void* from) {
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
void fill_reals(const function_info& info, Random& random, Random& places, int rank, int size, size_t nelems,
                void* to) {
    const size_t parts = info.kind == 'c' ? 2 : 1;
    for (size_t i = 0; i < nelems; ++i) {
        const uint64_t place = places.next();
        for (size_t part = 0; part < parts; ++part) {
            store(to, i * parts + part, real_value<T>(random, place, rank, size, info.kind == 'f'));
        }
    }
}

template <class T>
T combine_ordered(reduce_op op, T a, T b) {
    return op == REDUCE_MAX ? (a < b ? b : a) : (b < a ? b : a);
}

template <class T>
T combine_reals(reduce_op op, T a, T b) {
    if (op == REDUCE_MAX || op == REDUCE_MIN)
        return combine_ordered(op, a, b);
    return op == REDUCE_PROD ? a * b : a + b;
}

template <class T>
T combine_complex(reduce_op op, T a, T b) {
    return op == REDUCE_PROD ? a * b : a + b;
}

uint64_t combine_integers(reduce_op op, uint64_t a, uint64_t b, bool is_signed, size_t bytes) {
    const size_t shift = 64 - 8 * bytes;
    switch (op) {
        case REDUCE_AND:
            return a & b;
        case REDUCE_OR:
            return a | b;
        case REDUCE_XOR:
            return a ^ b;
        case REDUCE_PROD:
            return a * b;
        case REDUCE_MAX:
        case REDUCE_MIN:
            if (is_signed)
                return static_cast<uint64_t>(combine_ordered(op, static_cast<int64_t>(a << shift) >> shift,
                                                             static_cast<int64_t>(b << shift) >> shift));
            return combine_ordered(op, a, b);
        default:
            return a + b;
    }
}

// into = into op from
void combine(const function_info& info, reduce_op op, unsigned char* into, const unsigned char* from, size_t nelems) {
    for (size_t i = 0; i < nelems; ++i, into += info.bytes, from += info.bytes) {
        if (info.kind == 'c' && info.bytes == sizeof(heddle_complexd)) {
            store(into, 0, combine_complex(op, load<heddle_complexd>(into), load<heddle_complexd>(from)));
        } else if (info.kind == 'c') {
            store(into, 0, combine_complex(op, load<heddle_complexf>(into), load<heddle_complexf>(from)));
        } else if (info.kind == 'f' && info.bytes == sizeof(float)) {
            store(into, 0, combine_reals(op, load<float>(into), load<float>(from)));
        } else if (info.kind == 'f' && info.bytes == sizeof(double)) {
            store(into, 0, combine_reals(op, load<double>(into), load<double>(from)));
        } else if (info.kind == 'f') {
            store(into, 0, combine_reals(op, load<long double>(into), load<long double>(from)));
        } else {
            uint64_t a = 0, b = 0;
            memcpy(&a, into, info.bytes), memcpy(&b, from, info.bytes);
            const uint64_t result = combine_integers(op, a, b, info.kind == 'i', info.bytes);
            memcpy(into, &result, info.bytes);
        }
    }
}

int serial_members() {
    static const int most = static_cast<int>(number("HEDDLE_TEST_SERIAL_MEMBERS", 64));
    return most;
}

// to = the tree's value of members first to end - 1 of `size`: the largest power of two of them that leaves some is the
// left half.
void combine_tree(const function_info& info, reduce_op op, uint64_t stream, int first, int end, int size, size_t nelems,
                  unsigned char* to) {
    if (end - first == 1)
        return fill_values(info, stream, first, size, nelems, to);
    int half = 1;
    while (2 * half < end - first) half *= 2;
    std::vector<unsigned char> right(nelems * info.bytes + 1);
    combine_tree(info, op, stream, first, first + half, size, nelems, to);
    combine_tree(info, op, stream, first + half, end, size, nelems, right.data());
    combine(info, op, to, right.data(), nelems);
}

}  // namespace

void fill_values(const function_info& info, uint64_t stream, int rank, int size, size_t nelems, void* to) {
    Random random = random_for(stream, static_cast<uint64_t>(rank)), places = random_for(stream, 0, 5);
    const size_t part_bytes = info.kind == 'c' ? info.bytes / 2 : info.bytes;
    memset(to, 0, nelems * info.bytes);
    if (info.kind == 'i' || info.kind == 'u') {
        for (size_t i = 0; i < nelems; ++i) {
            const uint64_t value = integer_value(random, info.bytes);
            memcpy(static_cast<unsigned char*>(to) + i * info.bytes, &value, info.bytes);
        }
    } else if (part_bytes == sizeof(float)) {
        fill_reals<float>(info, random, places, rank, size, nelems, to);
    } else if (part_bytes == sizeof(double)) {
        fill_reals<double>(info, random, places, rank, size, nelems, to);
    } else {
        fill_reals<long double>(info, random, places, rank, size, nelems, to);
    }
}

void expect_reduction(const function_info& info, reduce_op op, uint64_t stream, int rank, int size, size_t nelems,
                      unsigned char* to) {
    const int count = op == REDUCE_INSCAN ? rank + 1 : op == REDUCE_EXSCAN ? rank : size;
    const bool is_scan = op == REDUCE_INSCAN || op == REDUCE_EXSCAN, is_real = info.kind == 'f' || info.kind == 'c';
    if (is_real && !is_scan && size > serial_members() && nelems * info.bytes <= 16384)
        return combine_tree(info, op, stream, 0, size, size, nelems, to);
    if (count == 0) {
        memset(to, 0, nelems * info.bytes);
        return;
    }
    std::vector<unsigned char> from(nelems * info.bytes + 1);
    fill_values(info, stream, 0, size, nelems, to);
    for (int other = 1; other < count; ++other) {
        fill_values(info, stream, other, size, nelems, from.data());
        combine(info, op, to, from.data(), nelems);
    }
}

namespace {

template <class T>
bool both_nan(const unsigned char* a, const unsigned char* b) {
    return std::isnan(load<T>(a)) && std::isnan(load<T>(b));
}

bool same_value(const function_info& info, const unsigned char* a, const unsigned char* b) {
    if (memcmp(a, b, value_bytes(info)) == 0)
        return true;
    if (info.kind != 'c')
        return false;
    const size_t half = info.bytes / 2;
    for (size_t part = 0; part < 2; ++part, a += half, b += half) {
        const bool nan = half == sizeof(float) ? both_nan<float>(a, b) : both_nan<double>(a, b);
        if (!nan && memcmp(a, b, half) != 0)
            return false;
    }
    return true;
}

}  // namespace

void check_values(const char* file, int line, const function_info& info, const char* what, const void* got,
                  const void* expected, size_t nelems) {
    const auto *a = static_cast<const unsigned char*>(got), *b = static_cast<const unsigned char*>(expected);
    for (size_t i = 0; i < nelems; ++i, a += info.bytes, b += info.bytes) {
        if (same_value(info, a, b))
            continue;
        uint64_t shown = 0, right = 0;
        memcpy(&shown, a, std::min<size_t>(8, info.bytes)), memcpy(&right, b, std::min<size_t>(8, info.bytes));
        fail(file, line, "%s: element %zu of %zu is %#llx (first 8 bytes), right would be %#llx", what, i, nelems,
             static_cast<unsigned long long>(shown), static_cast<unsigned long long>(right));
    }
}

}  // namespace conformance
