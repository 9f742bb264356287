#include "compat/trust.h"

#include "base/format.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

Status not_trusted(const std::string& why) {
  return Status(Code::kDenied, base::format("metadata by address: {}", why))
      .with_advice(
          "run both agents as one user, give both an identity, exchange metadata through etcd or as bytes, or set "
          "HAWSER_SECURITY=none for both, which gives it to everybody who can connect");
}

}  // namespace compat
HAWSER_NAMESPACE_END
