#include "agent_suite.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace hawser::conformance {
namespace {

/// Byte `at` of the stream of `seed`; any two streams differ in almost all of their bytes.
std::byte byte_of(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t x = (at / 8 + 1) * 0x9e3779b97f4a7c15U + seed * 0xbf58476d1ce4e5b9U;
  x ^= x >> 31;
  x *= 0x94d049bb133111ebU;
  x ^= x >> 29;
  return static_cast<std::byte>(x >> (at % 8 * 8));
}

}  // namespace

testing::AssertionResult says(const Status& status, Code code, std::initializer_list<std::string_view> parts) {
  const std::string text = status.to_string();
  if (status.code() != code || status.ok()) {
    return testing::AssertionFailure() << "wanted " << to_string(code) << ", got: " << text;
  }
  for (const std::string_view part : parts) {
    if (text.find(part) == std::string::npos) {
      return testing::AssertionFailure() << "does not name \"" << part << "\": " << text;
    }
  }
  return testing::AssertionSuccess();
}

void fill(std::span<std::byte> bytes, std::uint64_t seed) {
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = byte_of(seed, i);
}

testing::AssertionResult holds(std::span<const std::byte> bytes, std::uint64_t seed, std::size_t from) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] == byte_of(seed, from + i)) continue;
    return testing::AssertionFailure() << "byte " << i << " of " << bytes.size()
                                       << " is wrong: " << static_cast<int>(bytes[i]);
  }
  return testing::AssertionSuccess();
}

testing::AssertionResult all_are(std::span<const std::byte> bytes, std::byte value) {
  const auto wrong = std::ranges::find_if(bytes, [&](std::byte byte) { return byte != value; });
  if (wrong == bytes.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << wrong - bytes.begin() << " of " << bytes.size() << " is "
                                     << static_cast<int>(*wrong) << ", not " << static_cast<int>(value);
}

__attribute__((no_sanitize("thread"))) std::ptrdiff_t count_while_landing(std::span<const std::byte> bytes,
                                                                          std::byte value) {
  std::ptrdiff_t count = 0;
  const volatile std::byte* const at = bytes.data();
  for (std::size_t i = 0; i < bytes.size(); ++i) count += at[i] == value ? 1 : 0;
  return count;
}

testing::AssertionResult same(std::span<const std::byte> bytes, std::span<const std::byte> expected) {
  if (bytes.size() != expected.size()) return testing::AssertionFailure() << "sizes differ";
  const auto [wrong, _] = std::ranges::mismatch(bytes, expected);
  if (wrong == bytes.end()) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "byte " << wrong - bytes.begin() << " of " << bytes.size() << " differs";
}

void Conformance::SetUp() {
  const std::string full = testing::UnitTest::GetInstance()->current_test_info()->name();
  const std::string test = full.substr(0, full.find('/'));
  if (const auto found = GetParam().skips.find(test); found != GetParam().skips.end()) GTEST_SKIP() << found->second;
  Result<std::unique_ptr<Environment>> made = GetParam().make();
  if (!made) GTEST_SKIP() << made.error().to_string();
  env_ = std::move(*made);
}

void Conformance::TearDown() {
  a_ = b_ = nullptr;
  env_.reset();
}

AgentOptions Conformance::options(std::string name) const {
  AgentOptions result;
  result.name = std::move(name);
  result.default_deadline = kPatience;
  result.heartbeat = 500ms;  // Debug builds on busy machines are slow; tests of heartbeats set their own.
  return result;
}

AgentOptions Conformance::with_places(std::string name, std::uint32_t count) const {
  AgentOptions small = options(std::move(name));
  small.limits.notification_bytes = count * kPlaceCost;
  return small;
}

void Conformance::open_pair() { open_pair(options("a"), options("b")); }

void Conformance::open_pair(AgentOptions for_a, AgentOptions for_b) {
  if (self()) {
    // One agent plays both: what `b` was to be given matters, for tests give it to the receiving side.
    for_b.name = for_a.name;
    a_ = b_ = open(std::move(for_b));
    return;
  }
  a_ = open(std::move(for_a));
  b_ = open(std::move(for_b));
}

Area Conformance::add(Agent& agent, std::string name, std::size_t size, Rights rights) {
  if (GetParam().files && &agent == b_) return add_file(agent, std::move(name), size, rights);
  return add_memory(agent, std::move(name), size, rights);
}

Area Conformance::add_memory(Agent& agent, std::string name, std::size_t size, Rights rights) {
  if (!GetParam().allocated) return add_foreign(agent, std::move(name), size, rights);
  Area area;
  area.region = must(agent.allocate({.name = std::move(name), .size = size, .rights = rights}));
  area.bytes = area.region.bytes();
  return area;
}

Area Conformance::add_foreign(Agent& agent, std::string name, std::size_t size, Rights rights) {
  Area area;
  area.storage.resize(size);
  area.bytes = area.storage;
  area.region = must(agent.add_region({.name = std::move(name), .bytes = area.bytes, .device = {}, .rights = rights}));
  return area;
}

Area Conformance::add_file(Agent& agent, std::string name, std::size_t size, Rights rights) {
  Area area;
  area.file = std::make_shared<MappedFile>(size);
  area.bytes = area.file->bytes();
  area.region = must(
      agent.add_file({.name = std::move(name), .descriptor = area.file->descriptor(), .size = size, .rights = rights}));
  return area;
}

MappedFile::MappedFile(std::size_t size) : file_(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)) {
  if (!file_ || ::ftruncate(file_.get(), static_cast<off_t>(size)) != 0) {
    throw std::system_error(errno, std::generic_category(), "making a file in /tmp");
  }
  void* const base = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (base == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mapping a file");
  bytes_ = {static_cast<std::byte*>(base), size};
}

MappedFile::~MappedFile() { ::munmap(bytes_.data(), bytes_.size()); }

Peer Conformance::know(Agent& from, Agent& to) {
  if (&from == &to) return from.self();
  return must(from.add_peer(must(to.card())));
}

Peer Conformance::meet() {
  if (!self()) (void)know(b(), a());
  const Peer peer = know(a(), b());
  Status connected;
  env().blocking(a(), [&] { connected = peer.connect(kPatience); });
  must(connected);
  return peer;
}

Status Conformance::finish(Transfer& transfer, Duration timeout) {
  if (!env().eventually([&] { return transfer.done(); }, timeout)) {
    return Status(Code::kTimedOut, "the test lost its patience: the transfer is not final");
  }
  return transfer.status();
}

Status Conformance::run(const Plan& plan, const SubmitOptions& with) {
  Result<Transfer> sent = plan.submit(with);
  return sent ? finish(*sent) : sent.error();
}

Transfer Conformance::submit_soon(const Plan& plan, const SubmitOptions& with) {
  Result<Transfer> sent = plan.submit(with);
  env().eventually([&] {
    if (!sent && sent.error().code() == Code::kBusy) sent = plan.submit(with);
    return sent || sent.error().code() != Code::kBusy;
  });
  return must(std::move(sent));
}

Notification Conformance::next_notification(Agent& agent) {
  std::optional<Notification> got;
  if (!env().eventually([&] { return (got = agent.take_notification()).has_value(); })) {
    throw std::runtime_error("no notification came");
  }
  return *got;
}

Message Conformance::next_message(Agent& agent, std::uint32_t channel) {
  std::optional<Message> got;
  if (!env().eventually([&] { return (got = agent.take_message(channel)).has_value(); })) {
    throw std::runtime_error("no message came");
  }
  return *got;
}

}  // namespace hawser::conformance
