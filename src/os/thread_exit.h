// A call when a thread ends.
#pragma once

#include <pthread.h>

namespace heddle::os {

// Calls `end` at the end of each thread that asks for it: behind the destructors of the thread's thread_local objects,
// which may still use the library, and again where another thread-specific destructor behind it asks anew. Neither in
// the main thread when the process ends, nor in a thread that the process ends with. The library stays loaded
// (-z nodelete), so that `end` is there.
template <void (*end)()>
class ThreadExit {
  public:
    // False: the system has no more keys, and `end` will not be called.
    static bool ask() {
        static const Key key;
        return key.made && pthread_setspecific(key.key, &key) == 0;
    }

  private:
    struct Key {
        Key() {
            made = pthread_key_create(&key, [](void*) { end(); }) == 0;
        }
        pthread_key_t key = {};
        bool made = false;
    };
};

}  // namespace heddle::os
