#include <algorithm>
#include <utility>

#include "backend/sim/factory.h"
#include "backend/sim/mapped_port.h"
#include "backend/stream/port.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::sim {
namespace {

using backend::Backend;
using backend::Context;
using backend::Path;
using backend::Port;
using backend::RegionEntry;
using backend::Traits;

Traits mapped_traits(const MappedOptions& options, const Seat& seat) {
  Traits traits;
  traits.name = seat.name;
  traits.direct = true;
  traits.checks_holder = true;
  traits.lossless = !seat.may_be_lost;
  traits.chunk_bytes_max = seat.chunk_bytes_max;
  traits.chunk_pieces_max = 16;
  traits.inline_bytes_max = options.inline_bytes;
  traits.latency_ns = 1000;
  traits.bytes_per_ns = 4;
  traits.piece_ns = 100;
  return traits;
}

Traits streamed_traits(const Seat& seat, const PipeOptions& pipe) {
  Traits traits = backend::stream::stream_traits(seat.name);
  traits.chunk_bytes_max = seat.chunk_bytes_max;
  traits.chunk_pieces_max = 16;
  traits.quits_at_once = !pipe.by_reference;
  return traits;
}

class SimBackend final : public Backend {
 public:
  SimBackend(const Context& context, Universe& universe, Seat seat)
      : context_(context),
        universe_(universe),
        seat_(std::move(seat)),
        traits_(seat_.mode == Mode::kMapped ? mapped_traits(universe.hub.options(), seat_)
                                            : streamed_traits(seat_, universe.net.options().pipe)) {}

  /// Listens, so that the address is taken or the error is known before the card is made.
  Status open() {
    if (seat_.mode == Mode::kStream) {
      HAWSER_TRY_ASSIGN(network_, universe_.net.open(seat_.host, seat_.address));
      return {};
    }
    mapped_ = std::make_unique<MappedPort>(context_, universe_.hub, seat_.host);
    return universe_.hub.listen(seat_.address, mapped_.get());
  }

  const Traits& traits() const override { return traits_; }
  std::string address() const override { return seat_.address; }
  std::string readable_address() const override { return seat_.address; }
  Status reachable(std::string_view peer_address) const override {
    const bool known = peer_address.starts_with(std::string(seat_.name) + ":");
    return known ? Status() : Status(Code::kUnsupported, "no simulated address: " + base::shown(peer_address));
  }
  Result<std::string> add_region(const RegionEntry&) override { return std::string(); }
  void remove_region(const RegionEntry&) override {}
  Result<std::unique_ptr<Port>> open_port() override {
    std::unique_ptr<Port> port;
    if (seat_.mode == Mode::kStream) {
      const backend::stream::PortOptions options{
          .backend = seat_.name, .connections = seat_.connections, .small_max = 2048};
      port = backend::stream::make_port(context_, options, std::move(network_));
    } else {
      port = std::move(mapped_);
    }
    return port;
  }
  Params take_params() override { return {{"mode", seat_.mode == Mode::kStream ? "stream" : "mapped"}}; }
  std::vector<std::string> warnings() const override { return {}; }
  void disown_after_fork() override {}

 private:
  const Context context_;
  Universe& universe_;
  const Seat seat_;
  const Traits traits_;
  std::unique_ptr<backend::stream::Network> network_;
  std::unique_ptr<MappedPort> mapped_;
};

}  // namespace

backend::Factory make_factory(Universe& universe, Seat seat) {
  backend::Factory factory;
  factory.name = seat.name;
  factory.default_rank = 100;
  factory.open = [&universe, seat = std::move(seat)](const Context& context,
                                                     const Params&) -> Result<std::unique_ptr<Backend>> {
    auto made = std::make_unique<SimBackend>(context, universe, seat);
    HAWSER_TRY(made->open());
    return std::unique_ptr<Backend>(std::move(made));
  };
  return factory;
}

}  // namespace hawser::sim
