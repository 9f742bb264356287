#pragma once

// The real Verbs: libibverbs, opened at run time, so that one binary runs where there is none.
//
// Thread rule: any thread.

#include <memory>

#include <hawser/status.h>

#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

/// Opens libibverbs.so.1. Errors: kUnsupported with the loader's words and what to install.
Result<std::unique_ptr<Verbs>> open_libibverbs();

}  // namespace hawser::backend::verbs
