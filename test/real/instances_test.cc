// Over which ways the tests between processes run.

#include "real_test.h"

namespace hawser::real {

INSTANTIATE_TEST_SUITE_P(Real, RealTest, testing::ValuesIn(ways()), name_of);

}  // namespace hawser::real
