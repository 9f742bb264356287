#include "backend/stream/handshake.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/bytes.h"
#include "base/format.h"
#include "base/planted.h"
#include "base/try.h"
#include "wire/stream_frames.h"

namespace hawser::backend::stream {
namespace {

using base::FarEnd;
using proto::AdmissionStep;
using wire::Admission;

/// What an end says behind its hello: a proof, or a verdict with the longest reason.
constexpr std::size_t kMoreMax = 272;
/// What whoever was refused still says is read past in so many calls for each turn.
constexpr int kUnreadCalls = 4;

}  // namespace

Status ended(const Moved& moved, const Stream& stream) {
  if (!moved.status.ok()) return moved.status;
  return Status(Code::kDisconnected, base::format("the peer closed the connection ({})", stream.describe()))
      .with_scope(Scope::kPath);
}

// Padded like frames, in the tail that readers of a hello skip: what follows starts at a multiple of 16.
std::string padded(const wire::Hello& hello) {
  std::string bytes = wire::encode(hello);
  bytes.resize(static_cast<std::size_t>(wire::padded(bytes.size())));
  bytes.shrink_to_fit();  // Each listener keeps one.
  base::store_little_endian(bytes.data() + 4, static_cast<std::uint16_t>(bytes.size() - wire::kHelloPrefix));
  return bytes;
}

void Handshake::say(wire::Hello hello) {
  hello.nonce = base::random_id128();
  const std::string bytes = padded(hello);
  out_.reserve(bytes.size() + kMoreMax + (hello.admission == Admission::kIdentity ? identity::kProofMax : 0));
  out_ = bytes;
  hello_size_ = out_.size();
}

Status Handshake::turn() {
  if (stream_->state() == StreamState::kConnecting) return Status();
  if (stream_->state() == StreamState::kClosed) return ended({.closed = true, .status = stream_->status()}, *stream_);
  HAWSER_TRY(send());
  return receive();
}

Status Handshake::linger() {
  if (stream_->state() == StreamState::kClosed) return ended({.closed = true, .status = stream_->status()}, *stream_);
  HAWSER_TRY(send());
  std::array<char, kMoreMax> unread;
  for (int i = 0; i < kUnreadCalls; ++i) {
    const iovec part = {unread.data(), unread.size()};
    const Moved moved = stream_->receive({&part, 1});
    if (moved.closed) return ended(moved, *stream_);
    if (moved.bytes == 0) break;
  }
  return Status();
}

Status Handshake::send() {
  while (sent_ < out_.size()) {
    const iovec part = {out_.data() + sent_, out_.size() - sent_};
    const Moved moved = stream_->send({&part, 1});
    if (moved.closed) return ended(moved, *stream_);
    if (moved.bytes == 0) return Status();
    sent_ += moved.bytes;
  }
  return Status();
}

/// Takes what is there, up to `wanted` bytes in all.
Status Handshake::receive_into(std::string& bytes, std::size_t wanted) {
  while (bytes.size() < wanted) {
    const std::size_t had = bytes.size();
    bytes.resize(wanted);
    const iovec part = {bytes.data() + had, wanted - had};
    const Moved moved = stream_->receive({&part, 1});
    bytes.resize(had + moved.bytes);
    if (moved.closed) return ended(moved, *stream_);
    if (moved.bytes == 0) return Status();
  }
  return Status();
}

Status Handshake::receive() {
  if (!heard_) HAWSER_TRY(receive_hello());
  if (more_.size() < more_wanted_) HAWSER_TRY(receive_into(more_, more_wanted_));
  if (awaits_identity_) return receive_identity();
  return is_opener_ && heard_ && step_ == AdmissionStep::kProve ? receive_verdict() : Status();
}

Status Handshake::receive_hello() {
  HAWSER_TRY(receive_into(in_, in_wanted_));
  if (in_.size() < in_wanted_) return Status();
  if (in_wanted_ == wire::kHelloPrefix) {
    HAWSER_TRY_ASSIGN(in_wanted_, wire::hello_size(base::as_bytes(in_)));
    return receive_hello();
  }
  Result<wire::Hello> hello = wire::decode_hello(base::as_bytes(in_), ours_);
  if (!hello && hello.error().code() != Code::kUnsupported) return hello.error();
  heard_ = true;
  if (hello) {
    hello_ = *std::move(hello);
  } else {
    misfit_ = hello.error();
  }
  return Status();
}

Status Handshake::receive_verdict() {
  if (more_.size() < kVerdictHead) return Status();
  more_wanted_ = verdict_size(base::as_bytes(more_).first<kVerdictHead>());
  HAWSER_TRY(receive_into(more_, more_wanted_));
  if (more_.size() < more_wanted_) return Status();
  const Status verdict = decode_verdict(base::as_bytes(more_));
  if (!verdict.ok()) {
    return Status(verdict.code(), base::format("{} turned us away: {}", hello_.name, verdict.message()));
  }
  if (admission_ == Admission::kIdentity) {  // The acceptor's own proof follows.
    awaits_identity_ = true;
    more_.clear();
    more_wanted_ = identity::kProofHead;
    return receive();
  }
  step_ = AdmissionStep::kGo;
  return Status();
}

/// The size first, then the rest.
Status Handshake::receive_identity() {
  if (more_.size() < more_wanted_) return Status();
  if (more_wanted_ == identity::kProofHead) {
    HAWSER_TRY_ASSIGN(more_wanted_, identity::proof_size(base::as_bytes(more_).first<identity::kProofHead>()));
    return receive();
  }
  awaits_identity_ = false;
  if (!is_opener_) return Status();  // The door looks at it.
  is_identity_doubted_ = true;
  HAWSER_TRY(learn_identity(identity::Speaker::kAcceptor));
  is_identity_doubted_ = false;
  step_ = AdmissionStep::kGo;
  return Status();
}

Status Handshake::learn_identity(identity::Speaker speaker) {
  const identity::Transcript transcript = transcript_of(both_hellos());
  HAWSER_TRY_ASSIGN(
      identity::PeerIdentity peer,
      authenticator_->check(base::as_bytes(more_), speaker, identity::Occasion::kOpening, transcript, hello_.name));
  identity_ = {std::make_shared<identity::PeerIdentity>(std::move(peer)), transcript};
  return Status();
}

Result<std::string> Handshake::own_identity(identity::Speaker speaker) const {
  return authenticator_->prove(speaker, identity::Occasion::kOpening, transcript_of(both_hellos()));
}

/// The one that the answer names.
Status Handshake::pick_secret(const base::Id128& secret, Network& network) {
  if (admission_ == Admission::kCookie) {
    const Result<base::Id128> cookie = network.cookie();
    if (!cookie) {
      // What is wrong with the file is nothing to tell a stranger: a refusal names the first line only.
      return Status(Code::kDenied,
                    "the kernel does not tell who owns the connection, nor can the user's cookie be used")
          .because(cookie.error());
    }
    secret_ = *cookie;
  } else {
    secret_ = secret;
  }
  return Status();
}

/// Over TLS the key says who speaks. In clear the public key in a hello is a claim, and nothing rests on it.
Status Handshake::check_speaker() const {
  const std::span<const std::byte> key = stream_->peer_key();
  if (key.empty() || std::ranges::equal(key, hello_.public_key)) return Status();
  return Status(Code::kDenied, "its hello names another key than that of its TLS certificate");
}

Hellos Handshake::both_hellos() const {
  const std::span<const std::byte> heard = base::as_bytes(in_);
  return is_opener_ ? Hellos{own_hello(), heard, stream_->binding()} : Hellos{heard, own_hello(), stream_->binding()};
}

// ---- The opener's end.

/// Before a word is said to it.
Status Handshake::check_key(const Known& known) {
  const std::span<const std::byte> key = stream_->peer_key();
  const bool is_known = std::ranges::any_of(known.key, [](std::byte each) { return each != std::byte{0}; });
  if (key.empty() || !is_known) return Status();
  is_proven_ = std::ranges::equal(key, known.key);
  if (is_proven_) return Status();
  return Status(Code::kDenied, "whoever listens there does not have the key that the peer's card tells");
}

Status Handshake::ask(wire::Hello hello, const Known& known, bool is_open, Network& network) {
  is_opener_ = true;
  secret_ = known.secret;
  HAWSER_TRY(check_key(known));
  const bool has_identity = authenticator_ != nullptr;
  const FarEnd far_end = secret_.is_zero() || has_identity ? stream_->far_end(nullptr) : FarEnd::kElsewhere;
  hello.admission = proto::ask({.far_end = far_end,
                                .has_secret = !secret_.is_zero(),
                                .is_open = is_open,
                                .is_proven = is_proven_,
                                .has_identity = has_identity,
                                .is_covered = stream_->cover() == Cover::kTls});
  if (hello.admission == Admission::kCookie && is_open && !network.cookie()) hello.admission = Admission::kNone;
  if (hello.admission == Admission::kNotSaid) {
    return Status(Code::kDenied, "without its card nothing can be proven to a peer on the network")
        .with_advice(
            "load the peer's card, find it in a directory, give the address with its ticket (ADDRESS#TICKET, as "
            "`hawser serve` prints it), or open both with security `none`");
  }
  admission_ = hello.admission;
  say(std::move(hello));
  return Status();
}

Status Handshake::on_answer(bool is_open, Network& network) {
  HAWSER_TRY(check_speaker());
  const Admission asked = std::exchange(admission_, hello_.admission);
  std::string why;
  const bool is_asked = admission_ == Admission::kUser || admission_ == Admission::kCookie;
  const FarEnd far_end = is_asked ? stream_->far_end(&why) : FarEnd::kElsewhere;
  const proto::AdmissionFacts facts = {
      .far_end = far_end, .has_secret = !secret_.is_zero(), .is_open = is_open, .is_proven = is_proven_};
  step_ = proto::answered(asked, admission_, facts);
  if (step_ == AdmissionStep::kRefuse) {
    return Status(Code::kDenied,
                  base::format("whoever listens there did not prove to be the peer{}{}", why.empty() ? "" : ": ", why));
  }
  if (step_ == AdmissionStep::kGo) return Status();
  if (admission_ == Admission::kIdentity) {
    HAWSER_TRY_ASSIGN(const std::string proof, own_identity(identity::Speaker::kOpener));
    out_ += proof;
    more_wanted_ = kVerdictHead;
    return turn();
  }
  HAWSER_TRY(pick_secret(secret_, network));
  const Hellos hellos = both_hellos();
  const bool is_proven = is_same(acceptor_proof(secret_, hellos), hello_.proof);
  if (!is_proven && !base::planted(base::Planted::kStaleIncarnation)) {
    const std::string_view reason =
        admission_ != Admission::kCard ? "whoever listens there does not have this user's cookie"
        : is_proven_ ? "the key is the peer's, but the secret is not that of its card: the card or ticket is wrong"
                     : "whoever listens there did not make the card that is known of the peer";
    return Status(Code::kDenied, std::string(reason));
  }
  const wire::Proof proof = opener_proof(secret_, hellos);
  out_.append(reinterpret_cast<const char*>(proof.data()), proof.size());
  more_wanted_ = kVerdictHead;
  return turn();
}

bool Handshake::is_refusal_believable() {
  const FarEnd far_end = stream_->far_end(nullptr);
  return far_end == FarEnd::kSameUser || far_end == FarEnd::kElsewhere;
}

// ---- The acceptor's end.

Status Handshake::admit(wire::Hello answer, const base::Id128& secret, bool is_open, Network& network) {
  HAWSER_TRY(check_speaker());
  const Admission asked = hello_.admission;
  std::string why;
  const bool has_identity = authenticator_ != nullptr;
  const bool asks_kernel = has_identity || asked == Admission::kUser || asked == Admission::kCookie;
  const proto::AdmissionFacts facts = {.far_end = asks_kernel ? stream_->far_end(&why) : FarEnd::kElsewhere,
                                       .has_secret = !secret.is_zero(),
                                       .is_open = is_open,
                                       .has_identity = has_identity,
                                       .is_covered = stream_->cover() == Cover::kTls};
  admission_ = proto::admit(asked, facts);
  step_ = proto::admitted(admission_);
  if (step_ == AdmissionStep::kRefuse) return Status(Code::kDenied, proto::why_not(asked, facts));
  HAWSER_TRY(pick_secret(secret, network));
  answer.admission = admission_;
  answer.proof = {};
  say(std::move(answer));
  if (step_ != AdmissionStep::kProve) return Status();
  if (admission_ == Admission::kIdentity) {
    awaits_identity_ = true;
    more_wanted_ = identity::kProofHead;
    return Status();
  }
  const wire::Proof proof = acceptor_proof(secret_, both_hellos());
  std::memcpy(out_.data() + wire::kHelloProofAt, proof.data(), proof.size());
  more_wanted_ = proof.size();
  return Status();
}

Status Handshake::check_proof() {
  if (admission_ == Admission::kIdentity) {
    HAWSER_TRY(learn_identity(identity::Speaker::kOpener));
    HAWSER_TRY_ASSIGN(own_proof_, own_identity(identity::Speaker::kAcceptor));
    return Status();
  }
  if (is_same(opener_proof(secret_, both_hellos()), base::as_bytes(more_))) return Status();
  if (base::planted(base::Planted::kStaleIncarnation)) return Status();
  return Status(Code::kDenied, "its proof is wrong: it has another card, or none");
}

void Handshake::say_verdict(const Status& status) {
  out_ += encode_verdict(status);
  if (status.ok()) out_ += own_proof_;
}

}  // namespace hawser::backend::stream
