#include "backend/tcp/options.h"

#include <utility>

#include "backend/params.h"
#include "backend/stream/stream.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

constexpr std::uint64_t kBufferMax = 1u << 30;

}  // namespace

Result<TcpOptions> read_tcp_options(const Params& params, Security security, Carries carries) {
  TcpOptions options;
  ParamReader read("tcp", params);
  std::string listen = read.text("listen", kListenDefault);
  const std::string ports = read.text("port", "0");
  options.connections =
      static_cast<unsigned>(read.count("connections", options.connections, {.min = 1, .max = stream::kStreamsMax}));
  options.small = read.size("small", options.small, {.min = 0, .max = 1 << 20});
  options.sndbuf = static_cast<int>(read.size("sndbuf", 0, {.min = 0, .max = kBufferMax}));
  options.rcvbuf = static_cast<int>(read.size("rcvbuf", 0, {.min = 0, .max = kBufferMax}));
  options.notsent = static_cast<std::uint32_t>(read.size("notsent", options.notsent, {.min = 0, .max = kBufferMax}));
  options.congestion = read.text("congestion", "");
  HAWSER_TRY(read.finish());
  options.security = security;
  options.beyond_host = carries == Carries::kAll || security == Security::kNone || security == Security::kAuthenticate;
  HAWSER_TRY_ASSIGN(ListenChoice choice,
                    read_listening("tcp", std::move(listen), ports, options.beyond_host, security));
  choice.warnings.insert(choice.warnings.begin(), read.warnings().begin(), read.warnings().end());
  static_cast<ListenChoice&>(options) = std::move(choice);
  options.params = read.in_force();
  return options;
}

}  // namespace hawser::backend
