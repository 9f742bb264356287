#pragma once

// Notifications that are longer than Hawser's own, or that look like what carries them: how they travel in several.
//
// A notification of at most kMessageMax bytes that does not begin with kPartMagic is what it says. One that does is
//
//   magic (8 bytes); u8 kind; then by kind, little-endian:
//     0 plain: text                                        the text, which itself begins with the magic
//     1 part:  u64 id; u32 total; u32 offset; bytes        a piece of a body of `total` bytes; pieces come in order
//     2 whole: u64 id; u32 total                           the body is the notification; it is delivered here
//     3 drop:  u64 id                                      the body will never be delivered
//
// A sender numbers its bodies and ends each with a `whole` or a `drop`; bodies may be interleaved. As all this is
// notifications to one peer, it comes in order: a body before its `whole`, which a transfer carries as its own
// notification, so that it comes after the data. What does not fit this is dropped and told.
//
// Thread rule: functions are pure; an Assembler belongs to one thread at a time. Lifetime: a budget outlives its users.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/peer.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// The longest notification.
inline constexpr std::size_t kNotificationMax = std::size_t{8} << 20;

inline constexpr std::string_view kPartMagic{"\xffHWNTF\x01\xfe", 8};
inline constexpr std::size_t kPlainHead = kPartMagic.size() + 1;
inline constexpr std::size_t kPartHead = kPlainHead + 16;
inline constexpr std::size_t kPartBytesMax = kMessageMax - kPartHead;
/// The shortest body is longer than this: what is shorter always goes in one.
inline constexpr std::size_t kPlainMax = kMessageMax - kPlainHead;

struct NotificationPart {
  enum class Kind : std::uint8_t { kPlain = 0, kPart = 1, kWhole = 2, kDrop = 3 };
  Kind kind = Kind::kPlain;
  std::uint64_t id = 0;
  std::uint32_t total = 0, offset = 0;
  std::string_view bytes = {};
};

inline bool is_marked(std::string_view text) { return text.starts_with(kPartMagic); }
/// Whether it travels in one notification, if need be as a `plain`.
inline bool goes_in_one(std::string_view text) { return text.size() <= (is_marked(text) ? kPlainMax : kMessageMax); }

std::string encode_part(const NotificationPart& part);
/// Of a notification that is marked. kCorrupt, saying what is wrong. Views `text`.
Result<NotificationPart> decode_part(std::string_view text);

/// Bytes that bodies which are not delivered yet may take together.
struct AssemblyBudget {
  std::size_t max = std::size_t{512} << 20;
  std::size_t used = 0;
};

/// Puts the bodies of one peer together.
class Assembler {
 public:
  /// Of one peer. Twice what a sender has under way (Outgoing::kBytesMax).
  static constexpr std::size_t kBytesMax = std::size_t{32} << 20;
  /// Bodies that are known, those included of which the rest is awaited only to be thrown away.
  static constexpr std::size_t kBodiesMax = 1024;

  struct Taken {
    std::optional<std::string> text;  ///< A notification for the user.
    Status lost;                      ///< kCorrupt: what was dropped, and why.
  };

  explicit Assembler(AssemblyBudget* budget) : budget_(budget) {}
  Assembler(const Assembler&) = delete;
  Assembler& operator=(const Assembler&) = delete;
  ~Assembler();

  /// A marked notification, in the order of their coming.
  Taken take(std::string_view text);
  bool empty() const { return bodies_.empty(); }
  std::size_t bodies() const { return bodies_.size(); }
  /// Set aside for bodies, by what they will be.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Body {
    std::uint32_t total = 0;
    bool is_lost = false;  ///< The rest of it is ignored.
    std::string bytes = {};
  };
  using Bodies = std::map<std::uint64_t, Body>;

  Taken take_part(const NotificationPart& part);
  Taken take_whole(const NotificationPart& whole);
  Status begin(const NotificationPart& part);
  Taken lose(std::uint64_t id, std::string_view why);
  void give_back(Body& body);
  void forget(Bodies::iterator body);

  AssemblyBudget* const budget_;
  Bodies bodies_;
  std::size_t bytes_ = 0;
};

}  // namespace compat
HAWSER_NAMESPACE_END
