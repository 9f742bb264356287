#pragma once

// MachineLanding: a stream's network puts what comes where the machine wants it, and the machine goes on from there, as
// if it had been received. The landing keeps an error until it is asked, for the network is within a call of its own.
//
// Thread rule: one thread. Lifetime: the machine outlives it.

#include <cstddef>
#include <span>

#include <hawser/status.h>

#include "backend/stream/machine.h"
#include "backend/stream/stream.h"

namespace hawser::backend::stream {

class MachineLanding final : public Landing {
 public:
  MachineLanding(Machine& machine, unsigned stream) : machine_(machine), stream_(stream) {}
  /// As much as the machine wants now; nothing once something was wrong.
  std::size_t place(std::span<const std::byte> bytes) override;
  /// kCorrupt: the path must end.
  const Status& status() const { return status_; }

 private:
  std::size_t place_some(std::span<const std::byte> bytes);

  Machine& machine_;
  const unsigned stream_;
  Status status_;
};

}  // namespace hawser::backend::stream
