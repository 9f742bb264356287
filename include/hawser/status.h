#pragma once

// Status and Result: how every fallible call of Hawser answers. No exception crosses the API.
//
// A Status is one pointer, null when good, so success costs a compare. It is a value: copies share an immutable
// detail. A code names the caller's reaction; beside it stand scope, peer, device, bytes done, time spent, what became
// of the buffer, the chain of causes and one line of advice. `docs/errors.md` has a section for each code.
//
// Thread rule: like a std::shared_ptr to const — distinct objects may be used by distinct threads.

#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <hawser/export.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

/// What the caller should do next. The numbers are part of the C ABI and of the command line's exit codes.
enum class Code : std::uint8_t {
  kOk = 0,
  kInvalid = 1,       ///< Fix the call.
  kNotFound = 2,      ///< No such peer, region, backend.
  kUnsupported = 3,   ///< Choose another way.
  kBusy = 4,          ///< A bound was reached: back off and retry. The message names the bound.
  kDisconnected = 5,  ///< Reconnect or re-plan, then retry.
  kTimedOut = 6,      ///< The effect is unknown; see BufferState.
  kCancelled = 7,     ///< The caller asked for it.
  kCorrupt = 8,       ///< Drop the peer and report.
  kDenied = 9,        ///< No right.
  kFailed = 10,       ///< Report.
};

/// How much broke.
enum class Scope : std::uint8_t {
  kRequest = 0,  ///< This operation only.
  kPath = 1,     ///< One route; the planner picks another.
  kPeer = 2,     ///< All routes to one peer.
  kAgent = 3,    ///< This agent.
};

/// What became of the target's bytes when an operation did not end well.
enum class BufferState : std::uint8_t {
  kUnknown = 0,
  kUntouched = 1,
  kPartlyWritten = 2,
  kComplete = 3,
};

HAWSER_API std::string_view to_string(Code code);
HAWSER_API std::string_view to_string(Scope scope);
HAWSER_API std::string_view to_string(BufferState state);

class [[nodiscard]] [[gnu::visibility("default")]] Status {
 public:
  /// Good.
  Status() noexcept = default;
  /// `message` says who, what and which value; `code` must not be kOk.
  Status(Code code, std::string message);

  bool ok() const noexcept { return detail_ == nullptr; }
  Code code() const noexcept;
  Scope scope() const noexcept;
  BufferState buffer() const noexcept;
  std::string_view message() const noexcept;
  std::string_view peer() const noexcept;    ///< Empty when no peer is involved.
  std::string_view device() const noexcept;  ///< Empty when no device is involved.
  std::string_view advice() const noexcept;  ///< One line: how to mend it. May be empty.
  std::uint64_t bytes_done() const noexcept;
  Duration elapsed() const noexcept;
  /// What led to this one; good when there is no deeper cause.
  Status cause() const noexcept;

  /// The whole text: code, message, peer, bytes, time, advice, then each cause after "because".
  std::string to_string() const;

  // Builders; each returns a Status with one more fact. On a good status they do nothing.
  Status with_scope(Scope scope) const;
  Status with_buffer(BufferState state) const;
  Status with_peer(std::string_view peer) const;
  Status with_device(std::string_view device) const;
  Status with_advice(std::string_view advice) const;
  Status with_progress(std::uint64_t bytes_done, Duration elapsed) const;
  Status because(const Status& cause) const;

  /// Same code and message; facts beside them are not compared.
  friend HAWSER_API bool operator==(const Status& a, const Status& b) noexcept;

  struct Detail;

 private:
  explicit Status(std::shared_ptr<const Detail> detail) : detail_(std::move(detail)) {}
  std::shared_ptr<const Detail> detail_;
};

/// Either a value or a Status that is not good. Member names follow std::expected.
template <typename T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<T, Status>, "use Status itself");

 public:
  using value_type = T;
  using error_type = Status;

  Result(T value) : good_(true) { ::new (&value_) T(std::move(value)); }  // NOLINT: implicit by design
  Result(Status error) : good_(false) {                                   // NOLINT: implicit by design
    if (error.ok()) error = Status(Code::kFailed, "a Result was made from a good Status");
    ::new (&error_) Status(std::move(error));
  }
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) : good_(other.good_) {
    if (good_) {
      ::new (&value_) T(std::move(other.value_));
    } else {
      ::new (&error_) Status(std::move(other.error_));
    }
  }
  Result(const Result& other)
    requires std::is_copy_constructible_v<T>
      : good_(other.good_) {
    if (good_) {
      ::new (&value_) T(other.value_);
    } else {
      ::new (&error_) Status(other.error_);
    }
  }
  Result& operator=(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) {
    if (this != &other) {
      this->~Result();
      ::new (this) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (good_) {
      value_.~T();
    } else {
      error_.~Status();
    }
  }

  bool has_value() const noexcept { return good_; }
  explicit operator bool() const noexcept { return good_; }

  T& operator*() & noexcept { return value_; }
  const T& operator*() const& noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return &value_; }
  const T* operator->() const noexcept { return &value_; }

  /// The value, or abort with the error's text: for examples and tests.
  T& value() & {
    if (!good_) abort_with(error_);
    return value_;
  }
  T&& value() && {
    if (!good_) abort_with(error_);
    return std::move(value_);
  }

  /// Good (an empty Status) when there is a value.
  Status error() const { return good_ ? Status() : error_; }
  Status status() const { return error(); }

  template <typename U>
  T value_or(U&& fallback) && {
    return good_ ? std::move(value_) : static_cast<T>(std::forward<U>(fallback));
  }

 private:
  static void abort_with(const Status& error);
  union {
    T value_;
    Status error_;
  };
  bool good_;
};

/// Prints `error` to stderr and aborts. Behind Result::value().
[[noreturn]] HAWSER_API void abort_on(const Status& error);

template <typename T>
void Result<T>::abort_with(const Status& error) {
  abort_on(error);
}

HAWSER_NAMESPACE_END
