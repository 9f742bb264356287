// What a device tells of itself: ports that go down or change their addresses, failures. Events are the device's, and
// it has several ports, so each says whom it concerns.

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backend/verbs/port.h"
#include "base/fd.h"
#include "base/format.h"

namespace hawser::backend::verbs {
namespace {

/// A turn asks for asynchronous events only so often: it is a system call, and after a sleep they are asked for anyway.
constexpr Duration kAsyncEvery = std::chrono::milliseconds(5);

}  // namespace

std::size_t VerbsPort::poll_async(Instant now) {
  async_at_ = now + kAsyncEvery;
  std::size_t count = 0;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane]->device != lane) continue;
    Domain& domain = *lanes_[lane]->nic->domain;
    domain.sweep();
    ibv_async_event event;
    int error = 0;
    while ((error = domain.verbs().get_async_event(domain.context(), &event)) == 0) {
      on_async(lane, event, now);
      domain.verbs().ack_async_event(&event);
      ++count;
    }
    on_no_async(lane, error, now);
  }
  return count;
}

void VerbsPort::on_async(std::uint32_t device, const ibv_async_event& event, Instant now) {
  switch (event.event_type) {
    case IBV_EVENT_DEVICE_FATAL:
      return on_device_fault(device, Code::kDisconnected, "the device failed", now);
    case IBV_EVENT_CQ_ERR:
      for (std::uint32_t lane = device; lane < lanes_.size(); ++lane) {
        if (lanes_[lane]->device != device || !lanes_[lane]->queues->mark_broken(event.element.cq)) continue;
        report_fault(lane, Code::kDisconnected, "a completion queue failed", now);
      }
      return;
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_GID_CHANGE:
      for (std::uint32_t lane = device; lane < lanes_.size(); ++lane) {
        const bool concerned =
            lanes_[lane]->device == device && lanes_[lane]->nic->port.number == event.element.port_num;
        if (concerned) on_port_event(lane, event.event_type, now);
      }
      return;
    default:
      return;  // A queue pair's own error comes with its completions, or with the peer's word.
  }
}

void VerbsPort::on_port_event(std::uint32_t lane, ibv_event_type type, Instant now) {
  if (type == IBV_EVENT_PORT_ERR) return report_fault(lane, Code::kDisconnected, "the port went down", now);
  refresh_address(lane, now);
  // Its packets were routed by the old one, whichever that was.
  if (type == IBV_EVENT_LID_CHANGE) report_fault(lane, Code::kDisconnected, "the port's LID changed", now);
}

/// Queue pairs that are at an address which is there no more are made anew, at one that is; peers hear of the new ones.
void VerbsPort::refresh_address(std::uint32_t lane, Instant now) {
  Nic& nic = *lanes_[lane]->nic;
  const Result<bool> changed = nic.refresh_address();
  if (!changed) {
    HAWSER_LOG(context_.log, kWarn, "verbs: {}: its addresses cannot be read: {}", nic.describe(),
               changed.error().to_string());
    return;
  }
  if (!*changed) return;
  HAWSER_LOG(context_.log, kInfo, "verbs: {}: its addresses changed", nic.describe());
  const Status why = Status(Code::kDisconnected, base::format("{}: the port's GID changed", nic.describe()))
                         .with_scope(Scope::kPath)
                         .with_device(nic.device.name);
  bool any = false;
  for (const auto& path : paths_) any = path->on_address_change(lane, why, now) || any;
  if (any) ++lanes_[lane]->faults;
}

void VerbsPort::report_fault(std::uint32_t lane, Code code, std::string_view what, Instant now) {
  const Nic& nic = *lanes_[lane]->nic;
  const Status why =
      Status(code, base::format("{}: {}", nic.describe(), what)).with_scope(Scope::kPath).with_device(nic.device.name);
  HAWSER_LOG(context_.log, kWarn, "verbs: {}", why.to_string());
  on_lane_fault(lane, why, now);
}

void VerbsPort::on_device_fault(std::uint32_t device, Code code, std::string_view what, Instant now) {
  for (std::uint32_t lane = device; lane < lanes_.size(); ++lane) {
    if (lanes_[lane]->device == device) report_fault(lane, code, what, now);
  }
}

/// A device whose events cannot be read may have lost a port unnoticed: its queue pairs must prove themselves anew.
void VerbsPort::on_no_async(std::uint32_t device, int error, Instant now) {
  const bool deaf = error != EAGAIN && error != EINTR;
  if (!deaf) search_.forget(device);
  if (deaf == lanes_[device]->is_deaf) return;
  lanes_[device]->is_deaf = deaf;
  // So the kernel answers once it has taken the device away.
  lanes_[device]->nic->domain->mark_removed(error == EIO);
  if (!deaf) return;
  const Status why = base::errno_status(Code::kDisconnected, "its events cannot be read", error);
  on_device_fault(device, why.code(), why.message(), now);
  miss_device(device, now);
}

void VerbsPort::miss_device(std::uint32_t device, Instant now) {
  std::vector<std::uint8_t> ports;
  for (const auto& lane : lanes_) {
    if (lane->device == device && !lane->is_gone) ports.push_back(lane->nic->port.number);
  }
  if (ports.empty()) return;  // Another one has its place.
  const std::string& name = lanes_[device]->nic->device.name;
  if (lanes_.size() + ports.size() > wire::kPortsMax) {
    HAWSER_LOG(context_.log, kWarn, "verbs: {} came back too often to be used once more by this agent", name);
    return;
  }
  search_.miss(device, name, std::move(ports), now);
}

std::size_t VerbsPort::look_for_devices(Instant now) {
  std::size_t count = 0;
  while (std::optional<DeviceSearch::Found> found = search_.look(now)) {
    const std::string name = found->nics.front()->describe();
    const Status taken = take_back(*found);
    HAWSER_LOG(context_.log, kWarn, "verbs: {} is there again{}{}", name, taken.ok() ? "" : ": ",
               taken.ok() ? "" : taken.to_string());
    ++count;
  }
  return count;
}

/// Behind all others, with keys of their own: peers that know the old ones only do without. Paths that are there keep
/// to the ports that they agreed on.
Status VerbsPort::take_back(DeviceSearch::Found& found) {
  for (const auto& lane : lanes_) lane->is_gone = lane->is_gone || lane->device == found.device;
  Status first = std::move(found.unregistered);
  for (std::size_t i = 0; i < found.nics.size(); ++i) {
    parts_.nics.push_back(found.nics[i]);
    if (Status added = add_lane(found.nics[i], std::move(found.queues[i])); first.ok()) first = std::move(added);
  }
  events_.regions_changed();
  return first;
}

}  // namespace hawser::backend::verbs
