#include "backend/verbs/devices/domain.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "backend/verbs/memory/registration_fake.h"

namespace hawser::backend::verbs {
namespace {

TEST(Domain, OpensTheNamedDeviceAndEndsInOrder) {
  auto fake = std::make_shared<MemoryFake>(std::initializer_list<std::string_view>{"mlx5_0", "rxe0"});
  {
    Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "rxe0");
    ASSERT_TRUE(domain) << domain.error().to_string();
    EXPECT_EQ((*domain)->name(), "rxe0");
    EXPECT_STREQ((*domain)->context()->device->name, "rxe0");
    EXPECT_EQ((*domain)->attributes().max_sge, 30);
    EXPECT_EQ(fake->lists, 0) << "the list is not kept";
    EXPECT_EQ(fake->alive(), 2);
  }
  EXPECT_EQ(fake->alive(), 0);
  EXPECT_EQ(fake->violations, 0);
}

TEST(Domain, UnknownDeviceNamesTheOnesThereAre) {
  auto fake = std::make_shared<MemoryFake>(std::initializer_list<std::string_view>{"mlx5_0", "rxe0"});
  const Status status = Domain::open(fake, "mlx5_7").error();
  EXPECT_EQ(status.code(), Code::kNotFound);
  EXPECT_EQ(status.message(), "no RDMA device is called \"mlx5_7\"; there are: mlx5_0, rxe0");
  auto none = std::make_shared<MemoryFake>(std::initializer_list<std::string_view>{});
  EXPECT_EQ(Domain::open(none, "rxe0").error().message(), "no RDMA device is called \"rxe0\"; there is none");
  EXPECT_EQ(fake->alive() + none->alive(), 0);
}

TEST(Domain, FailureOfEachCallLeaksNothing) {
  const int calls = fail_each_call<MemoryFake>([](const std::shared_ptr<MemoryFake>& fake) {
    const Result<std::shared_ptr<Domain>> domain = Domain::open(fake, "mock0");
    if (domain) return true;
    EXPECT_NE(domain.error().to_string().find("errno 5"), std::string::npos) << domain.error().to_string();
    return false;
  });
  EXPECT_EQ(calls, 4);
}

TEST(Domain, ErrorsSayHowToMendThem) {
  const auto fail = [](int call, int error) {
    auto fake = std::make_shared<MemoryFake>();
    fake->fail_call = call;
    fake->fail_errno = error;
    return Domain::open(fake, "mock0").error();
  };
  const Status no_module = fail(1, ENOSYS);
  EXPECT_EQ(no_module.code(), Code::kUnsupported);
  EXPECT_NE(no_module.advice().find("ib_uverbs"), std::string_view::npos);
  const Status denied = fail(2, EACCES);
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_EQ(denied.device(), "mock0");
  EXPECT_NE(denied.advice().find("/dev/infiniband"), std::string_view::npos);
  const Status memory = fail(4, ENOMEM);
  EXPECT_EQ(memory.code(), Code::kBusy);
  EXPECT_NE(memory.advice().find("ulimit -l"), std::string_view::npos);
}

TEST(Domain, TheCallerMayGiveItsOnlyReference) {
  static int freed = 0;
  class Counted final : public MemoryFake {
   public:
    ~Counted() override { EXPECT_EQ(alive(), 0); }
    void free_device_list(ibv_device** list) override {
      ++freed;
      MemoryFake::free_device_list(list);
    }
  };
  for (const int failing : {0, 2, 3, 4}) {
    auto fake = std::make_shared<Counted>();
    fake->fail_call = failing;
    EXPECT_EQ(Domain::open(std::move(fake), "mock0").has_value(), failing == 0);
  }
  EXPECT_EQ(freed, 4);
}

TEST(Domain, MemoryThatIsNotLetGoIsToldHoweverMuchElseIsKept) {
  auto domain = *Domain::open(std::make_shared<MemoryFake>(), "mock0");
  int error = EBUSY;
  const auto stuck = [&error] { return error; };
  for (int i = 0; i < 5000; ++i) domain->end(stuck);  // More than are kept.
  EXPECT_TRUE(domain->still_open(0, SIZE_MAX).ok()) << "none of these opens memory";
  domain->end(stuck, {0x1000, 0x100});
  EXPECT_NE(domain->still_open(0x1000, 1).to_string().find("errno 16"), std::string::npos);
  error = 0;
  domain->sweep();
  EXPECT_TRUE(domain->still_open(0x1000, 1).ok());
}

TEST(Domain, MemoryIsOpenWhereTheDeviceHoldsIt) {
  auto domain = *Domain::open(std::make_shared<MemoryFake>(), "mock0");
  int error = EBUSY;
  const auto stuck = [&error] { return error; };
  domain->end(stuck, {0x1000, 0x100});
  EXPECT_TRUE(domain->still_open(0xf00, 0x100).ok()) << "ends where it begins";
  EXPECT_FALSE(domain->still_open(0xf00, 0x101).ok());
  EXPECT_FALSE(domain->still_open(0x10ff, 1).ok());
  EXPECT_TRUE(domain->still_open(0x1100, 0x1000).ok()) << "begins where it ends";
  EXPECT_FALSE(domain->still_open(0, SIZE_MAX).ok());
  domain->end(stuck, Domain::Opened::all());
  EXPECT_FALSE(domain->still_open(0x1100, 1).ok()) << "a queue pair may touch anything";
  error = 0;
  domain->sweep();
  EXPECT_TRUE(domain->still_open(0, SIZE_MAX).ok());
}

TEST(Domain, VerbsThatCanDoNothingAreAnError) {
  class Nothing final : public Verbs {
    std::string describe() const override { return "nothing"; }
  };
  EXPECT_EQ(Domain::open(std::make_shared<Nothing>(), "rxe0").error().code(), Code::kUnsupported);
}

}  // namespace
}  // namespace hawser::backend::verbs
