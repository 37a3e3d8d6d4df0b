/* sync::Pool, in every interleaving: two threads that take and give objects of a stack which no lock guards.
 *
 * Memory is taken as sequentially consistent: every access to the head is a compare-and-swap or a load that one follows,
 * and a link is read by a thread only to be confirmed by a compare-and-swap of the head. What may go wrong is the order
 * of steps: between reading the head and its link and exchanging the head, the object may have been taken, and come
 * back, with others below it. The count of changes beside the head is what notices.
 *
 * Proven: no object is held by two threads, none is lost, and all are free again in the end. Mutant: NO_COUNT compares
 * the head alone. */
#define OBJECTS 3

byte head = 1, changes = 0;
byte next[OBJECTS + 1]; /* next[1] is the link of object 1; 0: none */
byte holders[OBJECTS + 1];
byte ended = 0;

#ifdef NO_COUNT
#define SAME(h, c) (head == h)
#else
#define SAME(h, c) (head == h && changes == c)
#endif

inline take(object) {
    do
    :: atomic { h = head; c = changes };
       if
       :: h == 0 -> object = 0; break
       :: else -> skip
       fi;
       below = next[h];
       atomic {
           if
           :: SAME(h, c) -> head = below; changes++; object = h; holders[h]++; assert(holders[h] == 1); break
           :: else -> skip
           fi
       }
    od
}

inline give(object) {
    if
    :: object == 0 -> skip
    :: else ->
       holders[object]--;
       do
       :: atomic { h = head; c = changes };
          next[object] = h;
          atomic {
              if
              :: SAME(h, c) -> head = object; changes++; break
              :: else -> skip
              fi
          }
       od
    fi
}

/* Takes two and gives them back in either order, twice. */
proctype user() {
    byte h, c, below, first, second, round;
    do
    :: round == 2 -> break
    :: else ->
       round++;
       take(first);
       take(second);
       if
       :: true -> give(first); give(second)
       :: true -> give(second); give(first)
       fi
    od;
    ended++
}

init {
    next[1] = 2;
    next[2] = 3;
    next[3] = 0;
    atomic { run user(); run user() };
    ended == 2;
    /* All are on the stack, each once. */
    byte at = head, count = 0;
    do
    :: at == 0 -> break
    :: else -> count++; assert(count <= OBJECTS); at = next[at]
    od;
    assert(count == OBJECTS)
}
