/* How PEs part at the end of shmem_finalize (runtime::stop, Network::tick, src/fabric/liveness/heartbeat.h): every
 * interleaving of two PEs on two hosts that
 *   - drain: wait for the acknowledgement of a last record each, which the other one's service thread gives, or its
 *     program thread where it polls, that is, while it drains itself;
 *   - come to the last barrier but one, which the launcher makes: it polls nothing, and lets one PE out before another;
 *   - stop their service thread, which says that they have left, and come to the last barrier;
 *   - end, which breaks the connection.
 * Meanwhile time passes: a PE that has been heard, and then for a whole round of time not, is missed. In a round every
 * PE that beats does so; a stopped PE does nothing at all.
 *
 * Proven: no PE is missed wrongly, and both end. With -DSTOPS the job ends, or all PEs have come to the first barrier:
 * then the other one has all that it waits for.
 *
 * Variants: -DMANUAL the policy is manual: the service thread answers only when it is told to;
 *   -DSTOPS PE 1 is stopped, at any time.
 * Mutants, which must fail:
 *   -DSILENT_EARLY    a PE that has drained is silent, before the barrier (as it was; with STOPS it does not listen)
 *   -DNO_LAST_WORD    a PE that stops its service does not say that it leaves
 *   -DMISSES_ALWAYS   a PE takes a broken connection for a loss although it is through the first barrier
 *   -DONE_BARRIER     a PE ends behind the first barrier
 *   -DMANUAL=2        nobody makes the service thread answer (as it was)
 *   -DSTOPS=2         a PE in the barrier does not listen (as it was) */

#ifndef MANUAL
#define MANUAL 0
#endif
#ifndef STOPS
#define STOPS 0
#endif

#define other (1 - me)

mtype = { drains, waits, parted, over };
mtype phase[2] = drains;

bool unanswered[2] = true;  /* a record of this PE that the other one has not acknowledged */
bool beats[2] = true;       /* the service thread sends heartbeats */
bool listens[2] = true;     /* ... and misses a neighbour that is silent */
bool answers[2] = !MANUAL;  /* ... and gives acknowledgements */
bool has_left[2];           /* the neighbour has been told so */
bool stopped[2];
byte first = 0, last = 0;   /* PEs that have come to the barriers */
bool ended = false;         /* the job, as a PE was missed */

inline lose(pe) {
    assert(stopped[pe]);    /* rightly missed */
    ended = true
}

/* The program thread. */
active [2] proctype program() {
    byte me = _pid;
    {
        /* A wait polls: it gives the other one's acknowledgement as well. */
end_drains: do
        :: unanswered[other] -> unanswered[other] = false
        :: atomic { !unanswered[me] -> break }
        od;
#ifdef SILENT_EARLY
        beats[me] = false;
#endif
#if STOPS == 2
        listens[me] = false;
#endif
#if MANUAL == 1
        answers[me] = true;
#endif
        atomic { phase[me] = waits; first++ };
end_first: first == 2;         /* one may come out long before the other */
#ifndef MISSES_ALWAYS
        listens[me] = false;
#endif
        /* The service thread's last act. */
        atomic {
            beats[me] = false; answers[me] = false;
#ifndef NO_LAST_WORD
            has_left[me] = true;
#endif
            phase[me] = parted
        };
#ifndef ONE_BARRIER
        last++;
end_last: last == 2;
#endif
        phase[me] = over
    } unless { stopped[me] || ended }
}

/* The service thread's answers. */
active [2] proctype service() {
    byte me = _pid - 2;
    {
end_answers: do
        :: atomic { answers[me] && unanswered[other] -> unanswered[other] = false }
        od
    } unless { stopped[me] || ended || phase[me] == over }
}

/* A round of time is over: who listens has heard its neighbour in it, or misses it. A connection breaks at once. */
active [2] proctype listener() {
    byte me = _pid - 4;
    {
end_listens: do
        :: atomic { listens[me] && !has_left[other] && (!beats[other] || stopped[other]) -> lose(other) }
        :: atomic { listens[me] && phase[other] == over -> lose(other) }
        od
    } unless { stopped[me] || ended || phase[me] == over }
}

#if STOPS
active proctype stopper() {
    stopped[1] = true       /* at any time */
}
#endif

active proctype observer() {
end_observes:
    timeout ->
        assert(ended || (phase[0] == over && phase[1] == over) ||
               (stopped[1] && first == 2 && (phase[0] == parted || phase[0] == over)))
}
