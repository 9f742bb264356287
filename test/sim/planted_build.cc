// What makes a build one of planted bugs: see base/planted.h.

#include "base/planted.h"

namespace hawser::base {
inline namespace planted_build {
namespace {
thread_local Planted present = Planted::kNone;
}  // namespace

bool planted(Planted bug) { return present == bug; }
void plant(Planted bug) { present = bug; }

}  // namespace planted_build
}  // namespace hawser::base
