/* No record is left behind: SendRing::publish and go_idle (src/fabric/endpoint/send_ring.h), Stream::send (stream.h),
 * Channel::queue, poll and unlock (channel.h), in every interleaving of three threads: the producer, which polls where publish says so; one that
 * polls, as the service thread does; and one that queues the stream although nothing may be new, as a quiet does.
 *
 * Memory is x86's: a plain store waits in its thread's store buffer and reaches memory later, in order; a locked
 * instruction (exchange, compare-and-swap) empties the buffer of its thread first; a heavy fence
 * (os/asymmetric_fence.h) sees each thread's buffer empty at some point. Who holds the lock reads what was stored under
 * it: the lock is given back by an exchange.
 *
 * What departs is acknowledged later. Until then what follows gathers, and the first of it ends idleness, as in
 * SendRing::take_message. Windows, full messages and flushes only make more depart, and are left out.
 *
 * Proven: when all threads have stopped and the network has brought all that it had, every record has departed and the
 * stream is not on the stack. Besides (StreamGroup): whenever the producer has posted, its stream is active and counted,
 * or what it has posted is done; and in the end the stream is not active, and not counted.
 *
 * Mutants, which must fail:
 *   -DNO_HEAVY_FENCE  go_idle does not fence
 *   -DNO_SECOND_LOOK  send does not look at published again behind go_idle
 *   -DQUEUED_STORE    send_queued unsets queued by a plain store, which its look at published may pass
 *   -DQUEUED_LATE     send_queued unsets queued behind send
 *   -DNO_LOOK_BEHIND  who gives the lock back does not look at the stack again
 *   -DNO_MARKS        clear does not notice a mark behind its look
 *   -DCOUNT_LATE      mark counts behind the bit
 *   -DEARLY_LOOK      the look at the lock passes the push before it, or the push is a plain store
 *   -DREST_EARLY      rest clears a stream that has gone idle, ahead of the fence
 * A variant: the stream set has just come to its producer from the thread that polls, which may still be acknowledging for it
 * (Network::make_stream_set), and its mutants:
 *   -DNEW_OWNER
 *   -DNEW_OWNER=2     make_stream_set does not fence
 *   -DNEW_OWNER=3     go_idle looks at its producer before it sets idle
 * A variant: behind its second record the producer posts a native put and a fence (Stream::put_native, hold), which holds
 * back the next record until the put has returned, and its mutants:
 *   -DHOLD
 *   -DHOLD=2          the end of the fence sends what has been published, and does not look whether to go idle
 *   -DHOLD=3          the end of the fence sends nothing, as if every return came with more to do
 * A variant: while other streams to the PE are busy, what is ready waits for one of their acks (Stream::gather,
 * Channel::send_short). A producer that goes on meanwhile is told not to call. And its mutant:
 *   -DGATHER
 *   -DGATHER=2        an ack of another stream does not let it leave */

#ifdef GATHER
#define RECORDS 2
#else
#define RECORDS 3
#endif
#define BEFORE_HOLD 2
#define PRODUCER 0
#define POLLER 1
#define OTHER 2

#define PUBLISHED 0
#define IDLE 1
#define QUEUED 2
#define POSTED 3
#define HOLD_AT 4
chan buffer[3] = [4] of { byte, byte };

/* As memory holds it. */
#ifdef NEW_OWNER
byte published = 1, departed = 1;
bool idle = false, idle_stored = false;
byte thread = POLLER;
#else
byte published = 0, departed = 0;
bool idle = true, idle_stored = true;
byte thread = PRODUCER;
#endif
byte acked = 0;
bool queued = false, stacked = false, locked = false;
bool to_fence = false;           /* under the lock: the stream has gone idle in this poll */
byte own_published = published;  /* as the producer has stored it; idle_stored: as the holder of the lock has */
byte ended = 0;
/* StreamGroup: the stream's bit, how often it was marked, and Producer::n_active. */
#ifdef NEW_OWNER
bool bit_set = true;
byte marks = 0, counted = 1;
#else
bool bit_set = false;
byte marks = 0, counted = 0;
#endif
#ifdef GATHER
bool busy = true;    /* other streams are, until one of them is acknowledged */
bool waits = false;              /* in the peer's list */
byte gathered_at = 0;
#else
#define busy false
#endif
#ifdef HOLD
bool posted = false, returned = false;  /* the native put */
byte hold_at = 0, own_hold_at = 0;      /* 0: no fence */
#else
#define returned true
#endif

active [3] proctype store_buffer() {
    byte what, value;
end_idle:
    do
    :: atomic {
           buffer[_pid] ? what, value ->
           if
           :: what == PUBLISHED -> published = value
           :: what == IDLE -> idle = value
           :: what == QUEUED -> queued = value
#ifdef HOLD
           :: what == POSTED -> posted = value
           :: what == HOLD_AT -> hold_at = value
#endif
           fi
       }
    od
}

inline drained() { empty(buffer[me]) }

inline heavy_fence() {
    drained();  /* its own first, then the others' */
    empty(buffer[PRODUCER]);
    empty(buffer[POLLER]);
    empty(buffer[OTHER])
}

inline look() {
    if
    :: me == PRODUCER -> seen = own_published
    :: else -> seen = published
    fi
}

#ifdef HOLD
/* NativeFence::is_holding. */
inline look_at_hold() {
    if
    :: returned -> at = 0
    :: else -> if
               :: me == PRODUCER -> at = own_hold_at
               :: else -> at = hold_at
               fi
    fi
}
#endif

#ifdef HOLD
#define all_returned (returned || !posted)
#else
#define all_returned true
#endif

/* StreamGroup::mark. */
inline mark() {
    drained();
    own = false;
    do
    :: atomic { was = bit_set; at = marks };
#ifndef COUNT_LATE
       if
       :: !was && !own -> counted++; own = true
       :: else
       fi;
#endif
       atomic {
           if
           :: bit_set == was && marks == at -> bit_set = true; marks++; break
           :: else
           fi
       }
    od;
#ifdef COUNT_LATE
    if
    :: !was -> counted++
    :: else
    fi;
#else
    if
    :: was && own -> counted--
    :: else
    fi;
#endif
    atomic { was = false; own = false; at = 0 }
}

#ifdef REST_EARLY
#define UNFENCED false
#else
#define UNFENCED to_fence
#endif

/* Stream::rest and StreamGroup::clear. */
inline rest() {
    do
    :: atomic { was = bit_set; at = marks };
       look();
       if
       :: idle_stored && !UNFENCED && was && seen == acked && all_returned ->
          drained();
          atomic {
              if
#ifdef NO_MARKS
              :: true -> bit_set = false; own = true
#else
              :: bit_set && marks == at -> bit_set = false; own = true
              :: else -> own = false
#endif
              fi
          };
          if
          :: own -> atomic { assert(counted > 0); counted-- }; break  /* it is raised ahead of the bit */
          :: else
          fi
       :: else -> break
       fi
    od;
    atomic { was = false; own = false; at = 0; seen = 0 }
}

/* Stream::send, under the lock. */
inline send() {
    do
    :: look();
#ifdef HOLD
       look_at_hold();
       if
       :: at != 0 && seen >= at && departed == at -> break  /* the end of the fence comes back here */
       :: at != 0 && seen > at -> seen = at
       :: else
       fi;
#endif
       if
       :: seen == departed ->
          if
          :: acked == departed && !idle_stored ->
#if NEW_OWNER == 3
             was = thread != me;
#endif
             atomic { idle_stored = true; buffer[me] ! IDLE, true };
             if
#if NEW_OWNER == 3
             :: was -> to_fence = true
#else
             :: thread != me -> to_fence = true
#endif
             :: else
             fi
          :: else
          fi;
          look();
          if
          :: seen == departed -> rest(); break
          :: else
          fi
       :: else ->
          if
          :: departed != acked ->  /* it gathers */
             if
             :: idle_stored -> atomic { idle_stored = false; buffer[me] ! IDLE, false }
             :: else
             fi;
             break
#ifdef GATHER
          :: departed == acked && busy ->
             if
             :: !waits -> atomic { waits = true; gathered_at = seen }
             :: waits && gathered_at != seen -> atomic { idle_stored = false; buffer[me] ! IDLE, false }
             :: else
             fi;
             break
#endif
          :: else -> departed = seen
          fi
       fi
    od
}

/* Channel::queue. */
inline queue() {
    drained();
    atomic { was = queued; queued = true };
    if
    :: !was -> stacked = true
    :: else
    fi
}

/* Channel::poll. The network brings an acknowledgement, or has none yet. */
inline poll() {
    do
    :: if
       :: locked -> break  /* the look ahead of the exchange */
       :: else
       fi;
       drained();
       atomic { was = locked; locked = true };
       if
       :: was -> break
       :: else
       fi;
       atomic { was = stacked; stacked = false };
       if
       :: was ->
#if defined(QUEUED_STORE)
          buffer[me] ! QUEUED, false;
          send()
#elif defined(QUEUED_LATE)
          send();
          drained();
          queued = false
#else
          drained();
          queued = false;
          send()
#endif
       :: else
       fi;
       if
       :: acked != departed -> acked = departed; send()
       :: true
       fi;
#ifdef GATHER
       if
       :: busy ->
          busy = false;
#if GATHER != 2
          if
          :: waits -> waits = false; send()
          :: else
          fi
#endif
       :: true
       fi;
#endif
#ifdef HOLD
       if
       :: posted && !returned && acked >= BEFORE_HOLD ->  /* Stream::on_native_done, resume */
          look_at_hold();
          returned = true;
#if HOLD == 2
          look();
          if
          :: seen != departed -> queue()
          :: else
          fi
#elif HOLD != 3
          if
          :: at != 0 -> queue()
          :: else
          fi
#endif
#if HOLD != 2
          ; rest()
#endif
       :: true
       fi;
#endif
       if
       :: to_fence ->  /* Channel::finish_idle */
#ifndef NO_HEAVY_FENCE
          heavy_fence();
#endif
          to_fence = false;
#ifdef NO_SECOND_LOOK
          rest()
#else
          send()
#endif
       :: else
       fi;
       assert(!to_fence);
       drained();
       locked = false;
#ifdef NO_LOOK_BEHIND
       break
#else
       if
       :: !stacked -> break
       :: else
       fi
#endif
    od
}

/* What a fence or a quiet of the producer relies on. */
inline is_known() {
#ifdef HOLD
    assert((bit_set && counted > 0) || (own_published == acked && (returned || !own_posted)))
#else
    assert((bit_set && counted > 0) || own_published == acked)
#endif
}

active proctype producer() {
    byte me = PRODUCER, seen, at;
    bool was, was_locked, own, own_posted;
#ifdef NEW_OWNER
    thread = me;  /* its streams may have something outstanding; a compare-and-swap is behind it */
#if NEW_OWNER != 2
    heavy_fence();
#endif
#endif
    do
    :: own_published < RECORDS ->
       atomic { own_published++; buffer[me] ! PUBLISHED, own_published };
       if
#ifdef EARLY_LOOK
       :: idle ->
          was_locked = locked;
          queue();
          if
          :: was_locked
          :: else -> poll()
          fi
#else
       :: idle -> mark(); queue(); poll()
#endif
       :: else
       fi;
       is_known();
#ifdef HOLD
       if
       :: own_published == BEFORE_HOLD ->
           own_posted = true;
          buffer[me] ! POSTED, true;
          mark();
          queue();
          poll();
          is_known();
          if
          :: !returned -> atomic { own_hold_at = BEFORE_HOLD; buffer[me] ! HOLD_AT, BEFORE_HOLD }
          :: else
          fi
       :: else
       fi
#endif
    :: else -> break
    od;
    ended++
}

active proctype poller() {
    byte me = POLLER, seen, polls, at;
    bool was, own;
    do
    :: polls < 2 -> poll(); polls++
    :: else -> break
    od;
    ended++;
    /* What the network still brings wakes it. */
    do
    :: acked != departed || !returned || busy -> poll()
    :: ended == 3 && acked == departed && returned && !busy && empty(buffer[PRODUCER]) && empty(buffer[POLLER]) && empty(buffer[OTHER]) ->
       break
    od;
    assert(!stacked);
    assert(departed == RECORDS);
    assert(!bit_set && counted == 0)
}

active proctype other() {
    byte me = OTHER, seen, at;
    bool was, own;
    queue();
    poll();
    ended++
}
