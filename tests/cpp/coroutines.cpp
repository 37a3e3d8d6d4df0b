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

}  // namespace

int main() {
    const shmem::environment library;
    me = shmem::my_pe(), n = shmem::n_pes(), right = (me + 1) % n, left = (me + n - 1) % n;
    shmem::array<long> dest(5000), sums(1), parts(1), box(2);
    static std::uint64_t question, answer;
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
    check_exceptions();
    pass("coroutines");
}
