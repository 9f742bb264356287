#include "proto/link_set.h"

#include "base/planted.h"

namespace hawser::proto {

Status LinkSet::on_received(const Numbers& received) {
  for (std::size_t each = 0; each < wire::kClasses; ++each) {
    if (Status fault = out_[each].on_ack(received[each]); !fault.ok()) return fault;
  }
  return {};
}

Status LinkSet::replay_from(const Numbers& received) {
  const std::size_t count = wire::kClasses - (base::planted(base::Planted::kClassForgotten) ? 1 : 0);
  for (std::size_t each = 0; each < count; ++each) {
    if (Status fault = out_[each].replay_from(received[each]); !fault.ok()) return fault;
  }
  return {};
}

}  // namespace hawser::proto
