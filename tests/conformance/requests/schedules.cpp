// Random schedules of requests: HEDDLE_TEST_THREADS threads of each PE post, merge, hand over, wait, test and free, on
// PRIVATE and SHARED requests and two contexts, HEDDLE_TEST_STEPS times each. Every thread has places of its own on all
// PEs; what its operations make of them it knows from a model, which says what is complete and may be looked at. Sums
// of atomics and of signals are compared at the end.
#include "check.h"
#include "completion.h"

#include <heddle/hot_path.h>
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

using namespace conformance;

namespace {

constexpr size_t kSmall = 9, kLarge = 3, kPlaces = kSmall + kLarge;  // of one thread on one PE
constexpr size_t kSmallBytes = 200, kLargeBytes = HEDDLE_LARGE_BYTES + 5000;
constexpr size_t kShareBytes = kSmall * kSmallBytes + kLarge * kLargeBytes;
constexpr size_t kOwn = 6, kShared = 2;  // requests
constexpr size_t kWords = 5;

unsigned char* heap;  // kShareBytes for each thread of each PE
uint64_t *words, *right_words, *right_signals, *signals;
size_t n_threads, steps;
shmemx_request_t shared[kShared];

// What a place waits for.
enum Group : size_t { kNothing = 0, kOwnFirst = 1, kSharedFirst = kOwnFirst + kOwn, kHanded = kSharedFirst + kShared };

struct Place {
    size_t group = kNothing;
    int target = 0;
    bool on_own_context = false, reads = false;
    std::shared_ptr<std::atomic<bool>> handed;
    size_t bytes = 0;                      // written by the last put
    std::vector<unsigned char> data, got;  // what the target has, or is to have; what a get brings
    unsigned char* at = nullptr;
};

// A request that another thread ends.
struct Handover {
    shmemx_request_t request;
    std::shared_ptr<std::atomic<bool>> done;
};
std::atomic<Handover*> mailboxes[16];
std::atomic<size_t> at_the_end;

class Worker {
  public:
    explicit Worker(size_t number) : number_(number), random_(random_for(5, static_cast<uint64_t>(pe), number)) {
        subject = "a random schedule";
        if (shmem_ctx_create(number % 2 ? SHMEMX_CTX_RELAXED : 0, &context_) != 0)
            fail(__FILE__, __LINE__, "no context");
        const size_t share = static_cast<size_t>(pe) * n_threads + number;
        places_.resize(kPlaces * static_cast<size_t>(n_pes));
        for (size_t i = 0; i < places_.size(); ++i) {
            const size_t k = i % kPlaces;
            Place& place = places_[i];
            place.target = static_cast<int>(i / kPlaces);
            place.data.resize(k < kSmall ? kSmallBytes : kLargeBytes);
            place.got = place.data;
            place.at = heap + share * kShareBytes + std::min(k, kSmall) * kSmallBytes +
                       (k < kSmall ? 0 : k - kSmall) * kLargeBytes;
        }
    }

    void run() {
        for (size_t step = 0; step < steps; ++step) one_step();
        for (size_t i = 0; i < kOwn; ++i) finish_own(i, 0);
        for (size_t i = 0; i < kShared; ++i) finish_shared(i, 0);
        while (
            std::any_of(places_.begin(), places_.end(), [](const Place& place) { return place.group != kNothing; })) {
            take_mail();
            look_for_handed();
        }
        for (Place& place : places_) check_target(place);
        at_the_end.fetch_add(1, std::memory_order_acq_rel);
        while (at_the_end.load(std::memory_order_acquire) < n_threads) take_mail();  // others hand over still
        take_mail();
        shmem_ctx_destroy(context_);
    }

  private:
    void one_step() {
        switch (random_.below(17)) {
            case 0:
            case 1:
            case 2:
            case 3:
                return post(false);
            case 4:
            case 5:
                return post(true);
            case 6:
                return add();
            case 7:
                return merge();
            case 8:
                return finish_own(random_.below(kOwn), random_.below(4));
            case 9:
                return finish_shared(random_.below(kShared), random_.below(2));
            case 10:
                return finish_several();
            case 11:
                return quiet();
            case 12:
                return look_at_sources();
            case 13:
                return capture();
            case 14:
                return hand_over();
            case 15:
                return take_mail();
            default:
                return look_for_handed();
        }
    }

    // The request to post to: of this thread's or shared; `group` is what a place then waits for.
    shmemx_request_t* choose(size_t* group) {
        if (random_.below(3) == 0) {
            const size_t i = random_.below(kShared);
            *group = kSharedFirst + i;
            return &shared[i];
        }
        const size_t i = random_.below(kOwn);
        *group = kOwnFirst + i;
        if (own_[i] == SHMEMX_REQUEST_NULL && random_.below(2))
            CHECK_EQ(shmemx_request_allocate(&own_[i], SHMEMX_REQUEST_PRIVATE), 0);
        return &own_[i];
    }

    Place* choose_place(bool reads, size_t group) {
        Place& place = places_[random_.below(places_.size())];
        if (place.group != kNothing)
            return nullptr;
        place.group = group;
        place.reads = reads;
        place.on_own_context = random_.below(2);
        if (!reads) {
            place.bytes = random_.below(8) ? place.data.size() - random_.below(64) : random_.below(place.data.size());
            random_.fill(place.data.data(), place.bytes);
        }
        return &place;
    }

    void post(bool reads) {
        size_t group = kNothing;
        shmemx_request_t* request = choose(&group);
        Place* place = choose_place(reads, group);
        if (!place)
            return;
        const shmem_ctx_t ctx = place->on_own_context ? context_ : SHMEM_CTX_DEFAULT;
        if (reads) {
            std::fill(place->got.begin(), place->got.end(), 0);
            shmemx_ctx_getmem_nbe(ctx, place->got.data(), place->at, place->data.size(), place->target, request);
        } else if (random_.below(4) == 0) {
            const uint64_t value = random_.below(1000);
            shmem_uint64_atomic_add(right_signals, value, place->target);
            shmemx_ctx_putmem_signal_nbe(ctx, place->at, place->data.data(), place->bytes, signals, value,
                                         SHMEM_SIGNAL_ADD, place->target, request);
        } else {
            shmemx_ctx_putmem_nbe(ctx, place->at, place->data.data(), place->bytes, place->target, request);
        }
    }

    void add() {
        size_t group = kNothing, word = random_.below(kWords);
        shmemx_request_t* request = choose(&group);
        const uint64_t value = random_.next();
        const int target = static_cast<int>(random_.below(static_cast<size_t>(n_pes)));
        shmem_uint64_atomic_add(&right_words[word], value, target);
        if (random_.below(2))
            shmemx_uint64_atomic_add_nbe(&words[word], value, target, request);
        else
            shmemx_ctx_uint64_atomic_fetch_add_nbe(context_, &unread_, &words[word], value, target, request);
    }

    // Nbi operations between begin and end.
    void capture() {
        size_t group = kNothing;
        shmemx_request_t* request = choose(&group);
        shmemx_request_begin(request);
        for (int times = 0; times < 3; ++times) {
            Place* place = choose_place(random_.below(3) == 0, group);
            if (!place)
                continue;
            const shmem_ctx_t ctx = place->on_own_context ? context_ : SHMEM_CTX_DEFAULT;
            if (place->reads)
                shmem_ctx_getmem_nbi(ctx, place->got.data(), place->at, place->data.size(), place->target);
            else
                shmem_ctx_putmem_nbi(ctx, place->at, place->data.data(), place->bytes, place->target);
        }
        shmemx_request_end(request);
    }

    void merge() {
        size_t group = kNothing;
        shmemx_request_t parts[3] = {}, *whole = choose(&group);
        for (shmemx_request_t& part : parts) {
            const size_t i = random_.below(kOwn);
            if (&own_[i] == whole)
                continue;
            part = std::exchange(own_[i], SHMEMX_REQUEST_NULL);
            for (Place& place : places_)
                if (place.group == kOwnFirst + i)
                    place.group = group;
        }
        shmemx_request_merge(whole, 3, parts);
        for (shmemx_request_t part : parts) CHECK(part == SHMEMX_REQUEST_NULL);
    }

    // way 0 wait, 1 test, 2 free, 3 test_any of it alone
    void finish_own(size_t i, size_t way) {
        bool done = true;
        if (way == 0)
            shmemx_request_wait(&own_[i]);
        else if (way == 1)
            done = shmemx_request_test(&own_[i]);
        else if (way == 2)
            shmemx_request_free(&own_[i]);
        else
            done = shmemx_request_test_any(1, &own_[i]) == 0 || own_[i] == SHMEMX_REQUEST_NULL;
        CHECK_EQ(done, own_[i] == SHMEMX_REQUEST_NULL);
        if (done)
            end_group(kOwnFirst + i);
    }

    void finish_shared(size_t i, size_t way) {
        const shmemx_request_t before = shared[i];
        bool done = true;
        if (way == 0)
            shmemx_request_wait(&shared[i]);
        else
            done = shmemx_request_test(&shared[i]);
        CHECK(shared[i] == before);
        if (done)
            end_group(kSharedFirst + i);
    }

    void finish_several() {
        size_t indices[kOwn], count = 0;
        const size_t living = static_cast<size_t>(
            std::count_if(own_, own_ + kOwn, [](shmemx_request_t each) { return each != SHMEMX_REQUEST_NULL; }));
        if (random_.below(2)) {
            indices[0] = shmemx_request_wait_any(kOwn, own_);
            count = indices[0] != SIZE_MAX;
        } else {
            count = shmemx_request_wait_some(kOwn, own_, indices);
        }
        CHECK_EQ(count > 0, living > 0);
        for (size_t k = 0; k < count; ++k) {
            CHECK(own_[indices[k]] == SHMEMX_REQUEST_NULL);
            end_group(kOwnFirst + indices[k]);
        }
    }

    // All places of the context are complete; their requests stay.
    void quiet() {
        const bool own = random_.below(2);
        const shmem_ctx_t ctx = own ? context_ : SHMEM_CTX_DEFAULT;
        if (random_.below(2))
            shmem_ctx_quiet(ctx);
        else if (!shmemx_ctx_quiet_test(ctx))
            return;
        for (Place& place : places_)
            if (place.group != kNothing && place.on_own_context == own)
                end(place);
    }

    // Sources may be used again: they are changed, and given back what the target has.
    void look_at_sources() {
        const size_t i = random_.below(kOwn);
        shmemx_request_wait_local(&own_[i]);
        shmemx_request_fence(&own_[i]);
        for (Place& place : places_) {
            if (place.group != kOwnFirst + i || place.reads)
                continue;
            const std::vector<unsigned char> kept = place.data;
            std::fill(place.data.begin(), place.data.end(), 0x44);
            shmem_ctx_quiet(place.on_own_context ? context_ : SHMEM_CTX_DEFAULT);
            place.data = kept;
        }
    }

    void hand_over() {
        const size_t i = random_.below(kOwn), to = random_.below(n_threads);
        if (own_[i] == SHMEMX_REQUEST_NULL)
            return;
        auto done = std::make_shared<std::atomic<bool>>(false);
        auto* handover = new Handover{own_[i], done};
        Handover* none = nullptr;
        if (!mailboxes[to].compare_exchange_strong(none, handover, std::memory_order_acq_rel)) {
            delete handover;
            return;
        }
        own_[i] = SHMEMX_REQUEST_NULL;
        for (Place& place : places_) {
            if (place.group == kOwnFirst + i) {
                place.group = kHanded;
                place.handed = done;
            }
        }
    }

    void take_mail() {
        std::unique_ptr<Handover> mail(mailboxes[number_].exchange(nullptr, std::memory_order_acq_rel));
        if (!mail)
            return;
        shmemx_request_wait(&mail->request);
        CHECK(mail->request == SHMEMX_REQUEST_NULL);
        mail->done->store(true, std::memory_order_release);
    }

    void look_for_handed() {
        for (Place& place : places_)
            if (place.group == kHanded && place.handed->load(std::memory_order_acquire))
                end(place);
    }

    void end_group(size_t group) {
        for (Place& place : places_)
            if (place.group == group)
                end(place);
    }
    void end(Place& place) {
        place.group = kNothing;
        place.handed.reset();
        if (place.reads)
            CHECK_BYTES("what a get brought", place.got.data(), place.data.data(), place.data.size());
        else if (random_.below(4) == 0)
            check_target(place);
    }
    void check_target(Place& place) {
        std::vector<unsigned char> now(place.data.size());
        shmem_getmem(now.data(), place.at, now.size(), place.target);
        CHECK_BYTES("a place of this thread", now.data(), place.data.data(), now.size());
    }

    const size_t number_;
    Random random_;
    shmem_ctx_t context_ = SHMEM_CTX_DEFAULT;
    shmemx_request_t own_[kOwn] = {};
    std::vector<Place> places_;
    uint64_t unread_ = 0;  // takes old values that nobody looks at, whenever they come
};

uint64_t* make_words(size_t count) {
    auto* made = static_cast<uint64_t*>(shmem_calloc(count, sizeof(uint64_t)));
    CHECK(made);
    return made;
}

}  // namespace

int main() {
    start("schedules");
    n_threads = number("HEDDLE_TEST_THREADS", 3);
    steps = number("HEDDLE_TEST_STEPS", 300);
    CHECK(n_threads <= std::size(mailboxes));
    heap = static_cast<unsigned char*>(shmem_calloc(static_cast<size_t>(n_pes) * n_threads, kShareBytes));
    CHECK(heap);
    words = make_words(kWords), right_words = make_words(kWords);
    signals = make_words(1), right_signals = make_words(1);
    for (shmemx_request_t& request : shared) CHECK_EQ(shmemx_request_allocate(&request, SHMEMX_REQUEST_SHARED), 0);
    std::vector<std::unique_ptr<Worker>> workers;
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n_threads; ++i) workers.push_back(std::make_unique<Worker>(i));
    for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
    for (std::thread& thread : threads) thread.join();
    for (shmemx_request_t& request : shared) shmemx_request_free(&request);
    shmem_barrier_all();
    subject = "sums";
    CHECK_BYTES("sums of atomics", words, right_words, kWords * sizeof *words);
    CHECK_EQ(*signals, *right_signals);
    return finish();
}
