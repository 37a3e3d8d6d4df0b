/* How a stream that waits for another rail goes on (src/fabric/multirail/rail_watermarks.h, Channel::wake, poll and arm): every interleaving
 * of two channels, a message on each, the one on A to be applied when the one on B is complete, and
 *   - threads that poll both channels once and go away to compute;
 *   - the service thread, which polls, and sleeps until a message comes when it could arm both channels.
 * All accesses here are seq_cst, so memory is one; what else a channel does is under its lock.
 *
 * Proven: no state in which all have gone away or sleep and A's message is not applied.
 *
 * Mutants, which must fail:
 *   -DWAITS_LATE      who waits says so only when it has found the other not complete
 *   -DNO_WOKEN_POLL   who has woken a channel does not poll it
 *   -DNO_SECOND_LOOK  who lets go of a channel does not look whether it has been woken meanwhile
 *   -DARM_BLINDLY     nor does who arms it */

#define A 0
#define B 1
#define THREADS 2

bool message[2];          /* in the network */
bool locked[2];
bool woken = false;       /* channel A */
bool waits = false, held = false, complete = false, applied = false;

inline apply() {
#ifdef WAITS_LATE
    if
    :: complete -> held = false; applied = true
    :: else -> waits = true; held = true
    fi
#else
    waits = true;
    if
    :: complete -> waits = false; held = false; applied = true
    :: else -> held = true
    fi
#endif
}

inline work(w, moved) {
    if
    :: w == A && woken -> woken = false; moved = true;
        if
        :: held -> apply()
        :: else
        fi
    :: else
    fi;
    if
    :: atomic { message[w] -> message[w] = false }; moved = true;
        if
        :: w == A -> apply()
        :: else -> complete = true;
            if
            :: waits -> woken = true
            :: else
            fi
        fi
    :: !message[w]
    fi
}

inline poll_alone(w, moved) {
    do
    :: atomic { !locked[w] -> locked[w] = true };
        work(w, moved);
        locked[w] = false;
#ifndef NO_SECOND_LOOK
        if
        :: w == A && woken
        :: else -> break
        fi
#else
        break
#endif
    :: locked[w] -> break
    od
}

inline poll(w) {
    moved = false;
    poll_alone(w, moved);
#ifndef NO_WOKEN_POLL
    do
    :: moved && woken -> moved = false; poll_alone(A, moved)
    :: else -> break
    od
#endif
}

inline arm(w) {
    if
    :: atomic { !locked[w] -> locked[w] = true };
        moved = false;
        work(w, moved);
        locked[w] = false;
#ifdef ARM_BLINDLY
        armed = armed && !moved
#else
        armed = armed && !moved && !(w == A && woken)
#endif
    :: locked[w] -> armed = false
    fi
}

active [THREADS] proctype thread() {
    bool moved;
    poll(A);
    poll(B)
}

active proctype service() {
    bool moved, armed;
end_serves:
    do
    :: poll(A); poll(B);
        armed = true;
        arm(A);
        if
        :: armed -> arm(B)
        :: else
        fi;
        if
        :: armed ->
end_sleeps: message[A] || message[B]
        :: else
        fi
    od
}

active proctype network() {
    if
    :: message[A] = true; message[B] = true
    :: message[B] = true; message[A] = true
    fi
}

active proctype observer() {
end_observes:
    timeout -> assert(applied)
}
