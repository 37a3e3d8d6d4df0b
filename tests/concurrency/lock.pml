/* The queue of src/operations/lock.cpp: PES PEs take and release one lock ROUNDS times each, every interleaving.
 *
 * Every access in the code is a locked instruction or a load of one word, so each is one step here, and memory is
 * sequentially consistent.
 *
 * Proven: one PE at a time holds the lock; PEs get it in the order in which they came to the tail; no state in which all
 * have stopped and somebody waits or sleeps (Spin's check for invalid end states); at the end all is zero again.
 *
 * Mutants, which must fail:
 *   -DLINK_FIRST   a PE links itself to its predecessor before its own node says that it waits
 *   -DWAKE_FIRST   the wake comes before the waiting bit is cleared
 *   -DNO_BIT       the sleeper does not set its sleeping bit before it sleeps
 *   -DNO_RECHECK   who finds no successor and the tail moved does not wait for the link */

#define PES 3
#define ROUNDS 2

byte tail = 0;           /* the last in the queue, plus one */
bool waiting[PES];       /* the bits of each node, and who comes next, plus one */
bool sleeping[PES];
byte next[PES];
bool asleep[PES];        /* in the kernel */

byte holders = 0, tickets = 0, served = 0, ended = 0;

active [PES] proctype pe() {
    byte me = _pid, round = 0, before, ticket, successor, seen_next;
    bool wake;
    do
    :: round < ROUNDS ->
        /* set_lock */
        atomic { before = tail; tail = me + 1; ticket = tickets; tickets++ }
        if
        :: before != 0 ->
#ifdef LINK_FIRST
            next[before - 1] = me + 1;
            waiting[me] = true;
#else
            waiting[me] = true;
            next[before - 1] = me + 1;
#endif
            do
            :: !waiting[me] -> break
            :: waiting[me] ->
#ifdef NO_BIT
                seen_next = next[me];
#else
                atomic { sleeping[me] = true; seen_next = next[me] }
#endif
                atomic {                     /* futex_wait: the whole word must be as it was seen */
                    if
                    :: waiting[me] && next[me] == seen_next -> asleep[me] = true
                    :: else
                    fi
                };
                !asleep[me]
            od
        :: else
        fi;
        holders++;
        assert(holders == 1);
        assert(ticket == served);
        served++;
        holders--;
        /* clear_lock */
        successor = next[me];
        if
        :: successor == 0 ->
            atomic {
                if
                :: tail == me + 1 -> tail = 0; goto released
                :: else
                fi
            };
#ifndef NO_RECHECK
            next[me] != 0;
#endif
        :: else
        fi;
        atomic { successor = next[me]; next[me] = 0; sleeping[me] = false }
        if
        :: successor != 0 ->
#ifdef WAKE_FIRST
            if
            :: sleeping[successor - 1] -> asleep[successor - 1] = false
            :: else
            fi;
            atomic { waiting[successor - 1] = false; sleeping[successor - 1] = false }
#else
            atomic { wake = sleeping[successor - 1]; waiting[successor - 1] = false; sleeping[successor - 1] = false }
            if
            :: wake -> asleep[successor - 1] = false
            :: else
            fi
#endif
        :: else
        fi;
released:
        round++
    :: else -> break
    od;
    ended++
}

active proctype accountant() {
    ended == PES;
    assert(tail == 0 && served == PES * ROUNDS)
}
