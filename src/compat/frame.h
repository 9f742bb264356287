#pragma once

// What agents send each other when they exchange metadata by address. The listener speaks first: it welcomes or
// refuses. Then a question goes there and an answer comes back; where one end cannot ask its kernel who owns the other,
// both prove themselves before that (compat/vouch.h).
//
//   magic "HWMD"; u8 version (2); u8 kind; u16 zero; u32 size of name; u32 size of body; name; body. Little-endian.
//
// Thread rule: pure functions.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr std::size_t kFrameHead = 16;
inline constexpr std::size_t kFrameNameMax = 255;
/// 32 bytes for each registration, so two million of them.
inline constexpr std::size_t kFrameBodyMax = std::size_t{64} << 20;

struct Frame {
  enum class Kind : std::uint8_t {
    kLoad = 1,  ///< Metadata in the body, of the agent `name`.
    kAsk = 2,   ///< For the metadata of the agent `name`.
    /// Metadata of the agent `name` holds no longer. The body names its incarnation, as to_hex does; a body without
    /// one means whichever is known.
    kInvalidate = 3,
    kDone = 4,     ///< It was done.
    kRefused = 5,  ///< It was not; the body says why.
    /// The listener's first word. The body: u8 1 where the asker has to prove itself, else 0; the listener's nonce.
    kWelcome = 6,
    kProve = 7,   ///< The asker proves itself, and asks the listener to: its nonce and its proof.
    kProven = 8,  ///< The listener's proof.
  };
  Kind kind = Kind::kDone;
  std::string name = {};
  std::string body = {};
};

/// What an asker wants done.
inline bool is_question(Frame::Kind kind) {
  return kind == Frame::Kind::kLoad || kind == Frame::Kind::kAsk || kind == Frame::Kind::kInvalidate;
}

std::string encode_frame(const Frame& frame);
/// The frame that `bytes` begin with; nothing while more is to come. kCorrupt as soon as it cannot be one.
Result<std::optional<Frame>> decode_frame(std::string_view bytes);
/// What the head of a frame tells, before the rest is there.
struct FrameHead {
  Frame::Kind kind;
  std::size_t name_size, body_size;
};
/// Of bytes that decode_frame did not refuse. Nothing: the head is not whole.
std::optional<FrameHead> head_of(std::string_view bytes);

}  // namespace compat
HAWSER_NAMESPACE_END
