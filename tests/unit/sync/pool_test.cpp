#include "sync/pool.h"

#include <gtest/gtest.h>
#include <set>
#include <thread>
#include <vector>

namespace heddle::sync {
namespace {

struct Object {
    PoolLink link;
    std::atomic<int> holders{0};
    long payload = 0;
};
using SmallPool = Pool<Object, 4>;

TEST(Pool, GivesEachObjectOnceUntilItIsGivenBack) {
    SmallPool pool;
    std::set<Object*> taken;
    for (int i = 0; i < 100; ++i) {
        Object* object = pool.take();
        ASSERT_NE(object, nullptr);
        EXPECT_TRUE(taken.insert(object).second);
    }
    Object* one = *taken.begin();
    pool.give(one);
    EXPECT_EQ(pool.take(), one) << "the last one given is the first one taken: it is warm";
}

TEST(Pool, GrowsToWhatIsAliveAtOnceAndNoFurther) {
    SmallPool pool;
    std::set<Object*> seen;
    for (int round = 0; round < 1000; ++round) {
        Object *first = pool.take(), *second = pool.take();
        seen.insert({first, second});
        pool.give(first);
        pool.give(second);
    }
    EXPECT_EQ(seen.size(), 2u);
    int all = 0;
    pool.for_each([&](Object&) { ++all; });
    EXPECT_EQ(all, 4) << "one chunk";
}

TEST(Pool, FindsItsObjectsAndNothingElse) {
    SmallPool pool;
    EXPECT_EQ(pool.find(&pool), nullptr);
    EXPECT_EQ(pool.find(nullptr), nullptr);
    for (int i = 0; i < 30; ++i) {
        Object* object = pool.take();
        EXPECT_EQ(pool.find(object), object);
        EXPECT_EQ(pool.find(&object->payload), nullptr) << "within an object";
        EXPECT_EQ(pool.find(reinterpret_cast<char*>(object) + 1), nullptr);
    }
    Object outside;
    EXPECT_EQ(pool.find(&outside), nullptr);
}

TEST(Pool, KeepsWhatAnObjectHeld) {
    SmallPool pool;
    Object* object = pool.take();
    object->payload = 42;
    pool.give(object);
    EXPECT_EQ(pool.take()->payload, 42);
}

// No two threads have one object, and what one thread wrote the next that takes it sees.
TEST(Pool, ServesManyThreads) {
    SmallPool pool;
    constexpr int kThreads = 8, kRounds = 20000;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&] {
            for (int round = 0; round < kRounds; ++round) {
                Object *first = pool.take(), *second = round % 3 == 0 ? pool.take() : nullptr;
                for (Object* object : {first, second}) {
                    if (!object)
                        continue;
                    ASSERT_EQ(object->holders.fetch_add(1, std::memory_order_relaxed), 0);
                    ++object->payload;
                    ASSERT_EQ(object->holders.fetch_sub(1, std::memory_order_relaxed), 1);
                    pool.give(object);
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    long sum = 0;
    pool.for_each([&](Object& object) { sum += object.payload; });
    EXPECT_EQ(sum, kThreads * (kRounds + (kRounds + 2) / 3));
}

// Threads that find the pool empty while one of them makes a chunk wait for its objects: as many threads as objects of
// the first chunk make one chunk.
TEST(Pool, GrowsOnceForThreadsThatNeedItAtOnce) {
    constexpr int kThreads = 4, kRounds = 300;
    for (int round = 0; round < kRounds; ++round) {
        SmallPool pool;
        std::atomic<int> ready{0};
        const auto take = [&] {
            ready.fetch_add(1);
            while (ready.load() < 2) std::this_thread::yield();  // of the threads: two cores suffice
            EXPECT_NE(pool.take(), nullptr);
        };
        std::vector<std::thread> threads;
        for (int t = 1; t < kThreads; ++t) threads.emplace_back(take);
        take();
        for (std::thread& thread : threads) thread.join();
        int all = 0;
        pool.for_each([&](Object&) { ++all; });
        ASSERT_EQ(all, 4) << "round " << round;
    }
}

// An object of another pool would be handed out by both.
TEST(PoolDeathTest, AnObjectOfAnotherPoolIsNotTaken) {
    SmallPool pool, other;
    pool.take();
    Object* const foreign = other.take();
    EXPECT_DEATH(pool.give(foreign), "at\\(object->link.index\\) == object");
}

}  // namespace
}  // namespace heddle::sync
