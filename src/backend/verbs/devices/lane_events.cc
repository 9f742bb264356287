#include "backend/verbs/devices/lane_events.h"

#include <cerrno>
#include <string>

#include "base/fd.h"
#include "base/format.h"

namespace hawser::backend::verbs {

std::size_t LaneEvents::poll(Instant now) {
  next_poll_ = now + kPollEvery;
  std::size_t count = 0;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane]->device != lane) continue;
    Domain& domain = *lanes_[lane]->nic->domain;
    domain.sweep();
    ibv_async_event event;
    int error = 0;
    while ((error = domain.verbs().get_async_event(domain.context(), &event)) == 0) {
      on_event(lane, event, now);
      domain.verbs().ack_async_event(&event);
      ++count;
    }
    on_no_event(lane, error, now);
  }
  return count;
}

void LaneEvents::on_event(std::uint32_t device, const ibv_async_event& event, Instant now) {
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

void LaneEvents::on_port_event(std::uint32_t lane, ibv_event_type type, Instant now) {
  if (type == IBV_EVENT_PORT_ERR) return report_fault(lane, Code::kDisconnected, "the port went down", now);
  refresh_address(lane, now);
  // Its packets were routed by the old one, whichever that was.
  if (type == IBV_EVENT_LID_CHANGE) report_fault(lane, Code::kDisconnected, "the port's LID changed", now);
}

/// Queue pairs that are at an address which is there no more are made anew, at one that is; peers hear of the new ones.
void LaneEvents::refresh_address(std::uint32_t lane, Instant now) {
  Nic& nic = *lanes_[lane]->nic;
  const Result<bool> changed = nic.refresh_address();
  if (!changed) {
    HAWSER_LOG(log_, kWarn, "verbs: {}: its addresses cannot be read: {}", nic.describe(), changed.error().to_string());
    return;
  }
  if (!*changed) return;
  HAWSER_LOG(log_, kInfo, "verbs: {}: its addresses changed", nic.describe());
  const Status why = Status(Code::kDisconnected, base::format("{}: the port's GID changed", nic.describe()))
                         .with_scope(Scope::kPath)
                         .with_device(nic.device.name);
  if (user_.on_address_change(lane, why, now)) ++lanes_[lane]->faults;
}

void LaneEvents::report_fault(std::uint32_t lane, Code code, std::string_view what, Instant now) {
  const Nic& nic = *lanes_[lane]->nic;
  const Status why =
      Status(code, base::format("{}: {}", nic.describe(), what)).with_scope(Scope::kPath).with_device(nic.device.name);
  HAWSER_LOG(log_, kWarn, "verbs: {}", why.to_string());
  user_.on_lane_fault(lane, why, now);
}

void LaneEvents::on_device_fault(std::uint32_t device, Code code, std::string_view what, Instant now) {
  for (std::uint32_t lane = device; lane < lanes_.size(); ++lane) {
    if (lanes_[lane]->device == device) report_fault(lane, code, what, now);
  }
}

/// A device whose events cannot be read may have lost a port unnoticed: its queue pairs must prove themselves anew.
void LaneEvents::on_no_event(std::uint32_t device, int error, Instant now) {
  const bool deaf = error != EAGAIN && error != EINTR;
  if (!deaf) user_.on_heard(device);
  if (deaf == lanes_[device]->is_deaf) return;
  lanes_[device]->is_deaf = deaf;
  // So the kernel answers once it has taken the device away.
  lanes_[device]->nic->domain->mark_removed(error == EIO);
  if (!deaf) return;
  const Status why = base::errno_status(Code::kDisconnected, "its events cannot be read", error);
  on_device_fault(device, why.code(), why.message(), now);
  user_.on_deaf(device, now);
}

}  // namespace hawser::backend::verbs
