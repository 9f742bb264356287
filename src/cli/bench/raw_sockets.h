#pragma once

// Raw TCP connections over loopback, set up as well as anybody can: no delay, large buffers, no pacing.

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <vector>

#include <hawser/status.h>

#include "base/fd.h"

namespace hawser::cli::bench {

class RawListener {
 public:
  static Result<RawListener> open();
  std::uint16_t port() const { return port_; }
  /// The next connection; bounded in time.
  Result<base::Fd> accept();

 private:
  RawListener(base::Fd fd, std::uint16_t port) : fd_(std::move(fd)), port_(port) {}
  base::Fd fd_;
  std::uint16_t port_;
};

Result<base::Fd> raw_connect(std::uint16_t port);

/// Answers each 8 bytes with 8 bytes, spinning, until `over`.
Status answer_pings(int fd, const std::function<bool()>& over);
/// One round trip of 8 bytes, spinning.
Status raw_ping(int fd);

}  // namespace hawser::cli::bench
