#pragma once

// The conformance suite: what every backend must do, run over each Setting. To run it over a backend of your own:
//
//   #include "agent_suite.h"
//   INSTANTIATE_TEST_SUITE_P(Mine, hawser::conformance::Conformance, testing::ValuesIn(my_settings()),
//                            hawser::conformance::name_of);
//
// Thread rule: tests run one after the other on one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "../must.h"
#include "base/fd.h"
#include "environment.h"

namespace hawser::conformance {

using namespace std::chrono_literals;

/// The value, or an exception that fails the test with the error's text.
/// The status has this code, and its text names all of these.
testing::AssertionResult says(const Status& status, Code code, std::initializer_list<std::string_view> parts);

/// Bytes that tell where they belong.
void fill(std::span<std::byte> bytes, std::uint64_t seed);
/// Good when all bytes are as fill(seed) makes them, `from` bytes into its stream.
testing::AssertionResult holds(std::span<const std::byte> bytes, std::uint64_t seed, std::size_t from = 0);
testing::AssertionResult all_are(std::span<const std::byte> bytes, std::byte value);
/// How many bytes are so. For memory where late bytes may still be landing: a test may look, a program may not.
std::ptrdiff_t count_while_landing(std::span<const std::byte> bytes, std::byte value);
testing::AssertionResult same(std::span<const std::byte> bytes, std::span<const std::byte> expected);

/// A file of its own, mapped and shared; gone with the last of its users.
class MappedFile {
 public:
  explicit MappedFile(std::size_t size);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  int descriptor() const { return file_.get(); }
  std::span<std::byte> bytes() const { return bytes_; }

 private:
  base::Fd file_;
  std::span<std::byte> bytes_;
};

/// A text of which an agent opened with_places(name, count) takes that many, and what each takes up there.
inline const std::string kPlace(4936, 'p');
inline constexpr std::uint32_t kPlaceCost = 5000;

/// A region, and its memory where that is foreign.
struct Area {
  std::vector<std::byte> storage;
  std::shared_ptr<MappedFile> file;
  Region region;
  std::span<std::byte> bytes;

  LocalRange range(std::uint64_t offset, std::uint64_t size) const { return region.range(offset, size); }
  std::string name() const { return std::string(region.name()); }
};

/// Bytes of a transfer that submit leaves to a driver, where there is one. The first has the lane take its ring, once:
/// who measures memory has that happen before.
inline constexpr std::size_t kLeftToDriver = 128 * 1024;

class Conformance : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override;
  void TearDown() override;

  Environment& env() { return *env_; }
  bool self() const { return GetParam().self; }
  const std::string& backend() const { return GetParam().backend.name; }
  /// The one plug-in that this suite runs over.
  bool is_plugin() const { return backend() == "mailslot"; }

  /// Options as all tests use them, but for what a test is about.
  AgentOptions options(std::string name) const;
  /// So that its inbox takes that many notifications of kPlace from a peer.
  AgentOptions with_places(std::string name, std::uint32_t count) const;
  Agent* open(AgentOptions with) { return must(env().open(std::move(with))); }
  /// Opens `a` and `b`, once. Tests with other options do it themselves, before all else.
  void open_pair();
  void open_pair(AgentOptions for_a, AgentOptions for_b);
  Agent& a() { return *a_; }
  Agent& b() { return *b_; }
  Area add(Agent& agent, std::string name, std::size_t size, Rights rights = Rights::kReadWrite);
  /// Memory as the setting wants it, with nothing but its kind decided.
  Area add_foreign(Agent& agent, std::string name, std::size_t size, Rights rights = Rights::kReadWrite);
  /// Never a file: words, and what nobody may touch.
  Area add_memory(Agent& agent, std::string name, std::size_t size, Rights rights = Rights::kReadWrite);
  Area add_file(Agent& agent, std::string name, std::size_t size, Rights rights);

  /// What `from` knows of `to`, its newest card loaded.
  Peer know(Agent& from, Agent& to);
  Peer a_to_b() { return know(a(), b()); }
  Peer b_to_a() { return know(b(), a()); }
  /// The same, and waits until the session is up.
  Peer meet();

  /// Waits until the transfer is final and gives its outcome.
  Status finish(Transfer& transfer, Duration timeout = kPatience);
  Status run(const Plan& plan, const SubmitOptions& with = {});
  /// Submits again while the answer is kBusy.
  Transfer submit_soon(const Plan& plan, const SubmitOptions& with);
  Notification next_notification(Agent& agent);
  Message next_message(Agent& agent, std::uint32_t channel);
  void pass(int moments) {
    for (int i = 0; i < moments; ++i) env().pass();
  }
  void drop(Agent*& agent) {
    env().drop(agent);
    agent = nullptr;
  }

  Agent* a_ = nullptr;
  Agent* b_ = nullptr;

 private:
  std::unique_ptr<Environment> env_;
};

/// For tests of what only two agents can do to each other.
#define HAWSER_NEEDS_TWO_AGENTS() \
  if (self()) GTEST_SKIP() << "this backend leads to the agent itself only"
#define HAWSER_NEEDS_REAL_TIME() \
  if (GetParam().is_virtual) GTEST_SKIP() << "descriptors and threads do not fit virtual time"

inline std::string name_of(const testing::TestParamInfo<Setting>& info) { return info.param.name; }

}  // namespace hawser::conformance
