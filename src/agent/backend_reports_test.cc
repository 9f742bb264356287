#include "agent/backend_reports.h"

#include <gtest/gtest.h>

namespace hawser::agent {
namespace {

BackendReport report_of(std::string name, bool is_open, std::string why = "") {
  BackendReport report;
  report.name = std::move(name);
  report.open = is_open;
  if (!is_open) report.cause = Status(Code::kFailed, std::move(why));
  return report;
}

TEST(BackendReports, KeepsTheOrderOfOpening) {
  BackendReports reports;
  reports.add(report_of("tcp", true));
  reports.add(report_of("verbs", false, "no device"));
  const std::vector<BackendReport> all = reports.all();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name, "tcp");
  EXPECT_EQ(all[1].name, "verbs");
  EXPECT_EQ(all[1].cause.message(), "no device");
}

TEST(BackendReports, TheLastFailureOfABackendIsTold) {
  BackendReports reports;
  reports.add(report_of("verbs", false, "no device"));
  reports.add(report_of("verbs", false, "no memory"));
  ASSERT_EQ(reports.all().size(), 1u);
  EXPECT_EQ(reports.all()[0].cause.message(), "no memory");
  reports.add(report_of("verbs", true));
  ASSERT_EQ(reports.all().size(), 1u);
  EXPECT_TRUE(reports.all()[0].open);
}

TEST(BackendReports, OneThatIsOpenKeepsItsReport) {
  BackendReports reports;
  reports.add(report_of("tcp", true));
  reports.add(report_of("tcp", false, "it is open already"));
  ASSERT_EQ(reports.all().size(), 1u);
  EXPECT_TRUE(reports.all()[0].open);
}

}  // namespace
}  // namespace hawser::agent
