#pragma once

// PathWords: what the two ends of a path say about the path itself, on stream 0: signs of life, goodbyes, and a renewed
// identity. It frames this end's words, and keeps the peer's until the path asks for them.
//
// Thread rule: one thread.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "backend/backend.h"
#include "backend/stream/inlet.h"
#include "backend/stream/outlet.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {

/// What the driver of a machine must act on, beside events.
struct ControlNews {
  bool ping = false;
  std::uint64_t ping_nonce = 0;
  bool pong = false;
  std::uint64_t pong_nonce = 0;
  std::optional<wire::PathBye> bye;
  bool renewal = false;
  std::string identity;  ///< With `renewal`: the peer's proof.
};

class PathWords {
 public:
  /// `has_identity`: the peer may tell of a renewed one.
  explicit PathWords(bool has_identity) : has_identity_(has_identity) {}

  // This end's. False: there is no room now.
  static bool ping(Outlet& control, std::uint64_t nonce) { return put(control, wire::FrameType::kPing, nonce); }
  static bool pong(Outlet& control, std::uint64_t nonce) { return put(control, wire::FrameType::kPong, nonce); }
  static bool tell_identity(Outlet& control, std::span<const std::byte> proof);
  /// `messages`: those that went on other streams, after which the goodbye holds.
  static bool bye(Outlet& control, Code code, std::string_view reason, std::uint64_t messages);

  // The peer's. False: senseless.
  bool on_word(const Inlet& inlet);
  bool on_identity(Inlet& inlet);
  /// The proof is there.
  void on_identity_end();

  /// `others` messages came on other streams than 0: a goodbye is news once all that was said before it is there.
  /// `is_over`: no more will come, so it is news now.
  ControlNews take(std::uint64_t others, bool is_over);
  bool has_news(std::uint64_t others) const {
    return news_.ping || news_.pong || news_.renewal || (news_.bye && news_.bye->messages <= others);
  }
  /// A goodbye came, and messages that were sent before it did not.
  bool awaits_messages(std::uint64_t others) const { return news_.bye && news_.bye->messages > others; }

 private:
  static bool put(Outlet& control, wire::FrameType type, std::uint64_t number);

  const bool has_identity_;
  ControlNews news_;
  std::string identity_;  ///< The proof that is coming.
  Piece place_;
};

}  // namespace hawser::backend::stream
