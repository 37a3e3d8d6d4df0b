/* Long blocks of an exchange between nodes: each member tells those that write to it where their blocks belong, then
 * awaits what they tell, puts, awaits the news that its own are all there, and leaves when its sources are free:
 * RemoteBlocks::begin and finish (src/collective/internode/remote_blocks.cpp), InternodeStep::deliver and done
 * (internode_step.cpp), and the target's order of records behind large data, in every interleaving of three members
 * that carry out two exchanges with each other, the same buffers in both, and the network.
 *
 * A message that only says something is seen by who looks for it at any time after it was sent: a member that looks
 * late is a message that is late. Large data leaves its source at any time after it was put, and is in dest then; the
 * news of it, a record behind it in the stream, are held at the target until it is there.
 *
 * Proven: members end; data leaves before its writer changes the source, and comes while its reader is in that
 * exchange, which leaves with the data of all.
 *
 * Mutants, which must fail:
 *   -DPUT_EARLY     a member puts before it was told where
 *   -DTELL_LATE     it tells the others only when they have told it
 *   -DREAD_FIRST    it awaits what it gets before it puts
 *   -DONE_BY_ONE    it puts to one member and awaits that one's data before it goes on to the next
 *   -DNEWS_EARLY    news do not wait for the data before them
 *   -DNOT_DONE      it leaves while its data may not have left
 *   -DNO_NUMBER     what it was told in the exchange before is taken for this one's */

#define MEMBERS 3
#define EXCHANGES 2
#define AT(from, to) ((from) * MEMBERS + (to))

byte version[MEMBERS];                /* of the source of each: the exchange that it is for; changed behind each */
byte ready[MEMBERS];                  /* the exchange that dest is ready for; 0: the program uses dest */
byte told[MEMBERS * MEMBERS];         /* by a reader to a writer: the latest exchange whose places it knows */
byte under_way[MEMBERS * MEMBERS];    /* large data from a writer to a reader, by exchange; 0: none */
byte there[MEMBERS * MEMBERS];        /* the exchange whose data has come */
byte news[MEMBERS * MEMBERS];         /* the exchange whose news the writer has sent */

#ifdef NO_NUMBER
#define IS_TOLD(me, other) (told[AT(other, me)] != 0)
#else
#define IS_TOLD(me, other) (told[AT(other, me)] == number)
#endif
#ifdef NEWS_EARLY
#define HAS_NEWS(me, other) (news[AT(other, me)] == number)
#else
#define HAS_NEWS(me, other) (news[AT(other, me)] == number && there[AT(other, me)] == number)
#endif

inline arrive(from, to) {
    atomic {
        under_way[AT(from, to)] != 0 ->
        assert(version[from] == under_way[AT(from, to)]);
        assert(ready[to] == under_way[AT(from, to)]);
        there[AT(from, to)] = under_way[AT(from, to)];
        under_way[AT(from, to)] = 0
    }
}

active proctype network() {
end_idle:
    do
    :: arrive(0, 1)
    :: arrive(0, 2)
    :: arrive(1, 0)
    :: arrive(1, 2)
    :: arrive(2, 0)
    :: arrive(2, 1)
    od
}

inline tell(other) {
    told[AT(me, other)] = number
}
inline put(other) {
#ifndef PUT_EARLY
    IS_TOLD(me, other);
#endif
    under_way[AT(me, other)] = number;
    news[AT(me, other)] = number
}
inline read(other) {
    HAS_NEWS(me, other)
}
inline done(other) {
#ifndef NOT_DONE
    under_way[AT(me, other)] == 0
#else
    skip
#endif
}

proctype member(byte me) {
    byte number = 1, next = (me + 1) % MEMBERS, last = (me + 2) % MEMBERS;
    do
    :: number > EXCHANGES -> break
    :: else ->
       ready[me] = number; /* the call: dest may be written, the source has this exchange's data */
       version[me] = number;
#ifndef TELL_LATE
       tell(next);
       tell(last);
#endif
#ifdef READ_FIRST
       read(next);
       read(last);
#endif
       put(next);
#ifdef TELL_LATE
       tell(next);
#endif
#ifdef ONE_BY_ONE
       read(next);
#endif
       put(last);
#ifdef TELL_LATE
       tell(last);
#endif
       read(next);
       read(last);
       done(next);
       done(last);
       assert(there[AT(next, me)] == number && there[AT(last, me)] == number);
       atomic { ready[me] = 0; version[me] = 0 } /* the program uses both */
       number++
    od
}

init {
    atomic { run member(0); run member(1); run member(2) }
}
