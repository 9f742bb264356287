#pragma once

#include <hawser/time.h>

namespace hawser::directory::etcd {

/// The time that requests to etcd go by.
inline Instant now() { return Clock::steady().now(); }

}  // namespace hawser::directory::etcd
