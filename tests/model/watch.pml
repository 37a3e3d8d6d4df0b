/* Who is rung when a watched event count opens (src/sync/wakeup.h): every interleaving of
 *   - an opener, which opens the event count once, and rings;
 *   - two watchers, each of a PE of its own, whose PEs share a bit of the event count's `watchers`: each watches the event count and
 *     sleeps at its wake-up until it is open;
 *   - a second thread of the first PE, which watches and leaves another event count, again and again, whose name has the same
 *     place in the wake-up.
 * The watcher's increment of `sleepers` is a release and the opener's load of it an acquire, so an opener that sees the
 * count sees what the watcher has written before; value and count are seq_cst. So memory is one, but for what a mutant
 * writes behind the count: that may reach memory later than what the watcher reads then. The kernel's queue is that of
 * event_count.pml.
 *
 * Proven: no state in which all have stopped and a watcher still sleeps; nobody is left counted, and no wake-up says that
 * its PE watches anything. A PE that watches nothing is never rung.
 *
 * Mutants, which must fail:
 *   -DNAME_LATE        the wake-up says what its PE watches when that has been counted
 *   -DBIT_LATE         and the event count, which PE
 *   -DBIT_CLEARED      who leaves the event count clears the bit, which another PE or thread shares
 *   -DNAME_STORED      a place holds the name of the last watch, instead of the sum of all
 *   -DONE_NAME         an opener takes a place with several watches for one that has not the event count's */

#define PES 2
#define ROUNDS 2             /* of the second thread */
#define ONE 16               /* kOneWatch */
#define NAME 3               /* of the event count; the other one's */
#define OTHER 5

bool open = false;           /* the event count's value */
byte counted = 0;            /* its sleepers / kWatcher */
bool known = false;          /* its `watchers`: one bit for both PEs */
byte watched[PES];           /* the wake-ups: the place that both names have */
bool rung[PES];              /* the wake-up, since the thread read it */
bool sleeper[PES], asleep[PES];
byte ended = 0;
bool late[PES];              /* what memory has not seen yet, of a mutant */

inline add(pe, name) {
#ifdef NAME_STORED
    watched[pe] = ONE + name
#else
    watched[pe] = watched[pe] + ONE + name
#endif
}
inline take(pe, name) {
#ifdef NAME_STORED
    watched[pe] = 0
#else
    watched[pe] = watched[pe] - ONE - name
#endif
}

active proctype opener() {
    byte pe = 0, sum;
    open = true;                                         /* EventCount::advance_to */
    if
    :: counted != 0 ->                                   /* ring_watchers */
        if
        :: known ->
            do
            :: pe < PES ->
                sum = watched[pe];
                if
#ifdef ONE_NAME
                :: sum == ONE + NAME ->
#else
                :: sum == ONE + NAME || sum >= 2 * ONE ->
#endif
                    assert(sum != 0);
                    rung[pe] = true;                     /* advance */
                    if
                    :: sleeper[pe] -> asleep[pe] = false
                    :: else
                    fi
                :: else
                fi;
                pe++
            :: else -> break
            od
        :: else
        fi
    :: else
    fi;
    ended++
}

active [PES] proctype watcher() {
    byte me = _pid - 1;
#ifdef NAME_LATE
    late[me] = true;
#else
    add(me, NAME);                                       /* Watch: its constructor */
#endif
#ifdef BIT_LATE
    late[me] = true;
#else
    known = true;
#endif
    counted++;
    do
    :: true ->
        rung[me] = false;                                /* heard = wake-up */
        if
        :: open -> break                                 /* ready() */
        :: else
        fi;
        sleeper[me] = true;                              /* Event count::sleep */
        atomic {
            if
            :: !rung[me] -> asleep[me] = true
            :: else
            fi
        };
        !asleep[me];
        sleeper[me] = false
    od;
    counted--;                                           /* and its destructor */
#ifdef BIT_CLEARED
    known = false;
#endif
    !late[me];
    take(me, NAME);
    ended++
}

#if defined(NAME_LATE) || defined(BIT_LATE)
active proctype memory() {
end_idle:
    do
#ifdef NAME_LATE
    :: atomic { late[0] -> add(0, NAME); late[0] = false }
    :: atomic { late[1] -> add(1, NAME); late[1] = false }
#else
    :: atomic { late[0] -> known = true; late[0] = false }
    :: atomic { late[1] -> known = true; late[1] = false }
#endif
    od
}
#endif

active proctype second_thread() {
    byte round = 0;
    do
    :: round < ROUNDS ->
        add(0, OTHER);
        take(0, OTHER);
        round++
    :: else -> break
    od;
    ended++
}

active proctype accountant() {
    ended == 1 + PES + 1;
    assert(counted == 0 && watched[0] == 0 && watched[1] == 0)
}
