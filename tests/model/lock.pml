/* The queue of src/operations/lock.cpp: the threads of some PEs take and release one lock ROUNDS times each, by set_lock
 * or by test_lock, every interleaving.
 *
 * A node is one word of its PE's memory, here a record of its bits. Every access to it and to the tail is a locked
 * instruction or a load, so each is one step here and memory is sequentially consistent; the two plain stores, which
 * free a node, take effect at some later time, as any step here does, and before the next locked instruction of their
 * thread. Waits that look again and again are steps that wait for what they look for; only the sleep is modelled as it is.
 *
 * Proven: one thread at a time holds the lock; the PEs get it in the order in which they came to the tail; no state in
 * which all have stopped and somebody waits or sleeps (Spin's check for invalid end states); test_lock ends without
 * anybody's help; at the end the lock is zero everywhere.
 *
 * A variant that holds:
 *   -DTHREADS=2      two PEs of two threads each, instead of three of one
 *
 * Mutants, which must fail:
 *   -DLINK_FIRST     a PE links itself to its predecessor before its own node says that it waits
 *   -DWAKE_FIRST     the wake comes before the waiting bit is cleared
 *   -DNO_BIT         the sleeper does not set its sleeping bit before it sleeps
 *   -DNO_COMPARISON  the kernel queues the sleeper without comparing the node with what was seen
 *   -DNO_RECHECK     who finds no successor and the tail moved does not wait for the link
 *   -DNO_CLAIM       threads of a PE share its node */

#ifdef NO_CLAIM
#define THREADS 2
#endif
#ifdef THREADS
#define PES 2
#else
#define THREADS 1
#define PES 3
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif

typedef Node {
    bool in_use, waiting, sleeping;
    byte next;               /* plus one */
    bool asleep              /* its owner is in the kernel; not part of the word */
};
Node node[PES];
byte tail = 0;               /* the last in the queue, plus one */

byte holders = 0, tickets = 0, served = 0, ended = 0;

#define is_free(n) (!n.in_use && !n.waiting && !n.sleeping && n.next == 0)

inline await_turn() {
    do
    :: !node[me].waiting -> break
    :: node[me].waiting ->
#ifdef NO_BIT
        seen_next = node[me].next; seen_sleeping = node[me].sleeping;
#else
        atomic { node[me].sleeping = true; seen_next = node[me].next; seen_sleeping = true }  /* fetch_or */
#endif
        atomic {                             /* futex_wait: sleeps while the word is what was seen */
            if
#ifdef NO_COMPARISON
            :: true -> node[me].asleep = true
#else
            :: node[me].waiting && node[me].next == seen_next && node[me].sleeping == seen_sleeping ->
                node[me].asleep = true
            :: else
#endif
            fi
        };
        atomic { !node[me].asleep -> seen_next = 0; seen_sleeping = false }  /* until woken */
    od
}

inline wake(pe) {
    if
    :: woken -> node[pe].asleep = false
    :: else
    fi
}

inline hand_on(pe) {
#ifdef WAKE_FIRST
    woken = node[pe].sleeping;
    wake(pe);
    atomic { node[pe].waiting = false; node[pe].sleeping = false }
#else
    atomic { woken = node[pe].sleeping; node[pe].waiting = false; node[pe].sleeping = false }  /* fetch_and */
    wake(pe)
#endif
}

active [PES * THREADS] proctype thread() {
    byte me = _pid / THREADS, round = 0, before, ticket, successor, seen_next;
    bool seen_sleeping, woken;
    do
    :: round < ROUNDS ->
        if
        :: round++;                          /* set_lock */
#ifndef NO_CLAIM
            atomic { is_free(node[me]) -> node[me].in_use = true }
#endif
            atomic { before = tail; tail = me + 1; ticket = tickets; tickets++ }
            if
            :: before != 0 ->
#ifdef LINK_FIRST
                node[before - 1].next = me + 1;
                node[me].waiting = true;
#else
                node[me].waiting = true;
                node[before - 1].next = me + 1;
#endif
                await_turn()
            :: else
            fi
        :: round++;                          /* test_lock */
#ifndef NO_CLAIM
            atomic {
                if
                :: is_free(node[me]) -> node[me].in_use = true
                :: else -> goto next_round
                fi
            };
#endif
            atomic {
                if
                :: tail == 0 -> tail = me + 1; ticket = tickets; tickets++; goto holding
                :: else
                fi
            };
            node[me].in_use = false;
            goto next_round
        fi;
holding:
        atomic { holders++; assert(holders == 1 && ticket == served); served++; ticket = 0; before = 0 }
        holders--;
        /* clear_lock */
        successor = node[me].next;
        if
        :: successor == 0 ->
            atomic {
                if
                :: tail == me + 1 -> tail = 0; goto alone
                :: else
                fi
            };
#ifndef NO_RECHECK
            node[me].next != 0
#endif
        :: else
        fi;
        atomic {                             /* exchange */
            successor = node[me].next;
            node[me].in_use = false; node[me].waiting = false; node[me].sleeping = false; node[me].next = 0
        };
        if
        :: successor != 0 -> hand_on(successor - 1)
        :: else
        fi;
        goto next_round;
alone:
        atomic { node[me].in_use = false; node[me].waiting = false; node[me].sleeping = false; node[me].next = 0 };
next_round:
        atomic { successor = 0; woken = false }  /* what is not needed any more makes no states */
    :: else -> break
    od;
    ended++
}

active proctype accountant() {
    byte i;
    ended == PES * THREADS;
    assert(tail == 0 && served == tickets);
    for (i : 0 .. PES - 1) {
        assert(is_free(node[i]) && !node[i].asleep)
    }
}
