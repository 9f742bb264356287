#include "backend/quic/options.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "backend/params.h"
#include "backend/stream/stream.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::quic {
namespace {

constexpr std::uint64_t kBufferMax = 1u << 30;
constexpr std::uint64_t kDatagramMin = 1200;  // RFC 9000, section 14.
constexpr std::uint64_t kDatagramMax = 60'000;
constexpr std::uint64_t kWindowMin = 1u << 20;
constexpr Choice<std::optional<Congestion>> kCongestions[] = {
    {"auto", std::nullopt}, {"cubic", Congestion::kCubic}, {"reno", Congestion::kReno}, {"bbr", Congestion::kBbr}};

}  // namespace

Result<QuicOptions> read_quic_options(const Params& params, Security security) {
  QuicOptions options;
  ParamReader read("quic", params);
  std::string listen = read.text("listen", kListenDefault);
  const std::string ports = read.text("port", "0");
  options.streams =
      static_cast<unsigned>(read.count("streams", options.streams, {.min = 1, .max = stream::kStreamsMax}));
  options.small = read.size("small", options.small, {.min = 0, .max = 1 << 20});
  options.sndbuf = static_cast<int>(read.size("sndbuf", 0, {.min = 0, .max = kBufferMax}));
  options.rcvbuf = static_cast<int>(read.size("rcvbuf", 0, {.min = 0, .max = kBufferMax}));
  options.window = read.size("window", options.window, {.min = kWindowMin, .max = kBufferMax});
  options.datagram = read.size("datagram", 0, {.min = 0, .max = kDatagramMax});
  options.congestion = read.choice("congestion", options.congestion, kCongestions);
  options.qlog = read.text("qlog", "");
  HAWSER_TRY(read.finish());
  if (!options.qlog.empty() && ::access(options.qlog.c_str(), W_OK | X_OK) != 0) {
    return Status(Code::kInvalid,
                  base::format("quic: `qlog`: files cannot be made in {}: {}", options.qlog, std::strerror(errno)))
        .with_advice("make that folder, for this user");
  }
  if (options.datagram != 0 && options.datagram < kDatagramMin) {
    return Status(Code::kInvalid, "quic: `datagram` is below 1200 bytes, which QUIC needs")
        .with_advice("0: as it fits");
  }
  HAWSER_TRY_ASSIGN(ListenChoice choice, read_listening("quic", std::move(listen), ports, true, security));
  choice.warnings.insert(choice.warnings.begin(), read.warnings().begin(), read.warnings().end());
  static_cast<ListenChoice&>(options) = std::move(choice);
  options.security = security;
  options.params = read.in_force();
  return options;
}

}  // namespace hawser::backend::quic
