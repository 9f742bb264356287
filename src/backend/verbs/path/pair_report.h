#pragma once

// What a queue pair of a path is, for people and for who posts on one by himself.
//
// Thread rule: confined to the port's lane, as the queue pair.

#include <string>

#include "backend/verbs/path/path_pair.h"

namespace hawser::backend::verbs {

QueuePairCounters counters_of(const PathPair& pair);
/// "queue pair 0 (mock0:1 (RoCE v2, 10.0.0.1) to 10.0.0.2, 4096-byte packets): ready, 3 in flight": why it may not get
/// on.
std::string condition_of(const PathPair& pair);
/// "queue pair 0 (mock0:1 (RoCE v2, 10.0.0.1) 17 to 18, epoch 1, ready, 3 in flight, ...)": what it has done.
std::string describe(const PathPair& pair);

}  // namespace hawser::backend::verbs
