/* A fence orders what other threads send behind it: remote_fence, mark_fence, wait_for_fences_of_others and
 * find_stream_set (src/operations/remote.cpp), in every interleaving of two threads of a PE and the network.
 *
 * The fencing thread has a stream set of the context. Twice it puts, fences and notifies the telling thread, which then
 * sends a flag. Until it is notified, and between, the telling thread may send what is no flag, so that its stream set
 * is made, and its look at the epoch falls, at any time. The network brings the records of each stream set in order, and
 * those of the two in any order.
 *
 * Memory is x86's where it matters: what the fencing thread publishes waits in its store buffer until a locked
 * instruction of its own, until a heavy fence of another thread, or as long as it likes; so does what notifies, behind.
 *
 * Proven: no flag arrives before the data of its round.
 *
 * Mutants, which must fail:
 *   -DNOT_COUNTED      the fence leaves nothing for other threads, as before docs/decisions/0030
 *   -DNO_WAIT_MADE     a thread that makes its stream set waits for nothing
 *   -DNO_HEAVY_FENCE   it does not fence before it looks at what others have published
 *   -DHEAVY_FENCE_EARLY  it does so before its stream set is in the list
 *   -DEPOCH_FIRST      the fence advances the epoch before it counts
 *   -DEPOCH_LATE       a thread reads the epoch behind the count
 *   -DSEEN_LATE        a thread takes for seen what is counted when it has waited
 * A variant: the fence is that of a third thread, which has sent nothing; and its mutant:
 *   -DTHIRD
 *   -DTHIRD=2          the fence does not wait for others */

#define ROUNDS 2

/* As memory holds it. */
byte published = 0, acked = 0; /* the fencing thread's records: one a round */
byte notified = 0;             /* the round of which the telling thread may send the flag */
bool is_listed = false;        /* the telling thread's stream set is in the context's list */
byte flags = 0, flags_acked = 0;
bool is_busy = false; /* it has sent something that has not arrived, flag or not */
byte fences = 0, epoch = 0;
/* The fencing thread's store buffer: published, notified. */
#define PUBLISHED 0
#define NOTIFIED 1
chan buffer = [2] of { bit, byte };

active proctype store_buffer() {
    byte value;
end_idle:
    do
    :: atomic { buffer ? PUBLISHED, value -> published = value }
    :: atomic { buffer ? NOTIFIED, value -> notified = value }
    od
}

active proctype network() {
end_idle:
    do
    :: atomic { acked < published -> acked++ }
    :: atomic { flags_acked < flags -> flags_acked++; assert(flags_acked <= acked) }
    :: atomic { is_busy && flags_acked == flags -> is_busy = false }
    od
}

active proctype fencing() {
    byte round = 0;
    do
    :: round < ROUNDS ->
       round++;
       buffer ! PUBLISHED, round;
#ifndef THIRD
       if
       :: is_listed && is_busy -> acked == round && !is_busy /* quiet_all */
       :: is_listed && !is_busy ->
#ifndef NOT_COUNTED
          if
          :: acked < round -> /* mark_fence, by locked instructions */
             empty(buffer);
#ifdef EPOCH_FIRST
             epoch++;
             fences++
#else
             fences++;
             epoch++
#endif
          :: else
          fi
#else
          skip
#endif
       :: !is_listed
       fi;
#endif
       buffer ! NOTIFIED, round
    :: else -> break
    od
}

/* find_stream_set. */
inline find() {
#ifndef EPOCH_LATE
    now_epoch = epoch;
#endif
    made = !is_listed;
    if
    :: made ->
#ifdef HEAVY_FENCE_EARLY
       empty(buffer);
#endif
       is_listed = true;
#if !defined(NO_HEAVY_FENCE) && !defined(HEAVY_FENCE_EARLY)
       empty(buffer)
#endif
    :: else
    fi;
    now_fences = fences;
    if
#ifdef NO_WAIT_MADE
    :: !made && seen != now_fences ->
#else
    :: made || seen != now_fences ->
#endif
       position = published;
       acked >= position
    :: else
    fi;
#ifdef SEEN_LATE
    seen = fences;
#else
    seen = now_fences;
#endif
#ifdef EPOCH_LATE
    now_epoch = epoch;
#endif
    cached = now_epoch
}

inline prepare() {
    if
    :: !is_listed || cached != epoch -> find()
    :: else
    fi
}

active proctype telling() {
    byte round = 0, cached, seen, now_epoch, now_fences, position, asides = 0;
    bool made;
    do
    :: asides < 2 -> /* something that is no flag */
       prepare();
       is_busy = true;
       asides++
    :: round < ROUNDS && notified > round ->
       round = notified;
#ifdef THIRD
       /* The fence of a third thread between the two, in the order of notifications: quiet_all. */
#if THIRD != 2
       position = published;
       acked >= position;
#endif
#endif
       prepare();
       atomic { flags = round; is_busy = true }
    :: round == ROUNDS -> break
    od
}
