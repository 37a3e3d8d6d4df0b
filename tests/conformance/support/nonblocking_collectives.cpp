// What nonblocking_collectives.h declares.
#include "nonblocking_collectives.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>

namespace conformance {

namespace {

template <class T>
constexpr char kKind = std::is_floating_point_v<T> ? 'f'
                       : std::is_signed_v<T>       ? 'i'
                                                   : 'u';

#define NAME(function) "shmemx_" #function "_nbe"
#define MOVE(function, op, ...)                                                                   \
    Collective {                                                                                  \
        {NAME(function), 1, 'b', COMPLETE_AFTER_REQUEST}, Collective::kMove, op, REDUCE_AND,      \
            [](const Call& c, shmemx_request_t* req) {                                            \
                return shmemx_##function##_nbe(c.team, c.dest, c.source, __VA_ARGS__, req);       \
            },                                                                                    \
            [](const Call& c) { return shmem_##function(c.team, c.dest, c.source, __VA_ARGS__); } \
    }
#define TYPED(type, function, kind, move, reduce, ...)                                                                 \
    Collective {                                                                                                       \
        {NAME(function), sizeof(type), kKind<type>, COMPLETE_AFTER_REQUEST}, kind, move, reduce,                       \
            [](const Call& c, shmemx_request_t* req) {                                                                 \
                return shmemx_##function##_nbe(c.team, static_cast<type*>(c.dest), static_cast<const type*>(c.source), \
                                               __VA_ARGS__, req);                                                      \
            },                                                                                                         \
            [](const Call& c) {                                                                                        \
                return shmem_##function(c.team, static_cast<type*>(c.dest), static_cast<const type*>(c.source),        \
                                        __VA_ARGS__);                                                                  \
            }                                                                                                          \
    }
#define REDUCE(type, function, op) TYPED(type, function, Collective::kReduce, MOVE_BROADCAST, op, c.nelems)
#define MOVE_TYPED(type, function, op, ...) TYPED(type, function, Collective::kMove, op, REDUCE_AND, __VA_ARGS__)
#define MEET(function, ...)                                                                              \
    Collective {                                                                                         \
        {NAME(function), 1, 'b', COMPLETE_AFTER_REQUEST}, Collective::kMeet, MOVE_BROADCAST, REDUCE_AND, \
            [](const Call& c, shmemx_request_t* req) { return shmemx_##function##_nbe(c.team, req); },   \
            [](const Call& c) { return __VA_ARGS__; }                                                    \
    }

}  // namespace

const std::vector<Collective> kCollectives = {
    MOVE(broadcastmem, MOVE_BROADCAST, c.nelems, c.root),
    MOVE(collectmem, MOVE_COLLECT, c.nelems),
    MOVE(fcollectmem, MOVE_FCOLLECT, c.nelems),
    MOVE(alltoallmem, MOVE_ALLTOALL, c.nelems),
    MOVE(alltoallsmem, MOVE_ALLTOALLS, c.dst, c.sst, c.nelems),
    MOVE_TYPED(long, long_broadcast, MOVE_BROADCAST, c.nelems, c.root),
    MOVE_TYPED(double, double_fcollect, MOVE_FCOLLECT, c.nelems),
    MOVE_TYPED(int, int_alltoalls, MOVE_ALLTOALLS, c.dst, c.sst, c.nelems),
    REDUCE(unsigned short, ushort_and_reduce, REDUCE_AND),
    REDUCE(unsigned long, ulong_or_reduce, REDUCE_OR),
    REDUCE(unsigned char, uchar_xor_reduce, REDUCE_XOR),
    REDUCE(long, long_min_reduce, REDUCE_MIN),
    REDUCE(double, double_max_reduce, REDUCE_MAX),
    REDUCE(double, double_sum_reduce, REDUCE_SUM),
    REDUCE(float, float_prod_reduce, REDUCE_PROD),
    REDUCE(double, double_sum_inscan, REDUCE_INSCAN),
    REDUCE(float, float_sum_exscan, REDUCE_EXSCAN),
    MEET(team_sync, shmem_team_sync(c.team)),
    MEET(team_barrier, shmemx_team_barrier_mt(c.team, 0, 1)),
};

unsigned char* Arena::take(size_t bytes, size_t offset_bytes) {
    CHECK(offset_bytes <= 256 && has_room(bytes));
    const size_t at = (used_ + 15) / 16 * 16 + 64 + offset_bytes;
    memset(memory_ + used_, Buffer::kFresh, at + bytes + 64 - used_);
    used_ = at + bytes + 64;
    taken_.emplace_back(at, bytes);
    return memory_ + at;
}

void Arena::check_gaps() const {
    size_t checked = 0;
    for (const auto& [at, bytes] : taken_) {
        CHECK_UNTOUCHED("between dests and sources", memory_ + checked, Buffer::kFresh, at - checked);
        checked = at + bytes;
    }
    CHECK_UNTOUCHED("behind the last one", memory_ + checked, Buffer::kFresh, used_ - checked);
}

size_t Post::dest_bytes() const {
    if (what->kind == Collective::kMeet)
        return 0;
    return what->kind == Collective::kMove ? move.dest_bytes(group->size) : move.nelems * what->info.bytes;
}

size_t Post::source_bytes() const {
    if (what->kind != Collective::kMove)
        return dest_bytes();
    return move.op == MOVE_COLLECT ? move.nelems * move.element_bytes : move.source_bytes(0, group->size);
}

bool Post::take_memory(Arena& arena, Random& shared) {
    const size_t units = shared.below(16), source_units = shared.below(16);
    in_place = what->may_be_in_place() && shared.below(4) == 0;
    if (!arena.has_room(dest_bytes() + (in_place ? 0 : source_bytes()) + 512))
        return false;
    dest = arena.take(dest_bytes(), units * what->info.bytes);
    source = in_place ? dest : arena.take(source_bytes(), source_units * what->info.bytes);
    return true;
}

void Post::fill() const {
    if (what->kind == Collective::kReduce)
        fill_values(what->info, move.stream, group->rank, group->size, move.nelems, source);
    else if (what->kind == Collective::kMove && (!in_place || group->rank == move.root))
        move.fill_source(group->rank, group->size, source);
}

Call Post::call() const {
    const bool moves = what->kind == Collective::kMove;
    return {group->team, dest, source, move.dst, move.sst, moves ? move.nelems_of(group->rank) : move.nelems,
            move.root};
}

void Post::post(shmemx_request_t* req) const {
    subject = what->info.name;
    CHECK_EQ(what->post(call(), req), 0);
    CHECK(*req != SHMEMX_REQUEST_NULL);
}

void Post::perform() const {
    subject = what->info.name;
    CHECK_EQ(what->perform(call()), 0);
}

void Post::check(const char* when) const {
    subject = what->info.name;
    std::vector<unsigned char> right(dest_bytes() + 8, Buffer::kFresh);
    if (what->kind == Collective::kReduce) {
        expect_reduction(what->info, what->reduce, move.stream, group->rank, group->size, move.nelems, right.data());
        CHECK_VALUES(what->info, when, dest, right.data(), move.nelems);
    } else if (what->kind == Collective::kMove) {
        move.expect(group->rank, group->size, right.data());
        CHECK_BYTES(when, dest, right.data(), dest_bytes());
    }
}

void Post::check_source() const {
    subject = what->info.name;
    if (in_place || what->kind == Collective::kMeet)
        return;
    std::vector<unsigned char> right(source_bytes() + 8);
    if (what->kind == Collective::kReduce) {
        fill_values(what->info, move.stream, group->rank, group->size, move.nelems, right.data());
        CHECK_VALUES(what->info, "source", source, right.data(), move.nelems);
    } else {
        move.fill_source(group->rank, group->size, right.data());
        CHECK_BYTES("source", source, right.data(), move.source_bytes(group->rank, group->size));
    }
}

Post make_post(const Collective& what, const Group& group, size_t bytes, Random& shared) {
    Post post;
    post.what = &what;
    post.group = &group;
    post.move.op = what.move;
    post.move.element_bytes = what.info.bytes;
    post.move.nelems = what.kind == Collective::kMeet ? 0 : bytes / what.info.bytes;
    const auto members = static_cast<size_t>(group.size);
    if (what.kind == Collective::kMove) {
        if (what.move == MOVE_ALLTOALLS) {
            post.move.dst = 1 + static_cast<ptrdiff_t>(shared.below(4));
            post.move.sst = 1 + static_cast<ptrdiff_t>(shared.below(4));
        }
        const auto strides = static_cast<size_t>(std::max(post.move.dst, post.move.sst));
        if (what.move != MOVE_BROADCAST)
            post.move.nelems = (post.move.nelems + members * strides - 1) / (members * strides);
        post.move.root = static_cast<int>(shared.below(members));
    }
    post.move.stream = shared.next();
    return post;
}

Post draw_post(const Group& group, size_t most_bytes, Random& shared) {
    constexpr size_t kEdges[] = {48, 240, 2048, 4096, 16384, 65536, 262144, 400000};
    const Collective& what = kCollectives[shared.below(kCollectives.size())];
    const size_t choice = shared.below(64);
    size_t bytes = shared.below(300);
    if (choice < 8)
        bytes = choice;
    else if (choice < 24)
        bytes = kEdges[shared.below(choice < 22 ? 4 : std::size(kEdges))] + shared.below(40) - 20;
    return make_post(what, group, std::min(bytes, most_bytes), shared);
}

std::vector<Post> draw_posts(const Group& group, size_t count, Arena& arena, Random& shared) {
    std::vector<Post> posts;
    for (size_t i = 0; i < count; ++i) {
        Post post = draw_post(group, 100000, shared);
        CHECK(post.take_memory(arena, shared));
        posts.push_back(post);
    }
    shmem_sync_all();
    return posts;
}

void end_round(Arena& arena) {
    shmem_barrier_all();
    arena.check_gaps();
    arena.clear();
}

bool progress_is(const char* policy) {
    const char* text = getenv("HEDDLE_PROGRESS");
    return strcmp(text ? text : "auto", policy) == 0;
}

void nap_ms(long ms) {
    const timespec time = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&time, nullptr);
}

void compute_ms(long ms) {
    timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - begin.tv_sec) * 1000 + (now.tv_nsec - begin.tv_nsec) / 1000000 < ms);
}

}  // namespace conformance
