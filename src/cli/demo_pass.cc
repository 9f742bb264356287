#include "cli/demo_pass.h"

#include <fmt/format.h>

#include <array>

#include "base/try.h"

namespace hawser::cli {
namespace {
constexpr Duration kPassSlice = std::chrono::milliseconds(10);  // between two questions whether the child lives
}

Result<PassTimes> Prefill::Pass::run(const std::function<Status(std::uint32_t)>& alive) {
  const Clock& clock = Clock::steady();
  first_ = clock.now();
  const Instant deadline = first_ + side_.setup_.timeout;
  Instant look = first_ + kPassSlice;
  while (true) {
    HAWSER_TRY(turn());
    if (flights_.empty() && next_job_ == side_.jobs_.size()) break;
    side_.agent_.wait(kPassSlice);
    const Instant now = clock.now();
    if (now < look) continue;
    look = now + kPassSlice;
    HAWSER_TRY(alive(acknowledged_));
    if (now > deadline) {
      return Status(Code::kTimedOut,
                    fmt::format("pass {}: {} of {} requests were acknowledged within {} s", number_, acknowledged_,
                                side_.jobs_.size(), side_.setup_.timeout.count() / 1000000000))
          .with_advice("raise --timeout, or see `hawser doctor`");
    }
  }
  times_.wall_ns = (last_ - first_).count();
  return times_;
}

Status Prefill::Pass::turn() {
  while (flights_.size() < concurrency_ && next_job_ < side_.jobs_.size()) {
    const Job& job = side_.jobs_[next_job_++];
    Flight& flight = flights_[job.request.id];
    flight.job = &job;
    flight.started = Clock::steady().now();
    HAWSER_TRY(submit_more(job.request.id, flight));
  }
  HAWSER_TRY(take_completions());
  for (auto& [id, flight] : flights_) HAWSER_TRY(submit_more(id, flight));
  return take_acks();
}

Status Prefill::Pass::submit_more(std::uint32_t id, Flight& flight) {
  const std::uint32_t layers = side_.setup_.shape.layers;
  while (flight.submitted < layers) {
    // The last one waits for all others: its notification must not arrive before their bytes.
    if (flight.submitted + 1 == layers && flight.done < flight.submitted) break;
    HAWSER_TRY_ASSIGN(const bool submitted, submit_layer(id, flight));
    if (!submitted) break;
  }
  return Status();
}

Result<bool> Prefill::Pass::submit_layer(std::uint32_t id, Flight& flight) {
  const Job& job = *flight.job;
  const std::uint32_t layer = flight.submitted;
  HAWSER_TRY_ASSIGN(const Plan plan, side_.agent_.plan_write(side_.peer_, side_.source_[layer], job.source_index,
                                                             side_.target_[layer], job.target_index));
  SubmitOptions options{.notify = std::nullopt, .deadline = side_.setup_.timeout, .queue = &side_.queue_, .cookie = id};
  std::string record;
  if (layer + 1 == side_.setup_.shape.layers) {
    record = encode(Record{number_, id, job.target, job.layer_sums});
    options.notify = record;
  }
  if (!side_.first_plan_) side_.first_plan_ = plan;
  count_submit(Clock::steady().now());
  Result<Transfer> transfer = plan.submit(options);
  if (!transfer) {
    count_done(Clock::steady().now());
    if (transfer.error().code() == Code::kBusy) return false;
    return transfer.error();
  }
  times_.bytes += plan.bytes();
  flight.transfers.push_back(*std::move(transfer));
  ++flight.submitted;
  return true;
}

Status Prefill::Pass::take_completions() {
  std::array<Completion, 64> entries;
  while (const std::size_t n = side_.queue_.poll(entries)) {
    for (std::size_t i = 0; i < n; ++i) {
      const Completion& entry = entries[i];
      if (entry.kind != CompletionKind::kTransfer) continue;
      count_done(Clock::steady().now());
      const auto flight = flights_.find(static_cast<std::uint32_t>(entry.cookie));
      if (flight == flights_.end()) continue;
      if (!entry.status.ok()) {
        return Status(entry.status.code(), fmt::format("request {} did not move", entry.cookie)).because(entry.status);
      }
      ++flight->second.done;
      finish(flight);
    }
  }
  return Status();
}

Status Prefill::Pass::take_acks() {
  while (const auto notification = side_.agent_.take_notification()) {
    const auto ack = decode_ack(notification->text);
    const auto flight = ack ? flights_.find(ack->request) : flights_.end();
    if (flight == flights_.end() || ack->pass != number_) {
      return Status(Code::kCorrupt, fmt::format("an unexpected notification of {} bytes from {}",
                                                notification->text.size(), notification->peer.name()));
    }
    last_ = Clock::steady().now();
    times_.latency_ns.push_back(static_cast<std::uint64_t>((last_ - flight->second.started).count()));
    ++acknowledged_;
    flight->second.acknowledged = true;
    finish(flight);
  }
  return Status();
}

// The acknowledgement may be here before the completion; dropping the transfer then would cancel it.
void Prefill::Pass::finish(std::map<std::uint32_t, Flight>::iterator flight) {
  if (flight->second.acknowledged && flight->second.done == side_.setup_.shape.layers) flights_.erase(flight);
}

void Prefill::Pass::count_submit(Instant now) {
  if (under_way_++ == 0) moving_since_ = now;
}

void Prefill::Pass::count_done(Instant now) {
  if (--under_way_ == 0) times_.moving_ns += (now - moving_since_).count();
}

}  // namespace hawser::cli
