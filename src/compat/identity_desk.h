#pragma once

// IdentityDesk: an agent's identity as its exchange of metadata by address uses it: under TLS each end says its agent's
// name, and proves that its certificate allows that name. The agent has the same Authenticator, so the files are read
// once for both, and a certificate that one of them knows to be revoked is refused by both.
//
// Thread rule: thread-safe. Files are read within `prove` and `check`, as Authenticator does.

#include <memory>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "identity/authenticator.h"
#include "identity/proof.h"
#include "tls/credentials.h"
#include "tls/session.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class IdentityDesk {
 public:
  /// `name` is the agent that it speaks for. Errors: those of tls::Credentials.
  static Result<std::unique_ptr<IdentityDesk>> open(std::string name,
                                                    std::shared_ptr<identity::Authenticator> authenticator);

  Result<std::unique_ptr<tls::Session>> open_session(tls::End end) const;
  const std::string& name() const { return name_; }
  /// This end's proof on a session with that binding.
  Result<std::string> prove(identity::Speaker self, const tls::Session::Binding& binding);
  /// kDenied: the far end did not prove that it may speak for the agent `name`, and why. kCorrupt.
  Status check(identity::Speaker speaker, const tls::Session::Binding& binding, std::string_view name,
               std::string_view proof);

 private:
  IdentityDesk(std::string name, std::shared_ptr<identity::Authenticator> authenticator,
               std::shared_ptr<const tls::Credentials> credentials)
      : name_(std::move(name)), credentials_(std::move(credentials)), authenticator_(std::move(authenticator)) {}

  const std::string name_;
  const std::shared_ptr<const tls::Credentials> credentials_;
  const std::shared_ptr<identity::Authenticator> authenticator_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
