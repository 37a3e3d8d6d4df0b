/* What a PE of a weakly ordered target sees of records: fabric::apply (src/fabric/protocol/record.cpp) and
 * Inbound::ack_position (src/fabric/endpoint/inbound.cpp), in every interleaving of two threads that apply and one that
 * waits.
 *
 * Memory is aarch64's: stores of a thread reach memory in any order, and then all threads at once. A release fence, and
 * the release that gives the channel's lock back, wait until the thread's earlier stores have; what comes behind an
 * acquire stays behind it.
 *
 * The stream has data, flag, data, flag, each pair with a fence between, which leaves no record. Messages end anywhere;
 * either thread applies the next one, under the channel's lock.
 *
 * Proven: a thread that has loaded a flag with acquire has the data before it.
 *
 * Mutants, which must fail:
 *   -DNO_BARRIER      no release fence before a record
 *   -DPLAIN_UNLOCK    the lock is given back without release
 *   -DPLAIN_LOAD      the flag is loaded without acquire: the data may have been loaded before
 * A variant: data and flag come in streams of two channels, each with a lock of its own; the flag is sent when the data
 * has been acknowledged (a fence by another thread, docs/decisions/0030), and its mutant:
 *   -DTWO_STREAMS
 *   -DTWO_STREAMS=2   an ack leaves without a release fence before it */

#define RECORDS 4

bool memory[RECORDS];       /* the record's store is seen */
bool buffered[2 * RECORDS]; /* by thread: it is not yet */
byte next = 0;              /* the first record that has not been applied */
bool locked = false;
bool acked = false;

#define IS_DRAINED(thread) (!buffered[(thread) * RECORDS] && !buffered[(thread) * RECORDS + 1] && \
                            !buffered[(thread) * RECORDS + 2] && !buffered[(thread) * RECORDS + 3])

active proctype store_buffers() {
    byte i;
end_idle:
    do
    :: atomic {
           select(i : 0 .. 2 * RECORDS - 1);
           if
           :: buffered[i] -> buffered[i] = false; memory[i % RECORDS] = true
           :: else
           fi
       }
    od
}

inline apply(thread, record) {
#ifndef NO_BARRIER
    IS_DRAINED(thread);
#endif
    buffered[(thread) * RECORDS + record] = true
}

#ifdef TWO_STREAMS

active proctype of_data() {
    apply(0, 0);
#if TWO_STREAMS != 2
    IS_DRAINED(0);
#endif
    acked = true
}
active proctype of_flag() {
    acked;
    apply(1, 1)
}

#else

active [2] proctype applier() {
    byte me = _pid - 1;
    do
    :: atomic { !locked -> locked = true };
       do
       :: next < RECORDS -> apply(me, next); next++
       :: break /* the message is over */
       od;
#ifndef PLAIN_UNLOCK
       IS_DRAINED(me);
#endif
       locked = false
    :: next == RECORDS -> break
    od
}

#endif

active proctype waiter() {
    bool data, flag;
    byte pair;
    select(pair : 0 .. 1);
#ifdef PLAIN_LOAD
    data = memory[2 * pair];
    flag = memory[2 * pair + 1];
#else
    flag = memory[2 * pair + 1];
    data = memory[2 * pair];
#endif
    assert(!flag || data)
}
