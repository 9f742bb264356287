#pragma once

// ConnectRace: finds which of a peer's places answers. It connects to the places in their order, each a short while
// after the one before (RFC 8305), so a place that swallows packets delays the others by that while only. It gives out
// one connected stream at a time, for one hello at a time: who answers there decides, not who connects first. Streams
// that are not used are closed before a byte was said on them.
//
// Thread rule: confined to the port's lane. Lifetime: the network and the owner's mark outlive it. Memory: one stream
// for each place.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/stream/stream.h"

namespace hawser::backend::stream {

class ConnectRace {
 public:
  /// Between two connects: at most this, and less where many places share little time.
  static constexpr Duration kStaggerMax = std::chrono::milliseconds(100);
  static constexpr Duration kStaggerMin = std::chrono::milliseconds(10);
  /// How long a place may take to answer a hello at least, where others wait behind it.
  static constexpr Duration kHelloMin = std::chrono::milliseconds(250);

  struct Failure {
    std::string place;
    Status why;
  };

  /// `owner` marks each stream (Stream::owner) until it is taken.
  ConnectRace(Network& network, void* owner, std::vector<std::string> places, const Known& known, Instant now,
              Instant deadline);
  ~ConnectRace();

  /// Starts the connects that are due and looks at those under way. Call it when a stream has news, and when
  /// next_deadline() has come. While a hello is under way no further connect starts.
  void turn(Instant now);
  /// A connected stream for the next hello; null while there is none, or while a hello is under way.
  std::unique_ptr<Stream> take(Instant now);
  /// The place of the stream that was taken last.
  const std::string& place() const { return entries_[taken_].place; }
  /// When the hello on it has taken too long.
  Instant hello_deadline() const { return hello_deadline_; }
  /// The stream that was taken leads to somebody else, or nowhere. The next place has its turn.
  void reject(const Status& why);
  /// All that is still unanswered gets no more time than until then.
  void hurry(Instant deadline) { deadline_ = std::min(deadline_, deadline); }
  /// No place is left.
  bool is_over() const { return left_ == 0; }
  Instant next_deadline() const;
  /// Those that were started and are not needed, for people: "10.61.0.1:7000 (no answer within 340 ms)".
  std::string losers(Instant now) const;
  /// In the order in which they failed.
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  enum class State : std::uint8_t { kWaiting, kConnecting, kConnected, kTaken, kFailed };
  struct Entry {
    std::string place;
    State state = State::kWaiting;
    std::unique_ptr<Stream> stream;
  };

  void start_due(Instant now);
  void start(Entry& entry);
  void look(Entry& entry, Instant now);
  void fail(Entry& entry, const Status& why);
  bool is_under_way() const;

  Network& network_;
  void* const owner_;
  const Known known_;
  std::vector<Entry> entries_;
  std::vector<Failure> failures_;
  const Instant began_;
  Instant deadline_;
  Duration stagger_;
  Instant start_at_;  ///< Of the next connect.
  Instant hello_deadline_ = Instant::max();
  std::size_t next_ = 0;  ///< The first that was not started.
  std::size_t left_;      ///< Places that have not failed.
  std::size_t taken_ = 0;
  bool has_taken_ = false;
};

/// Whether another try could end otherwise: a place failed by neither a refusal nor a final verdict.
bool may_change(const ConnectRace& race);
/// What a race that found nobody comes to, for the agent: all failures, the most telling first. Scope::kPeer where each
/// place refused the connection.
Status verdict_of(const ConnectRace& race, std::string_view peer);

}  // namespace hawser::backend::stream
