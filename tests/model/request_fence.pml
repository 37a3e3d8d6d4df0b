/* A fence of a PRIVATE request leaves its order to the records of one stream set, and whoever posts to the request
 * through another one waits: remote_request_fence, await_request_fence (src/operations/request_fence.cpp), claim,
 * forget_claim and end_handle (src/context/request.cpp), and the puts of inlined code, in every interleaving of two
 * threads that post in turns, and the network.
 *
 * Each thread has a stream set with one stream to the target. A thread that has the request posts to it by inlined code,
 * where its stream claims for the request, and otherwise by the library; it fences; it ends the request, whose handle
 * then comes again; or it hands the request on. A put of inlined code is published ahead of its claim. The network
 * brings the records of a stream in order, and those of the two streams in any order.
 *
 * Each record has the number of the fences of its request before it. Proven: none is delivered ahead of a record with a
 * smaller number; a request that is waited for is complete; no claim is for a request that has ended.
 *
 * Mutants, which must fail:
 *   -DNO_FORGET        the fence lets inlined code go on through other stream sets
 *   -DNO_WAIT          the library does not wait where another stream set posts
 *   -DWAIT_LATE        it waits behind the record
 *   -DANY_THREAD       the fence takes the stream set of another thread for one that it may leave
 *   -DTWO_SETS         it takes two stream sets for one
 *   -DEND_CLAIMS       streams claim on when the request has ended */

#define RECORDS 3 /* of a stream */
#define NONE 2

typedef Stream {
    byte published, acked;
    byte fences[RECORDS]; /* by record: those before it */
    byte claimed;         /* the position that the request waits for */
    bool claims;          /* inlined code may post under the request */
    bool is_claimed       /* the request has a claim of the stream */
}
Stream streams[2];
byte holder = 0; /* the thread that has the request */
byte fences = 0, fenced = NONE;

#define IS_COMPLETE(s) (!streams[s].is_claimed || streams[s].acked >= streams[s].claimed)
/* The next record of the stream arrives: those of the other one that are under way have no fewer fences before them. */
inline deliver(s) {
    n = streams[s].acked;
    other = streams[1 - s].acked;
    if
    :: other < streams[1 - s].published -> assert(streams[1 - s].fences[other] >= streams[s].fences[n])
    :: else
    fi;
    streams[s].acked++
}

active proctype network() {
    byte n, other;
end_idle:
    do
    :: atomic { streams[0].acked < streams[0].published -> deliver(0) }
    :: atomic { streams[1].acked < streams[1].published -> deliver(1) }
    od
}

inline publish() {
    atomic {
        streams[me].fences[streams[me].published] = fences;
        streams[me].published++
    }
}

inline claim() {
    atomic {
        streams[me].claimed = streams[me].published;
        streams[me].is_claimed = true;
        streams[me].claims = true
    }
}

inline await() {
    if
    :: fenced != NONE && fenced != me ->
#ifndef NO_WAIT
       IS_COMPLETE(0) && IS_COMPLETE(1);
#endif
       fenced = NONE
    :: else
    fi
}

/* Inlined code, where the stream claims; or the library. */
inline put() {
    if
    :: streams[me].claims ->
       publish();
       assert(streams[me].is_claimed);
       streams[me].claimed = streams[me].published
    :: else ->
#ifndef WAIT_LATE
       await();
#endif
       publish();
#ifdef WAIT_LATE
       await();
#endif
       claim()
    fi
}

inline fence() {
    fences++;
    if
    :: IS_COMPLETE(0) && IS_COMPLETE(1)
#ifdef ANY_THREAD
    :: !IS_COMPLETE(1 - me) && IS_COMPLETE(me) -> fenced = me; streams[1 - me].claims = false
#endif
#ifdef TWO_SETS
    :: !IS_COMPLETE(1 - me) && !IS_COMPLETE(me) -> fenced = me; streams[1 - me].claims = false
#endif
    :: IS_COMPLETE(1 - me) && !IS_COMPLETE(me) ->
#ifndef NO_FORGET
       streams[1 - me].claims = false;
#endif
       fenced = me
#ifndef ANY_THREAD
    :: !IS_COMPLETE(1 - me) && IS_COMPLETE(me) -> IS_COMPLETE(1 - me); fenced = NONE
#endif
#ifndef TWO_SETS
    :: !IS_COMPLETE(1 - me) && !IS_COMPLETE(me) -> IS_COMPLETE(0) && IS_COMPLETE(1); fenced = NONE
#endif
    fi
}

/* A wait, which ends the request. The next one has its handle. */
inline end_request() {
    IS_COMPLETE(0) && IS_COMPLETE(1);
    assert(streams[0].acked == streams[0].published && streams[1].acked == streams[1].published);
    atomic {
#ifndef END_CLAIMS
        streams[0].claims = false;
        streams[1].claims = false;
#endif
        streams[0].is_claimed = false;
        streams[1].is_claimed = false;
        fenced = NONE;
        fences = 0
    }
}

active [2] proctype posting() {
    byte me = _pid - 1; /* behind the network */
    do
    :: holder == me && streams[me].published < RECORDS -> put()
    :: holder == me && fences < 2 -> fence()
    :: holder == me -> end_request()
    :: holder == me -> holder = 1 - me
    :: streams[0].published == RECORDS && streams[1].published == RECORDS -> break
    od
}
