#pragma once

// TcpNetwork: sockets and epoll as a Network.
//
// Thread rule: confined to the port's lane. Lifetime: outlives its streams.

#include <memory>
#include <string>
#include <vector>

#include "backend/places/listeners.h"
#include "backend/places/locator.h"
#include "backend/stream/stream.h"
#include "backend/tcp/covered_stream.h"
#include "backend/tcp/socket.h"
#include "base/user_cookie.h"

namespace hawser::backend {

/// Sockets that listen, and where they can be reached.
using TcpListeners = Listeners<base::Fd>;

/// Errors: kBusy (the port is in use), kInvalid (no such address here), with advice.
Result<TcpListeners> tcp_listen(const TcpOptions& options);

class TcpNetwork final : public stream::Network {
 public:
  static Result<std::unique_ptr<TcpNetwork>> open(const TcpOptions& options, std::shared_ptr<FdLedger> ledger,
                                                  std::vector<base::Fd> listeners, std::uint64_t host, OwnTls tls);
  ~TcpNetwork() override;

  /// A place to which the connection is to be TLS begins with "tls://".
  Result<std::vector<std::string>> candidates(std::string_view address, bool is_guarded) const override;
  std::string left_out(std::string_view address) const override;
  bool is_here(std::string_view address) const override;
  bool is_beside(const stream::Stream& stream, std::string_view place) const override;
  Result<std::unique_ptr<stream::Stream>> connect(const std::string& candidate, const stream::Known& known) override;
  std::unique_ptr<stream::Stream> accept() override;
  Result<base::Id128> cookie() override { return base::user_cookie(); }
  void set_refusal(std::string hello) override { refusal_ = std::move(hello); }
  std::uint64_t turned_away() const override { return turned_away_; }
  void stop_listening() override;
  std::size_t ready(std::span<stream::Readiness> out, bool* acceptable) override;
  int wait_fd() const override { return shared_->epoll.fd(); }
  bool arm() override;
  Status watch(int fd) override;

 private:
  static constexpr std::size_t kEventsMax = TcpShared::kStashMax;

  TcpNetwork(std::shared_ptr<TcpShared> shared, std::vector<base::Fd> listeners, std::uint64_t host, OwnTls tls)
      : shared_(std::move(shared)), listeners_(std::move(listeners)), host_(host), own_tls_(std::move(tls)) {}
  const std::shared_ptr<TlsSource>& tls();
  bool awaits_handshake() const { return own_tls_.source != nullptr && own_tls_.source->share().is_awaited(); }
  std::size_t look(std::span<stream::Readiness> out);
  bool turn_one_away(int listener);
  const std::vector<InterfaceAddress>& interfaces() const;

  std::shared_ptr<TcpShared> shared_;
  std::vector<base::Fd> listeners_;
  std::uint64_t host_;
  OwnTls own_tls_;
  base::Fd reserve_;  ///< Given up for a moment to turn somebody away when there are no descriptors left.
  std::string refusal_;
  std::uint64_t turned_away_ = 0;
  bool acceptable_ = false;
  mutable std::vector<InterfaceAddress> interfaces_;  ///< As they were at `interfaces_at_`.
  mutable Instant interfaces_at_ = Instant::min();
};

}  // namespace hawser::backend
