#include "backend/verbs/devices/device_search.h"

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace hawser::backend::verbs {
namespace {

constexpr proto::BackoffOptions kLookPauses = {.first = std::chrono::milliseconds(200),
                                               .longest = std::chrono::seconds(10)};
/// Between two looks whether the job is done.
constexpr Duration kJobPause = std::chrono::milliseconds(20);

}  // namespace

std::shared_ptr<void> by_thread(std::function<void()> job) {
  try {
    return std::make_shared<std::jthread>(std::move(job));
  } catch (const std::system_error&) {
    return nullptr;  // No more threads to be had now.
  }
}

DeviceSearch::DeviceSearch(Reopening how, std::shared_ptr<Regions> regions, std::uint32_t queue_depth, base::Rng rng)
    : how_(std::move(how)), regions_(std::move(regions)), queue_depth_(queue_depth), rng_(rng) {}

bool DeviceSearch::misses(std::uint32_t device) const {
  return std::ranges::any_of(missing_, [device](const Missing& each) { return each.device == device; });
}

void DeviceSearch::miss(std::uint32_t device, std::string name, std::vector<std::uint8_t> ports, Instant now) {
  if (!how_.open || misses(device)) return;
  Missing missing{.device = device,
                  .name = std::move(name),
                  .ports = std::move(ports),
                  .backoff = proto::Backoff(kLookPauses, Instant::max()),
                  .next = {}};
  missing.next = missing.backoff.next(now, rng_).value_or(now);
  next_look_ = std::min(next_look_, missing.next);
  missing_.push_back(std::move(missing));
}

void DeviceSearch::forget(std::uint32_t device) {
  std::erase_if(missing_, [device](const Missing& each) { return each.device == device; });
}

void DeviceSearch::begin(Missing& missing) {
  auto job = std::make_shared<Job>();
  job->found.device = missing.device;
  // The job may be over before `aside` returns, and it outlives no regions: its end is waited for.
  job->running = how_.aside([open = how_.open, regions = regions_, depth = queue_depth_, to = job.get(),
                             name = missing.name, ports = missing.ports] {
    Found& found = to->found;
    Result<std::vector<std::shared_ptr<Nic>>> nics = open(name, ports);
    bool is_open = nics.has_value();
    for (std::size_t i = 0; is_open && i < nics->size(); ++i) {
      Result<std::unique_ptr<CqPool>> queues = CqPool::open((*nics)[i]->domain, depth);
      is_open = queues.has_value();
      if (queues) found.queues.push_back(*std::move(queues));
    }
    if (is_open) {
      found.nics = *std::move(nics);
      found.unregistered = regions->add_nics(found.nics);
    } else {
      found.queues.clear();
    }
    to->is_open = is_open;
    to->is_done.store(true, std::memory_order_release);
  });
  if (job->running != nullptr || job->is_done) job_ = std::move(job);
}

std::optional<DeviceSearch::Found> DeviceSearch::look(Instant now) {
  if (now < next_look_) return std::nullopt;
  std::optional<Found> found;
  if (job_ != nullptr && job_->is_done.load(std::memory_order_acquire)) {
    const std::shared_ptr<Job> over = std::exchange(job_, nullptr);
    over->running.reset();
    if (over->is_open) {
      forget(over->found.device);
      found = std::move(over->found);
    }
  }
  next_look_ = job_ != nullptr ? now + kJobPause : Instant::max();
  for (Missing& each : missing_) {
    if (job_ == nullptr && now >= each.next) {
      each.next = each.backoff.next(now, rng_).value_or(Instant::max());
      begin(each);
      next_look_ = now + kJobPause;
    }
    next_look_ = std::min(next_look_, job_ != nullptr ? now + kJobPause : each.next);
  }
  return found;
}

}  // namespace hawser::backend::verbs
