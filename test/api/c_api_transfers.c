/* Plans, transfers, notifications, messages, signals, completion queues. */

#include "c_api.h"

enum { kCount = 64 };

typedef struct {
  hawser_table local, remote;
  uint32_t local_index[kCount], remote_index[kCount];
} Tables;

static Tables make_tables(const Pair* pair) {
  Tables tables;
  MUST(hawser_region_blocks(pair->source, kBlock, &tables.local));
  MUST(hawser_peer_blocks(pair->to_b, "target", kBlock, &tables.remote));
  for (uint32_t i = 0; i < kCount; ++i) {
    tables.local_index[i] = i;
    tables.remote_index[i] = (kCount - 1 - i) * 2;
  }
  return tables;
}

static void release_tables(const Tables* tables) {
  MUST(hawser_table_release(tables->local));
  MUST(hawser_table_release(tables->remote));
}

static hawser_plan plan_of(const Pair* pair, const Tables* tables, int operation) {
  hawser_plan plan;
  MUST(hawser_plan_tables(pair->a, operation, pair->to_b, tables->local, tables->local_index, tables->remote,
                          tables->remote_index, kCount, &plan));
  return plan;
}

static int moved(const Pair* pair, const Tables* tables) {
  for (size_t i = 0; i < kCount; ++i) {
    const char* local = pair->source_bytes + (size_t)tables->local_index[i] * kBlock;
    const char* remote = pair->target_bytes + (size_t)tables->remote_index[i] * kBlock;
    if (memcmp(local, remote, kBlock) != 0) return 0;
  }
  return 1;
}

static void run_plan(const Pair* pair, hawser_plan plan) {
  hawser_transfer transfer;
  MUST(hawser_plan_submit(plan, NULL, &transfer));
  MUST(finish(pair, transfer));
  hawser_transfer_info info = HAWSER_INIT(hawser_transfer_info);
  MUST(hawser_transfer_info_get(transfer, &info));
  CHECK(info.done && info.code == HAWSER_OK && info.bytes == (uint64_t)kCount * kBlock);
  MUST(hawser_transfer_wait(transfer, HAWSER_FOREVER));
  MUST(hawser_transfer_cancel(transfer)); /* Too late, so nothing. */
  MUST(hawser_transfer_wait(transfer, 0));
  MUST(hawser_transfer_release(transfer));
}

static void test_ranges(const Pair* pair) {
  hawser_region_info remote = HAWSER_INIT(hawser_region_info);
  MUST(hawser_peer_region(pair->to_b, "target", &remote));
  const hawser_local_range local[] = {{pair->source, 0, 100}, {pair->source, 1000, 50}};
  hawser_remote_range to[] = {{remote.index, 0, 7, 100}, {remote.index, 0, 2000, 50}};
  hawser_plan plan = {0};
  MUST(hawser_plan_ranges(pair->a, HAWSER_WRITE, pair->to_b, local, to, 2, &plan));
  fill(pair->source_bytes, 2000, 5);
  hawser_transfer transfer;
  MUST(hawser_plan_submit(plan, NULL, &transfer));
  MUST(finish(pair, transfer));
  CHECK(memcmp(pair->source_bytes, pair->target_bytes + 7, 100) == 0);
  CHECK(memcmp(pair->source_bytes + 1000, pair->target_bytes + 2000, 50) == 0);
  MUST(hawser_transfer_release(transfer));
  MUST(hawser_plan_release(plan));

  hawser_plan odd = {0};
  REFUSED(hawser_plan_ranges(pair->a, HAWSER_WRITE, pair->to_b, local, to, 0, &odd), HAWSER_INVALID, "");
  REFUSED(hawser_plan_ranges(pair->a, HAWSER_WRITE, pair->to_b, NULL, to, 1, &odd), HAWSER_INVALID, "local is null");
  to[1].region = 9999;
  REFUSED(hawser_plan_ranges(pair->a, HAWSER_WRITE, pair->to_b, local, to, 2, &odd), HAWSER_NOT_FOUND, "9999");
  to[1] = (hawser_remote_range){remote.index, 0, kRegionBytes - 1, 50};
  REFUSED(hawser_plan_ranges(pair->a, HAWSER_WRITE, pair->to_b, local, to, 2, &odd), HAWSER_INVALID, "1048575");
  CHECK(odd.id == 0);
}

void test_transfers(const Pair* pair) {
  const Tables tables = make_tables(pair);
  const hawser_plan write = plan_of(pair, &tables, HAWSER_WRITE);
  hawser_plan_info info = HAWSER_INIT(hawser_plan_info);
  MUST(hawser_plan_info_get(write, &info));
  CHECK(info.operation == HAWSER_WRITE && info.bytes == (uint64_t)kCount * kBlock && info.range_count == kCount);
  CHECK(info.piece_count >= 1 && info.piece_count <= kCount);
  for (unsigned round = 0; round < 3; ++round) {
    fill(pair->source_bytes, kRegionBytes, round);
    run_plan(pair, write);
    CHECK(moved(pair, &tables));
  }
  const hawser_plan read = plan_of(pair, &tables, HAWSER_READ);
  fill(pair->target_bytes, kRegionBytes, 77);
  run_plan(pair, read);
  CHECK(moved(pair, &tables));

  hawser_buffer text;
  MUST(hawser_agent_explain(pair->a, write, &text));
  CHECK(strstr(text.data, pair->backend) != NULL);
  hawser_buffer_free(&text);

  hawser_plan odd = {0};
  const uint32_t wrong[] = {1000};
  REFUSED(hawser_plan_tables(pair->a, HAWSER_WRITE, pair->to_b, tables.local, wrong, tables.remote, wrong, 1, &odd),
          HAWSER_INVALID, "1000");
  REFUSED(hawser_plan_tables(pair->a, 3, pair->to_b, tables.local, wrong, tables.remote, wrong, 1, &odd),
          HAWSER_INVALID, "operation = 3");
  REFUSED(hawser_plan_tables(pair->a, HAWSER_READ, pair->to_b, tables.local, NULL, tables.remote, wrong, 1, &odd),
          HAWSER_INVALID, "local_index is null");
  REFUSED(hawser_plan_tables(pair->a, HAWSER_READ, pair->to_b, tables.remote, wrong, tables.local, wrong, 1, &odd),
          HAWSER_INVALID, "table");
  REFUSED(hawser_plan_tables(pair->b, HAWSER_READ, pair->to_b, tables.local, tables.local_index, tables.remote,
                             tables.remote_index, 1, &odd),
          HAWSER_INVALID, "another agent");
  CHECK(odd.id == 0);
  MUST(hawser_plan_release(write));
  MUST(hawser_plan_release(read));
  release_tables(&tables);
  test_ranges(pair);
}

/* Two plans as one transfer. */
static void test_join(const Pair* pair, hawser_plan plan) {
  const hawser_plan both[2] = {plan, plan};
  hawser_plan joined;
  MUST(hawser_plan_join(both, 2, &joined));
  hawser_plan_info one = HAWSER_INIT(hawser_plan_info), two = HAWSER_INIT(hawser_plan_info);
  MUST(hawser_plan_info_get(plan, &one));
  MUST(hawser_plan_info_get(joined, &two));
  CHECK(two.bytes == 2 * one.bytes);
  CHECK(two.range_count == 2 * one.range_count);
  hawser_transfer transfer;
  MUST(hawser_plan_submit(joined, NULL, &transfer));
  MUST(finish(pair, transfer));
  hawser_transfer_info info = HAWSER_INIT(hawser_transfer_info);
  MUST(hawser_transfer_info_get(transfer, &info));
  CHECK(info.code == HAWSER_OK && info.bytes == two.bytes);
  MUST(hawser_transfer_release(transfer));
  MUST(hawser_plan_release(joined));
  REFUSED(hawser_plan_join(both, 0, &joined), HAWSER_INVALID, "no plans");
  REFUSED(hawser_plan_join(NULL, 1, &joined), HAWSER_INVALID, "plans is null");
  REFUSED(hawser_plan_join(both, 2, NULL), HAWSER_INVALID, "out is null");
}

static void wait_signal(const Pair* pair, const hawser_local_range* word, uint64_t at_least) {
  uint64_t value = 0;
  for (int i = 0; i < 1000000; ++i) {
    MUST(hawser_read_signal(pair->b, word, &value));
    if (value >= at_least) break;
    pass(pair);
  }
  CHECK(value == at_least);
  MUST(hawser_wait_signal(pair->b, word, at_least, PATIENCE));
  REFUSED(hawser_wait_signal(pair->b, word, at_least + 1, 0), HAWSER_TIMED_OUT, "the word is");
}

static void test_signals(const Pair* pair, hawser_plan plan) {
  hawser_region_info remote = HAWSER_INIT(hawser_region_info);
  MUST(hawser_peer_region(pair->to_b, "target", &remote));
  const hawser_local_range word = {pair->target, kRegionBytes - 8, 8};
  const hawser_remote_range bump = {remote.index, 0, kRegionBytes - 8, 8};
  const hawser_local_range gate = {pair->source, kRegionBytes - 16, 8};
  const hawser_local_range done = {pair->source, kRegionBytes - 8, 8};
  memset(pair->target_bytes + kRegionBytes - 8, 0, 8);
  memset(pair->source_bytes + kRegionBytes - 16, 0, 16);
  hawser_submit_options options = HAWSER_INIT(hawser_submit_options);
  options.signal = &bump;
  options.signal_add = 5;
  options.done = &done;
  options.done_value = 42;
  hawser_transfer transfer;
  MUST(hawser_plan_submit(plan, &options, &transfer));
  MUST(finish(pair, transfer));
  MUST(hawser_transfer_release(transfer));
  wait_signal(pair, &word, 5);
  uint64_t value = 0;
  MUST(hawser_read_signal(pair->a, &done, &value));
  CHECK(value == 42);

  /* Held back until the gate opens, which it does not before the deadline. */
  hawser_submit_options held = HAWSER_INIT(hawser_submit_options);
  held.after = &gate;
  held.after_value = 1;
  held.deadline_ns = SECOND / 20;
  MUST(hawser_plan_submit(plan, &held, &transfer));
  CHECK(finish(pair, transfer) == HAWSER_TIMED_OUT);
  MUST(hawser_transfer_release(transfer));
  held.deadline_ns = PATIENCE;
  MUST(hawser_plan_submit(plan, &held, &transfer));
  REFUSED(hawser_transfer_wait(transfer, 0), HAWSER_TIMED_OUT, "not final yet");
  MUST(hawser_transfer_cancel(transfer));
  CHECK(finish(pair, transfer) == HAWSER_CANCELLED);
  MUST(hawser_transfer_release(transfer));

  /* One that follows ends with the one that it follows. */
  held.deadline_ns = PATIENCE;
  hawser_transfer leader, follower;
  MUST(hawser_plan_submit(plan, &held, &leader));
  hawser_submit_options follows = HAWSER_INIT(hawser_submit_options);
  follows.after_transfer = leader;
  MUST(hawser_plan_submit(plan, &follows, &follower));
  REFUSED(hawser_transfer_wait(follower, 0), HAWSER_TIMED_OUT, "not final yet");
  MUST(hawser_transfer_cancel(leader));
  CHECK(finish(pair, follower) == HAWSER_CANCELLED);
  MUST(hawser_transfer_release(follower));
  MUST(hawser_transfer_release(leader));
  REFUSED(hawser_plan_submit(plan, &follows, &follower), HAWSER_INVALID, "was released");

  const hawser_local_range odd = {pair->source, 3, 8};
  REFUSED(hawser_read_signal(pair->a, &odd, &value), HAWSER_INVALID, "aligned");
  REFUSED(hawser_read_signal(pair->a, NULL, &value), HAWSER_INVALID, "word is null");
  REFUSED(hawser_read_signal(pair->a, &done, NULL), HAWSER_INVALID, "value is null");
}

void test_submit_options(const Pair* pair) {
  const Tables tables = make_tables(pair);
  const hawser_plan plan = plan_of(pair, &tables, HAWSER_WRITE);
  hawser_transfer transfer = {0};
  hawser_submit_options options = HAWSER_INIT(hawser_submit_options);
  options.priority = 9;
  REFUSED(hawser_plan_submit(plan, &options, &transfer), HAWSER_INVALID, "priority = 9");
  options.priority = HAWSER_PRIORITY_CRITICAL;
  options.notify_size = 3;
  REFUSED(hawser_plan_submit(plan, &options, &transfer), HAWSER_INVALID, "notify is null");
  options.notify_size = 0;
  options.deadline_ns = -1;
  REFUSED(hawser_plan_submit(plan, &options, &transfer), HAWSER_INVALID, "deadline_ns");
  options.deadline_ns = PATIENCE;
  options.queue.id = 12345;
  REFUSED(hawser_plan_submit(plan, &options, &transfer), HAWSER_INVALID, "queue handle");
  options.queue.id = 0;
  REFUSED(hawser_plan_submit(plan, &options, NULL), HAWSER_INVALID, "out is null");
  CHECK(transfer.id == 0);

  char text[] = "seven\0!";
  options.notify = text;
  options.notify_size = sizeof text;
  options.label = 3;
  MUST(hawser_plan_submit(plan, &options, &transfer));
  memset(text, 'x', sizeof text); /* It was copied. */
  MUST(finish(pair, transfer));
  hawser_news news = next_notification(pair, pair->b);
  CHECK(news.data.size == sizeof text && memcmp(news.data.data, "seven\0!", sizeof text) == 0);
  hawser_peer_info from = HAWSER_INIT(hawser_peer_info);
  MUST(hawser_peer_info_get(news.peer, &from));
  CHECK(strcmp(from.name, "a") == 0);
  CHECK(moved(pair, &tables));
  MUST(hawser_transfer_release(transfer));
  const hawser_peer sender = news.peer;
  hawser_news_clear(&news);
  CHECK(!news.present && news.data.data == NULL && news.size == sizeof news);
  REFUSED(hawser_peer_info_get(sender, &from), HAWSER_INVALID, "was released");

  /* An empty notification is one, too. */
  options.notify_size = 0;
  MUST(hawser_plan_submit(plan, &options, &transfer));
  MUST(finish(pair, transfer));
  news = next_notification(pair, pair->b);
  CHECK(news.data.size == 0 && news.data.data != NULL);
  hawser_news_clear(&news);
  MUST(hawser_transfer_release(transfer));
  test_signals(pair, plan);
  test_join(pair, plan);
  MUST(hawser_plan_release(plan));
  release_tables(&tables);
}

static hawser_news next_message(const Pair* pair, uint32_t channel) {
  hawser_news news = HAWSER_INIT(hawser_news);
  for (int i = 0; i < 1000000 && !news.present; ++i) {
    MUST(hawser_agent_take_message(pair->b, channel, &news));
    if (!news.present) pass(pair);
  }
  CHECK(news.present);
  return news;
}

void test_news(const Pair* pair) {
  if ((pair->flags & HAWSER_AGENT_POLLED) == 0) MUST(hawser_peer_connect(pair->to_b, PATIENCE));
  MUST(hawser_peer_notify(pair->to_b, "alone", 5));
  hawser_news news = next_notification(pair, pair->b);
  CHECK(news.data.size == 5 && strcmp(news.data.data, "alone") == 0);
  hawser_news_clear(&news);
  REFUSED(hawser_peer_notify(pair->to_b, NULL, 5), HAWSER_INVALID, "data is null");
  news.size = 4;
  REFUSED(hawser_agent_take_notification(pair->b, &news), HAWSER_INVALID, "hawser_news.size is 4");
  news.size = sizeof news;
  REFUSED(hawser_agent_take_notification(pair->b, NULL), HAWSER_INVALID, "null");

  const uint32_t channel = HAWSER_CHANNEL_MIN + 1;
  REFUSED(hawser_agent_open_channel(pair->b, 3, 0), HAWSER_INVALID, "channel 3");
  REFUSED(hawser_agent_open_channel_in_class(pair->b, channel, 0, 4), HAWSER_INVALID, "priority = 4");
  MUST(hawser_agent_open_channel(pair->b, channel, 0));
  MUST(hawser_agent_open_channel_in_class(pair->b, channel, 0, HAWSER_PRIORITY_REALTIME));
  REFUSED(hawser_agent_open_channel_in_class(pair->b, channel, 0, HAWSER_PRIORITY_BULK), HAWSER_INVALID, "class");
  for (int i = 0; i < 10; ++i) {
    char text[16];
    const int size = snprintf(text, sizeof text, "message %d", i);
    int code;
    /* The peer's news that it opened the channel may be on its way. */
    while ((code = hawser_peer_send(pair->to_b, channel, text, (size_t)size)) == HAWSER_BUSY) pass(pair);
    MUST(code);
    news = next_message(pair, channel);
    CHECK(news.channel == channel && strcmp(news.data.data, text) == 0);
    hawser_news_clear(&news);
  }
  /* Each has a number, and what the peer's agent has taken is acknowledged. */
  uint64_t number = 0;
  MUST(hawser_peer_send_numbered(pair->to_b, channel, "numbered", 8, 0, &number));
  CHECK(number == 11);
  news = next_message(pair, channel);
  hawser_news_clear(&news);
  uint64_t acknowledged = 0;
  for (int i = 0; i < 1000000 && acknowledged != number; ++i) {
    pass(pair);
    MUST(hawser_peer_acknowledged(pair->to_b, channel, &acknowledged));
  }
  CHECK(acknowledged == number);
  hawser_acknowledged all[2] = {{.channel = 0}, {.channel = 99}};
  size_t channels = 0;
  MUST(hawser_peer_acknowledged_all(pair->to_b, NULL, 0, &channels));
  CHECK(channels == 1);
  MUST(hawser_peer_acknowledged_all(pair->to_b, all, 2, &channels));
  CHECK(channels == 1 && all[0].channel == channel && all[0].number == number && all[1].channel == 99);
  MUST(hawser_peer_acknowledged(pair->to_b, channel + 1, &acknowledged));
  CHECK(acknowledged == 0);
  REFUSED(hawser_peer_send_numbered(pair->to_b, channel, "x", 1, 0, NULL), HAWSER_INVALID, "number is null");
  REFUSED(hawser_peer_acknowledged(pair->to_b, channel, NULL), HAWSER_INVALID, "number is null");
  REFUSED(hawser_peer_acknowledged_all(pair->to_b, NULL, 1, &channels), HAWSER_INVALID, "out is null");
  REFUSED(hawser_peer_acknowledged_all(pair->to_b, all, 2, NULL), HAWSER_INVALID, "count is null");
  static char large[HAWSER_MESSAGE_MAX + 1];
  REFUSED(hawser_peer_send(pair->to_b, channel, large, sizeof large), HAWSER_INVALID, "65537");
  REFUSED(hawser_peer_send_within(pair->to_b, channel, large, sizeof large, 0), HAWSER_INVALID, "65537");
  REFUSED(hawser_peer_send_within(pair->to_b, channel + 1, "x", 1, 1000000), HAWSER_BUSY, "has not opened channel");
  REFUSED(hawser_peer_send(pair->to_b, channel, NULL, 1), HAWSER_INVALID, "data is null");

  /* The peer came up, and somebody was told. */
  int ups = 0;
  for (;;) {
    MUST(hawser_agent_take_event(pair->a, &news));
    if (!news.present) break;
    CHECK(news.kind >= HAWSER_EVENT_UP && news.kind <= HAWSER_EVENT_CARD_CHANGED);
    ups += news.kind == HAWSER_EVENT_UP;
    CHECK(news.code == HAWSER_OK ? news.data.size == 0 : news.data.size > 0);
    hawser_news_clear(&news);
  }
  CHECK(ups == 1);
}

void test_queues(const Pair* pair) {
  const Tables tables = make_tables(pair);
  const hawser_plan plan = plan_of(pair, &tables, HAWSER_WRITE);
  hawser_queue queue;
  MUST(hawser_queue_open(pair->a, 8, &queue));
  int fd = -1;
  MUST(hawser_queue_event_fd(queue, &fd));
  CHECK(fd >= 0);
  size_t capacity = 0;
  MUST(hawser_queue_capacity(queue, &capacity));
  CHECK(capacity >= 8);
  REFUSED(hawser_queue_capacity(queue, NULL), HAWSER_INVALID, "capacity is null");
  hawser_submit_options options = HAWSER_INIT(hawser_submit_options);
  options.queue = queue;
  hawser_transfer transfers[4];
  for (uint64_t i = 0; i < 4; ++i) {
    options.cookie = 100 + i;
    MUST(hawser_plan_submit(plan, &options, &transfers[i]));
  }
  int seen[4] = {0};
  for (int rounds = 0; rounds < 1000000 && seen[0] + seen[1] + seen[2] + seen[3] < 4; ++rounds) {
    hawser_completion entries[3];
    size_t taken = 0;
    MUST(rounds % 2 == 0 ? hawser_queue_poll(queue, entries, sizeof entries[0], 3, &taken)
                         : hawser_queue_wait(queue, SECOND / 1000, entries, sizeof entries[0], 3, &taken));
    for (size_t i = 0; i < taken; ++i) {
      if (entries[i].kind != HAWSER_COMPLETION_TRANSFER) continue;
      CHECK(entries[i].code == HAWSER_OK && entries[i].bytes == (uint64_t)kCount * kBlock);
      CHECK(entries[i].cookie >= 100 && entries[i].cookie < 104);
      ++seen[entries[i].cookie % 4];
    }
    pass(pair);
  }
  for (int i = 0; i < 4; ++i) {
    CHECK(seen[i] == 1);
    MUST(hawser_transfer_wait(transfers[i], 0));
    MUST(hawser_transfer_release(transfers[i]));
  }
  size_t taken = 9;
  hawser_completion entry;
  REFUSED(hawser_queue_poll(queue, &entry, 4, 1, &taken), HAWSER_INVALID, "entry_size = 4");
  REFUSED(hawser_queue_poll(queue, NULL, sizeof entry, 1, &taken), HAWSER_INVALID, "out is null");
  REFUSED(hawser_queue_wait(queue, 0, &entry, sizeof entry, 1, NULL), HAWSER_INVALID, "taken is null");
  MUST(hawser_queue_release(queue));
  REFUSED(hawser_queue_poll(queue, &entry, sizeof entry, 1, &taken), HAWSER_INVALID, "was released");
  REFUSED(hawser_plan_submit(plan, &options, &transfers[0]), HAWSER_INVALID, "was released");
  MUST(hawser_plan_release(plan));
  release_tables(&tables);
}

/* What the word held before, once it ended well. */
static uint64_t found_by(const Pair* pair, hawser_atomic atomic) {
  while (hawser_atomic_wait(atomic, SECOND / 1000) == HAWSER_TIMED_OUT) pass(pair);
  MUST(hawser_atomic_wait(atomic, 0));
  hawser_atomic_info info = HAWSER_INIT(hawser_atomic_info);
  MUST(hawser_atomic_info_get(atomic, &info));
  CHECK(info.done && info.code == HAWSER_OK);
  MUST(hawser_atomic_cancel(atomic)); /* Too late, so nothing. */
  MUST(hawser_atomic_release(atomic));
  return info.found;
}

void test_atomics(const Pair* pair) {
  hawser_region_info target = HAWSER_INIT(hawser_region_info);
  MUST(hawser_peer_region(pair->to_b, "target", &target));
  hawser_remote_range word = {target.index, 0, 64, 8};
  const uint64_t start = 5;
  memcpy(pair->target_bytes + word.offset, &start, sizeof start);
  hawser_queue queue;
  MUST(hawser_queue_open(pair->a, 0, &queue));
  hawser_atomic_options options = HAWSER_INIT(hawser_atomic_options);
  options.deadline_ns = PATIENCE;
  options.queue = queue;
  options.cookie = 77;
  hawser_atomic atomic = {0};
  MUST(hawser_atomic_fetch_add(pair->a, pair->to_b, &word, 10, &options, &atomic));
  CHECK(found_by(pair, atomic) == 5);
  int reported = 0;
  for (size_t taken = 1; taken > 0;) {
    hawser_completion entry;
    MUST(hawser_queue_poll(queue, &entry, sizeof entry, 1, &taken));
    if (taken > 0 && entry.kind == HAWSER_COMPLETION_TRANSFER) {
      CHECK(entry.cookie == 77 && entry.code == HAWSER_OK && entry.bytes == 8);
      ++reported;
    }
  }
  CHECK(reported == 1);
  MUST(hawser_atomic_compare_swap(pair->a, pair->to_b, &word, 15, 20, NULL, &atomic));
  CHECK(found_by(pair, atomic) == 15);
  MUST(hawser_atomic_compare_swap(pair->a, pair->to_b, &word, 15, 99, NULL, &atomic));
  CHECK(found_by(pair, atomic) == 20);
  uint64_t now;
  memcpy(&now, pair->target_bytes + word.offset, sizeof now);
  CHECK(now == 20);

  REFUSED(hawser_atomic_wait(atomic, 0), HAWSER_INVALID, "was released");
  REFUSED(hawser_atomic_release((hawser_atomic){0}), HAWSER_INVALID, "is null");
  REFUSED(hawser_atomic_cancel((hawser_atomic){pair->a.id}), HAWSER_INVALID, "another kind");
  REFUSED(hawser_atomic_fetch_add(pair->a, pair->to_b, NULL, 1, NULL, &atomic), HAWSER_INVALID, "word is null");
  REFUSED(hawser_atomic_fetch_add(pair->a, pair->to_b, &word, 1, NULL, NULL), HAWSER_INVALID, "out is null");
  REFUSED(hawser_atomic_fetch_add(pair->b, pair->to_b, &word, 1, NULL, &atomic), HAWSER_INVALID, "no peer of");
  options.deadline_ns = -1;
  REFUSED(hawser_atomic_fetch_add(pair->a, pair->to_b, &word, 1, &options, &atomic), HAWSER_INVALID, "negative");
  word.offset = 4;
  REFUSED(hawser_atomic_fetch_add(pair->a, pair->to_b, &word, 1, NULL, &atomic), HAWSER_INVALID, "aligned to 8");
  word.offset = target.bytes;
  REFUSED(hawser_atomic_compare_swap(pair->a, pair->to_b, &word, 0, 1, NULL, &atomic), HAWSER_INVALID, "aligned to 8");
  word.region = 999;
  REFUSED(hawser_atomic_fetch_add(pair->a, pair->to_b, &word, 1, NULL, &atomic), HAWSER_NOT_FOUND, "999");
  MUST(hawser_queue_release(queue));
}

/* Handles of another kind are told apart; a peer that is forgotten takes its plans with it. */
void test_wrong_use(const Pair* pair) {
  hawser_buffer card;
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  REFUSED(hawser_agent_card((hawser_agent){pair->source.id}, &card), HAWSER_INVALID, "another kind");
  REFUSED(hawser_region_info_get((hawser_region){pair->a.id}, &info), HAWSER_INVALID, "another kind");
  REFUSED(hawser_transfer_wait((hawser_transfer){UINT64_MAX}, 0), HAWSER_INVALID, "another kind");
  REFUSED(hawser_transfer_cancel((hawser_transfer){0}), HAWSER_INVALID, "is null");
  REFUSED(hawser_transfer_release((hawser_transfer){0}), HAWSER_INVALID, "is null");
  REFUSED(hawser_plan_release((hawser_plan){1}), HAWSER_INVALID, "another kind");
  REFUSED(hawser_plan_release((hawser_plan){(uint64_t)5 << 24}), HAWSER_INVALID, "never given out");

  const Tables tables = make_tables(pair);
  const hawser_plan plan = plan_of(pair, &tables, HAWSER_WRITE);
  size_t ended = 9;
  REFUSED(hawser_agent_end_label(pair->a, 0, &ended), HAWSER_INVALID, "label 0");
  MUST(hawser_agent_end_label(pair->a, 77, &ended));
  CHECK(ended == 0);
  MUST(hawser_agent_end_label(pair->a, 77, NULL));
  REFUSED(hawser_agent_invalidate(pair->b, pair->to_b), HAWSER_INVALID, "another agent");
  MUST(hawser_agent_invalidate(pair->a, pair->to_b));
  hawser_transfer transfer = {0};
  REFUSED(hawser_plan_submit(plan, NULL, &transfer), HAWSER_DISCONNECTED, "b");
  hawser_error error = HAWSER_INIT(hawser_error);
  CHECK(hawser_last_error(&error) == HAWSER_DISCONNECTED);
  CHECK(error.scope == HAWSER_SCOPE_PEER && strcmp(error.peer, "b") == 0);
  MUST(hawser_plan_release(plan));
  release_tables(&tables);
}
