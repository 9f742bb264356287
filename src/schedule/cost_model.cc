#include "schedule/cost_model.h"

#include <string>

#include "base/format.h"
#include "base/try.h"

namespace hawser::schedule {

Status check_cost(const CostField& field, double value) {
  if (value > 0 && value <= field.most) return {};  // False for what is no number, too.
  return Status(Code::kInvalid,
                base::format("{} = {} is not a number above 0 and at most {}", field.name, value, field.most));
}

Status check_costs(const CostModel& model) {
  for (const CostField& field : kCostFields) HAWSER_TRY(check_cost(field, model.*field.value));
  return {};
}

}  // namespace hawser::schedule
