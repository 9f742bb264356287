#pragma once

// Handshake: hellos, proof and verdict on one stream, from either end. It takes exactly those from the stream and no
// byte more. What is decided, and by what, is in proto/admission.h; what travels in docs/wire.md, "Proof".
//
// Thread rule: one thread. Memory: fixed, whoever the peer is.

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/stream/identity_watch.h"
#include "backend/stream/proof.h"
#include "backend/stream/stream.h"
#include "base/bytes.h"
#include "proto/admission.h"
#include "wire/hello.h"

namespace hawser::backend::stream {

inline wire::Versions versions_of(const Identity& us) { return {us.version_min, us.version_max}; }

/// As it is sent: padded like frames, in the tail that readers of a hello skip, so that what follows starts at a
/// multiple of 16.
std::string padded(const wire::Hello& hello);

class Handshake {
 public:
  /// `authenticator`: this agent's identity; null: it has none.
  Handshake(std::unique_ptr<Stream> stream, const wire::Versions& ours,
            identity::Authenticator* authenticator = nullptr)
      : stream_(std::move(stream)), ours_(ours), authenticator_(authenticator) {}

  /// What to say; called once, before or after the peer was heard. Fills in the nonce.
  void say(wire::Hello hello);
  /// Moves bytes. Errors: the stream ended (kDisconnected), or what came is no hello or verdict (kCorrupt).
  Status turn();
  /// After a refusal: sends what is left, and reads past what still comes until the other end closes (kDisconnected).
  Status linger();
  /// Heard a hello with which we share no version: kUnsupported, and `hello` says nothing. It can be answered.
  const Status& misfit() const { return misfit_; }

  bool heard() const { return heard_; }
  /// Not a byte came.
  bool is_silent() const { return in_.empty(); }
  /// All that was to be said is sent.
  bool said() const { return !out_.empty() && sent_ == out_.size(); }
  bool has_spoken() const { return !out_.empty(); }
  const wire::Hello& hello() const { return hello_; }
  Stream& stream() { return *stream_; }
  std::unique_ptr<Stream> take_stream() { return std::move(stream_); }
  /// What the peer has proven of its identity.
  ShownIdentity take_identity() { return std::exchange(identity_, ShownIdentity()); }
  const ShownIdentity& identity() const { return identity_; }
  /// The acceptor is let go of because it did not prove its identity.
  bool is_identity_doubted() const { return is_identity_doubted_; }
  /// The bytes said: the stream may refer to them until it released so many.
  std::string take_said() { return std::move(out_); }

  // The opener's end.
  /// Says `hello` with the way in that fits. kDenied: there is none, or another key than the acceptor's is there.
  Status ask(wire::Hello hello, const Known& known, bool is_open, Network& network);
  /// Once the acceptor's hello is there and was found good: proves itself where that is asked. kDenied: the acceptor
  /// did not prove what it has to.
  Status on_answer(bool is_open, Network& network);
  /// Whether a refusal, which proves nothing, comes from where the peer would be: not from a stranger on its port.
  bool is_refusal_believable();
  /// The acceptor let it in. Asked after on_answer.
  bool is_let_in() const { return step_ == proto::AdmissionStep::kGo; }

  // The acceptor's end.
  /// Decides about the hello that was heard and says `answer`, with its own proof where one is asked for. kDenied: it
  /// does not come in, and nothing was said.
  Status admit(wire::Hello answer, const base::Id128& secret, bool is_open, Network& network);
  /// How it was let in, or will be once it has proven itself.
  wire::Admission admission() const { return admission_; }
  bool awaits_proof() const { return has_proof() && (awaits_identity_ || more_.size() < more_wanted_); }
  /// It was asked for one, so a verdict follows.
  bool has_proof() const { return !is_opener_ && step_ == proto::AdmissionStep::kProve; }
  /// The proof is there: whether it is good.
  Status check_proof();
  /// Ends the exchange after a proof.
  void say_verdict(const Status& status);

 private:
  Status send();
  Status receive();
  Status receive_into(std::string& bytes, std::size_t wanted);
  Status receive_hello();
  Status receive_verdict();
  Status receive_identity();
  Status learn_identity(identity::Speaker speaker);
  Result<std::string> own_identity(identity::Speaker speaker) const;
  Status pick_secret(const base::Id128& secret, Network& network);
  Status check_key(const Known& known);
  Status check_speaker() const;
  Hellos both_hellos() const;
  std::span<const std::byte> own_hello() const { return base::as_bytes(out_).first(hello_size_); }

  std::unique_ptr<Stream> stream_;
  wire::Versions ours_;
  identity::Authenticator* authenticator_ = nullptr;
  std::string out_;  ///< Never moves once it was said: the stream may refer to it.
  std::size_t hello_size_ = 0;
  std::size_t sent_ = 0;
  std::string in_;
  std::size_t in_wanted_ = wire::kHelloPrefix;
  std::string more_;  ///< Behind the hello: a proof, or a verdict.
  std::size_t more_wanted_ = 0;
  bool heard_ = false;
  bool is_opener_ = false;
  bool awaits_identity_ = false;  ///< The next that comes is the proof of one.
  bool is_identity_doubted_ = false;
  std::string own_proof_;  ///< An acceptor's of its identity: it follows a good verdict, and costs nothing for others.
  ShownIdentity identity_;
  bool is_proven_ = false;                                 ///< Opener: the acceptor has the key of the card.
  wire::Admission admission_ = wire::Admission::kNotSaid;  ///< As asked, then as answered.
  proto::AdmissionStep step_ = proto::AdmissionStep::kRefuse;
  base::Id128 secret_;
  Status misfit_;
  wire::Hello hello_;
};

/// The stream's end as a Status, if it was orderly and so has none.
Status ended(const Moved& moved, const Stream& stream);

}  // namespace hawser::backend::stream
