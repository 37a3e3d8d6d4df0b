// The fake transport as a plugin: what Network::open loads in tests.
#include "unit/fabric/fake_transport.h"

extern "C" __attribute__((visibility("default"))) const heddle::fabric::TransportApi heddle_transport_1;
const heddle::fabric::TransportApi heddle_transport_1 = heddle::fabric::fake_api;
