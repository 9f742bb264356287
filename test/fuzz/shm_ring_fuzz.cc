// A ring of shm whose other end writes what it likes: the consumer stays within its buffers, the producer does not
// overtake the tail it saw. The input is first the lines, then tails that appear while the producer writes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "backend/shm/ring.h"
#include "base/check.h"

namespace shm = hawser::backend::shm;

namespace {

constexpr std::size_t kLines = 16;

struct Memory {
  shm::RingLine<shm::Atomics> lines[kLines];
  shm::RingSide<shm::Atomics> mine;
  shm::RingSide<shm::Atomics> theirs;
  shm::RingLines<shm::Atomics> view() { return {lines, kLines}; }
};

void consume(Memory& memory) {
  shm::RingConsumer<shm::Atomics> consumer(memory.view(), &memory.mine, &memory.theirs);
  for (std::size_t i = 0; i < 4 * kLines; ++i) {
    shm::Record record;
    if (consumer.next(&record) != shm::Got::kRecord) break;
    HAWSER_ASSERT(record.size <= shm::ring::record_max(kLines), "a record is larger than any may be");
    std::vector<std::byte> bytes(record.size);
    consumer.take(record, bytes.data());
    if (i % 3 == 0) consumer.give_back();
  }
}

void produce(Memory& memory, const std::uint8_t* data, std::size_t size) {
  shm::RingProducer<shm::Atomics> producer(memory.view(), &memory.mine, &memory.theirs);
  for (; size >= 2; data += 2, size -= 2) {
    memory.theirs.tail.store(data[0] < 250 ? data[0] : UINT64_MAX - data[0]);
    const std::vector<std::byte> bytes(data[1] % (producer.record_max() + 1));
    if (producer.put(shm::RecordKind::kMessage, bytes, {}) == shm::Put::kCorrupt) return;
    HAWSER_ASSERT(producer.used_lines() <= kLines, "the producer overran the ring");
    producer.must_ring();
    std::size_t lines = 0;
    producer.each_unread([&](const shm::Record& record, std::uint64_t position) {
      HAWSER_ASSERT(record.size <= producer.record_max() && ++lines <= kLines, "more is shown than there is");
      std::vector<std::byte> whole(record.size);
      producer.read(record, position, whole.data());
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto memory = std::make_unique<Memory>();
  const std::size_t words = std::min(size / 8, kLines * shm::kLineWords);
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, data + i * 8, 8);
    memory->lines[i / shm::kLineWords].words[i % shm::kLineWords].store(word);
  }
  consume(*memory);
  produce(*memory, data + words * 8, size - words * 8);
  return 0;
}
