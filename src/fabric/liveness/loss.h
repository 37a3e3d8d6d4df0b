// Loss: why this PE takes another one, or a rail to it, for gone.
#pragma once

namespace heddle::fabric {

// Why a PE is lost.
enum class Loss {
    kBroken,  // the connection is broken, as by the end of the process
    kSilent,  // nothing has come from the PE for the time that is allowed
};

}  // namespace heddle::fabric
