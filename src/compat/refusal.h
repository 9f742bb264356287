#pragma once

// How the compat layer says no: a Status whose NIXL code `code_of` finds again.
//
// Thread rule: pure functions.

#include <string>
#include <string_view>

#include <hawser/compat/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// "<call>: <text>", with that code of NIXL's.
Status refusal(NixlCode code, std::string_view call, std::string_view text);
/// "<call>: <text>" because of `cause`, with the code that NIXL has for this case.
Status refusal(NixlCode code, std::string_view call, std::string_view text, const Status& cause);
/// `status` with that code of NIXL's, where its own stands for another.
Status marked(NixlCode code, const Status& status);

}  // namespace compat
HAWSER_NAMESPACE_END
