// Coroutines over transfers: read a value from a peer, then write it back changed, one after the other.

#include <chrono>
#include <cstdio>

#include <hawser/await.h>
#include <hawser/hawser.h>

using namespace std::chrono_literals;

namespace {

hawser::Task<hawser::Status> read_then_write(hawser::Plan read, hawser::Plan write, std::byte* value) {
  hawser::Result<hawser::Transfer> reading = read.submit();
  if (!reading) co_return reading.error();
  if (hawser::Status status = co_await hawser::finished(*reading); !status.ok()) co_return status;

  *value = static_cast<std::byte>(static_cast<unsigned>(*value) + 1);
  hawser::Result<hawser::Transfer> writing = write.submit({.notify = "bumped"});
  if (!writing) co_return writing.error();
  co_return co_await hawser::finished(*writing);
}

hawser::Status run(hawser::Agent& here, hawser::Agent& there) {
  hawser::Result<hawser::Region> mine = here.allocate({.name = "mine", .size = 4096});
  hawser::Result<hawser::Region> theirs = there.allocate({.name = "theirs", .size = 4096});
  if (!mine || !theirs) return mine ? theirs.error() : mine.error();
  theirs->bytes()[0] = std::byte{41};
  hawser::Result<std::string> card = there.card();
  if (!card) return card.error();
  hawser::Result<hawser::Peer> peer = here.add_peer(*card);
  if (!peer) return peer.error();

  const hawser::LocalRange local[] = {mine->range(0, 1)};
  const hawser::RemoteRange remote[] = {peer->range("theirs", 0, 1)};
  hawser::Result<hawser::Plan> read = here.plan_read(*peer, remote, local);
  hawser::Result<hawser::Plan> write = here.plan_write(*peer, local, remote);
  if (!read || !write) return read ? write.error() : read.error();

  hawser::AwaitLoop loop(here);
  hawser::Status ended = loop.run(read_then_write(*read, *write, mine->bytes().data()), 5s);
  if (!ended.ok()) return ended;
  std::printf("the peer's byte is %d\n", static_cast<int>(theirs->bytes()[0]));
  return {};
}

}  // namespace

int main() {
  hawser::Result<hawser::Agent> here = hawser::Agent::open({.name = "here"});
  hawser::Result<hawser::Agent> there = hawser::Agent::open({.name = "there"});
  hawser::Result<hawser::Driver> driver = hawser::Driver::start();
  if (!here || !there || !driver) return 1;
  hawser::Status status = driver->attach(*there);
  if (status.ok()) status = run(*here, *there);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.to_string().c_str());
  (void)driver->detach(*there);
  return status.ok() ? 0 : 1;
}
