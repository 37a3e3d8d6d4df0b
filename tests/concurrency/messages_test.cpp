// Message passing from every thread of every PE to its opposite on the next PE: data, then something that says that the
// data is there. Each way of ordering the two is one test. Under ThreadSanitizer a missing order is a reported race.
#include "job.h"

#include <numeric>

namespace heddle::test {
namespace {

constexpr int kRounds = 50;
constexpr size_t kElements = 40;  // more than what the hot path copies without a call

// What one thread sends to and receives from, in symmetric memory; the same on all PEs.
struct Box {
    long* data;      // kElements
    long* flag;      // the round that data holds
    uint64_t* sign;  // the same for signals
    long* answer;    // the round that the receiver has read
};

class MessagesTest : public JobTest {
  protected:
    // send(box, values, round, to) delivers; wait(box, round) returns once it is there.
    template <class Send, class Wait>
    void pass_messages(Send send, Wait wait) const {
        run_job([&](int pe) {
            const size_t threads = static_cast<size_t>(n_threads());
            long* data = symmetric<long>(threads * kElements);
            long* flags = symmetric<long>(threads * 8);
            uint64_t* signs = symmetric<uint64_t>(threads * 8);
            long* answers = symmetric<long>(threads * 8);
            run_threads([&](int thread) {
                const size_t t = static_cast<size_t>(thread);
                exchange({data + t * kElements, flags + t * 8, signs + t * 8, answers + t * 8}, pe, send, wait);
            });
            shmem_free(answers);
            shmem_free(signs);
            shmem_free(flags);
            shmem_free(data);
        });
    }

  private:
    template <class Send, class Wait>
    void exchange(const Box& box, int pe, Send send, Wait wait) const {
        const int to = (pe + 1) % n_pes(), from = (pe + n_pes() - 1) % n_pes();
        long values[kElements];
        for (long round = 1; round <= kRounds; ++round) {
            std::iota(values, values + kElements, round * 1000 + pe);
            send(box, values, round, to);
            wait(box, round);
            for (size_t i = 0; i < kElements; ++i)
                ASSERT_EQ(box.data[i], round * 1000 + from + static_cast<long>(i)) << "round " << round;
            shmem_long_atomic_set(box.answer, round, from);
            shmem_long_wait_until(box.answer, SHMEM_CMP_GE, round);
        }
    }
};

void wait_for_flag(const Box& box, long round) {
    shmem_long_wait_until(box.flag, SHMEM_CMP_GE, round);
}

void wait_for_sign(const Box& box, long round) {
    shmem_signal_wait_until(box.sign, SHMEM_CMP_GE, static_cast<uint64_t>(round));
}

TEST_P(MessagesTest, PutFenceP) {
    pass_messages(
        [](const Box& box, const long* values, long round, int to) {
            shmem_long_put(box.data, values, kElements, to);
            shmem_fence();
            shmem_long_p(box.flag, round, to);
        },
        wait_for_flag);
}

TEST_P(MessagesTest, PutFenceAtomic) {
    pass_messages(
        [](const Box& box, const long* values, long round, int to) {
            shmem_putmem(box.data, values, kElements * sizeof(long), to);
            shmem_fence();
            round % 2 ? shmem_long_atomic_inc(box.flag, to) : shmem_long_atomic_add(box.flag, 1, to);
        },
        wait_for_flag);
}

TEST_P(MessagesTest, SinglePutsQuietP) {
    pass_messages(
        [](const Box& box, const long* values, long round, int to) {
            for (size_t i = 0; i < kElements; ++i) shmem_long_p(box.data + i, values[i], to);
            shmem_quiet();
            shmem_long_p(box.flag, round, to);
        },
        [](const Box& box, long round) {
            while (!shmem_long_test(box.flag, SHMEM_CMP_GE, round)) std::this_thread::yield();
        });
}

TEST_P(MessagesTest, NbiQuietAtomicSet) {
    pass_messages(
        [](const Box& box, const long* values, long round, int to) {
            shmem_long_put_nbi(box.data, values, kElements, to);
            shmem_quiet();
            shmem_long_atomic_set(box.flag, round, to);
        },
        wait_for_flag);
}

TEST_P(MessagesTest, StridedPutFenceP) {
    pass_messages(
        [](const Box& box, const long* values, long round, int to) {
            shmem_long_iput(box.data, values, 2, 2, kElements / 2, to);
            shmem_long_iput(box.data + 1, values + 1, 2, 2, kElements / 2, to);
            shmem_fence();
            shmem_long_p(box.flag, round, to);
        },
        wait_for_flag);
}

TEST_P(MessagesTest, PutSignalSet) {
    pass_messages(
        [](const Box& box, const long* values, long round, int to) {
            shmem_long_put_signal(box.data, values, kElements, box.sign, static_cast<uint64_t>(round), SHMEM_SIGNAL_SET,
                                  to);
        },
        wait_for_sign);
}

TEST_P(MessagesTest, PutSignalAdd) {
    pass_messages([](const Box& box, const long* values, long,
                     int to) { shmem_long_put_signal(box.data, values, kElements, box.sign, 1, SHMEM_SIGNAL_ADD, to); },
                  [](const Box& box, long round) {
                      while (shmem_signal_fetch(box.sign) < static_cast<uint64_t>(round)) std::this_thread::yield();
                  });
}

// The receiver fetches: the sender leaves the data at home and says that it may be got.
TEST_P(MessagesTest, FlagThenGet) {
    run_job([&](int pe) {
        const int to = (pe + 1) % n_pes(), from = (pe + n_pes() - 1) % n_pes();
        long* home = symmetric<long>(static_cast<size_t>(n_threads()) * kElements);
        long* flags = symmetric<long>(static_cast<size_t>(n_threads()) * 8);
        long* answers = symmetric<long>(static_cast<size_t>(n_threads()) * 8);
        run_threads([&](int thread) {
            long* data = home + static_cast<size_t>(thread) * kElements;
            long got[kElements];
            for (long round = 1; round <= kRounds; ++round) {
                std::iota(data, data + kElements, round * 1000 + pe);
                shmem_fence();
                shmem_long_p(flags + thread * 8, round, to);
                shmem_long_wait_until(flags + thread * 8, SHMEM_CMP_GE, round);
                shmem_long_get(got, data, kElements, from);
                ASSERT_EQ(got[0], round * 1000 + from);
                ASSERT_EQ(got[kElements - 1], round * 1000 + from + static_cast<long>(kElements) - 1);
                ASSERT_EQ(shmem_long_g(data + 1, from), round * 1000 + from + 1);
                shmem_long_p(answers + thread * 8, round, from);
                shmem_long_wait_until(answers + thread * 8, SHMEM_CMP_GE, round);
            }
        });
        shmem_free(answers);
        shmem_free(flags);
        shmem_free(home);
    });
}

HEDDLE_FOR_ALL_SHAPES(MessagesTest);

}  // namespace
}  // namespace heddle::test
