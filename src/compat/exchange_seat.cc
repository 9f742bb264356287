#include "compat/exchange_seat.h"

#include <utility>

#include "base/format.h"
#include "base/try.h"
#include "compat/refusal.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

Result<std::shared_ptr<Exchange>> ExchangeSeat::get(std::string_view call) {
  const std::lock_guard lock(mutex_);
  if (is_closed_) return refusal(NixlCode::kBackend, call, base::format("agent '{}' is closed", setup_.name));
  if (!exchange_) HAWSER_TRY(open());
  return exchange_;
}

Status ExchangeSeat::open() {
  Exchange::Setup setup{.name = setup_.name, .directory = nullptr, .listen = setup_.listen, .log = setup_.log};
  setup.everybody = setup_.security == Security::kNone;
  if (!setup_.identity.folder.empty() && !setup.everybody) HAWSER_TRY(open_identity(&setup));
  if (!setup_.etcd.endpoints.empty()) {
    Result<std::shared_ptr<Directory>> directory = hawser::etcd(setup_.etcd);
    if (!directory) {
      return refusal(NixlCode::kBackend, "create_agent", "NIXL_ETCD_ENDPOINTS cannot be used", directory.status());
    }
    setup.directory = *std::move(directory);
  }
  Result<std::unique_ptr<Exchange>> opened = Exchange::open(std::move(setup), links_());
  if (!opened) return refusal(NixlCode::kBackend, "create_agent", "metadata cannot be exchanged", opened.status());
  exchange_ = *std::move(opened);
  return {};
}

Status ExchangeSeat::open_identity(Exchange::Setup* setup) {
  const auto unusable = [](const Status& why) {
    return refusal(NixlCode::kBackend, "create_agent", "the identity cannot be used", why);
  };
  Result<std::shared_ptr<identity::Authenticator>> own = identity();
  if (!own) return unusable(own.status());
  setup->identity = *std::move(own);
  setup->revocations = setup_.directory;
  Result<std::unique_ptr<IdentityDesk>> desk = IdentityDesk::open(setup_.name, setup->identity);
  if (!desk) return unusable(desk.status());
  setup->desk = *std::move(desk);
  return {};
}

Result<std::shared_ptr<identity::Authenticator>> ExchangeSeat::identity() {
  const std::lock_guard lock(identity_mutex_);
  if (identity_ == nullptr && !setup_.identity.folder.empty()) {
    HAWSER_TRY_ASSIGN(identity_, identity::Authenticator::open({.agent = setup_.name,
                                                                .folder = setup_.identity.folder,
                                                                .names = setup_.identity.names,
                                                                .period = setup_.identity.look},
                                                               setup_.log));
  }
  return identity_;
}

void ExchangeSeat::forget(std::string_view name) {
  const std::lock_guard lock(mutex_);
  if (exchange_) exchange_->forget(name);
}

void ExchangeSeat::close() {
  std::shared_ptr<Exchange> ending;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    ending = std::move(exchange_);
  }
}

void ExchangeSeat::disown() {
  if (exchange_) (new std::shared_ptr<Exchange>(std::move(exchange_)))->get()->disown();
}

}  // namespace compat
HAWSER_NAMESPACE_END
