/* The duty of the first sleeper of src/progress/parking_lot.h, in every interleaving of
 *   - two sleepers without timers: a piece of work makes the condition of one true, a message that of the other;
 *   - a thread that posts the work, and goes away to compute;
 *   - a peer, whose store makes the work due: it advances the PE's wake-up;
 *   - a thread that waits awake, and polls, for a while;
 *   - the network's service thread, which applies the message.
 * Memory is sequentially consistent: the counts are read-modify-writes, and pollers and posted are seq_cst. A count that
 * is only compared with what it was before is modelled by that: whether it has moved since the thread read it.
 *
 * Proven: no state in which all have stopped and a sleeper sleeps, or a piece of work is due; a sleeper leaves when its
 * condition holds, or behind progress of its own.
 *
 * A variant that holds:
 *   -DTWICE          the work comes in two pieces, and the message behind both. Who moves a piece tells the sleeper
 *                    that waits for the message, which then looks for itself, and goes on to wait
 *
 * Mutants, which must fail:
 *   -DTWICE=2        a sleeper that has moved something, and is told so, sleeps again as one that polls
 *   -DNO_CALL_AT_POST     who posts calls no sleeper
 *   -DNO_CALL_AT_END      nor does the last thread that polled, at the end of its wait or where it falls asleep: it may
 *                         rest elsewhere than in the lot, or leave ahead of it
 *   -DLOOK_EARLY          which looks for what is posted while it is still counted
 *   -DNO_TAKE_OVER        a sleeper that leaves calls no other
 *   -DSEEN_LATE           the first sleeper reads the wake-up behind its progress
 *   -DWORD_ALONE          a condition that holds wakes its sleeper by its word, although it rests at the wake-up
 *   -DNO_DUTY_AGAIN       a sleeper that was called sleeps on its word again */

#define SLEEPERS 2
#define NONE 9
#define ASLEEP 0
#define READY 1
#define CALLED 2

bool made[SLEEPERS], linked[SLEEPERS], rests[SLEEPERS], locked = false;
byte state[SLEEPERS], first = NONE, next[SLEEPERS], count = 0, ended = 0;
bool posted = false, watched = false;
bool due = false;
byte pollers = 1;
bool rung[SLEEPERS];    /* the wake-up, since the sleeper read it */
bool kernel[SLEEPERS];  /* asleep in the kernel's queue at the wake-up */

#define has_duty (posted && pollers == 0)

#ifdef TWICE
byte pieces = 0;
bool told[SLEEPERS];
#define may_be_made(who) (made[who] || told[who])
#else
#define may_be_made(who) made[who]
#endif

inline lock() { atomic { !locked -> locked = true } }
inline unlock() { locked = false }
inline ring() { d_step { rung[0] = true; rung[1] = true; kernel[0] = false; kernel[1] = false } }

inline wake(who, as) {
    state[who] = as;
#ifndef WORD_ALONE
    if
    :: rests[who] -> ring()
    :: else
    fi
#endif
}

/* Under the lock, as the next. */
inline ask_all(but) {
    i = first;
    do
    :: i != NONE ->
       assert(linked[i]);
       if
       :: state[i] != READY && may_be_made(i) && i == but -> state[i] = READY
       :: state[i] != READY && may_be_made(i) && i != but -> wake(i, READY)
       :: else
       fi;
       i = next[i]
    :: else -> break
    od
}

inline call_first() {
    if
    :: first != NONE && state[first] == ASLEEP && !rests[first] && has_duty -> wake(first, CALLED)
    :: else
    fi
}

inline call() {
    if
    :: count != 0 -> lock(); call_first(); unlock()
    :: else
    fi
}

/* Engine::drive: work that is due makes the condition true, which a relay follows. */
inline make_progress() {
    moved = false;
    atomic {
        if
        :: posted && due -> due = false; moved = true;
#ifdef TWICE
            pieces++; made[0] = pieces == 2; told[1] = true
#else
            made[0] = true
#endif
        :: else
        fi
    };
    if
    :: moved && count != 0 -> lock(); ask_all(NONE); unlock()
    :: else
    fi
}

inline link_and_count() {
    if
    :: first == NONE -> first = me; next[me] = NONE
    :: first != NONE && !rests[first] && has_duty -> next[me] = first; first = me
    :: else -> next[me] = NONE; next[first] = me  /* there are two */
    fi;
    linked[me] = true;
    count++
}

inline unlink() {
    was_first = first == me;
    if
    :: first == me -> first = next[me]
    :: else -> next[first] = NONE
    fi;
    linked[me] = false;
    count--;
#ifndef NO_TAKE_OVER
    if
    :: was_first -> call_first()
    :: else
    fi
#endif
}

/* WaitSteps::count_as_poller. */
inline stop_polling() {
#ifdef LOOK_EARLY
    sees = posted;
#endif
    d_step { pollers--; was_last = pollers == 0 }
}

/* WaitSteps::hand_over_duty. */
inline hand_over() {
#ifndef LOOK_EARLY
    sees = posted;
#endif
#ifndef NO_CALL_AT_END
    if
    :: was_last && sees -> call()
    :: else
    fi;
#endif
    was_last = false
}

active [SLEEPERS] proctype sleeper() {
    byte me = _pid, i;
    bool held, moved, polls, was_first, sees, was_last;
    do
    :: true ->
again: lock();
       link_and_count();
       held = may_be_made(me);
       moved = false;
       do
       :: !held && !moved ->
#ifdef NO_DUTY_AGAIN
          rests[me] = first == me && has_duty && state[me] != CALLED;
#else
          rests[me] = first == me && has_duty;
#endif
          state[me] = ASLEEP;
          unlock();
          if
          :: rests[me] ->
             rung[me] = false;
             make_progress();
#ifdef SEEN_LATE
             rung[me] = false;
#endif
             if
             :: moved -> pollers++; polls = true
             :: !moved && state[me] == ASLEEP ->
                atomic {
                    if
                    :: !rung[me] -> kernel[me] = true
                    :: else
                    fi
                };
                !kernel[me]
             :: else
             fi
          :: else -> state[me] != ASLEEP
          fi;
          lock();
          if
          :: state[me] == ASLEEP && rests[me] -> ask_all(me)
          :: else
          fi;
          held = state[me] == READY
       :: else -> break
       od;
       assert(held || moved || may_be_made(me));
       unlink();
       rests[me] = false;
       state[me] = ASLEEP;
       unlock();
#ifdef TWICE
       told[me] = false;
       if
       :: made[me] -> break
#if TWICE == 2
       :: !made[me] && held -> goto again
       :: !made[me] && !held -> make_progress()
#else
       :: !made[me] && !polls -> goto again
       :: !made[me] && polls -> make_progress()  /* awake, for a while */
#endif
       fi;
#else
       if
       :: held -> break
       :: !held && made[me] -> break
       :: else -> make_progress()  /* awake, for a while */
       fi;
#endif
       if
       :: made[me] -> break
       :: else -> stop_polling(); polls = false  /* fall_asleep */
       fi;
       if
       :: made[me] -> hand_over(); break        /* its condition holds ahead of the lot */
       :: true
       fi
    od;
    if
    :: polls -> stop_polling(); hand_over()     /* the wait has ended */
    :: else
    fi;
    ended++
}

active proctype poster() {
    posted = true;
#ifndef NO_CALL_AT_POST
    call();
#endif
    watched = true;  /* the fiber begins to wait */
    ended++
}

active proctype peer() {
    watched;
    due = true;
    ring();
#ifdef TWICE
    !due;
    due = true;
    ring();
#endif
    ended++
}

/* Engine::on_messages */
active proctype service() {
    byte i;
#ifdef TWICE
    made[0];  /* the message is sent behind the work */
#endif
    made[1] = true;
    d_step { rung[0] = true; rung[1] = true };  /* advance_silently */
    if
    :: count != 0 -> lock(); ask_all(NONE); unlock()
    :: else
    fi;
    ended++
}

active proctype poller() {
    byte i;
    bool moved, sees, was_last;
    make_progress();
    stop_polling();
    hand_over();
    ended++
}

active proctype accountant() {
    ended == SLEEPERS + 4;
    assert(made[0] && !due && count == 0 && first == NONE && pollers == 0)
}
