#pragma once

// ExchangeSeat: an agent's exchange of metadata, made when it is first wanted, and the identity by an authority that
// the exchange shares with the agent.
//
// Thread rule: thread-safe. Nothing is called under its locks but what makes an exchange. Lifetime: what the links call
// outlives it.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/agent.h>
#include <hawser/directory.h>

#include "compat/exchange.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class ExchangeSeat {
 public:
  struct Setup {
    std::string name;                      ///< The agent's.
    std::optional<std::uint16_t> listen;   ///< The port; none: nobody listens.
    EtcdOptions etcd = {.endpoints = {}};  ///< Without endpoints: metadata goes by address alone.
    Security security = Security::kDefault;
    IdentityOptions identity;
    std::shared_ptr<Directory> directory;  ///< The agent's own; may be null.
    base::Logger log;
  };

  ExchangeSeat(Setup setup, std::function<Exchange::Links()> links)
      : setup_(std::move(setup)), links_(std::move(links)) {}
  ExchangeSeat(const ExchangeSeat&) = delete;
  ExchangeSeat& operator=(const ExchangeSeat&) = delete;

  /// It was asked for a listener or an etcd: those are there from the beginning.
  bool is_wanted_at_once() const { return setup_.listen.has_value() || !setup_.etcd.endpoints.empty(); }
  /// Made now, if there is none. kBackend once it was closed, and where it cannot be made.
  Result<std::shared_ptr<Exchange>> get(std::string_view call);
  /// As Exchange::forget, if there is one.
  void forget(std::string_view name);
  /// Opened at the first call. Null: the agent has none.
  Result<std::shared_ptr<identity::Authenticator>> identity();
  /// There is none from now on. Waits for its threads.
  void close();
  /// In a child of its process: whoever called it does nothing else with it.
  void disown();

 private:
  Status open();
  Status open_identity(Exchange::Setup* setup);

  const Setup setup_;
  const std::function<Exchange::Links()> links_;
  std::mutex mutex_;  ///< Over making and ending it.
  std::shared_ptr<Exchange> exchange_;
  bool is_closed_ = false;
  std::mutex identity_mutex_;  ///< Over the next one. Taken under the other.
  std::shared_ptr<identity::Authenticator> identity_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
