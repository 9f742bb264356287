#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include <hawser/status.h>

#include "base/format.h"
#include "base/secret_text.h"
#include "base/shown.h"

HAWSER_NAMESPACE_BEGIN

struct Status::Detail {
  // Starts at 1 in a copy too: an edited copy is a new object with one owner.
  struct Count {
    mutable std::atomic<std::uint32_t> value{1};
    Count() = default;
    Count(const Count&) {}
    Count& operator=(const Count&) = delete;
  };
  Count references;
  Code code = Code::kFailed;
  Scope scope = Scope::kRequest;
  BufferState buffer = BufferState::kUnknown;
  std::uint64_t bytes_done = 0;
  Duration elapsed{0};
  std::string message;
  std::string peer;
  std::string device;
  std::string advice;
  Status cause;
};

namespace {

template <typename Enum, std::size_t N>
std::string_view name_of(Enum value, const std::string_view (&names)[N]) {
  const auto index = static_cast<std::size_t>(value);
  return index < N ? names[index] : std::string_view("unknown");
}

constexpr std::string_view kCodeNames[] = {"ok",      "invalid",      "not found", "unsupported",
                                           "busy",    "disconnected", "timed out", "cancelled",
                                           "corrupt", "denied",       "failed"};
constexpr std::string_view kScopeNames[] = {"request", "path", "peer", "agent"};
constexpr std::string_view kBufferNames[] = {"unknown", "untouched", "partly written", "complete"};

Code sanitized(Code code) {
  const auto number = static_cast<std::size_t>(code);
  return number == 0 || number >= std::size(kCodeNames) ? Code::kFailed : code;
}

std::string duration_text(Duration elapsed) {
  const auto ns = elapsed.count();
  if (ns < 10'000) return base::format("{} ns", ns);
  if (ns < 10'000'000) return base::format("{} us", ns / 1'000);
  if (ns < 10'000'000'000) return base::format("{} ms", ns / 1'000'000);
  return base::format("{} s", ns / 1'000'000'000);
}

// The facts beside the message, " (peer a, 4096 bytes done)", or nothing.
std::string facts_text(const Status& status) {
  std::string facts;
  const auto add = [&facts](std::string fact) {
    facts += facts.empty() ? " (" : ", ";
    facts += fact;
  };
  if (!status.peer().empty()) add(base::format("peer {}", base::shown(status.peer())));
  if (!status.device().empty()) add(base::format("device {}", base::shown(status.device())));
  if (status.scope() != Scope::kRequest) add(base::format("scope {}", to_string(status.scope())));
  if (status.buffer() != BufferState::kUnknown) add(base::format("target {}", to_string(status.buffer())));
  if (status.bytes_done() != 0) add(base::format("{} bytes done", status.bytes_done()));
  if (status.elapsed() != Duration(0)) add("after " + duration_text(status.elapsed()));
  if (!facts.empty()) facts += ')';
  return facts;
}

}  // namespace

std::string_view to_string(Code code) { return name_of(code, kCodeNames); }
std::string_view to_string(Scope scope) { return name_of(scope, kScopeNames); }
std::string_view to_string(BufferState state) { return name_of(state, kBufferNames); }

Status::Status(Code code, std::string message) {
  auto* detail = new Detail;
  detail->code = sanitized(code);
  detail->message = base::without_tickets(std::move(message));
  detail_ = detail;
}

void Status::retain(const Detail* detail) noexcept { detail->references.value.fetch_add(1, std::memory_order_relaxed); }

void Status::release(const Detail* detail) noexcept {
  // Release on the decrement and acquire before the delete: every owner's reads happen before it.
  if (detail->references.value.fetch_sub(1, std::memory_order_acq_rel) == 1) delete detail;
}

Code Status::code() const noexcept { return ok() ? Code::kOk : detail_->code; }
Scope Status::scope() const noexcept { return ok() ? Scope::kRequest : detail_->scope; }
BufferState Status::buffer() const noexcept { return ok() ? BufferState::kUnknown : detail_->buffer; }
std::string_view Status::message() const noexcept { return ok() ? std::string_view() : detail_->message; }
std::string_view Status::peer() const noexcept { return ok() ? std::string_view() : detail_->peer; }
std::string_view Status::device() const noexcept { return ok() ? std::string_view() : detail_->device; }
std::string_view Status::advice() const noexcept { return ok() ? std::string_view() : detail_->advice; }
std::uint64_t Status::bytes_done() const noexcept { return ok() ? 0 : detail_->bytes_done; }
Duration Status::elapsed() const noexcept { return ok() ? Duration(0) : detail_->elapsed; }
Status Status::cause() const noexcept { return ok() ? Status() : detail_->cause; }

std::string Status::to_string() const {
  if (ok()) return "ok";
  std::string text;
  const Detail* detail = detail_;
  while (detail != nullptr) {  // bounded by kCausesMax
    Status here(detail);
    retain(detail);
    if (!text.empty()) text += "; because ";
    text += base::format("{}: {}{}", hawser::to_string(detail->code), detail->message, facts_text(here));
    if (!detail->advice.empty()) text += base::format(". {}", detail->advice);
    detail = detail->cause.detail_;
  }
  return text;
}

template <typename Edit>
Status Status::edited(Edit edit) const {
  if (ok()) return Status();
  auto copy = std::make_unique<Detail>(*detail_);
  edit(*copy);
  return Status(copy.release());
}

Status Status::with_scope(Scope scope) const {
  return edited([&](Detail& detail) { detail.scope = scope; });
}
Status Status::with_buffer(BufferState state) const {
  return edited([&](Detail& detail) { detail.buffer = state; });
}
Status Status::with_peer(std::string_view peer) const {
  return edited([&](Detail& detail) { detail.peer = peer; });
}
Status Status::with_device(std::string_view device) const {
  return edited([&](Detail& detail) { detail.device = device; });
}
Status Status::with_advice(std::string_view advice) const {
  return edited([&](Detail& detail) { detail.advice = base::without_tickets(std::string(advice)); });
}
Status Status::with_progress(std::uint64_t bytes_done, Duration elapsed) const {
  return edited([&](Detail& detail) {
    detail.bytes_done = bytes_done;
    detail.elapsed = elapsed;
  });
}

Status Status::because(const Status& cause) const {
  if (ok() || cause.ok()) return *this;
  // The chain is kept as a list, so that a retry loop that wraps its last error again and again stays bounded.
  Status links[2 * kCausesMax];
  int count = 0;
  for (Status at = *this; !at.ok() && count < kCausesMax; at = at.cause()) links[count++] = at;
  for (Status at = cause; !at.ok() && count < 2 * kCausesMax; at = at.cause()) links[count++] = at;
  const int dropped = count > kCausesMax ? count - kCausesMax : 0;
  Status chain = links[count - 1].edited([](Detail& detail) { detail.cause = Status(); });
  for (int i = count - 2; i >= 0; --i) {
    const bool middle = i >= kCausesMax - 1 && dropped > 0;
    if (middle) continue;
    chain = links[i].edited([&](Detail& detail) { detail.cause = chain; });
  }
  return chain;
}

bool operator==(const Status& a, const Status& b) noexcept {
  return a.detail_ == b.detail_ || (a.code() == b.code() && a.message() == b.message());
}

void abort_on(const Status& error) {
  std::fprintf(stderr, "hawser: %s\n", error.to_string().c_str());
  std::fflush(stderr);
  std::abort();
}

HAWSER_NAMESPACE_END
