#pragma once

// What tests and fuzz targets need to run a Machine without streams: bytes in, bytes out.
//
// Thread rule: one thread.

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "backend/stream/machine_landing.h"

namespace hawser::backend::stream {

/// Gives `bytes` to the machine as if they came on `stream`, wherever it wants them. Stops at the first error, or when
/// it does not want more for now.
inline Status deliver(Machine& machine, unsigned stream, std::span<const std::byte> bytes) {
  std::array<iovec, 64> parts;
  while (!bytes.empty() && machine.wants(stream)) {
    const std::size_t count = machine.landing(stream, parts, 1 << 20);
    std::size_t got = 0;
    for (const iovec& part : std::span(parts).first(count)) {
      const std::size_t size = std::min(part.iov_len, bytes.size());
      std::memcpy(part.iov_base, bytes.data(), size);
      bytes = bytes.subspan(size);
      got += size;
    }
    if (Status status = machine.received(stream, got); !status.ok()) return status;
  }
  return Status();
}

/// The same, from a network that has the bytes in memory of its own.
inline Status deliver_in_place(Machine& machine, unsigned stream, std::span<const std::byte> bytes) {
  MachineLanding landing(machine, stream);
  static_cast<void>(landing.place(bytes));
  return landing.status();
}

/// All that the machine wants to send on `stream`.
inline std::vector<std::byte> drain(Machine& machine, unsigned stream) {
  std::vector<std::byte> bytes;
  std::array<iovec, 64> parts;
  machine.flush();
  while (machine.fill(stream, 1 << 20)) {
    const std::size_t count = machine.gather(stream, parts, 1 << 20);
    std::uint64_t sent = 0;
    for (const iovec& part : std::span(parts).first(count)) {
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      bytes.insert(bytes.end(), from, from + part.iov_len);
      sent += part.iov_len;
    }
    machine.sent(stream, sent, UINT64_MAX);
  }
  return bytes;
}

}  // namespace hawser::backend::stream
