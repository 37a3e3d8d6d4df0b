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
 * Variants that hold:
 *   -DTHREADS=2      two PEs of two threads each, instead of three of one
 *   -DAT_WAKEUP      a thread sleeps on its node or at its PE's wake-up, as it likes each time. That count is modelled
 *                    by whether it has advanced since the sleeper read it
 *
 * Mutants, which must fail:
 *   -DLINK_FIRST     a PE links itself to its predecessor before its own node says that it waits
 *   -DWAKE_FIRST     the wake comes before the waiting bit is cleared
 *   -DNO_BIT         the sleeper does not set its sleeping bit before it sleeps
 *   -DNO_COMPARISON  the kernel queues the sleeper without comparing the node with what was seen
 *   -DNO_RECHECK     who finds no successor and the tail moved does not wait for the link
 *   -DNO_CLAIM       threads of a PE share its node
 *   -DAT_WAKEUP=2    who hands the lock on does not advance the wake-up
 *   -DAT_WAKEUP=3    the sleeper reads the wake-up behind its look at the node
 *   -DAT_WAKEUP=4    the sleeper reads the wake-up, and looks, ahead of its bit */

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
    bool in_use, waiting, sleeping, at_wakeup;
    byte next;               /* plus one */
    /* Not part of the word: its owner is in the kernel; and there at the wake-up, which has advanced since it was read. */
    bool asleep, rests, rung
};
Node node[PES];
byte tail = 0;               /* the last in the queue, plus one */

byte holders = 0, tickets = 0, served = 0, ended = 0;

#define is_free(n) (!n.in_use && !n.waiting && !n.sleeping && !n.at_wakeup && n.next == 0)

#ifdef AT_WAKEUP
inline sleep_at_wakeup() {
#if AT_WAKEUP == 4
    node[me].rung = false;
    if
    :: !node[me].waiting
    :: else ->
        node[me].at_wakeup = true;
        atomic {
            if
            :: !node[me].rung -> node[me].rests = true
            :: else
            fi
        };
        !node[me].rests
    fi
#else
    node[me].at_wakeup = true;               /* fetch_or */
    node[me].rung = false;                   /* reads the wake-up */
    if
    :: !node[me].waiting
    :: else ->
#if AT_WAKEUP == 3
        node[me].rung = false;
#endif
        atomic {                             /* sleeps while the wake-up is what was read */
            if
            :: !node[me].rung -> node[me].rests = true
            :: else
            fi
        };
        atomic { !node[me].rests -> node[me].rung = false }  /* until woken */
    fi
#endif
}
#endif

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
#ifdef AT_WAKEUP
    :: node[me].waiting -> sleep_at_wakeup()
#endif
    od
}

inline wake(pe) {
    if
    :: woken -> node[pe].asleep = false
    :: else
    fi;
#if defined(AT_WAKEUP) && AT_WAKEUP != 2
    if
    :: advances -> d_step { node[pe].rung = true; node[pe].rests = false; advances = false }
    :: else
    fi
#endif
}

inline hand_on(pe) {
#ifdef WAKE_FIRST
    woken = node[pe].sleeping;
    wake(pe);
    atomic { node[pe].waiting = false; node[pe].sleeping = false }
#else
    atomic {                                 /* fetch_and */
        woken = node[pe].sleeping; advances = node[pe].at_wakeup;
        node[pe].waiting = false; node[pe].sleeping = false; node[pe].at_wakeup = false
    }
    wake(pe)
#endif
}

active [PES * THREADS] proctype thread() {
    byte me = _pid / THREADS, round = 0, before, ticket, successor, seen_next;
    bool seen_sleeping, woken, advances;
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
            node[me].in_use = false; node[me].waiting = false; node[me].sleeping = false;
            node[me].at_wakeup = false; node[me].next = 0
        };
        if
        :: successor != 0 -> hand_on(successor - 1)
        :: else
        fi;
        goto next_round;
alone:
        atomic {
            node[me].in_use = false; node[me].waiting = false; node[me].sleeping = false;
            node[me].at_wakeup = false; node[me].next = 0
        };
next_round:
        atomic { successor = 0; woken = false; advances = false }  /* what is not needed any more makes no states */
    :: else -> break
    od;
    ended++
}

active proctype accountant() {
    byte i;
    ended == PES * THREADS;
    assert(tail == 0 && served == tickets);
    for (i : 0 .. PES - 1) {
        assert(is_free(node[i]) && !node[i].asleep && !node[i].rests)
    }
}
