#include "directory/etcd/http.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/format.h"
#include "base/try.h"
#include "directory/etcd/clock.h"
#include "directory/etcd/curl_library.h"
#include "identity/files.h"

namespace hawser::directory::etcd {
namespace {

constexpr int kPollMax = 1000;       ///< Milliseconds in one sleep.
constexpr int kSilenceMax = 10'000;  ///< Milliseconds until sent bytes that nobody acknowledges break a connection.
constexpr int kKeepIdle = 5;         ///< Seconds until a silent connection is asked for a sign of life.

/// So that a member that was cut off is noticed on a stream that says nothing.
int set_up_socket(void*, curl_socket_t socket, curlsocktype) {
  const auto set = [&](int level, int option, int value) {
    (void)::setsockopt(socket, level, option, &value, sizeof value);
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepIdle);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 2);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kSilenceMax);
  return CURL_SOCKOPT_OK;
}

Code code_of(CURLcode result, bool was_sent) {
  switch (result) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CRL_BADFILE:
      return Code::kDenied;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
      return Code::kInvalid;
    default:
      return was_sent ? Code::kTimedOut : Code::kDisconnected;
  }
}

/// One request on its way.
struct Transfer {
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  std::string sent, received;
  std::size_t limit = 0;
  bool has_overflowed = false;
  bool is_running = false;
  std::uint64_t renewals = 0;  ///< That its last connection knew.
  CURLcode result = CURLE_OK;
  std::array<char, CURL_ERROR_SIZE> error{};
};

std::size_t receive(char* bytes, std::size_t one, std::size_t count, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  const std::size_t size = one * count;
  if (transfer.received.size() + size > transfer.limit) {
    transfer.has_overflowed = true;
    return 0;
  }
  transfer.received.append(bytes, size);
  return size;
}

}  // namespace

struct HttpClient::Curl {
  const CurlLibrary& lib;
  const Tls tls;
  CURLM* multi = nullptr;
  Transfer unary, stream;
  std::optional<identity::IdentityFiles> identity;
  std::uint64_t renewals = 0;  ///< Of the identity's files.

  Curl(const CurlLibrary& its_lib, Tls its_tls) : lib(its_lib), tls(std::move(its_tls)) {
    if (tls.identity.empty()) return;
    identity.emplace(tls.identity);
    static_cast<void>(identity->have_changed());
  }
  ~Curl() {
    for (Transfer* transfer : {&unary, &stream}) {
      finish(*transfer);
      if (transfer->easy != nullptr) lib.easy_cleanup(transfer->easy);
    }
    if (multi != nullptr) lib.multi_cleanup(multi);
  }
  Status open() {
    multi = lib.multi_init();
    unary.easy = lib.easy_init();
    stream.easy = lib.easy_init();
    if (multi != nullptr && unary.easy != nullptr && stream.easy != nullptr) return {};
    return Status(Code::kFailed, "etcd: libcurl gives no handle: out of memory");
  }

  void begin(Transfer& transfer, const HttpRequest& request, std::size_t limit);
  void set_tls(Transfer& transfer);
  /// Takes it off; a connection whose answer is not whole is closed.
  void finish(Transfer& transfer);
  void collect();
  Status error_of(const Transfer& transfer, std::string_view url) const;
};

void HttpClient::Curl::begin(Transfer& transfer, const HttpRequest& request, std::size_t limit) {
  finish(transfer);
  transfer.sent = request.body;
  transfer.received.clear();
  transfer.limit = limit;
  transfer.has_overflowed = false;
  transfer.result = CURLE_OK;
  transfer.error[0] = 0;
  // No "Expect: 100-continue": it would cost a round trip for each large value.
  for (const std::string& header : {std::string("Content-Type: application/json"), std::string("Expect:"),
                                    std::string("Grpc-Metadata-hasleader: true"),
                                    request.token.empty() ? std::string() : "Authorization: " + request.token}) {
    if (!header.empty()) transfer.headers = lib.list_append(transfer.headers, header.c_str());
  }
  CURL* const easy = transfer.easy;
  lib.easy_reset(easy);
  const auto set = [&](CURLoption option, auto value) { (void)lib.set_option(easy, option, value); };
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_NOPROXY, "*");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  set(CURLOPT_POST, 1L);
  set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(transfer.sent.size()));
  set(CURLOPT_POSTFIELDS, transfer.sent.data());
  set(CURLOPT_HTTPHEADER, transfer.headers);
  set(CURLOPT_WRITEFUNCTION, &receive);
  set(CURLOPT_WRITEDATA, &transfer);
  set(CURLOPT_ERRORBUFFER, transfer.error.data());
  set(CURLOPT_SOCKOPTFUNCTION, &set_up_socket);
  set(CURLOPT_BUFFERSIZE, 65536L);
  set(CURLOPT_TCP_NODELAY, 1L);
  if (request.url.starts_with("https")) set_tls(transfer);
  lib.multi_add(multi, easy);
  transfer.is_running = true;
}

void HttpClient::Curl::set_tls(Transfer& transfer) {
  const auto set = [&](CURLoption option, auto value) { (void)lib.set_option(transfer.easy, option, value); };
  Tls files = tls;
  if (identity) {
    if (identity->have_changed()) ++renewals;
    // A connection, a session and authorities of before a renewal stand for what is not there any more.
    if (transfer.renewals != renewals) set(CURLOPT_FRESH_CONNECT, 1L);
    transfer.renewals = renewals;
    set(CURLOPT_SSL_SESSIONID_CACHE, 0L);
#if LIBCURL_VERSION_NUM >= 0x075700
    set(CURLOPT_CA_CACHE_TIMEOUT, 0L);
#endif
    // Without them the handshake fails, and curl says which file is missing.
    const identity::IdentityPaths there = identity->paths().value_or(identity::IdentityPaths());
    if (files.ca.empty()) {
      files.ca = there.authorities;
      if (!there.revoked.empty()) set(CURLOPT_CRLFILE, there.revoked.c_str());
    }
    if (files.cert.empty()) {
      files.cert = there.certificate;
      files.key = there.key;
    }
  }
  if (!files.ca.empty()) set(CURLOPT_CAINFO, files.ca.c_str());
  if (!files.cert.empty()) set(CURLOPT_SSLCERT, files.cert.c_str());
  if (!files.key.empty()) set(CURLOPT_SSLKEY, files.key.c_str());
}

void HttpClient::Curl::finish(Transfer& transfer) {
  if (transfer.easy != nullptr) lib.multi_remove(multi, transfer.easy);
  transfer.is_running = false;
  if (transfer.headers != nullptr) lib.list_free(transfer.headers);
  transfer.headers = nullptr;
}

void HttpClient::Curl::collect() {
  int left = 0;
  while (const CURLMsg* message = lib.multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    Transfer& transfer = message->easy_handle == unary.easy ? unary : stream;
    transfer.result = message->data.result;
    transfer.is_running = false;
  }
}

Status HttpClient::Curl::error_of(const Transfer& transfer, std::string_view url) const {
  if (transfer.has_overflowed) {
    return Status(Code::kCorrupt, base::format("{}: an answer of more than {} bytes", url, transfer.limit))
        .with_advice("list fewer keys, or keep smaller values");
  }
  curl_off_t sent = 0;
  (void)lib.get_info(transfer.easy, CURLINFO_SIZE_UPLOAD_T, &sent);
  const char* text = transfer.error[0] != 0 ? transfer.error.data() : lib.error_text(transfer.result);
  return Status(code_of(transfer.result, sent > 0), base::format("{}: {}", url, text));
}

HttpClient::HttpClient(std::unique_ptr<Curl> curl) : curl_(std::move(curl)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::open(Tls tls) {
  HAWSER_TRY_ASSIGN(const CurlLibrary* lib, CurlLibrary::load());
  auto curl = std::make_unique<Curl>(*lib, std::move(tls));
  HAWSER_TRY(curl->open());
  return std::unique_ptr<HttpClient>(new HttpClient(std::move(curl)));
}

void HttpClient::turn(Instant until) {
  const Transfer& unary = curl_->unary;
  const Transfer& stream = curl_->stream;
  const bool had_unary = unary.is_running, had_stream = stream.is_running;
  const std::size_t had_bytes = stream.received.size();
  int running = 0;
  curl_->lib.multi_perform(curl_->multi, &running);
  curl_->collect();
  const bool is_same = had_unary == unary.is_running && had_stream == stream.is_running;
  if (!is_same || stream.received.size() != had_bytes || is_stopped()) return;
  const std::int64_t left = (until - now()).count() / 1'000'000;
  const int sleep = static_cast<int>(std::clamp<std::int64_t>(left + 1, 0, kPollMax));
  curl_->lib.multi_poll(curl_->multi, nullptr, 0, static_cast<int>(sleep), nullptr);
}

Result<HttpReply> HttpClient::post(const HttpRequest& request, Instant deadline) {
  Transfer& transfer = curl_->unary;
  curl_->begin(transfer, request, kAnswerMax);
  while (transfer.is_running && !is_stopped() && now() < deadline) turn(deadline);
  Status error;
  if (transfer.is_running && is_stopped()) {
    error = Status(Code::kCancelled, "etcd: the directory is closed");
  } else if (transfer.is_running) {
    curl_off_t sent = 0;
    (void)curl_->lib.get_info(transfer.easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    error =
        Status(sent > 0 ? Code::kTimedOut : Code::kDisconnected, base::format("{}: no answer in time", request.url));
  } else if (transfer.result != CURLE_OK) {
    error = curl_->error_of(transfer, request.url);
  }
  HttpReply reply;
  (void)curl_->lib.get_info(transfer.easy, CURLINFO_RESPONSE_CODE, &reply.status);
  reply.body = std::move(transfer.received);
  curl_->finish(transfer);
  if (!error.ok()) return error;
  return reply;
}

Status HttpClient::open_stream(const HttpRequest& request) {
  if (is_stopped()) return Status(Code::kCancelled, "etcd: the directory is closed");
  curl_->begin(curl_->stream, request, kLineMax);
  return {};
}

std::optional<std::string> HttpClient::next_line(Instant until) {
  Transfer& stream = curl_->stream;
  std::size_t searched = 0;  // Bytes without an end of line need not be searched again.
  for (;;) {
    if (const std::size_t end = stream.received.find('\n', searched); end != std::string::npos) {
      std::string line = stream.received.substr(0, end);
      stream.received.erase(0, end + 1);
      return line;
    }
    searched = stream.received.size();
    // The last one, an error perhaps, may have no end of line.
    if (!stream.is_running && searched > 0) return std::exchange(stream.received, {});
    if (!stream.is_running || is_stopped() || interrupted_.exchange(false) || now() >= until) return std::nullopt;
    turn(until);
  }
}

bool HttpClient::is_streaming() const { return curl_->stream.is_running || !curl_->stream.received.empty(); }

Status HttpClient::stream_error() const {
  const Transfer& stream = curl_->stream;
  if (stream.is_running || stream.limit == 0) return {};
  if (stream.result != CURLE_OK || stream.has_overflowed) return curl_->error_of(stream, "watch");
  return Status(Code::kDisconnected, "watch: ended by etcd");
}

void HttpClient::close_stream() {
  curl_->finish(curl_->stream);
  curl_->stream.received.clear();
  curl_->stream.limit = 0;
}

void HttpClient::pause(Instant until) {
  while (!is_stopped() && !interrupted_.exchange(false) && now() < until) turn(until);
}

void HttpClient::interrupt() {
  interrupted_.store(true);
  curl_->lib.multi_wakeup(curl_->multi);
}

void HttpClient::stop() {
  stopped_.store(true, std::memory_order_release);
  curl_->lib.multi_wakeup(curl_->multi);
}

}  // namespace hawser::directory::etcd
