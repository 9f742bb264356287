#pragma once

// Handshake: the exchange of hellos on one stream. It takes exactly the peer's hello from the stream and no byte more.
//
// Thread rule: one thread. Memory: fixed, whoever the peer is.

#include <cstddef>
#include <memory>
#include <string>

#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/stream/stream.h"
#include "wire/hello.h"

namespace hawser::backend::stream {

inline wire::Versions versions_of(const Identity& us) { return {us.version_min, us.version_max}; }

/// As it is sent: padded like frames, in the tail that readers of a hello skip, so that what follows starts at a
/// multiple of 16.
std::string padded(const wire::Hello& hello);

class Handshake {
 public:
  Handshake(std::unique_ptr<Stream> stream, const wire::Versions& ours) : stream_(std::move(stream)), ours_(ours) {}

  /// What to say; may be called once, before or after the peer was heard.
  void say(const wire::Hello& hello);
  /// Moves bytes. Errors: the stream ended (kDisconnected) or what came is no hello (kCorrupt).
  Status turn();
  /// Heard a hello with which we share no version: kUnsupported, and `hello` says nothing. It can be answered.
  const Status& misfit() const { return misfit_; }

  bool heard() const { return heard_; }
  /// Not a byte came.
  bool is_silent() const { return in_.empty(); }
  /// All that was to be said is sent.
  bool said() const { return !out_.empty() && sent_ == out_.size(); }
  const wire::Hello& hello() const { return hello_; }
  Stream& stream() { return *stream_; }
  std::unique_ptr<Stream> take_stream() { return std::move(stream_); }
  /// The bytes said: the stream may refer to them until it released so many.
  std::string take_said() { return std::move(out_); }

 private:
  Status send();
  Status receive();

  std::unique_ptr<Stream> stream_;
  wire::Versions ours_;
  std::string out_;
  std::size_t sent_ = 0;
  std::string in_;
  std::size_t in_wanted_ = wire::kHelloPrefix;
  bool heard_ = false;
  Status misfit_;
  wire::Hello hello_;
};

/// The stream's end as a Status, if it was orderly and so has none.
Status ended(const Moved& moved, const Stream& stream);

}  // namespace hawser::backend::stream
