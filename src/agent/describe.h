#pragma once

// Waiting and Visitor: who waits for whom, since when. Each port, part and service tells what of its own is under way.
//
// Thread rule: under the lane's lock. Lifetime: views hold for one call of the visitor.

#include "backend/waiting.h"

namespace hawser::agent {

using backend::Waiting;
using Visitor = backend::WaitVisitor;

}  // namespace hawser::agent
