#pragma once

// The states of a queue pair of the fabric in memory: which follows which, and the attributes that each step needs and
// sets.
//
// Thread rule: one thread.

#include "backend/verbs/mock/mock_device.h"
#include "backend/verbs/mock/mock_objects.h"

namespace hawser::backend::verbs {

/// Takes the queue pair to `attr.qp_state`; `mask` tells which attributes are set. 0, or EINVAL: nothing changed. As a
/// driver does, it tells in `attr` what rights a queue pair of datagrams has.
int move_on(MockQp& qp, const MockDevice& device, ibv_qp_attr& attr, int mask);

}  // namespace hawser::backend::verbs
