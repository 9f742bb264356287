#include <netdb.h>

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "backend/tcp/factory.h"
#include "base/address.h"
#include "base/dylib.h"
#include "base/format.h"
#include "base/mutex.h"
#include "base/try.h"

namespace hawser::backend {
namespace {

/// The C library's look-ups in threads of its own, opened at run time: up to glibc 2.33 they are one by itself.
struct LookupLibrary {
  decltype(&::getaddrinfo_a) begin = nullptr;
  decltype(&::gai_error) error = nullptr;
  decltype(&::gai_suspend) suspend = nullptr;
  decltype(&::gai_cancel) cancel = nullptr;

  /// The one of this process.
  static const Result<LookupLibrary>& get() {
    static const Result<LookupLibrary> loaded = load();
    return loaded;
  }

 private:
  static Result<LookupLibrary> load() {
    HAWSER_TRY_ASSIGN(base::Dylib from, base::Dylib::open({"libanl.so.1"}));
    from.keep_loaded();
    LookupLibrary found;
    Status missing;
    from.bind("getaddrinfo_a", &found.begin, &missing);
    from.bind("gai_error", &found.error, &missing);
    from.bind("gai_suspend", &found.suspend, &missing);
    from.bind("gai_cancel", &found.cancel, &missing);
    HAWSER_TRY(missing);
    return found;
  }
};

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

/// Look-ups that were given up while the C library worked on them: it writes to them until it is done. It works on 20
/// at most; those behind them wait in its queue and can be cancelled.
class Abandoned {
 public:
  void add(std::unique_ptr<Lookup> lookup) {
    const base::MutexLock lock(mutex_);
    all_.push_back(std::move(lookup));
  }
  /// Lets those go that have ended meanwhile.
  void sweep(const LookupLibrary& library) {
    const base::MutexLock lock(mutex_);
    std::erase_if(all_, [&](const auto& each) { return library.error(&each->request) != EAI_INPROGRESS; });
  }

 private:
  base::Mutex mutex_;
  std::vector<std::unique_ptr<Lookup>> all_ HAWSER_GUARDED_BY(mutex_);
};

Abandoned& abandoned() {
  static auto* const all = new Abandoned;  // Never destroyed: the C library's threads may outlive main.
  return *all;
}

Status wait_for(std::unique_ptr<Lookup>& lookup, Duration patience) {
  HAWSER_TRY_ASSIGN(const LookupLibrary library, LookupLibrary::get());
  const Instant deadline = Clock::steady().now() + patience;
  abandoned().sweep(library);
  gaicb* list[] = {&lookup->request};
  if (const int error = library.begin(GAI_NOWAIT, list, 1, nullptr); error != 0) {
    return Status(Code::kFailed, base::format("looking up '{}': {}", lookup->host, ::gai_strerror(error)));
  }
  while (library.error(list[0]) == EAI_INPROGRESS) {
    const Duration left = deadline - Clock::steady().now();
    if (left > Duration::zero()) {
      // The clock decides, not what it returns: at its time-out glibc 2.36 says EAI_SYSTEM, others EAI_AGAIN.
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      const timespec limit = {static_cast<time_t>(seconds.count()), static_cast<long>((left - seconds).count())};
      static_cast<void>(library.suspend(list, 1, &limit));
      continue;
    }
    if (library.cancel(list[0]) == EAI_NOTCANCELED) abandoned().add(std::move(lookup));
    return Status(Code::kTimedOut, "the name server did not answer in time");
  }
  if (const int error = library.error(list[0]); error != 0) {
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
