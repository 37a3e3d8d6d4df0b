/* The parking lot of src/progress/parking_lot.h: two sleepers, each with a condition, and a thread that makes them true,
 * in every interleaving. Memory is sequentially consistent: both sides count by a read-modify-write of one word, and a
 * mutant for each says what happens without.
 *
 * Proven: no state in which all have stopped and a sleeper sleeps, no sleeper that leaves while its condition is false,
 * and no condition that is asked behind its sleeper's leave.
 *
 * By messages: what makes a condition true is followed by a relay, and no sleeper has a timer. Mutants, which must fail:
 *   -DLOOK_EARLY    relay's look at the count passes the stores before it
 *   -DCOUNT_LATE    the sleeper asks its condition before it has counted itself
 *   -DSTATE_LATE    the sleeper's state becomes "asleep" without the lock
 * A variant: by plain stores, which no relay follows; the napper has a timer. Its mutants:
 *   -DPLAIN
 *   -DPLAIN=2       a napper that leaves calls no other
 *   -DPLAIN=3       a napper that leaves calls the other, which does not nap for it
 * Each sleeper parks twice, so that the napper changes. */

#define SLEEPERS 2
#define ROUNDS 2
#define NONE 9
#define ASLEEP 0
#define READY 1
#define CALLED 2

byte made[SLEEPERS];    /* how often the condition was made true */
byte parked[SLEEPERS];  /* the round of the sleeper's condition: true when made > parked */
bool linked[SLEEPERS], naps[SLEEPERS], locked = false;
byte state[SLEEPERS], first = NONE, next[SLEEPERS], count = 0, ended = 0;

#define holds(i) (made[i] > parked[i])

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }

/* ask_all, under the lock. */
inline ask_all() {
    i = first;
    do
    :: i != NONE ->
       assert(linked[i]);
       if
       :: state[i] != READY && holds(i) -> state[i] = READY
       :: else
       fi;
       i = next[i]
    :: else -> break
    od
}

inline link_and_count() {
    next[me] = first;
    first = me;
    linked[me] = true;
    count++
}

inline unlink() {
    if
    :: first == me -> first = next[me]
    :: else -> next[first] = next[me]  /* there are two */
    fi;
    linked[me] = false;
    count--;
#if PLAIN != 2
    if
    :: first != NONE && !naps[first] && state[first] == ASLEEP -> state[first] = CALLED
    :: else
    fi
#endif
}

active [SLEEPERS] proctype sleeper() {
    byte me = _pid, i;
    bool held;
    do
    :: parked[me] < ROUNDS ->
       lock();
#ifdef COUNT_LATE
       held = holds(me);
       link_and_count();
#else
       link_and_count();
       held = holds(me);
#endif
       do
       :: !held ->
#if PLAIN == 3
          naps[me] = first == me && state[me] != CALLED;
#else
          naps[me] = first == me;
#endif
#ifdef STATE_LATE
          unlock();
          state[me] = ASLEEP;
#else
          state[me] = ASLEEP;
          unlock();
#endif
          if
          :: state[me] != ASLEEP  /* woken, or the kernel's comparison fails */
#ifdef PLAIN
          :: naps[me]             /* the nap is over */
#endif
          fi;
          lock();
          if
          :: state[me] == ASLEEP -> ask_all()
          :: else
          fi;
          held = state[me] == READY
       :: else -> break
       od;
       assert(holds(me));
       naps[me] = false;
       state[me] = ASLEEP;
       unlink();
       parked[me]++;
       unlock()
    :: else -> break
    od;
    ended++
}

active proctype maker() {
    byte i, seen, turns;
    do
    :: turns < SLEEPERS * ROUNDS ->
#ifdef LOOK_EARLY
       seen = count;
#endif
       if
       :: made[0] < ROUNDS -> made[0]++
       :: made[1] < ROUNDS -> made[1]++
       fi;
#ifndef LOOK_EARLY
       seen = count;
#endif
#ifndef PLAIN
       if
       :: seen != 0 -> lock(); ask_all(); unlock()
       :: else
       fi;
#endif
       turns++
    :: else -> break
    od;
    ended++
}
