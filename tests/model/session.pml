/* Records that gather in a session (Stream::holds, operations::remote_batch): every interleaving of a producer that
 * posts two records on an idle stream, a sender that holds back what fills no message while the session is open, and
 * the end of the session by another thread. Acknowledgements come at once.
 *
 * Proven: what was posted leaves, though nobody calls the library any more.
 *
 *   -DWAITS          instead the session stays open, and a thread that has seen both records waits for all streams
 *
 * Mutants, which must fail:
 *   -DEARLY_LOOK     who ends the session looks for active streams before its end can be seen (no fence)
 *   -DNO_FLUSH       who ends the session leaves what has gathered to others
 *   -DWAITS=2        a thread that waits takes the records of an idle stream for flushed, as without sessions */

byte published = 0, flush_up_to = 0, sent = 0;
bool batches = 1, marked = 0, queued = 0, idle = 1;

inline post(end) {
    published = end;
    if
    :: idle -> marked = 1; queued = 1
    :: else -> skip
    fi
}

inline flush() {
    if
    :: flush_up_to < published -> flush_up_to = published
    :: else -> skip
    fi;
    queued = 1
}

active proctype producer() {
    post(1);
    post(2)
}

active proctype sender() {
    byte limit;
    bool holds;
end_sends:
    do
    :: atomic { queued -> queued = 0 };
        limit = published;
        do
        :: limit == sent ->
            idle = 1; /* and behind it, by a heavy fence, the second look */
            limit = published;
            if
            :: limit == sent -> break
            :: else -> skip
            fi
        :: else ->
            holds = batches;
            if
            :: holds && flush_up_to <= sent -> idle = 0; break
            :: else -> sent = limit; limit = published
            fi
        od
    od
}

#ifdef WAITS
active proctype waiter() {
    published == 2;
    if
#if WAITS == 2
    :: idle -> skip
    :: !idle -> flush()
#else
    :: flush_up_to < published -> flush()
    :: else -> skip
#endif
    fi
}
#else
active proctype ends_session() {
    bool seen;
#ifdef EARLY_LOOK
    seen = marked;
    batches = 0;
#else
    batches = 0;
    seen = marked;
#endif
#ifndef NO_FLUSH
    if
    :: seen -> flush()
    :: else -> skip
    fi
#endif
}
#endif

active proctype observer() {
end_observes:
    timeout -> assert(sent == published)
}
