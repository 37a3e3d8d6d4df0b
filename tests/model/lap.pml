/* Laps of a send ring in memory that is lent: SendRing::find_room, rewind, begin_lap, set_memory and take_message
 * (src/fabric/endpoint/send_ring.h), RingQuota (ring_quota.h), in every interleaving of a producer, a sender, and a
 * transport that reads what it was given until it lets go, in order.
 *
 * Two pieces of memory of three words each. The producer publishes records of one or two words, each word with its own
 * position in it. Where nothing is in use it may give its memory back, for another stream that writes to it, and borrow
 * either piece; a rewind begins a lap in the same one. A message is one or more words of one lap; the transport reads it
 * when it lets go of it.
 *
 * The producer's stores are seen in their order (published is stored with release), as are those of freed. What the
 * sender reads of the lap is read behind published, in steps of their own.
 *
 * Proven: the transport reads what was published; and all that was published is let go of in the end.
 *
 * Mutants, which must fail:
 *   -DSENT_IS_FREE    memory is free when all has been handed to the transport
 *   -DLAP_LATE        the lap is stored behind the records in it
 *   -DNO_CLIP         a message does not end with its lap
 *   -DNO_BASE         the sender does not look at base again where a lap begins
 *   -DEARLY_LAP       a lap begins while the lap before the last is in use
 *   -DTIGHT           room is made for one word less than the record has */

#define WORDS 7
#define SIZE 3
#define NONE 255
#define OTHERS 200

byte memory[6];          /* two pieces */
byte published = 0, freed = 0, sent = 0;
byte lap = 0;            /* where the lap begins */
byte base = NONE;        /* the piece that the lap is in */
byte messages = 0;       /* that the transport has: begin, end, and the place of the first word */
byte begins[2], ends[2], places[2];
bool ended = false;

#define PLACE(piece, from, position) ((piece) * SIZE + (position) - (from))

inline begin_lap() {
    lap_before = own_lap;
    own_lap = position;
    lap_end = position + SIZE;
#ifndef LAP_LATE
    base = piece;
    lap = own_lap
#endif
}

active proctype producer() {
    byte position = 0, own_lap = 0, lap_before = 0, lap_end = 0, room = 0, words, i, piece = NONE, seen;
    do
    :: position < WORDS ->
       if
       :: words = 1
       :: position + 2 <= WORDS -> words = 2
       fi;
       do
       ::
#ifdef SENT_IS_FREE
          seen = sent;
#else
          seen = freed;
#endif
          /* The memory may be lent to another stream, and back: any piece, which holds what others wrote. */
          if
          :: seen == position && (piece == NONE || position > own_lap) ->
             atomic {
                 if
                 :: piece != NONE -> i = 0;
                    do
                    :: i < SIZE -> memory[piece * SIZE + i] = OTHERS; i++
                    :: else -> break
                    od
                 :: else
                 fi;
                 if
                 :: piece = 0
                 :: piece = 1
                 fi
             };
             begin_lap()
          :: piece != NONE
          fi;
          /* set_room */
          if
          :: seen >= own_lap -> room = lap_end
          :: else -> room = own_lap + seen - lap_before
          fi;
          if
          :: room > lap_end -> room = lap_end
          :: else
          fi;
          if
          :: position + words <= room -> break
          :: else ->
             if
#ifdef EARLY_LAP
             :: (seen == position || (seen < own_lap && seen - lap_before >= words) || seen - own_lap >= words) ->
#elif defined(TIGHT)
             :: seen >= own_lap && (seen == position || seen - own_lap >= words - 1) && position > own_lap ->
#else
             :: seen >= own_lap && (seen == position || seen - own_lap >= words) ->
#endif
                begin_lap();
#ifdef TIGHT
                room = own_lap + words;
#endif
                break
             :: else
             fi
          fi
       od;
       i = 0;
       do
       :: i < words -> memory[PLACE(piece, own_lap, position + i)] = position + i; i++
       :: else -> break
       od;
       position = position + words;
       published = position;
#ifdef LAP_LATE
       base = piece;
       lap = own_lap
#endif
    :: else -> break
    od;
    ended = true
}

active proctype sender() {
    byte sent_base = NONE, sent_lap = 0, limit, seen_lap, end;
    do
    :: messages < 2 && published > sent ->
       limit = published;
       seen_lap = lap;
       if
       :: sent == seen_lap ->
#ifdef NO_BASE
          if
          :: sent_base == NONE -> sent_base = base
          :: else
          fi;
#else
          sent_base = base;
#endif
          sent_lap = seen_lap
       :: else
       fi;
#ifndef NO_CLIP
       if
       :: sent < seen_lap && seen_lap <= limit -> limit = seen_lap
       :: else
       fi;
#endif
       if  /* all, or, as far as a full message, less */
       :: end = limit
       :: limit > sent + 1 -> end = sent + 1
       fi;
       assert(PLACE(sent_base, sent_lap, end) <= (sent_base + 1) * SIZE);
       atomic {
           begins[messages] = sent;
           ends[messages] = end;
           places[messages] = PLACE(sent_base, sent_lap, sent);
           messages++;
           sent = end
       }
    :: ended && sent == WORDS -> break
    od
}

active proctype transport() {
    byte i;
    do
    :: messages > 0 ->
       i = begins[0];
       do
       :: i < ends[0] -> assert(memory[places[0] + i - begins[0]] == i); i++
       :: else -> break
       od;
       atomic {
           freed = ends[0];
           begins[0] = begins[1];
           ends[0] = ends[1];
           places[0] = places[1];
           messages--
       }
    :: freed == WORDS -> break
    od
}
