/* The wake protocol of src/sync/event_count.h: one opener, two sleepers, every interleaving.
 *
 * Memory is x86's: a plain store waits in the opener's store buffer and reaches memory later, in order; a seq_cst store
 * (exchange), a locked add and the kernel's futex call empty the buffer first. So open in its two halves, set and wake,
 * is the same opener: the locked add in wake empties the buffer where open's exchange does, and reads `sleepers`.
 * Sleepers never store plainly, so only the opener has a buffer. Loads of the opener read `sleepers`, which it never
 * stores, so nothing is forwarded.
 *
 * Proven: no state in which all have stopped and a sleeper still sleeps (Spin's check for invalid end states), no count
 * that is passed before it is open, and no sleeper left counted.
 *
 * Mutants, which must fail:
 *   -DNO_SEQ_CST       the opener's load of sleepers may pass its store (release instead of seq_cst)
 *   -DCOUNT_LATE       the sleeper counts itself only after the kernel's comparison
 *   -DNO_COMPARISON    the kernel queues the sleeper without comparing value with what it saw
 * A variant that holds:
 *   -DRELAXED_SLEEPER  the sleeper's load of value may pass its increment: the kernel's comparison, behind its own
 *                      barrier, makes up for it. The code's seq_cst there is for the reader, and free on x86.
 * Wrap-around of the count is left out: tests/unit/sync tests it. So are deadlines: they only wake more. */

#define OPENS 3
#define SLEEPERS 2

byte value = 0;           /* as memory holds it */
byte sleepers = 0;
bool asleep[SLEEPERS];    /* in the kernel's queue */
byte opened = 0;          /* what the opener has decided, for the check of early passes */
byte ended = 0;           /* of opener and sleepers */
chan buffer = [OPENS] of { byte };  /* stores of value that memory has not seen yet */

/* The store buffer empties itself at any time; it may wait for ever only while it is empty. */
active proctype store_buffer() {
    byte stored;
end_idle:
    do
    :: atomic { buffer ? stored -> value = stored }
    od
}

inline drained() { empty(buffer) }

active proctype opener() {
    byte next = 1, seen, i;
    do
    :: next <= OPENS ->
        atomic { opened = next; buffer ! next }  /* value.store ... */
#ifndef NO_SEQ_CST
        drained();                               /* ... seq_cst: nothing later runs before memory has it */
#endif
        seen = sleepers;                         /* sleepers.load */
        if
        :: seen != 0 ->
            drained();                           /* entering the kernel: its locks are full barriers */
            atomic {
                i = 0;
                do
                :: i < SLEEPERS -> asleep[i] = false; i++
                :: else -> break
                od;
                i = 0
            }
        :: else
        fi;
        next++
    :: else -> break
    od;
    ended++
}

active [SLEEPERS] proctype sleeper() {
    byte me = _pid - 2, target = 1, old;
    do
    :: target <= OPENS ->
        do
        :: value >= target -> break              /* reached */
        :: else ->
#if defined(RELAXED_SLEEPER)
            old = value;
            sleepers++;
#elif defined(COUNT_LATE)
            old = value;
#else
            sleepers++;                          /* fetch_add, seq_cst */
            old = value;                         /* load, seq_cst */
#endif
            if
            :: old < target ->
                atomic {                         /* futex_wait: compare and queue under the kernel's lock */
                    if
#ifdef NO_COMPARISON
                    :: true -> asleep[me] = true
#else
                    :: value == old -> asleep[me] = true
                    :: else
#endif
                    fi
                };
#ifdef COUNT_LATE
                sleepers++;
#endif
                !asleep[me]                      /* until woken */
            :: else ->
#ifdef COUNT_LATE
                sleepers++
#else
                skip
#endif
            fi;
            sleepers--
        od;
        assert(opened >= target);
        target++
    :: else -> break
    od;
    ended++
}

/* When the opener and both sleepers have ended, nobody is counted. */
active proctype accountant() {
    ended == 1 + SLEEPERS;
    assert(sleepers == 0)
}
