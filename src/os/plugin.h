// Plugins: libraries in the folder of this library that are loaded when needed.
#pragma once

namespace heddle::os {

// Loads the library with this file name from the folder of this library; a path is used as it is. Symbols are bound on
// first use. Null on failure, with the reason in dlerror(). The folder is named because dlopen's search depends on the
// caller, which may be a sanitizer.
void* load_plugin(const char* file);

}  // namespace heddle::os
