#include "schedule/cost_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace hawser::schedule {
namespace {

TEST(CostModel, TheBuiltInOneIsGood) { EXPECT_TRUE(check_costs(CostModel()).ok()); }

TEST(CostModel, EachValueIsAboveZeroAndAtMostItsLargest) {
  for (const CostField& field : kCostFields) {
    CostModel model;
    model.*field.value = field.most;
    EXPECT_TRUE(check_costs(model).ok()) << field.name;
    model.*field.value = std::numeric_limits<double>::min();
    EXPECT_TRUE(check_costs(model).ok()) << field.name;
    const double bad[] = {std::nextafter(field.most, 2 * field.most), 0, -0.0, -1, std::nan(""), HUGE_VAL, -HUGE_VAL};
    for (const double value : bad) {
      model.*field.value = value;
      const Status status = check_costs(model);
      EXPECT_EQ(status.code(), Code::kInvalid) << field.name << " = " << value;
      EXPECT_TRUE(std::string(status.message()).starts_with(field.name)) << status.to_string();
    }
  }
}

TEST(CostModel, BetweenHostsRanksShareTheLink) {
  const CostModel far = CostModel{.far_message_ns = 7, .far_byte_ns = 2}.between_hosts(3);
  EXPECT_EQ(far.message_ns, 7);
  EXPECT_EQ(far.byte_ns, 6);
}

}  // namespace
}  // namespace hawser::schedule
