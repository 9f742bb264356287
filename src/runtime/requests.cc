#include "runtime/requests.h"

namespace hawser::runtime {

void Requests::refuse(Operation& operation, const Status& why) {
  operation.status = why;
  operation.self.reset();
  operation.final.store(true, std::memory_order_release);
}

Request Requests::request(std::shared_ptr<Operation> operation, const Status& refused) const {
  if (!refused.ok()) refuse(*operation, refused);
  return site_.handle(std::move(operation));
}

agent::inner::Need Requests::end_unbegun(Operation& operation, const Status& why) const {
  refuse(operation, why);
  site_.seat->mailbox->note_end();
  return agent::inner::Need::kNothing;
}

}  // namespace hawser::runtime
