#include "runtime/requests.h"

#include "runtime/calls.h"

namespace hawser::runtime {

void Requests::refuse(Operation& operation, const Status& why) {
  operation.status = why;
  operation.self.reset();
  operation.final.store(true, std::memory_order_release);
}

void Requests::refuse_all(const std::vector<std::shared_ptr<Operation>>& operations, const Status& why) {
  for (const std::shared_ptr<Operation>& each : operations) {
    if (!each->final.load(std::memory_order_relaxed)) refuse(*each, why);
  }
}

Request Requests::request(std::shared_ptr<Operation> operation, const Status& refused) const {
  if (!refused.ok()) refuse(*operation, refused);
  return site_.handle(std::move(operation));
}

Status Requests::in_lane(std::string_view what, const std::function<void(Instant now)>& call) const {
  if (!runs_inline_for(site_.seat)) return agent::inner::under_lane(site_.seat->agent, what, call);
  call(agent::inner::now(site_.seat->agent));
  return {};
}

agent::inner::Need Requests::end_unbegun(Operation& operation, const Status& why) const {
  refuse(operation, why);
  site_.seat->mailbox->note_end();
  return agent::inner::Need::kNothing;
}

}  // namespace hawser::runtime
