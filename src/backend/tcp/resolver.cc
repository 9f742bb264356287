#include <netdb.h>

#include <cstring>
#include <memory>

#include "backend/tcp/factory.h"
#include "base/address.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

/// More than so many addresses of one name are not tried.
constexpr int kAddressesMax = 16;

/// One look-up by the C library's own helper thread, so that it can be given up.
struct Lookup {
  std::string host;
  addrinfo hints = {};
  gaicb request = {};

  explicit Lookup(std::string its_host) : host(std::move(its_host)) {
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = AI_ADDRCONFIG;
    request.ar_name = host.c_str();
    request.ar_request = &hints;
  }
  ~Lookup() {
    if (request.ar_result != nullptr) ::freeaddrinfo(request.ar_result);
  }
};

Status wait_for(std::unique_ptr<Lookup>& lookup, Duration patience) {
  gaicb* list[] = {&lookup->request};
  if (const int error = ::getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr); error != 0) {
    return Status(Code::kFailed, base::format("looking up '{}': {}", lookup->host, ::gai_strerror(error)));
  }
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(patience);
  const timespec limit = {static_cast<time_t>(seconds.count()), static_cast<long>((patience - seconds).count())};
  while (::gai_error(list[0]) == EAI_INPROGRESS) {
    if (::gai_suspend(list, 1, &limit) != EAI_AGAIN) continue;
    // What cannot be cancelled is still written to by the C library: left to it.
    if (::gai_cancel(list[0]) == EAI_NOTCANCELED) static_cast<void>(lookup.release());
    return Status(Code::kTimedOut, "the name server did not answer in time");
  }
  if (const int error = ::gai_error(list[0]); error != 0) {
    return Status(Code::kNotFound, base::format("no address for host '{}': {}", lookup->host, ::gai_strerror(error)));
  }
  return Status();
}

}  // namespace

Result<std::string> resolve_tcp_address(std::string_view typed, Duration patience) {
  HAWSER_TRY_ASSIGN(const base::HostPort address, base::parse_host_port(typed));
  if (base::is_numeric_host(address.host)) return base::to_string(address);
  auto lookup = std::make_unique<Lookup>(address.host);
  const std::string host = address.host;
  if (Status status = wait_for(lookup, patience); !status.ok()) {
    return Status(status.code(), base::format("cannot resolve '{}': {}", typed, status.message()))
        .with_advice("check the name, or give the address in numbers");
  }
  std::string all;
  int count = 0;
  for (const addrinfo* at = lookup->request.ar_result; at != nullptr && count < kAddressesMax; at = at->ai_next) {
    base::SocketAddress found;
    if (at->ai_addrlen > sizeof(found.storage)) continue;
    std::memcpy(&found.storage, at->ai_addr, at->ai_addrlen);
    found.size = at->ai_addrlen;
    found.set_port(address.port);
    all += (count++ == 0 ? "" : ",") + base::to_string(found);
  }
  if (count == 0) return Status(Code::kNotFound, base::format("'{}' has no address", typed));
  return all;
}

}  // namespace hawser::backend
