#include "backend/quic/qlog.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/format.h"

namespace hawser::backend::quic {
namespace {

constexpr char kRecordSeparator = '\x1e';
/// Lengths of datagrams that one event lists; it counts all.
constexpr std::size_t kListed = 64;
/// Room for the event that says that the file is full.
constexpr std::size_t kLastWords = 256;

double ms_of(Duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

std::int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string host_of(base::SocketAddress address) {
  std::string text = base::to_string(address);
  text.resize(std::min(text.rfind(':'), text.size()));
  std::erase_if(text, [](char c) { return c == '[' || c == ']'; });
  return text;
}

}  // namespace

std::string json_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '"' || c == '\\') escaped += '\\';
    const bool is_plain = c >= ' ' && c < 0x7f;
    escaped += is_plain ? std::string(1, c) : base::format("\\u{:04x}", static_cast<unsigned char>(c));
  }
  return escaped;
}

Result<std::unique_ptr<Qlog>> Qlog::open(const std::string& folder, std::span<const std::uint8_t> id, bool is_opener,
                                         const Route& route, Instant now) {
  std::string hex;
  for (const std::uint8_t byte : id) hex += base::format("{:02x}", byte);
  const std::string_view side = is_opener ? "client" : "server";
  const std::string path = base::format("{}/{}-{}.sqlog", folder, hex, side);
  base::Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (!file) return base::errno_status("qlog: " + path, errno);
  std::unique_ptr<Qlog> log(new Qlog(std::move(file), now));
  log->append(
      base::format("{}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":\"hawser\",\"trace\":{{"
                   "\"vantage_point\":{{\"name\":\"hawser\",\"type\":\"{}\"}},\"common_fields\":{{\"ODCID\":\"{}\","
                   "\"time_format\":\"relative\",\"reference_time\":{}}}}}}}\n",
                   kRecordSeparator, side, hex, unix_ms()));
  log->event("connectivity:connection_started",
             base::format("\"protocol\":\"QUIC\",\"src_ip\":\"{}\",\"src_port\":{},\"dst_ip\":\"{}\",\"dst_port\":{}",
                          host_of(route.local), route.local.port(), host_of(route.remote), route.remote.port()));
  return log;
}

Qlog::~Qlog() { flush(); }

void Qlog::event(std::string_view name, std::string_view data) {
  append(base::format("{}{{\"time\":{:.3f},\"name\":\"{}\",\"data\":{{{}}}}}\n", kRecordSeparator, ms_of(now_ - began_),
                      name, data));
}

void Qlog::append(std::string_view text) {
  if (is_full_) return;
  if (written_ + buffer_.size() + text.size() + kLastWords > kBytesMax) {
    is_full_ = true;
    buffer_ += base::format(
        "{}{{\"time\":{:.3f},\"name\":\"loglevel:warning\",\"data\":{{\"message\":\"the file has "
        "{} bytes, and nothing is added\"}}}}\n",
        kRecordSeparator, ms_of(now_ - began_), kBytesMax);
    return flush();
  }
  buffer_ += text;
  if (buffer_.size() >= kBuffered) flush();
}

void Qlog::flush() {
  std::string_view rest = buffer_;
  while (!rest.empty()) {
    const ssize_t count = ::write(file_.get(), rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      is_full_ = true;  // The disk is.
      break;
    }
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
  written_ += buffer_.size();
  buffer_.clear();
}

void Qlog::datagrams(std::string_view name, std::vector<std::size_t>& sizes) {
  if (sizes.empty()) return;
  std::string lengths;
  for (const std::size_t size : std::span(sizes).first(std::min(sizes.size(), kListed))) {
    lengths += base::format("{}{{\"length\":{}}}", lengths.empty() ? "" : ",", size);
  }
  event(name, base::format("\"count\":{},\"raw\":[{}]", sizes.size(), lengths));
  sizes.clear();
}

void Qlog::settle(const Metrics& metrics) {
  datagrams("transport:datagrams_received", came_);
  datagrams("transport:datagrams_sent", sent_);
  if (metrics == metrics_) return;
  metrics_ = metrics;
  event("recovery:metrics_updated",
        base::format("\"smoothed_rtt\":{:.3f},\"latest_rtt\":{:.3f},\"min_rtt\":{:.3f},\"congestion_window\":{},"
                     "\"bytes_in_flight\":{}",
                     ms_of(metrics.smoothed), ms_of(metrics.latest), ms_of(metrics.least), metrics.window,
                     metrics.under_way));
}

void Qlog::handshake_done() { event("connectivity:connection_state_updated", "\"new\":\"handshake_complete\""); }

void Qlog::moved(std::int64_t stream, std::size_t bytes, bool is_out) {
  event("transport:data_moved",
        base::format("\"stream_id\":{},\"length\":{},\"from\":\"{}\",\"to\":\"{}\"", stream, bytes,
                     is_out ? "application" : "transport", is_out ? "transport" : "application"));
}

void Qlog::closed(std::string_view reason) {
  settle(metrics_);
  event("connectivity:connection_closed", base::format("\"reason\":\"{}\"", json_escaped(reason)));
}

}  // namespace hawser::backend::quic
