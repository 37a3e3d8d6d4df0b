// Plugins: libraries that lie beside this one and are loaded when they are needed.
#pragma once

namespace heddle::os {

// Loads the library of this file name from the folder that this one was loaded from (a path is taken as it is), and
// binds its symbols when they are first used; null with the reason in dlerror(). Not by the name alone: whether the
// search looks there depends on who calls dlopen, which may be a sanitizer.
void* load_plugin(const char* file);

}  // namespace heddle::os
