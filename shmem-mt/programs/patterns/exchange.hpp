// One pattern of messages under one synchronization, on one kind of contexts. A turn: each thread sends its items, what
// was sent is completed, and those that must know of it learn it:
//   quiet, pe_quiet, request_merged     each thread completes what it has sent
//   thread_quiet, request_shared        the threads of the PE meet, and one completes what all have sent
//   barrier_all                         the threads meet, and one calls shmem_barrier_all, which completes, too
//   fence_flag, put_signal              blocking puts; the targets' threads wait for a flag of each item, or for the
//                                       signal of each message
// In an exchange (halo, alltoall) a shmem_sync_all follows what only the origin knows; the receivers then load every
// cache line. In the other patterns a window follows the other, and the PEs meet behind the last one. Targets that send
// nothing back give the sender credit: it is at most two windows ahead.
//
// Inboxes have two sets in turns (layout.hpp). Turns are numbered through the whole program, so that no flag need be
// cleared.
#pragma once

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

#include "programs/common/job.hpp"
#include "programs/common/measure.hpp"
#include "programs/common/payload.hpp"
#include "programs/common/run_together.hpp"
#include "programs/patterns/contexts.hpp"
#include "programs/patterns/layout.hpp"

namespace shmem_mt {

// Symmetric, for the largest layout of a program.
class PatternMemory {
  public:
    // `inbox_bytes`: of a set. Collective.
    PatternMemory(long outbox_bytes, long inbox_bytes, long flags, long signals)
        : outbox(static_cast<char*>(symmetric_alloc(static_cast<size_t>(outbox_bytes + 8)))),
          inboxes(static_cast<char*>(symmetric_alloc(static_cast<size_t>(2 * inbox_bytes + 8)))),
          flags_(static_cast<Word*>(symmetric_alloc(sizeof(Word) * static_cast<size_t>(2 * flags)))),
          credits_(flags_ + flags),
          signals_(static_cast<Word*>(symmetric_alloc(sizeof(Word) * static_cast<size_t>(signals)))) {}

    long* flag(int item) { return &flags_[item].word; }
    long* credit(int item) { return &credits_[item].word; }
    uint64_t* signal(long message) { return reinterpret_cast<uint64_t*>(&signals_[message].word); }

    char* const outbox;
    char* const inboxes;
    long next = 1;  // the number of the next turn; the same on all PEs

  private:
    struct alignas(64) Word {
        long word;
    };

    Word* const flags_;
    Word* const credits_;
    Word* const signals_;
};

class Exchange {
  public:
    Exchange(Job& job, PatternMemory& memory, PatternContexts& contexts, const Layout& layout, Sync sync,
             const Context& context)
        : job_(job),
          memory_(memory),
          contexts_(contexts),
          layout_(layout),
          sync_(sync),
          context_(context),
          items_(layout.items_of(job.me())),
          owned_(static_cast<size_t>(job.threads())),
          peers_(static_cast<size_t>(job.threads())),
          set_bytes_(layout.inboxes() * layout.stride()),
          needs_credit_(!is_exchange(layout.pattern) && layout.pattern != Pattern::kBidirectional &&
                        layout.pattern != Pattern::kLatency) {
        for (const Item& item : items_) {
            const size_t owner = static_cast<size_t>(item.number % layout.callers);
            owned_[owner].push_back(item);
            std::vector<int>& peers = peers_[owner];
            if (item.sends && std::find(peers.begin(), peers.end(), item.peer) == peers.end())
                peers.push_back(item.peer);
        }
        if (sync == Sync::kShared) {
            shared_ = std::make_unique<SharedRequest>();
            if (!shared_->ok())
                fail("there is no memory for a shared request");
        }
    }

    // What this PE sends in a turn.
    long turn_bytes() const {
        long bytes = 0;
        for (const Item& item : items_) bytes += item.sends ? item.bytes * layout_.messages : 0;
        return bytes;
    }

    // `count` turns; then both ends of each message of the last two are what only this sample brings. Collective.
    Report sample(long count) {
        const long token = job_.next_token();
        for_messages([&](const Item& item, long message) {
            const uint64_t mark = mark_of(job_.me(), token, item.number, message);
            stamp(outgoing(item, message), item.bytes, mark);
        });
        return run(count, [&](long first, long end) {
            bool ok = true;
            for_arrivals(std::max(first, end - 2), end, [&](const char* place, int pe, const Item& item, long message) {
                ok = ok && has_stamp(place, item.bytes, mark_of(pe, token, item.number, message));
            });
            return ok;
        });
    }

    // Each round has other bytes; compares all of both sets of inboxes, and the word behind their end. The first eight
    // rounds have one turn, so that each message that does not come is seen. Collective.
    Agreed validate() {
        Checker checker(job_.options().fault);
        constexpr long kTurns[] = {1, 1, 1, 1, 1, 1, 1, 1, 2, 3};
        validating_ = true;
        for (round_ = 0; round_ < 10; ++round_) {
            const long token = job_.next_token();
            for_messages([&](const Item& item, long message) {
                fill_slot(outgoing(item, message), make_base(job_.me(), 0, token), identity(item.number, message),
                          item.bytes);
            });
            std::fill(memory_.inboxes, memory_.inboxes + 2 * set_bytes_ + 8, kUntouched);
            run(kTurns[round_], [&](long first, long end) {
                check(checker, first, end, token);
                return true;
            });
            shmem_barrier_all();
        }
        validating_ = false;
        return agree_verdict(job_, checker);
    }

  private:
    static constexpr char kUntouched = static_cast<char>(0xa5);

    long identity(int number, long message) const { return number * layout_.messages + message; }

    uint64_t mark_of(int pe, long token, int number, long message) const {
        return pattern_word(make_base(pe, 0, token), identity(number, message), 0);
    }

    // f(item, message) of all that this PE sends.
    template <class F>
    void for_messages(F&& f) const {
        for (const Item& item : items_) {
            for (long message = 0; item.sends && message < layout_.messages; ++message) f(item, message);
        }
    }

    char* outgoing(const Item& item, long message) const {
        return memory_.outbox + item.number * layout_.stride() + message * layout_.message_stride();
    }

    // Where a message of the turn lies in the inboxes of its target; `inbox`: the number of the item there.
    char* incoming(long turn, long inbox, long message) const {
        return memory_.inboxes + turn % 2 * set_bytes_ + inbox * layout_.stride() + message * layout_.message_stride();
    }

    // The inbox that a message of this PE's item has at the target: of random one for each item of each PE.
    long inbox_at_peer(const Item& item) const {
        return layout_.pattern == Pattern::kRandom ? static_cast<long>(job_.me()) * layout_.threads + item.number
                                                   : item.at_peer;
    }

    // f(place, PE, the PE's item, message) of all messages that have come here in these turns, each place once.
    template <class F>
    void for_arrivals(long first, long end, F&& f) const {
        if (layout_.pattern == Pattern::kRandom) {
            for_drawn(first, end, f);
            return;
        }
        for (const Item& item : items_) {
            const Item theirs{job_.me(), item.at_peer, item.number, item.bytes, true, false};
            for (long turn = std::max(first, end - 2); item.receives && turn < end; ++turn) {
                for (long message = 0; message < layout_.messages; ++message)
                    f(incoming(turn, item.number, message), item.peer, theirs, message);
            }
        }
    }

    // The same of random: a message may come here in the one turn and elsewhere in the other.
    template <class F>
    void for_drawn(long first, long end, F&& f) const {
        for (int pe = 0; pe < layout_.n_pes; ++pe) {
            for (int number = 0; number < layout_.threads; ++number) {
                const Item theirs{job_.me(), number, number, layout_.size_bytes, true, false};
                const long inbox = static_cast<long>(pe) * layout_.threads + number;
                for (long set = 0; set < 2; ++set) {
                    for (long message = 0; message < layout_.messages; ++message) {
                        for (long turn = first + (first + set) % 2; turn < end; turn += 2) {
                            if (layout_.drawn_pe(turn, pe, number, message) != job_.me())
                                continue;
                            f(incoming(turn, inbox, message), pe, theirs, message);
                            break;
                        }
                    }
                }
            }
        }
    }

    // All bytes of the inboxes: what has come, and that nothing else has changed.
    void check(Checker& checker, long first, long end, long token) const {
        std::vector<char> right(static_cast<size_t>(2 * set_bytes_ + 8), kUntouched);
        for_arrivals(first, end, [&](const char* place, int pe, const Item& item, long message) {
            fill_slot(right.data() + (place - memory_.inboxes), make_base(pe, 0, token), identity(item.number, message),
                      item.bytes);
        });
        checker.compare(memory_.inboxes, right.data(), static_cast<long>(right.size()));
    }

    // `count` turns of all threads, then look(first, end) on thread 0, when all is there.
    template <class Look>
    Report run(long count, Look&& look) {
        const bool itself = layout_.pattern == Pattern::kLatency && job_.n_pes() == 1 && layout_.callers == 1;
        const long turns = itself ? 2 * count : count;  // a message to itself is half of a round trip
        const long first = memory_.next, end = first + turns;
        memory_.next = end;
        return run_together(
            job_,
            [&](int thread) {
                contexts_.with(context_, thread, [&](const auto& link) {
                    if constexpr (kCanRequest<std::decay_t<decltype(link)>>) {
                        if (is_request(sync_)) {
                            const Requests kind = sync_ == Sync::kShared ? Requests::kShared : Requests::kMerged;
                            with_requests(link, kind, shared_.get(),
                                          [&](const auto& requesting) { take_turns(requesting, thread, first, end); });
                            return;
                        }
                    }
                    take_turns(link, thread, first, end);
                });
            },
            [&] {
                const bool meets = !is_exchange(layout_.pattern) && layout_.pattern != Pattern::kLatency;
                if (meets && !tells_target(sync_) && sync_ != Sync::kBarrierAll)
                    shmem_sync_all();
                return look(first, end);
            });
    }

    template <class Link>
    void take_turns(const Link& link, int thread, long first, long end) {
        const std::vector<Item>& own = owned_[static_cast<size_t>(thread)];
        for (long turn = first; turn < end; ++turn) {
            if (layout_.pattern == Pattern::kLatency)
                round_trip(link, own, thread, turn);
            else
                take_turn(link, own, thread, turn, first);
        }
        if (tells_target(sync_) && !own.empty())
            link.quiet();
    }

    template <class Link>
    void take_turn(const Link& link, const std::vector<Item>& own, int thread, long turn, long first) {
        for (const Item& item : own) {
            if (item.sends && needs_credit_ && tells_target(sync_) && turn - first >= 2)
                shmem_long_wait_until(memory_.credit(item.number), SHMEM_CMP_GE, turn - 2);
            if (item.sends)
                send(link, item, thread, turn);
        }
        complete(link, own, thread);
        if (tells_target(sync_)) {
            if (sync_ == Sync::kFenceFlag)
                raise_flags(link, own, turn);
            for (const Item& item : own) {
                if (item.receives)
                    await(item, turn);
                if (item.receives && needs_credit_)
                    link.p(memory_.credit(item.at_peer), turn, item.peer);
            }
        }
        for (const Item& item : own) {
            if (item.receives && is_exchange(layout_.pattern))
                read_lines(incoming(turn, item.number, 0), item.bytes);
        }
    }

    // The message, then what completes it, then a flag, whatever the synchronization; put_signal needs none.
    template <class Link>
    void round_trip(const Link& link, const std::vector<Item>& own, int thread, long turn) {
        for (const Item& item : own) {
            if (item.answers)
                await(item, turn);
            send(link, item, thread, turn);
            complete(link, own, thread);
            if (sync_ != Sync::kPutSignal)
                raise_flag(link, item, turn);
            if (!item.answers)
                await(item, turn);
        }
    }

    // Behind the messages of a turn: until their origin knows that they are complete; in an exchange, all others, too.
    template <class Link>
    void complete(const Link& link, const std::vector<Item>& own, int thread) {
        const bool meets = is_exchange(layout_.pattern);
        if (is_for_all(sync_) || sync_ == Sync::kBarrierAll) {
            job_.team().barrier();
            if (thread == 0)
                complete_for_all(meets);
            job_.team().barrier();
            return;
        }
        if (sync_ == Sync::kFenceFlag)
            link.fence();
        if (tells_target(sync_))
            return;
        if (sync_ == Sync::kPeQuiet)
            quiet_peers(link, thread);
        else if (!own.empty())
            link.quiet();
        if (meets) {
            job_.team().barrier();
            if (thread == 0)
                shmem_sync_all();
            job_.team().barrier();
        }
    }

    void complete_for_all(bool meets) {
        if (sync_ == Sync::kBarrierAll)
            shmem_barrier_all();
        if (sync_ == Sync::kShared)
            shared_->wait();
        if (sync_ == Sync::kThreadQuiet)
            contexts_.with_all(context_, [](const auto& link) { link.quiet(); });
        if (meets && sync_ != Sync::kBarrierAll)
            shmem_sync_all();
    }

    template <class Link>
    void quiet_peers(const Link& link, int thread) const {
        const std::vector<int>& peers = peers_[static_cast<size_t>(thread)];
#if SHMEM_MT_HAVE_PE_QUIET
        if (!peers.empty())
            link.pe_quiet(peers.data(), peers.size());
#else
        (void)link;
        (void)peers;
#endif
    }

    // All messages of an item, but for planted faults, which send none, or others, or elsewhere.
    template <class Link>
    void send(const Link& link, const Item& item, int thread, long turn) {
        const Fault fault = job_.options().fault;
        const bool idle = fault == Fault::kSkippedOperation || (fault == Fault::kStaleResult && round_ > 0) ||
                          (job_.idles(thread) && !validating_);
        const long inbox = inbox_at_peer(item);
        const bool draws = layout_.pattern == Pattern::kRandom;
        const long last = layout_.messages - 1, offset = draws ? turn * 0x9e3779b1L : 0;
        const long cut = fault == Fault::kLastElementMissing ? std::min(8L, item.bytes) : 0;
        const size_t bytes = static_cast<size_t>(item.bytes - cut);
        for (long i = 0; i <= last; ++i) {
            const long message = draws ? scattered(i, offset) : i;
            const int peer = draws ? layout_.drawn_pe(turn, job_.me(), item.number, message) : item.peer;
            put(link, item, message, {incoming(turn, inbox, message), outgoing(item, message), idle ? 0 : bytes, peer},
                turn);
        }
    }

    struct Message {
        char* dest;
        char* source;
        size_t bytes;
        int peer;
    };

    // A planted fault has the data, but neither signal nor flag, go elsewhere, or the target would wait for ever.
    template <class Link>
    void put(const Link& link, const Item& item, long message, Message what, long turn) {
        const int pe = job_.real_pe(what.peer);
        const bool gets = job_.options().fault == Fault::kGetNamedPut;
        if (gets && what.bytes > 0)
            link.get(what.source, what.dest, what.bytes, pe);
        if (gets)
            what.bytes = 0;
#if SHMEM_MT_HAVE_PUT_SIGNAL
        if (sync_ == Sync::kPutSignal) {
            if (pe != what.peer && what.bytes > 0)
                link.put(what.dest, what.source, what.bytes, pe);
            link.put_signal(what.dest, what.source, pe == what.peer ? what.bytes : 0,
                            memory_.signal(identity(item.at_peer, message)), static_cast<uint64_t>(turn), what.peer);
            return;
        }
#endif
        (void)item;
        (void)message;
        (void)turn;
        if (what.bytes == 0)
            return;
        if (sync_ == Sync::kFenceFlag)
            link.put(what.dest, what.source, what.bytes, pe);
        else
            link.put_nbi(what.dest, what.source, what.bytes, pe);
    }

    // The places of a window in another order, each once.
    long scattered(long i, long offset) const {
        const long at =
            static_cast<long>(static_cast<uint64_t>(i * 7 + offset) % static_cast<uint64_t>(layout_.messages));
        return layout_.messages % 7 == 0 ? i : at;
    }

    template <class Link>
    void raise_flags(const Link& link, const std::vector<Item>& own, long turn) {
        for (const Item& item : own) {
            if (item.sends)
                raise_flag(link, item, turn);
        }
    }

    template <class Link>
    void raise_flag(const Link& link, const Item& item, long turn) {
        link.p(memory_.flag(item.at_peer), turn, item.peer);
    }

    // Until all of an item has come.
    void await(const Item& item, long turn) {
#if SHMEM_MT_HAVE_PUT_SIGNAL
        for (long message = 0; sync_ == Sync::kPutSignal && message < layout_.messages; ++message)
            shmem_signal_wait_until(memory_.signal(identity(item.number, message)), SHMEM_CMP_GE,
                                    static_cast<uint64_t>(turn));
#endif
        if (sync_ != Sync::kPutSignal)
            shmem_long_wait_until(memory_.flag(item.number), SHMEM_CMP_GE, turn);
    }

    Job& job_;
    PatternMemory& memory_;
    PatternContexts& contexts_;
    const Layout layout_;
    const Sync sync_;
    const Context context_;
    const std::vector<Item> items_;         // of this PE
    std::vector<std::vector<Item>> owned_;  // by thread
    std::vector<std::vector<int>> peers_;   // by thread: the PEs that it sends to
    const long set_bytes_;                  // of the inboxes
    const bool needs_credit_;
    std::unique_ptr<SharedRequest> shared_;
    int round_ = 0;
    bool validating_ = false;
};

}  // namespace shmem_mt
