#include "metrics/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/address.h"
#include "base/fd.h"
#include "base/forked_fds.h"
#include "base/format.h"
#include "base/listen_text.h"
#include "base/shown.h"
#include "base/try.h"
#include "metrics/http_library.h"

namespace hawser::metrics {

class Listener {
 public:
  explicit Listener(const HttpLibrary& library) : library_(library) {}
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  /// Takes the listening socket.
  Status start(base::Fd socket);
  std::uint64_t add(Source source) {
    const std::lock_guard lock(mutex_);
    sources_.emplace(++last_, std::move(source));
    return last_;
  }
  void remove(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    sources_.erase(number);
  }
  const std::string& address() const { return address_; }

 private:
  static MHD_Result answer(void* self, MHD_Connection* connection, const char* url, const char* method, const char*,
                           const char*, std::size_t* upload_size, void** state);
  std::string page();
  MHD_Result reply(MHD_Connection* connection, unsigned status, const std::string& body) const;

  const HttpLibrary& library_;
  std::string address_;
  MHD_Daemon* daemon_ = nullptr;
  int socket_ = -1;  ///< The daemon's.
  std::mutex mutex_;
  std::map<std::uint64_t, Source> sources_;
  std::uint64_t last_ = 0;
};

namespace {

struct Wanted {
  std::string host;
  std::uint16_t first = 0, last = 0;
};

Status not_of_the_form(std::string_view listen) {
  return Status(Code::kInvalid, base::format("metrics: \"{}\" is no ADDRESS:PORT", base::shown(listen)))
      .with_advice(
          "write a numeric address and a port, or a range of ports for several processes: 127.0.0.1:9400, "
          "0.0.0.0:9400-9463, [::1]:9400");
}

Result<Wanted> parse(std::string_view listen) {
  const auto split = base::split_listen(listen);
  if (!split || split->ports.empty()) return not_of_the_form(listen);
  Wanted wanted{.host = split->places == "localhost" ? "127.0.0.1" : split->places};
  const std::size_t dash = split->ports.find('-');
  const Result<std::uint16_t> first = base::parse_port(std::string_view(split->ports).substr(0, dash));
  const Result<std::uint16_t> last =
      dash == std::string::npos ? first : base::parse_port(std::string_view(split->ports).substr(dash + 1));
  if (!first || !last || *last < *first || !base::is_numeric_host(wanted.host)) return not_of_the_form(listen);
  wanted.first = *first;
  wanted.last = *last;
  return wanted;
}

Result<base::Fd> listen_at(const base::SocketAddress& address) {
  base::Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  const bool is_open = socket.valid() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                       ::bind(socket.get(), address.get(), address.size) == 0 &&
                       ::listen(socket.get(), static_cast<int>(kConnections)) == 0;
  if (is_open) return socket;
  const int error = errno;
  return Status(error == EADDRINUSE ? Code::kBusy : Code::kFailed,
                base::format("metrics: {}: {}", base::to_string(address), std::strerror(error)));
}

Result<base::Fd> listen_at(const Wanted& wanted) {
  for (std::uint32_t port = wanted.first;; ++port) {
    HAWSER_TRY_ASSIGN(const base::SocketAddress address,
                      base::numeric_address({.host = wanted.host, .port = static_cast<std::uint16_t>(port)}));
    Result<base::Fd> socket = listen_at(address);
    if (socket || socket.error().code() != Code::kBusy) return socket;
    if (port == wanted.last) {
      return Status(Code::kFailed, std::string(socket.error().message()))
          .with_advice("give a range of ports, of which each process takes a free one: 127.0.0.1:9400-9463");
    }
  }
}

/// Those of one process. A child gets its own: in the parent's a lock may be held by a thread that the child lacks.
struct Listeners {
  const pid_t process = ::getpid();
  std::mutex mutex;
  std::map<std::string, std::weak_ptr<Listener>, std::less<>> by_text;

  static Listeners& here() {
    static std::atomic<Listeners*> current{nullptr};
    Listeners* known = current.load(std::memory_order_acquire);
    while (known == nullptr || known->process != ::getpid()) {
      auto* fresh = new Listeners;  // It stays: what refers to it may end after static objects do.
      if (current.compare_exchange_strong(known, fresh)) return *fresh;
      delete fresh;
    }
    return *known;
  }
};

Result<std::shared_ptr<Listener>> listener_for(std::string_view listen) {
  HAWSER_TRY_ASSIGN(const Wanted wanted, parse(listen));
  HAWSER_TRY_ASSIGN(const HttpLibrary* const library, http_library());
  Listeners& all = Listeners::here();
  const std::lock_guard lock(all.mutex);
  std::weak_ptr<Listener>& known = all.by_text[std::string(listen)];
  if (auto its = known.lock()) return its;
  HAWSER_TRY_ASSIGN(base::Fd socket, listen_at(wanted));
  auto made = std::make_shared<Listener>(*library);
  HAWSER_TRY(made->start(std::move(socket)));
  known = made;
  return made;
}

}  // namespace

Status Listener::start(base::Fd socket) {
  base::SocketAddress bound;
  bound.size = sizeof bound.storage;
  if (::getsockname(socket.get(), bound.get(), &bound.size) == 0) address_ = base::to_string(bound);
  daemon_ =
      library_.start_daemon(MHD_USE_AUTO_INTERNAL_THREAD, 0, nullptr, nullptr, &Listener::answer, this,
                            MHD_OPTION_LISTEN_SOCKET, socket.get(), MHD_OPTION_CONNECTION_LIMIT, kConnections,
                            MHD_OPTION_PER_IP_CONNECTION_LIMIT, kConnectionsPerAddress, MHD_OPTION_CONNECTION_TIMEOUT,
                            kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes, MHD_OPTION_END);
  if (daemon_ == nullptr) return Status(Code::kFailed, "metrics: libmicrohttpd did not start on " + address_);
  socket_ = socket.release();  // stop_daemon closes it.
  base::ForkedFds::add(socket_);
  return {};
}

Listener::~Listener() {
  if (daemon_ == nullptr) return;
  base::ForkedFds::remove(socket_);  // Before its number is another's.
  library_.stop_daemon(daemon_);
}

std::string Listener::page() {
  Exposition exposition;
  const std::lock_guard lock(mutex_);
  for (const auto& [number, source] : sources_) source(exposition);
  return exposition.text();
}

MHD_Result Listener::reply(MHD_Connection* connection, unsigned status, const std::string& body) const {
  // The library copies it: MUST_COPY, so the pointer need not be to what may change.
  MHD_Response* const response =
      library_.create_response_from_buffer(body.size(), const_cast<char*>(body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  (void)library_.add_response_header(response, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED) (void)library_.add_response_header(response, "Allow", "GET, HEAD");
  const MHD_Result queued = library_.queue_response(connection, status, response);
  library_.destroy_response(response);
  return queued;
}

MHD_Result Listener::answer(void* self, MHD_Connection* connection, const char* url, const char* method, const char*,
                            const char*, std::size_t*, void**) {
  auto& listener = *static_cast<Listener*>(self);
  const std::string_view how(method), what(url);
  if (how != "GET" && how != "HEAD") return listener.reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET\n");
  if (what != "/metrics") return listener.reply(connection, MHD_HTTP_NOT_FOUND, "the figures are at /metrics\n");
  return listener.reply(connection, MHD_HTTP_OK, listener.page());
}

Entry& Entry::operator=(Entry&& other) noexcept {
  if (this != &other) {
    const Entry gone(std::move(*this));
    listener_ = std::move(other.listener_);
    number_ = other.number_;
  }
  return *this;
}

Entry::~Entry() {
  if (listener_) listener_->remove(number_);
}

std::string Entry::address() const { return listener_ ? listener_->address() : std::string(); }

Result<Entry> serve(std::string_view listen, Source source) {
  HAWSER_TRY_ASSIGN(std::shared_ptr<Listener> listener, listener_for(listen));
  const std::uint64_t number = listener->add(std::move(source));
  return Entry(std::move(listener), number);
}

}  // namespace hawser::metrics
