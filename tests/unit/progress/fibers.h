// What the tests of fibers have in common.
#pragma once

#include "progress/fiber.h"

#include <gtest/gtest.h>
#include <thread>

namespace heddle::progress {

// Gives the fiber work that the caller keeps until it is over.
template <class Body>
bool start(Fiber& fiber, Body& body) {
    return fiber.start([](void* it) { (*static_cast<Body*>(it))(); }, &body, arithmetic_modes());
}

template <class Body>
void on_another_thread(Body body) {
    std::thread(body).join();
}

inline void resume_when_ready(Fiber& fiber) {
    ASSERT_TRUE(fiber.is_ready());
    fiber.resume();
}

}  // namespace heddle::progress
