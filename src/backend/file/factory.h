#pragma once

// The backend "file": transfers between an agent's memory and its own file regions. See NOTES.md.
//
// Parameters: engine, depth, threads.
//
// Thread rule: any thread.

#include "backend/backend.h"

namespace hawser::backend {

Factory file_factory();

}  // namespace hawser::backend
