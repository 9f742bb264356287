#pragma once

// ServiceTable: the services of an agent, by their channels, and when they are due.
//
// Thread rule: confined to the lane. Lifetime: services outlive it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "agent/describe.h"
#include "agent/engine/channel_book.h"
#include "agent/service.h"
#include "wire/limits.h"
#include "wire/session.h"

namespace hawser::agent {

class ServiceTable {
 public:
  explicit ServiceTable(ChannelBook& channels) : channels_(channels) {}

  /// At most kServicesMax, each channel of one only. Sessions that are there already do not have its channels yet: see
  /// Engine::add_service.
  void add(Service& service);
  /// Null: the channel is none of a service.
  Service* of(std::uint32_t channel) const { return channel < by_channel_.size() ? by_channel_[channel] : nullptr; }
  std::span<Service* const> all() const { return std::span(places_).first(count_); }
  /// All places, for sessions, which outlive the coming of a service: null where there is none yet.
  std::span<Service* const> places() const { return places_; }

  /// False when one found no room: to be tried again after a pause. What lacks credit waits for the peer's word.
  bool pump(Session& session, std::size_t* work) const;
  void on_control(Session& session) const;
  /// The session is over.
  void end(Session& session, const Status& status) const;
  /// See Service::on_closing.
  void close(const Status& why, Instant now) const;

  /// Not after the earliest deadline of a service; exact after `expire`.
  Instant next_deadline() const { return earliest_; }
  /// That of some service may have come nearer.
  void note_deadline();
  /// Ends what is overdue. Returns how much.
  std::size_t expire(Instant now);
  /// See Service::prepare_sleep. `next_deadline` is exact afterwards.
  bool prepare_sleep();

  void describe(const Visitor& visitor) const;

 private:
  ChannelBook& channels_;
  std::array<Service*, kServicesMax> places_{};
  std::size_t count_ = 0;
  std::array<Service*, wire::kUserChannelMin> by_channel_{};
  Instant earliest_ = Instant::max();
};

}  // namespace hawser::agent
