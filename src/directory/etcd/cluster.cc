#include "directory/etcd/cluster.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/address.h"
#include "base/format.h"
#include "base/try.h"
#include "directory/etcd/clock.h"
#include "identity/files.h"

namespace hawser::directory::etcd {
namespace {

constexpr Duration kPauseMin = std::chrono::milliseconds(20);
constexpr Duration kPauseMax = std::chrono::milliseconds(500);
/// A single try gets at least this, where there is another member to ask.
constexpr Duration kTryMin = std::chrono::seconds(1);
constexpr Duration kTryMax = std::chrono::seconds(5);
/// Logins in one call: a token that is refused at once will not be better the fourth time.
constexpr int kLoginsMax = 3;
constexpr std::size_t kPrefixMax = 512;

Status wrong(std::string text, std::string_view advice) {
  return Status(Code::kInvalid, "etcd: " + std::move(text)).with_advice(advice);
}

Result<std::string> url_of(std::string_view endpoint, bool is_tls) {
  std::string_view scheme = is_tls ? "https://" : "http://";
  for (const std::string_view known : {"http://", "https://"}) {
    if (!endpoint.starts_with(known)) continue;
    scheme = known;
    endpoint.remove_prefix(known.size());
  }
  if (endpoint.ends_with('/')) endpoint.remove_suffix(1);
  const Result<base::HostPort> parsed = base::parse_host_port(endpoint);
  if (!parsed || parsed->port == 0 || parsed->host.empty()) {
    return wrong(base::format("\"{}\" is no address of a member", endpoint),
                 "endpoints are host:port, http://host:port or https://host:port");
  }
  return std::string(scheme) + base::to_string(*parsed);
}

Status check_file(std::string_view option, const std::string& path) {
  if (path.empty()) return {};
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (is_file && std::ifstream(path).good()) return {};
  return wrong(base::format("{} = \"{}\" cannot be read", option, path), "give the path of a PEM file");
}

/// It counts where a member is asked by https.
Status check_identity(const EtcdOptions& options) {
  const auto is_https = [](const std::string& endpoint) { return endpoint.starts_with("https://"); };
  const bool is_tls = !options.ca.empty() || !options.cert.empty() || std::ranges::any_of(options.endpoints, is_https);
  if (options.identity.empty() || !is_tls) return {};
  const auto paths = identity::IdentityFiles(options.identity).paths();
  if (paths) return {};
  return wrong("identity: " + std::string(paths.error().message()), std::string(paths.error().advice()));
}

Status check(const EtcdOptions& options) {
  if (options.endpoints.empty() || options.endpoints.size() > kEndpointsMax) {
    return wrong(base::format("{} endpoints", options.endpoints.size()),
                 base::format("give 1 to {} client addresses", kEndpointsMax));
  }
  if (options.prefix.size() > kPrefixMax) {
    return wrong(base::format("a prefix of {} bytes", options.prefix.size()), "it has at most 512 bytes");
  }
  if (options.cert.empty() != options.key.empty()) {
    return wrong("only one of cert and key is given", "the two belong together");
  }
  if (options.user.empty() && !options.password.empty()) return wrong("a password without a user", "give both");
  constexpr Duration kHour = std::chrono::hours(1);
  if (options.timeout < std::chrono::milliseconds(100) || options.timeout > kHour) {
    return wrong(base::format("a timeout of {} ns", options.timeout.count()), "it is 100 ms to 1 h");
  }
  if (options.lease < std::chrono::seconds(1) || options.lease > kHour * 24) {
    return wrong(base::format("a lease of {} ns", options.lease.count()), "it is 1 s to 24 h");
  }
  HAWSER_TRY(check_identity(options));
  HAWSER_TRY(check_file("ca", options.ca));
  HAWSER_TRY(check_file("cert", options.cert));
  return check_file("key", options.key);
}

}  // namespace

/// One question to one member.
struct Cluster::Try {
  enum class Next : std::uint8_t { kDone, kAgain, kOther };
  Next next = Next::kDone;
  Reply reply;
  int logins = 0;
};

Result<std::unique_ptr<Cluster>> Cluster::open(const EtcdOptions& options) {
  HAWSER_TRY(check(options));
  std::unique_ptr<Cluster> cluster(new Cluster);
  for (const std::string& endpoint : options.endpoints) {
    HAWSER_TRY_ASSIGN(std::string url, url_of(endpoint, !options.ca.empty() || !options.cert.empty()));
    cluster->urls_.push_back(std::move(url));
  }
  cluster->tls_ = {options.ca, options.cert, options.key, options.identity};
  cluster->user_ = options.user;
  cluster->password_ = options.password;
  const auto members = static_cast<std::int64_t>(cluster->urls_.size());
  cluster->try_timeout_ = members == 1 ? options.timeout : std::clamp(options.timeout / members, kTryMin, kTryMax);
  return cluster;
}

std::string Cluster::token() const {
  base::MutexLock lock(mutex_);
  return token_;
}

void Cluster::forget_token() {
  base::MutexLock lock(mutex_);
  token_.clear();
}

std::string Cluster::trouble() const {
  base::MutexLock lock(mutex_);
  return trouble_;
}

void Cluster::note_trouble(const Status& why) {
  base::MutexLock lock(mutex_);
  trouble_ = why.message();
}

void Cluster::note_answer() {
  last_answer_.store(now().ns(), std::memory_order_relaxed);
  base::MutexLock lock(mutex_);
  trouble_.clear();
}

void Cluster::pass_over(std::size_t member) {
  (void)member_.compare_exchange_strong(member, member + 1, std::memory_order_relaxed);
}

bool Cluster::log_in(HttpClient& http, const std::string& url, Instant deadline, Try& one) {
  if (user_.empty() || !token().empty()) return true;
  ++one.logins;
  const Result<HttpReply> answer =
      http.post({url + "/v3/auth/authenticate", encode_login(user_, password_), ""}, deadline);
  if (!answer) {
    one.reply.status = answer.status();
    one.next = Try::Next::kOther;
    return false;
  }
  if (answer->status == 200) {
    Result<std::string> token = decode_login(answer->body);
    if (token) {
      base::MutexLock lock(mutex_);
      token_ = *std::move(token);
      return true;
    }
    one.reply.status = token.status();
    return false;
  }
  const ErrorAnswer error = decode_error(answer->body, answer->status);
  const bool is_passing = error.fault == Fault::kTransient;
  one.next = is_passing ? Try::Next::kOther : Try::Next::kDone;
  one.reply.fault = error.fault;
  one.reply.status = Status(is_passing ? Code::kDisconnected : Code::kDenied,
                            base::format("etcd: {} does not log \"{}\" in: {}", url, user_, error.text))
                         .with_advice("check user and password, and that authentication is enabled there");
  return false;
}

void Cluster::ask(HttpClient& http, const std::string& url, std::string_view path, const std::string& body,
                  Instant deadline, Try& one) {
  if (!log_in(http, url, deadline, one)) return;
  Result<HttpReply> answer = http.post({url + std::string(path), body, token()}, deadline);
  if (!answer) {
    const Code code = answer.status().code();
    one.reply.status = answer.status();
    one.reply.maybe_done = one.reply.maybe_done || code == Code::kTimedOut;
    one.next = code == Code::kCancelled || code == Code::kCorrupt ? Try::Next::kDone : Try::Next::kOther;
    return;
  }
  if (answer->status == 200) {
    note_answer();
    one.reply.status = {};
    one.reply.fault = Fault::kNone;
    one.reply.body = std::move(answer->body);
    one.next = Try::Next::kDone;
    return;
  }
  const ErrorAnswer error = decode_error(answer->body, answer->status);
  one.reply.fault = error.fault;
  const std::string text = base::format("etcd: {}{}: {}", url, path, error.text);
  if (error.fault == Fault::kTransient) {
    one.reply.status = Status(Code::kDisconnected, text);
    one.reply.maybe_done = true;  // A proposal that was given up may yet be applied.
    one.next = Try::Next::kOther;
  } else if (error.fault == Fault::kToken && !user_.empty() && one.logins < kLoginsMax) {
    forget_token();
    one.next = Try::Next::kAgain;
  } else {
    const bool is_denied = error.fault == Fault::kDenied || error.fault == Fault::kToken;
    note_answer();
    one.reply.status = Status(is_denied ? Code::kDenied : Code::kFailed, text)
                           .with_advice(is_denied ? "give a user with rights on these keys" : "");
    one.next = Try::Next::kDone;
  }
}

Reply Cluster::call(HttpClient& http, std::string_view path, const std::string& body, Instant deadline) {
  Try one;
  std::vector<Status> errors(urls_.size());
  std::size_t failed_in_a_row = 0;
  Duration pause = kPauseMin;
  for (;;) {
    if (http.is_stopped()) {
      one.reply.status = Status(Code::kCancelled, "etcd: the directory is closed");
      return std::move(one.reply);
    }
    const std::size_t in_use = member();
    ask(http, urls_[in_use % urls_.size()], path, body, std::min(deadline, now() + try_timeout_), one);
    if (one.next == Try::Next::kDone) return std::move(one.reply);
    if (one.next == Try::Next::kOther) {
      errors[in_use % urls_.size()] = one.reply.status;
      note_trouble(one.reply.status);
      pass_over(in_use);
      if (++failed_in_a_row % urls_.size() == 0) {  // All were asked.
        const auto is_denied = [](const Status& error) { return error.code() == Code::kDenied; };
        one.reply.was_away = true;
        if (std::all_of(errors.begin(), errors.end(), is_denied)) break;  // No retry mends a certificate.
        http.pause(std::min(deadline, now() + pause));
        pause = std::min(pause * 2, kPauseMax);
      }
    }
    if (now() >= deadline) break;
  }
  one.reply.status = give_up(path, errors, one.reply.maybe_done);
  return std::move(one.reply);
}

Status Cluster::give_up(std::string_view path, const std::vector<Status>& errors, bool maybe_done) const {
  Code code = maybe_done ? Code::kTimedOut : Code::kDisconnected;
  std::string text;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    if (errors[i].ok()) continue;
    text.append(text.empty() ? "" : "; ").append(errors[i].message());
    if (errors[i].code() == Code::kDenied) code = Code::kDenied;
  }
  return Status(code, base::format("etcd: no member answered {} in time: {}", path, text))
      .with_advice(code == Code::kDenied ? "check ca, cert and key, and https:// or http:// of the endpoints"
                                         : "check that etcd runs and that the endpoints are its client addresses");
}

Status Cluster::open_stream(HttpClient& http, std::string_view path, const std::string& body, Instant deadline) {
  Try one;
  const std::string& url = urls_[member() % urls_.size()];
  if (!log_in(http, url, std::min(deadline, now() + try_timeout_), one)) return one.reply.status;
  return http.open_stream({url + std::string(path), body, token()});
}

}  // namespace hawser::directory::etcd
