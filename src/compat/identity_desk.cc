#include "compat/identity_desk.h"

#include <sodium.h>

#include <utility>

#include "base/bytes.h"
#include "base/try.h"
#include "compat/clock.h"
#include "tls/key_pair.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

/// For this session, this use of it, and this name alone.
identity::Transcript transcript_of(const tls::Session::Binding& binding, std::string_view name) {
  constexpr std::string_view kUse = "hawser metadata by address 1";
  std::string all(kUse);
  all.append(reinterpret_cast<const char*>(binding.data()), binding.size()).append(name);
  identity::Transcript transcript;
  crypto_generichash(reinterpret_cast<unsigned char*>(transcript.data()), transcript.size(),
                     reinterpret_cast<const unsigned char*>(all.data()), all.size(), nullptr, 0);
  return transcript;
}

}  // namespace

Result<std::unique_ptr<IdentityDesk>> IdentityDesk::open(std::string name,
                                                         std::shared_ptr<identity::Authenticator> authenticator) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<const tls::Credentials> credentials, tls::Credentials::make(tls::KeyPair::make()));
  return std::unique_ptr<IdentityDesk>(
      new IdentityDesk(std::move(name), std::move(authenticator), std::move(credentials)));
}

Result<std::unique_ptr<tls::Session>> IdentityDesk::open_session(tls::End end) const {
  return tls::Session::open(credentials_, end);
}

Result<std::string> IdentityDesk::prove(identity::Speaker self, const tls::Session::Binding& binding) {
  authenticator_->look(now());
  return authenticator_->prove(self, identity::Occasion::kOpening, transcript_of(binding, name_));
}

Status IdentityDesk::check(identity::Speaker speaker, const tls::Session::Binding& binding, std::string_view name,
                           std::string_view proof) {
  authenticator_->look(now());
  return authenticator_
      ->check(base::as_bytes(proof), speaker, identity::Occasion::kOpening, transcript_of(binding, name), name)
      .status();
}

}  // namespace compat
HAWSER_NAMESPACE_END
