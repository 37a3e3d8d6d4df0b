// Tasks and the executor of shmem.hpp: many transfers in flight, tasks that await tasks, posted collectives, exceptions.
#include "check.hpp"

#include <vector>

namespace {

int me, n, left, right;
std::vector<int> order;

shmem::task transfer(shmem::array<long>& dest, size_t place, long value) {
    const std::vector<long> source(100, value);
    shmem::request req;
    shmem::context_ref().put(dest.part(place * 100, 100), source, right, &req);
    co_await req;
    std::vector<long> back(100);
    shmem::context_ref().get(back, dest.part(place * 100, 100), right, &req);
    co_await req;
    EXPECT(back == source);
    order.push_back(static_cast<int>(place));
}

shmem::task sum_of_all(shmem::array<long>& sums, shmem::array<long>& parts) {
    shmem::request req;
    for (long i = 1; i <= 5; ++i) {
        parts[0] = i * me;
        shmem::team_ref().sum(sums, parts, &req);
        co_await req;
        EXPECT(sums[0] == i * n * (n - 1) / 2);
    }
}

shmem::task pair_of_transfers(shmem::array<long>& dest) {
    co_await transfer(dest, 0, me);
    shmem::task second = transfer(dest, 1, me + 1);
    co_await second;
    order.push_back(99);
}

shmem::task failing(int depth) {
    if (depth > 0)
        co_await failing(depth - 1);
    throw std::runtime_error("of a task");
}

shmem::task catching(bool& caught) {
    try {
        co_await failing(2);
    } catch (const std::runtime_error&) {
        caught = true;
    }
}

// A task may wait as other code does, for what no other task of this PE sends.
shmem::task ask(std::uint64_t& question, std::uint64_t& answer, shmem::array<long>& box) {
    shmem::request req;
    const std::vector<long> word(1, me);
    shmem::context_ref().put_signal(box, word, question, 1, shmem::signal_op::set, right, &req);
    co_await req;
    shmem::wait_signal(question, shmem::compare::equal, 1);
    shmem::context_ref().put_signal(box.part(1, 1), word, answer, 1, shmem::signal_op::set, left, &req);
    co_await req;
    shmem::wait_signal(answer, shmem::compare::equal, 1);
    EXPECT(box[0] == left && box[1] == right);
}

// A task that polls lets the others go on, also where each get is complete when it returns.
shmem::task poll(std::uint64_t& flag) {
    shmem::request req;
    std::vector<std::uint64_t> seen(1);
    while (seen[0] == 0) {
        shmem::context_ref().get(seen, std::span(&flag, 1), right, &req);
        co_await req;
    }
}

shmem::task set(std::uint64_t& flag) {
    shmem::context_ref().set(flag, 1, right);
    co_return;
}

shmem::task count_one(long& count) {
    ++count;
    co_return;
}

shmem::task count_up_to(long limit, long& count) {
    while (count < limit) co_await count_one(count);
}

shmem::task await(shmem::task& other, long& count) {
    co_await other;
    ++count;
}

shmem::task await_request(shmem::request& req) {
    co_await req;
}

shmem::task run_all(shmem::executor& tasks) {
    tasks.run();
    co_return;
}

template <class Thrown, class Function>
bool throws(const Function& function) {
    try {
        function();
    } catch (const Thrown&) {
        return true;
    }
    return false;
}

void check_exceptions() {
    shmem::executor tasks;
    bool caught = false;
    tasks.spawn(catching(caught));
    tasks.run();
    EXPECT(caught);
    tasks.spawn(failing(0));
    tasks.spawn(failing(1));
    EXPECT(throws<std::runtime_error>([&] { tasks.run(); }) && throws<std::runtime_error>([&] { tasks.run(); }));
    tasks.run();  // nothing is left
    shmem::task ended = failing(0);
    tasks.spawn([](shmem::task& one) -> shmem::task {
        for (int i = 0; i < 2; ++i) co_await one;
    }(ended));
    EXPECT(throws<std::runtime_error>([&] { tasks.run(); }));
}

// Mistakes: no task begins twice, so that none goes on before what it awaits.
void check_refusals(shmem::array<long>& sums, shmem::array<long>& parts, std::uint64_t& go_on) {
    const auto refused = [](const auto& function) { return throws<shmem::misuse>(function); };
    shmem::executor tasks;
    long count = 0;
    shmem::request req;
    if (me == 0 && n > 1) {
        shmem::team_ref().sum(sums, parts, &req);  // the others come later
        shmem::task awaited = await_request(req);
        tasks.spawn(await(awaited, count));
        tasks.spawn(await(awaited, count));
        EXPECT(refused([&] { tasks.run(); }) && count == 0);
        for (int pe = 1; pe < n; ++pe) shmem::context_ref().set(go_on, 1, pe);
        tasks.run();
        EXPECT(count == 1 && refused([&] { tasks.spawn(std::move(awaited)); }));  // it has ended
    } else if (n > 1) {
        shmem::wait_until(go_on, shmem::compare::equal, 1);
        shmem::team_ref().sum(sums, parts, &req);
        req.wait();
    }
    shmem::task moved = count_one(count);
    const shmem::task to = std::move(moved);
    EXPECT(refused([&] { tasks.spawn(std::move(moved)); }));
    tasks.spawn(await(moved, count));
    EXPECT(refused([&] { tasks.run(); }));
    tasks.spawn(run_all(tasks));
    for (int i = 0; i < 3; ++i) tasks.spawn(count_one(count));
    EXPECT(refused([&] { tasks.run(); }));
    tasks.run();
}

// Tasks that begin and end in a loop need no more of the stack than one.
void check_depth() {
    shmem::executor tasks;
    long count = 0;
    tasks.spawn(count_up_to(500'000, count));
    tasks.run();
    EXPECT(count == 500'000);
}

shmem::request never_used;  // is there before the library and after it

}  // namespace

int main() {
    const shmem::environment library;
    me = shmem::my_pe(), n = shmem::n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    shmem::array<long> dest(5000), sums(1), parts(1), box(2);
    static std::uint64_t question, answer, flag, go_on;
    shmem::executor tasks;
    for (size_t i = 2; i < 50; ++i) tasks.spawn(transfer(dest, i, me * 100 + static_cast<long>(i)));
    tasks.spawn(pair_of_transfers(dest));
    tasks.spawn(sum_of_all(sums, parts));
    tasks.spawn(ask(question, answer, box));
    tasks.run();
    EXPECT(order.size() == 51);
    ::shmem_barrier_all();
    for (size_t i = 2; i < 50; ++i) EXPECT(dest[i * 100 + 99] == left * 100 + static_cast<long>(i));
    EXPECT(dest[99] == left && dest[100] == left + 1);
    tasks.spawn(poll(flag));
    tasks.spawn(set(flag));
    tasks.run();
    check_exceptions();
    check_refusals(sums, parts, go_on);
    check_depth();
    pass("coroutines");
}
