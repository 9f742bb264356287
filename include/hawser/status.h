#pragma once

// Status and Result: how every fallible call of Hawser answers. No exception crosses the API.
//
// A Status is one pointer, null when good, so success costs a compare. It is a value: copies share an immutable,
// reference-counted detail. A code names the caller's reaction; beside it stand scope, peer, device, bytes done, time
// spent, what became of the buffer, the chain of causes and one line of advice. `docs/errors.md` has a section for each
// code.
//
// Thread rule: like a std::shared_ptr to const — distinct objects may be used by distinct threads.
// Lifetime: what the accessors view lives as long as this Status or any copy of it.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <hawser/export.h>
#include <hawser/time.h>

HAWSER_NAMESPACE_BEGIN

/// The caller's next step. The numbers are part of the C ABI and of the command line's exit codes.
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

/// The state of the target's bytes when an operation did not end well.
enum class BufferState : std::uint8_t {
  kUnknown = 0,        ///< Each byte of the target's ranges holds what it held, what the write brings, or zero.
  kUntouched = 1,      ///< They hold what they held.
  kPartlyWritten = 2,  ///< Some hold what they held or zero, some what the write brings.
  kComplete = 3,       ///< They hold what the write brings, though the operation ended badly.
};

HAWSER_API std::string_view to_string(Code code);
HAWSER_API std::string_view to_string(Scope scope);
HAWSER_API std::string_view to_string(BufferState state);

class Status;
/// Same code and message; facts beside them are not compared.
HAWSER_API bool operator==(const Status& a, const Status& b) noexcept;

class [[nodiscard]] HAWSER_API Status {
 public:
  /// Good.
  Status() noexcept = default;
  /// `message` says who, what and which value. `code` must not be kOk; kOk and unknown numbers become kFailed.
  Status(Code code, std::string message);

  Status(const Status& other) noexcept : detail_(other.detail_) {
    if (detail_ != nullptr) retain(detail_);
  }
  Status(Status&& other) noexcept : detail_(std::exchange(other.detail_, nullptr)) {}
  Status& operator=(const Status& other) noexcept {
    Status(other).swap(*this);
    return *this;
  }
  Status& operator=(Status&& other) noexcept {
    Status(std::move(other)).swap(*this);
    return *this;
  }
  ~Status() {
    if (detail_ != nullptr) release(detail_);
  }
  void swap(Status& other) noexcept { std::swap(detail_, other.detail_); }

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
  /// The error that led to this one; good when there is no deeper cause.
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
  /// Puts `cause` at the end of the chain. A chain holds kCausesMax; beyond that its middle is dropped, never its root.
  Status because(const Status& cause) const;

  static constexpr int kCausesMax = 16;

  friend bool operator==(const Status& a, const Status& b) noexcept;

  struct Detail;

 private:
  explicit Status(const Detail* adopted) noexcept : detail_(adopted) {}
  static void retain(const Detail* detail) noexcept;
  static void release(const Detail* detail) noexcept;
  template <typename Edit>
  Status edited(Edit edit) const;

  const Detail* detail_ = nullptr;
};
static_assert(sizeof(Status) == sizeof(void*));

/// Either a value or a Status that is not good. Member names follow std::expected.
/// A moved-from Result keeps its side (value or error), with that side moved from.
template <typename T>
class [[nodiscard]] Result {
  static_assert(!std::is_same_v<std::remove_cv_t<T>, Status>, "use Status itself");
  static_assert(!std::is_reference_v<T> && !std::is_void_v<T>, "use a pointer, or Status itself");

 public:
  using value_type = T;
  using error_type = Status;

  /// From anything that makes a T, so `return std::make_unique<Derived>()` gives a Result<std::unique_ptr<Base>>.
  template <typename U = T>
  requires(!std::is_same_v<std::remove_cvref_t<U>, Result> && !std::is_same_v<std::remove_cvref_t<U>, Status> &&
           std::is_constructible_v<T, U>) explicit(!std::is_convertible_v<U, T>)
      Result(U&& value) noexcept(std::is_nothrow_constructible_v<T, U>)
      : value_(std::forward<U>(value)), good_(true) {}
  Result(Status error)  // NOLINT: implicit by design
      : error_(error.ok() ? Status(Code::kFailed, "a Result was made from a good Status") : std::move(error)),
        good_(false) {}
  Result(Result&& other) noexcept(std::is_nothrow_move_constructible_v<T>) requires std::is_move_constructible_v<T>
      : good_(other.good_) {
    take(std::move(other));
  }
  Result(const Result& other) noexcept(std::is_nothrow_copy_constructible_v<T>) requires std::is_copy_constructible_v<T>
      : good_(other.good_) {
    take(other);
  }
  Result& operator=(Result&& other) noexcept(
      std::is_nothrow_move_constructible_v<T>) requires std::is_move_constructible_v<T> {
    static_assert(std::is_nothrow_move_constructible_v<T>, "else a throw would leave neither value nor error");
    if (this == &other) return *this;
    destroy();
    good_ = other.good_;
    take(std::move(other));
    return *this;
  }
  Result& operator=(const Result& other) requires std::is_copy_constructible_v<T> {
    if (this != &other) *this = Result(other);
    return *this;
  }
  ~Result() { destroy(); }

  bool has_value() const noexcept { return good_; }
  explicit operator bool() const noexcept { return good_; }

  // As with std::expected, asking for a value that is not there is undefined; value() aborts instead.
  T& operator*() & noexcept { return value_; }
  const T& operator*() const& noexcept { return value_; }
  T&& operator*() && noexcept { return std::move(value_); }
  T* operator->() noexcept { return std::addressof(value_); }
  const T* operator->() const noexcept { return std::addressof(value_); }

  /// The value, or abort with the error's text: for examples and tests.
  T& value() & {
    if (!good_) abort_with(error_);
    return value_;
  }
  const T& value() const& {
    if (!good_) abort_with(error_);
    return value_;
  }
  T&& value() && {
    if (!good_) abort_with(error_);
    return std::move(value_);
  }

  /// Good (an empty Status) when there is a value.
  Status error() const noexcept { return good_ ? Status() : error_; }
  Status status() const noexcept { return error(); }

  template <typename U>
  T value_or(U&& fallback) const& {
    return good_ ? value_ : static_cast<T>(std::forward<U>(fallback));
  }
  template <typename U>
  T value_or(U&& fallback) && {
    return good_ ? std::move(value_) : static_cast<T>(std::forward<U>(fallback));
  }

 private:
  template <typename Other>
  void take(Other&& other) {
    if (good_) {
      std::construct_at(std::addressof(value_), std::forward<Other>(other).value_);
    } else {
      std::construct_at(std::addressof(error_), std::forward<Other>(other).error_);
    }
  }
  void destroy() noexcept {
    if (good_) {
      std::destroy_at(std::addressof(value_));
    } else {
      std::destroy_at(std::addressof(error_));
    }
  }
  [[noreturn]] static void abort_with(const Status& error);

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
