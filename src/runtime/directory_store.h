#pragma once

// A directory as a WorldStore, for worlds on agents of their programs: such an agent is in the directory under its own
// name, and not under that of a rank.
//
// Thread rule: that of the directory. A key that is not there is looked for again and again.

#include <memory>

#include <hawser/agent.h>
#include <hawser/directory.h>
#include <hawser/world.h>

namespace hawser::runtime {

/// `agent` makes progress while it waits, and outlives the store. What is set stays there: the next run sets it again.
WorldStore store_in(std::shared_ptr<Directory> directory, const Agent& agent);

}  // namespace hawser::runtime
