/* How threads flush a stream (SendRing::flush and take_message in src/fabric/endpoint/send_ring.h): every interleaving
 * of a producer that publishes two records and flushes each, another thread that flushes too, as a quiet of the PE does
 * for all its threads, and a sender that has a message in flight whose acknowledgement does not come: what is not
 * flushed stays in the ring.
 *
 * Proven: what was published before a flush leaves.
 *
 * Mutant, which must fail:
 *   -DLOWERS          a thread that has read less than another one has flushed takes that back (as it was) */

byte published = 0, flush_up_to = 0, sent = 0;

inline flush() {
    end = published;
#ifdef LOWERS
    flush_up_to = end
#else
    before = flush_up_to;
    do
    :: before < end ->
        if
        :: atomic { flush_up_to == before -> flush_up_to = end }; break
        :: atomic { flush_up_to != before -> before = flush_up_to }
        fi
    :: else -> break
    od
#endif
}

active proctype producer() {
    byte end, before;
    published = 1;
    flush();
    published = 2;
    flush()
}

active proctype other_thread() {
    byte end, before;
    flush()
}

active proctype sender() {
end_sends:
    do
    :: atomic { flush_up_to > sent -> sent = published }
    od
}

active proctype observer() {
end_observes:
    timeout -> assert(sent == published)
}
