// Two agents of one process: a store lends one slot of its memory to a worker by a grant that travels in a message. The
// worker fills the slot by one transfer, and the grant ends with it. The store's card never tells of the memory.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <optional>
#include <span>
#include <string>

#include <hawser/hawser.h>

using namespace std::chrono_literals;

namespace {

constexpr std::uint32_t kLoans = 16;  // The channel on which grants travel.
constexpr std::size_t kSlot = 4096;

template <typename T>
T must(hawser::Result<T> result) {
  if (!result) hawser::abort_on(result.error());
  return *std::move(result);
}

void must(const hawser::Status& status) {
  if (!status.ok()) hawser::abort_on(status);
}

hawser::Message next_message(hawser::Agent& agent) {
  for (;;) {
    if (std::optional<hawser::Message> message = agent.take_message(kLoans)) return *std::move(message);
    agent.wait(100ms);
  }
}

/// The worker knows nothing of the store's memory but what the grant says.
void fill(hawser::Agent& worker, const hawser::Message& loan) {
  const hawser::GrantedRegion slot = must(worker.import_grant(loan.bytes));
  hawser::Region page = must(worker.allocate({.size = slot.size(), .listed = false}));
  std::memset(page.bytes().data(), 'x', page.size());
  const hawser::Plan plan = must(worker.plan_write(loan.peer, {{page.range(0, page.size())}}, {{slot.whole()}}));
  hawser::Transfer sent = must(plan.submit({.notify = "filled"}));
  must(sent.wait(5s));
  hawser::Result<hawser::Transfer> again = plan.submit();
  const hawser::Status refused = again ? again->wait(5s) : again.error();
  std::printf("once more: %s\n", refused.to_string().c_str());
}

}  // namespace

int main() {
  hawser::Driver driver = must(hawser::Driver::start());
  hawser::Agent store = must(hawser::Agent::open({.name = "store", .driven = true}));
  hawser::Agent worker = must(hawser::Agent::open({.name = "worker", .driven = true}));
  must(driver.attach(store));
  must(driver.attach(worker));
  must(worker.open_channel(kLoans));
  must(must(worker.add_peer(must(store.card()))).connect(5s));
  const hawser::Peer borrower = must(store.add_peer(must(worker.card())));

  hawser::Region slots = must(store.allocate({.name = "slots", .size = 16 * kSlot, .listed = false}));
  const hawser::Grant loan =
      must(slots.grant(3 * kSlot, kSlot, hawser::Rights::kWrite, 5s, {.peer = borrower, .single_use = true}));
  must(borrower.send(kLoans, std::as_bytes(std::span(loan.bytes())), 5s));
  fill(worker, next_message(worker));

  while (!loan.ended()) store.wait(10ms);
  const std::byte* const slot = slots.bytes().data() + 3 * kSlot;
  std::printf("the slot holds '%c'; a grant of %zu bytes lent it\n", static_cast<char>(slot[0]), loan.bytes().size());
  must(worker.close(5s));
  must(store.close(5s));
  return slot[kSlot - 1] == std::byte{'x'} && slot[kSlot] == std::byte{0} ? 0 : 1;
}
