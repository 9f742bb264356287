#pragma once

// RelayWindow: what two ranks that are not neighbours have under way with each other, at one of them. It makes of the
// pieces that relays bring, twice, not at all or out of order when some of them die, messages once and in order.
//
// Pieces have numbers. The sender keeps each until it is acknowledged, no more than the window at a time, and sends all
// that it keeps once more when the ways change. The receiver takes the next number only, and passes over all others.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>

namespace hawser::runtime {

inline constexpr std::size_t kWindowBytes = 256 * 1024;  ///< Of one rank for another, on their way.
inline constexpr std::size_t kWindowPieces = 64;         ///< The same as a number.

class RelayWindow {
 public:
  struct Piece {
    std::uint64_t sequence = 0;
    bool has_more = false;
    std::shared_ptr<const std::string> bytes;
  };
  enum class Taken : std::uint8_t {
    kWhole,    ///< `message` is whole.
    kPart,     ///< More of it must come.
    kAgain,    ///< It came before: the other end does not know, and must be told.
    kTooSoon,  ///< One before it is missing, and will be sent once more.
    kBad,      ///< The message is longer than one may be.
  };

  // The sender's side.
  bool has_room(std::size_t bytes) const;
  /// Takes a message in as pieces; there was room for it. Returns how many: they are the last of `unacknowledged`.
  std::size_t push(std::span<const std::byte> head, std::span<const std::byte> body);
  const std::deque<Piece>& unacknowledged() const { return kept_; }
  /// All up to that number came. False: the peer acknowledges what it was not sent.
  bool acknowledge(std::uint64_t sequence);

  // The receiver's side.
  Taken take(std::uint64_t sequence, bool has_more, std::span<const std::byte> piece);
  /// Of pieces that were not acknowledged, and of a message that is not whole.
  std::uint64_t held_bytes() const { return kept_bytes_ + message_.size(); }
  /// The message that is whole.
  std::string& message() { return message_; }
  /// All up to that number came.
  std::uint64_t received() const { return received_; }
  /// So much came since the last acknowledgement that the sender may soon have to wait.
  bool owes() const { return owed_pieces_ >= kWindowPieces / 4 || owed_bytes_ >= kWindowBytes / 4; }
  /// An acknowledgement goes out.
  void note_told() { owed_pieces_ = owed_bytes_ = 0; }

 private:
  std::deque<Piece> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;
  std::size_t owed_pieces_ = 0, owed_bytes_ = 0;
  std::string message_;
  bool is_whole_ = true;
};

}  // namespace hawser::runtime
