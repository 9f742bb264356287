#pragma once

// A network in memory, for tests: streams with a bounded buffer that send and receive as few bytes at a time as a
// seeded generator likes, and that a test can cut.
//
// Thread rule: one thread. Lifetime: the switch outlives its networks.

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backend/stream/stream.h"
#include "base/rng.h"

namespace hawser::backend::stream {

class MemoryNetwork;

/// One direction of a stream.
struct MemoryPipe {
  std::deque<std::byte> bytes;
  bool finished = false;          ///< No more will come; what is there can be read.
  bool reset = false;             ///< Nothing can be read.
  std::vector<std::byte> record;  ///< All that was ever sent, where the switch keeps it.
  std::size_t number = 0;         ///< Of its stream, in order of connecting.
};

/// What joins the networks, and how roughly.
struct MemorySwitch {
  base::Rng rng{1};
  std::size_t capacity = 256 * 1024;               ///< Bytes under way in one direction.
  std::size_t step_max = 0;                        ///< Bytes per call are drawn from 1 to this; 0: as many as fit.
  base::FarEnd far_end = base::FarEnd::kSameUser;  ///< What streams say of their other ends,
  std::map<std::string, base::FarEnd> far_ends;    ///< and what those of one network say.
  base::Id128 cookie = {3, 5};                     ///< The user's; networks in `cookies` have others.
  std::map<std::string, base::Id128> cookies;
  /// What networks say of the cover of their streams, as TLS would: who is not named has none.
  struct Seal {
    std::string binding, peer_key;
  };
  std::map<std::string, Seal> seals;
  bool recorded = false;          ///< Pipes keep what was sent.
  bool holds_references = false;  ///< Streams release nothing before it was received, as QUIC does.
  bool is_elsewhere = false;      ///< Networks are of different hosts.
  bool places = false;            ///< Payload is put in its place before it is received, as QUIC does.
  bool are_apart = false;         ///< Streams do not wait for one another, as those of QUIC.
  std::set<std::size_t> held;     ///< Of these streams, by number, nothing can be read for now.
  std::map<std::string, MemoryNetwork*> listeners;
  std::vector<std::pair<std::shared_ptr<MemoryPipe>, std::shared_ptr<MemoryPipe>>> joined;  ///< All streams ever.

  std::size_t allow(std::size_t wanted) {
    if (step_max == 0 || wanted == 0) return wanted;
    return std::min<std::size_t>(wanted, 1 + rng.below(step_max));
  }
  /// Both ends of stream `index` (in order of connecting) see a reset.
  void cut(std::size_t index) { joined[index].first->reset = joined[index].second->reset = true; }
};

class MemoryStream final : public Stream {
 public:
  MemoryStream(MemorySwitch& network, std::shared_ptr<MemoryPipe> out, std::shared_ptr<MemoryPipe> in)
      : switch_(network), out_(std::move(out)), in_(std::move(in)) {}
  ~MemoryStream() override { close(true); }

  StreamState state() const override { return StreamState::kOpen; }
  Status status() const override { return Status(); }
  Moved send(std::span<const iovec> parts) override {
    if (out_->reset || out_->finished) return closed();
    std::size_t room = switch_.capacity - std::min(switch_.capacity, out_->bytes.size());
    if (switch_.step_max != 0 && switch_.rng.chance(0.2)) room = 0;
    Moved moved;
    for (const iovec& part : parts) {
      const std::size_t size = std::min(part.iov_len, room);
      const auto* from = static_cast<const std::byte*>(part.iov_base);
      out_->bytes.insert(out_->bytes.end(), from, from + size);
      if (switch_.recorded) out_->record.insert(out_->record.end(), from, from + size);
      moved.bytes += size;
      room -= size;
      if (switch_.step_max != 0) room = std::min(room, switch_.allow(room));
    }
    sent_ += moved.bytes;
    return moved;
  }
  std::uint64_t released() const override { return switch_.holds_references ? sent_ - out_->bytes.size() : sent_; }
  Moved receive(std::span<const iovec> parts) override {
    if (in_->reset) return closed();
    if (switch_.held.contains(in_->number)) return {};
    std::size_t left = switch_.allow(in_->bytes.size());
    if (left == 0) return in_->finished ? Moved{.bytes = 0, .closed = true, .status = Status()} : Moved{};
    Moved moved;
    for (const iovec& part : parts) {
      const std::size_t size = std::min(part.iov_len, left);
      std::copy_n(in_->bytes.begin(), size, static_cast<std::byte*>(part.iov_base));
      in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<std::ptrdiff_t>(size));
      moved.bytes += size;
      left -= size;
    }
    return moved;
  }
  /// As much of what is there as the switch allows.
  std::size_t place(Landing& where) {
    if (in_->reset || switch_.held.contains(in_->number)) return 0;
    const std::size_t most = switch_.allow(in_->bytes.size());
    const std::vector<std::byte> bytes(in_->bytes.begin(), in_->bytes.begin() + static_cast<std::ptrdiff_t>(most));
    const std::size_t placed = where.place(bytes);
    in_->bytes.erase(in_->bytes.begin(), in_->bytes.begin() + static_cast<std::ptrdiff_t>(placed));
    return placed;
  }
  void close(bool abort) override {
    if (closed_) return;
    closed_ = true;
    out_->finished = true;
    if (abort) out_->reset = in_->reset = true;
  }
  std::string describe() const override { return "memory"; }
  base::FarEnd far_end(std::string*) const override { return switch_.far_end; }

 private:
  static Moved closed() { return {.bytes = 0, .closed = true, .status = Status(Code::kDisconnected, "reset")}; }

  MemorySwitch& switch_;
  std::shared_ptr<MemoryPipe> out_, in_;
  std::uint64_t sent_ = 0;
  bool closed_ = false;
};

class MemoryNetwork final : public Network {
 public:
  MemoryNetwork(MemorySwitch& network, std::string address) : switch_(network), address_(std::move(address)) {
    switch_.listeners[address_] = this;
  }
  ~MemoryNetwork() override { stop_listening(); }
  bool streams_are_apart() const override { return switch_.are_apart; }

  Result<std::vector<std::string>> candidates(std::string_view address, bool) const override {
    std::vector<std::string> all;
    for (std::size_t comma = 0; comma != std::string_view::npos;) {
      comma = address.find(',');
      all.emplace_back(address.substr(0, comma));
      if (comma != std::string_view::npos) address.remove_prefix(comma + 1);
    }
    return all;
  }
  bool is_here(std::string_view) const override { return !switch_.is_elsewhere; }
  bool is_beside(const Stream&, std::string_view place) const override {
    return !switch_.is_elsewhere && !place.empty();
  }
  Result<std::unique_ptr<Stream>> connect(const std::string& candidate, const Known& = {}) override {
    const auto found = switch_.listeners.find(candidate);
    if (found == switch_.listeners.end()) {
      return Status(Code::kDisconnected, "nobody listens").with_scope(Scope::kPeer);
    }
    auto there = std::make_shared<MemoryPipe>();
    auto back = std::make_shared<MemoryPipe>();
    there->number = back->number = switch_.joined.size();
    switch_.joined.emplace_back(there, back);
    found->second->waiting_.push_back(add(std::make_unique<MemoryStream>(switch_, back, there), found->second));
    return add(std::make_unique<MemoryStream>(switch_, there, back), this);
  }
  std::unique_ptr<Stream> accept() override {
    if (waiting_.empty()) return nullptr;
    std::unique_ptr<Stream> stream = std::move(waiting_.front());
    waiting_.pop_front();
    return stream;
  }
  Result<base::Id128> cookie() override {
    const auto own = switch_.cookies.find(address_);
    return own == switch_.cookies.end() ? switch_.cookie : own->second;
  }
  void stop_listening() override { switch_.listeners.erase(address_); }
  /// Reports every stream every time: edges that come too often are allowed.
  std::size_t ready(std::span<Readiness> out, bool* acceptable) override {
    *acceptable = *acceptable || !waiting_.empty();
    std::size_t count = 0;
    for (std::size_t i = 0; i < streams_.size() && count < out.size(); ++i) {
      Stream* stream = streams_[next_++ % streams_.size()];  // Whom there was no room for comes first the next time.
      if (stream->owner == nullptr) continue;
      if (switch_.places) static_cast<Listed*>(stream)->place();
      out[count++] = {stream, true, true};
    }
    return count;
  }
  int wait_fd() const override { return -1; }
  bool arm() override { return true; }

 private:
  /// Tells its network when it goes.
  class Listed final : public Stream {
   public:
    Listed(std::unique_ptr<MemoryStream> inner, MemoryNetwork* home) : inner_(std::move(inner)), home_(home) {}
    ~Listed() override { std::erase(home_->streams_, this); }
    StreamState state() const override { return inner_->state(); }
    Status status() const override { return inner_->status(); }
    Moved send(std::span<const iovec> parts) override { return inner_->send(parts); }
    std::uint64_t released() const override { return inner_->released(); }
    Moved receive(std::span<const iovec> parts) override {
      const std::size_t placed = std::exchange(placed_, 0);
      Moved moved = placed > 0 ? Moved{} : inner_->receive(parts);
      moved.placed = placed;
      return moved;
    }
    void place() {
      if (landing != nullptr) placed_ += inner_->place(*landing);
    }
    void close(bool abort) override { inner_->close(abort); }
    std::string describe() const override { return inner_->describe(); }
    base::FarEnd far_end(std::string* why) const override {
      const auto own = home_->switch_.far_ends.find(home_->address_);
      return own == home_->switch_.far_ends.end() ? inner_->far_end(why) : own->second;
    }
    Cover cover() const override { return seal() == nullptr ? inner_->cover() : Cover::kTls; }
    std::span<const std::byte> binding() const override {
      return seal() ? bytes_of(seal()->binding) : inner_->binding();
    }
    std::span<const std::byte> peer_key() const override {
      return seal() ? bytes_of(seal()->peer_key) : inner_->peer_key();
    }

   private:
    const MemorySwitch::Seal* seal() const {
      const auto own = home_->switch_.seals.find(home_->address_);
      return own == home_->switch_.seals.end() ? nullptr : &own->second;
    }
    static std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

    std::unique_ptr<MemoryStream> inner_;
    MemoryNetwork* home_;
    std::size_t placed_ = 0;
  };
  static std::unique_ptr<Stream> add(std::unique_ptr<MemoryStream> stream, MemoryNetwork* home) {
    auto listed = std::make_unique<Listed>(std::move(stream), home);
    home->streams_.push_back(listed.get());
    return listed;
  }

  MemorySwitch& switch_;
  std::string address_;
  std::vector<Stream*> streams_;
  std::size_t next_ = 0;
  std::deque<std::unique_ptr<Stream>> waiting_;
};

}  // namespace hawser::backend::stream
