/* How what a poll leaves at its bound is done all the same, and what a thread leaves to others (Channel::poll_alone,
 * Channel::arm, Network::on_left, Network::polls_soon and Network::sleep_until_event), in every interleaving of
 *   - two threads that queue a stream, poll, and go away to compute, twice. Where the service thread does not sleep, a
 *     thread may not poll: those that it leaves its record to have fallen asleep. What is sent may have to wait in the
 *     transport for room at its PE, which no event tells of. An ack that is left to the next poll is the same here;
 *   - the service thread, which polls, and sleeps on the descriptors where it could arm the channel. The network brings
 *     nothing: what wakes it is a thread that leaves something. Its naps end by themselves.
 * All accesses here are seq_cst, so memory is one. A turn stands for all rounds of one: it takes the stack once.
 *
 * Proven: no poll takes more turns than its bound, and no state in which all have gone away or sleep and a queued
 * stream is not looked at, or something waits in the transport.
 *
 * Mutants, which must fail:
 *   -DNO_BOUND        a poll goes on while others queue
 *   -DNOBODY_TOLD     a poll that ends at its bound tells nobody
 *   -DASLEEP_LATE     the service thread says that it sleeps only when it has armed the channel
 *   -DASLEEP_EARLY    a poll looks whether the service thread sleeps before its turns, not behind them
 *   -DARM_BLINDLY     who arms does not look at the stack again when it has given the lock back
 *   -DSTALE_ARM       a poll that has sent does not arm the channel again for the service thread that sleeps
 *   -DLEFT_EARLY      a thread looks whether the service thread sleeps before it queues, not behind that
 * A variant that holds, and its mutants:
 *   -DSTILL_ARMED     a channel that nothing has moved on since it was armed is armed (Channel::arm, not again)
 *   -DSTILL_ARMED=2   and whether it is, is looked at without the lock, before the service thread says that it sleeps
 *   -DSTILL_ARMED=3   and a poll that has moved something leaves it armed
 * A variant that holds, and its mutant:
 *   -DMANUAL          no service thread: each thread ends with a call that polls until its own stream is done (quiet)
 *   -DMANUAL=2        and that call polls once */

#ifdef NO_BOUND
#define BOUND 9
#else
#define BOUND 1
#endif
#define ALLOWED 1
#define PUSHES 2

bool stack[2];            /* the thread's stream is on it */
bool locked = false;
bool asleep = false, woken = false;
bool waits = false;       /* something in the transport, or an ack */
bool armed = false;       /* Channel::armed_ */
byte gone = 0;

#define is_due (stack[0] || stack[1])

inline turn_under_lock() {
    atomic {
        moves = false;
        if
        :: is_due ->
           moves = true;
           stack[0] = false;
           stack[1] = false;
           if
           :: waits = true
           :: true
           fi
        :: !is_due && waits ->
           if
           :: waits = false; moves = true  /* there is room */
           :: true
           fi
        :: else
        fi;
        moved = moved || moves
    }
}

inline stay_armed() {
    left = false;
#if !defined(STALE_ARM) && STILL_ARMED + 0 != 3
    if
    :: moves && armed -> armed = asleep && !waits; left = asleep && waits
    :: else
    fi
#endif
}

inline leave_rest() {
#if defined(NOBODY_TOLD)
    skip
#elif defined(ASLEEP_EARLY)
    if
    :: sleeps -> woken = true
    :: else
    fi
#else
    if
    :: asleep -> atomic { woken = woken || asleep; asleep = false }  /* the exchange, and the write */
    :: else
    fi
#endif
}

inline poll() {
    moved = false;
    turns = 0;
#ifdef ASLEEP_EARLY
    sleeps = asleep;
#endif
    do
    :: turns == BOUND -> leave_rest(); break
    :: else ->
       if
       :: atomic { !locked -> locked = true };
          turns++;
          assert(turns <= ALLOWED);
          turn_under_lock();
          stay_armed();
          locked = false;
          if
          :: left -> leave_rest()
          :: else
          fi;
          if
          :: is_due
          :: else -> break
          fi
       :: locked -> break
       fi
    od
}

active [2] proctype thread() {
    bool moved, moves, left;
    byte turns, pushes;
#ifdef ASLEEP_EARLY
    bool sleeps;
#endif
    do
    :: pushes < PUSHES ->
#ifdef LEFT_EARLY
       left = !asleep;
       stack[_pid] = true;
#else
       stack[_pid] = true;
       left = !asleep;
#endif
       if
#ifndef MANUAL
       :: left
#endif
       :: poll()
       fi;
       pushes++
    :: else -> break
    od;
#ifdef MANUAL
#if MANUAL == 2
    poll();
#else
    do
    :: stack[_pid] || waits -> poll()
    :: else -> break
    od;
#endif
#endif
    gone++
}

#ifndef MANUAL
active proctype service() {
    bool moved, moves, left, is_armed;
    byte turns;
#ifdef ASLEEP_EARLY
    bool sleeps;
#endif
end_serves:
    do
    :: poll();
       if
       :: moved -> goto again
       :: else
       fi;
#if STILL_ARMED + 0 == 2
       is_armed = armed;
#endif
#ifndef ASLEEP_LATE
       asleep = true;
#endif
       if
       :: atomic { !locked -> locked = true };
#if STILL_ARMED + 0 == 1 || STILL_ARMED + 0 == 3
          is_armed = armed;
#endif
          if
          :: is_armed -> is_armed = false; left = true
          :: else ->
             turn_under_lock();
             armed = !moved && !waits;
             left = armed
          fi;
          locked = false;
#ifdef ARM_BLINDLY
          if
          :: left ->
#else
          if
          :: left && !is_due ->
#endif
#ifdef ASLEEP_LATE
             asleep = true;
#endif
end_sleeps:  woken -> woken = false
          :: else
          fi
       :: locked
       fi;
       asleep = false;
again: skip
    od
}
#endif

active proctype observer() {
end_observes:
    timeout -> assert(gone == 2 && !is_due && !waits)
}
