#pragma once

// The extended form of a queue pair of datagrams: what its session builds, and whether that may be posted.
//
// Thread rule: one thread. Lifetime: the fabric outlives it.

#include <vector>

#include "backend/verbs/mock/mock_device.h"
#include "backend/verbs/mock/mock_objects.h"

namespace hawser::backend::verbs {

/// Gives the builder of `qp` its calls; what it builds goes to `fabric`.
void set_calls(MockQp& qp, MockFabric& fabric);

/// Whether the queue pair takes all of a session: 0, EINVAL or ENOMEM.
int check_session(const MockQp& qp, const MockDevice& device, const std::vector<MockBuilder::Request>& built);

}  // namespace hawser::backend::verbs
