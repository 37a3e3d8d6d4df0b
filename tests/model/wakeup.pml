/* How nothing is missed at a wake-up (src/sync/wakeup.h, src/progress/sequence.h, Engine::drive): every interleaving of
 *   - a thread that posts operations, drives each as far as it gets, and goes away to compute;
 *   - one that polls (shmemx_progress) and goes away;
 *   - one that waits until all are done: it drives, and sleeps at the wake-up;
 *   - an opener, of another PE, of the event count that operations wait for.
 * All accesses here are seq_cst or read-modify-writes, but for a mutant's, so memory is one. The opener's own order, and
 * the sleeper's, are those of event_count.pml. A count that is only compared with what it was before is modelled by that:
 * whether it has moved since the thread read it.
 *
 * Proven: no state in which all have stopped and the waiting thread still sleeps, or an operation is not done; nobody
 * is left counted.
 *
 * Mutants, which must fail:
 *   -DNO_SECOND_LOOK   who drives does not look, when it has let go, whether the wake-up has rung meanwhile
 *   -DNO_POSTED_LOOK   nor whether something has been posted meanwhile
 *   -DDRIVEN_RELEASE   the loads behind letting go may pass that store (release instead of seq_cst)
 *   -DWATCH_LATE       an event count is watched only when it has been found closed for the last time
 *   -DSEEN_LATE        who sleeps at the wake-up remembers it as it is behind its drive
 *   -DNO_RING_AT_END   the end of an operation does not ring
 * A variant: what opens is a message, which a thread of this PE applies (Engine::on_messages). The wake-up advances, and
 * nobody at it is woken: that thread drives. It asks the sleeper's condition, and wakes it where that holds; the last
 * message concerns the sleeper alone (duty.pml has who sleeps at the wake-up). And its mutants:
 *   -DMESSAGES=1
 *   -DMESSAGES=2       who applies a message does not drive
 *   -DMESSAGES=3       the wake-up does not advance, either: who drives meanwhile does not see the message
 *   -DMESSAGES=4       who applies a message does not ask the sleeper's condition
 *   -DMESSAGES=5       who applies a message looks for sleepers before it applies it
 * A variant that holds:
 *   -DTWO_WAIT         two operations that both wait, in place of two that do not and one that does. Three that all
 *                      wait hold, too (22 million states). */

#if defined(MESSAGES)
#define OPERATIONS 1
#define OPEN_AT_FIRST 0
#elif defined(TWO_WAIT)
#define OPERATIONS 2
#define OPEN_AT_FIRST 0
#else
#define OPERATIONS 3
#define OPEN_AT_FIRST 2
#endif

#ifdef MESSAGES
#define LAST_OPEN (OPERATIONS + 1)      /* the last for the thread that waits */
#define THREADS 4
bool parked = false;      /* ParkingLot::sleepers_ */
#else
#define THREADS 3
#define LAST_OPEN OPERATIONS
#endif

byte event_count = OPEN_AT_FIRST;  /* operation i (0, 1, ...) goes on when it is beyond i */
bool watched = false;     /* by the PE, which an opener then finds: watch.pml */
bool sleeper = false;     /* the wake-up's sleepers */
bool asleep = false;      /* in the kernel's queue at the wake-up */

byte linked = 0;          /* operations that stand behind each other */
byte posted = 0, done = 0;
byte over = 0;            /* of who drives: so many are over */
mtype = { none, waits, goes };
mtype fiber = none;       /* what the fiber does */
bool driven = false;
byte ended = 0;

#define POSTER 0
#define POLLER 1
#define WAITER 2
#define APPLIER 3
bool rung[THREADS];       /* the wake-up, since the thread read it: heard */
bool rung_since_seen;     /* and the waiting thread, before it drove: seen */
bool more[THREADS];       /* posted, since the thread read it */
#ifdef DRIVEN_RELEASE
bool letting_go[THREADS]; /* the thread's store of driven = false that memory has not seen yet */
#define drained(me) (!letting_go[me])
#else
#define drained(me) true
#endif

#define all_of(flags) flags[POSTER] = true; flags[POLLER] = true; flags[WAITER] = true; flags[THREADS - 1] = true

inline ring() {
    d_step { all_of(rung); rung_since_seen = true };
    if                                                   /* advance: the increment, and the load of sleepers */
    :: sleeper -> asleep = false
    :: else
    fi
}

/* Sequence::carry_on, and in it the fiber: wait_at_gate and the end of the operation. */
inline carry_on() {
    do
    :: over == linked -> break                           /* over_->behind */
    :: else ->
        if
        :: fiber == none ->                              /* start, resume: Watch, and wait's own look */
#ifndef WATCH_LATE
            watched = true;
#endif
            if
            :: event_count > over -> fiber = goes
            :: else -> fiber = waits
            fi
        :: fiber == waits ->                             /* is_ready */
            if
            :: event_count > over -> fiber = goes
            :: else ->
#ifdef WATCH_LATE
                watched = true;
#endif
                break
            fi
        :: fiber == goes ->                              /* resume, and it is over */
            d_step { watched = false; fiber = none; over++; done++ };  /* others read watched and done alone */
#ifndef NO_RING_AT_END
            ring()                                       /* count_done */
#endif
        fi
    od
}

/* Engine::drive, with Sequence::drive in it. */
inline drive(me) {
    do
    :: true ->
        rung[me] = false;                                /* heard = wake-up */
        do
        :: true ->
            more[me] = false;                            /* posted_.load */
            if
            :: done == posted -> break                   /* is_empty */
            :: else
            fi;
            if                                           /* exchange, which empties the store buffer */
            :: atomic { drained(me) && !driven -> driven = true }
            :: atomic { drained(me) && driven -> break } /* turned away */
            fi;
            carry_on();
#ifdef DRIVEN_RELEASE
            letting_go[me] = true;
#else
            driven = false;
#endif
#ifdef NO_POSTED_LOOK
            break
#else
            if
            :: !more[me] -> break
            :: else
            fi
#endif
        od;
#ifdef NO_SECOND_LOOK
        break
#else
        if
        :: !rung[me] -> break
        :: else
        fi
#endif
    od
}

active proctype poster() {
    do
    :: linked < OPERATIONS ->
        linked++;
        d_step { posted++; all_of(more) };
        drive(POSTER)
    :: else -> break
    od;
    ended++
}

active proctype poller() {
    drive(POLLER);
    ended++
}

/* Engine::wait_for */
active proctype waiter() {
#ifdef MESSAGES
    parked = true;
#endif
    do
    :: true ->
#ifndef SEEN_LATE
        rung_since_seen = false;                         /* seen = wake-up */
#endif
        if
#ifdef MESSAGES
        :: done == OPERATIONS && event_count == LAST_OPEN -> break
#else
        :: done == OPERATIONS -> break
#endif
        :: else
        fi;
        drive(WAITER);
#ifdef SEEN_LATE
        rung_since_seen = false;
#endif
        atomic { drained(WAITER) -> sleeper = true };    /* Event count::sleep */
        atomic {
            if
            :: !rung_since_seen -> asleep = true
            :: else
            fi
        };
        !asleep;
        sleeper = false
    od;
    ended++
}

/* EventCount::advance_to, and wake_all_of */
active proctype opener() {
#ifdef MESSAGES
    bool asks;
#endif
    do
    :: event_count < LAST_OPEN ->
#ifdef MESSAGES
#if MESSAGES == 5
        asks = parked;
#endif
        event_count++;
#if MESSAGES != 3
        d_step { all_of(rung); rung_since_seen = true };  /* silently */
#endif
#if MESSAGES != 5
        asks = parked && MESSAGES != 4;
#endif
        if
        :: asks && done == OPERATIONS && event_count == LAST_OPEN -> ring()
        :: else
        fi;
#if MESSAGES != 2
        drive(APPLIER)                                   /* Channel::run_ready */
#endif
#else
        event_count++;
        if
        :: watched -> ring()
        :: else
        fi
#endif
    :: else -> break
    od;
    ended++
}

#ifdef DRIVEN_RELEASE
active proctype store_buffers() {
end_idle:
    do
    :: atomic { letting_go[POSTER] -> driven = false; letting_go[POSTER] = false }
    :: atomic { letting_go[POLLER] -> driven = false; letting_go[POLLER] = false }
    :: atomic { letting_go[WAITER] -> driven = false; letting_go[WAITER] = false }
    od
}
#endif

active proctype accountant() {
    ended == 4;
    assert(done == OPERATIONS && !watched && !sleeper && fiber == none)
}
