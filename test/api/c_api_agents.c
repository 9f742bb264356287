/* Agents, errors, memory and peers. */

#include "c_api.h"

static void count_lines(void* context, int level, const char* line) {
  (void)level;
  if (line[0] != '\0') ++*(int*)context;
}

void test_general(void) {
  CHECK(hawser_c_abi() == HAWSER_C_ABI);
  CHECK(strchr(hawser_version(), '.') != NULL);
  CHECK(strcmp(hawser_code_name(HAWSER_OK), "ok") == 0);
  CHECK(strcmp(hawser_code_name(HAWSER_DISCONNECTED), "disconnected") == 0);
  CHECK(strcmp(hawser_code_name(-1), "unknown") == 0);
  CHECK(strcmp(hawser_code_name(11), "unknown") == 0);

  CHECK(hawser_last_error(NULL) == HAWSER_OK);
  hawser_error error = HAWSER_INIT(hawser_error);
  CHECK(hawser_last_error(&error) == HAWSER_OK);
  CHECK(strcmp(error.message, "") == 0);
  const hawser_agent none = {0};
  CHECK(hawser_agent_poll(none, NULL) == HAWSER_INVALID);
  CHECK(hawser_last_error(&error) == HAWSER_INVALID);
  CHECK(error.code == HAWSER_INVALID);
  CHECK(strcmp(error.message, "hawser_agent_poll: the agent handle is null") == 0);
  CHECK(strstr(error.text, error.message) != NULL);
  /* An older header's, shorter struct gets what it has room for. */
  hawser_error shorter = {.size = offsetof(hawser_error, message)};
  CHECK(hawser_last_error(&shorter) == HAWSER_INVALID);
  CHECK(shorter.size == offsetof(hawser_error, message));
  CHECK(shorter.text == error.text && shorter.message == NULL);

  hawser_buffer_free(NULL);
  hawser_buffer empty = {0};
  hawser_buffer_free(&empty);
  hawser_news_clear(NULL);
  hawser_news news = HAWSER_INIT(hawser_news);
  hawser_news_clear(&news);
}

static void test_wrong_options(const char* backend) {
  hawser_agent agent = {0};
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  REFUSED(hawser_agent_open(&options, NULL), HAWSER_INVALID, "out is null");
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "name");
  options.name = "wrong";
  options.flags = 1u << 20;
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "unknown bits");
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  options.setting_count = 1;
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "settings is null");
  hawser_param setting = {"deadline", "soon"};
  options.settings = &setting;
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "deadline");
  setting = (hawser_param){"no_such_option", "1"};
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "no_such_option");
  setting = (hawser_param){"deadline", NULL};
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "settings[0]");
  setting = (hawser_param){"backends", "no_such_backend"};
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_NOT_FOUND, "no_such_backend");
  setting = (hawser_param){"backends", backend};
  options.size = 3;
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_INVALID, "HAWSER_INIT");
  CHECK(agent.id == 0);

  /* A newer header's struct: good as long as what is new there is zero. */
  struct {
    hawser_agent_options known;
    uint64_t newer;
  } longer = {.known = options};
  longer.known.size = sizeof longer;
  MUST(hawser_agent_open(&longer.known, &agent));
  MUST(hawser_agent_release(agent));
  longer.newer = 7;
  REFUSED(hawser_agent_open(&longer.known, &agent), HAWSER_INVALID, "does not know");
}

/* Settings from a file; those of the call win. */
static void test_config_file(const char* backend) {
  char folder[256], path[300];
  make_scratch(folder, sizeof folder);
  snprintf(path, sizeof path, "%s/hawser.toml", folder);
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  hawser_agent agent = {0};
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  options.config_file = path;
  REFUSED(hawser_agent_open(&options, &agent), HAWSER_NOT_FOUND, path);
  FILE* file = fopen(path, "w");
  CHECK(file != NULL && fputs("name = \"from-file\"\nbackends = [\"loopback\"]\n", file) >= 0);
  if (file != NULL) fclose(file);
  MUST(hawser_agent_open(&options, &agent));
  hawser_buffer json;
  MUST(hawser_agent_counters(agent, &json));
  CHECK(strstr(json.data, "from-file") != NULL);
  hawser_buffer_free(&json);
  MUST(hawser_agent_require_backend(agent, "loopback"));
  MUST(hawser_agent_release(agent));
  const hawser_param setting = {"backends", backend};
  options.settings = &setting;
  options.setting_count = 1;
  MUST(hawser_agent_open(&options, &agent));
  REFUSED(hawser_agent_require_backend(agent, "loopback"), HAWSER_NOT_FOUND, "loopback");
  MUST(hawser_agent_release(agent));
  /* An older header's options end before the file's name. */
  options.size = offsetof(hawser_agent_options, config_file);
  options.name = "older";
  MUST(hawser_agent_open(&options, &agent));
  MUST(hawser_agent_release(agent));
  remove_scratch(folder);
}

void test_agents(const char* backend) {
  test_wrong_options(backend);
  test_config_file(backend);
  int lines = 0;
  char unknown[64];
  snprintf(unknown, sizeof unknown, "backend.%s.no_such_param", backend);
  const hawser_param settings[] = {{"backends", backend}, {"name", "from-settings"}, {unknown, "1"}};
  hawser_agent_options options = HAWSER_INIT(hawser_agent_options);
  options.flags = HAWSER_AGENT_NO_ENVIRONMENT;
  options.settings = settings;
  options.setting_count = 3;
  options.spin_ns = 1000;
  options.log = count_lines;
  options.log_context = &lines;
  hawser_agent agent;
  MUST(hawser_agent_open(&options, &agent));

  hawser_buffer json;
  MUST(hawser_agent_backends(agent, &json));
  CHECK(strstr(json.data, backend) != NULL && strlen(json.data) == json.size);
  CHECK(strstr(json.data, "\"open\":true") != NULL);
  hawser_buffer_free(&json);
  CHECK(json.data == NULL && json.size == 0);
  MUST(hawser_agent_counters(agent, &json));
  CHECK(strstr(json.data, "hawser.counters/1") != NULL && strstr(json.data, "from-settings") != NULL);
  hawser_buffer_free(&json);
  REFUSED(hawser_agent_counters(agent, NULL), HAWSER_INVALID, "null");

  MUST(hawser_agent_require_backend(agent, backend));
  REFUSED(hawser_agent_require_backend(agent, "loopback"), HAWSER_NOT_FOUND, "loopback");
  REFUSED(hawser_agent_require_backend(agent, NULL), HAWSER_INVALID, "name is null");
  const hawser_param wrong = {"no_such_param", NULL};
  REFUSED(hawser_agent_add_backend(agent, "loopback", &wrong, 1), HAWSER_INVALID, "params[0]");
  REFUSED(hawser_agent_add_backend(agent, NULL, NULL, 0), HAWSER_INVALID, "name is null");
  REFUSED(hawser_agent_add_backend(agent, "loopback", NULL, 1), HAWSER_INVALID, "params is null");
  MUST(hawser_agent_add_backend(agent, "loopback", NULL, 0));
  MUST(hawser_agent_require_backend(agent, "LoopBack"));

  hawser_peer self;
  hawser_peer_info info = HAWSER_INIT(hawser_peer_info);
  MUST(hawser_agent_self(agent, &self));
  MUST(hawser_peer_info_get(self, &info));
  CHECK(info.is_self && strcmp(info.name, "from-settings") == 0);
  MUST(hawser_peer_release(self));

  int happened = 7, fd = -1;
  MUST(hawser_agent_wait(agent, 0, &happened));
  CHECK(happened == 0 || happened == 1);
  MUST(hawser_agent_event_fd(agent, &fd));
  CHECK(fd >= 0);
  REFUSED(hawser_agent_event_fd(agent, NULL), HAWSER_INVALID, "fd is null");

  MUST(hawser_agent_close(agent, PATIENCE));
  hawser_region_options region = HAWSER_INIT(hawser_region_options);
  region.bytes = kBlock;
  hawser_region out;
  REFUSED(hawser_agent_allocate(agent, &region, &out), HAWSER_INVALID, "closed");
  MUST(hawser_agent_release(agent));
  CHECK(lines > 0); /* A warning of the unknown parameter. */
  REFUSED(hawser_agent_release(agent), HAWSER_INVALID, "was released");
  REFUSED(hawser_agent_card(agent, &json), HAWSER_INVALID, "was released");
}

static void test_tables(const Pair* pair) {
  hawser_table table = {0}, odd = {0};
  uint64_t count = 0;
  hawser_strided_range range = {0};
  MUST(hawser_region_blocks(pair->source, kBlock, &table));
  MUST(hawser_table_count(table, &count));
  CHECK(count == kRegionBytes / kBlock);
  MUST(hawser_table_at(table, 3, &range));
  CHECK(range.offset == 3 * kBlock && range.size == kBlock && range.count == 1);
  REFUSED(hawser_table_at(table, count, &range), HAWSER_INVALID, "index 256");
  REFUSED(hawser_table_count(table, NULL), HAWSER_INVALID, "count is null");
  MUST(hawser_table_release(table));

  const hawser_strided_range ranges[] = {{.offset = 0, .size = 64, .stride = 128, .count = 4},
                                         {.offset = 4096, .size = 8, .stride = 8, .count = 2}};
  MUST(hawser_region_table(pair->source, ranges, 2, &table));
  MUST(hawser_table_count(table, &count));
  CHECK(count == 6);
  MUST(hawser_table_at(table, 5, &range));
  CHECK(range.offset == 4104 && range.size == 8);
  const hawser_strided_range beyond = {.offset = kRegionBytes - 1, .size = 2, .stride = 0, .count = 1};
  REFUSED(hawser_region_table(pair->source, &beyond, 1, &odd), HAWSER_INVALID, "source");
  REFUSED(hawser_region_table(pair->source, NULL, 1, &odd), HAWSER_INVALID, "ranges is null");
  REFUSED(hawser_region_blocks(pair->source, 0, &odd), HAWSER_INVALID, "");
  CHECK(odd.id == 0);

  /* A table that is described by its owner and used by a peer. */
  hawser_table theirs, imported;
  hawser_buffer bytes;
  MUST(hawser_region_table(pair->target, ranges, 2, &theirs));
  MUST(hawser_table_encode(theirs, &bytes));
  MUST(hawser_peer_import_table(pair->to_b, bytes.data, bytes.size, &imported));
  MUST(hawser_table_count(imported, &count));
  CHECK(count == 6);
  REFUSED(hawser_peer_import_table(pair->to_b, "garbage", 7, &odd), HAWSER_CORRUPT, "");
  hawser_buffer_free(&bytes);
  MUST(hawser_table_release(theirs));
  MUST(hawser_table_release(imported));
  MUST(hawser_table_release(table));
}

void test_memory(const Pair* pair) {
  static char own[kBlock];
  hawser_region_options options = HAWSER_INIT(hawser_region_options);
  hawser_region region = {0};
  options.name = "own";
  options.base = own;
  options.bytes = sizeof own;
  options.rights = HAWSER_RIGHTS_READ;
  MUST(hawser_agent_add_region(pair->a, &options, &region));
  const hawser_region_info info = info_of(region);
  CHECK(info.base == own && info.bytes == sizeof own && info.rights == HAWSER_RIGHTS_READ);
  CHECK(info.device_kind == HAWSER_DEVICE_HOST && strcmp(info.name, "own") == 0);
  hawser_region other = {0};
  REFUSED(hawser_agent_add_region(pair->a, &options, &other), HAWSER_INVALID, "own");
  REFUSED(hawser_region_mappable(region), HAWSER_UNSUPPORTED, "adopt");
  MUST(hawser_region_close(region, PATIENCE));
  MUST(hawser_region_release(region));
  REFUSED(hawser_region_mappable(region), HAWSER_INVALID, "was released");
  REFUSED(hawser_region_release(region), HAWSER_INVALID, "was released");

  options.name = NULL;
  options.rights = 9;
  REFUSED(hawser_agent_add_region(pair->a, &options, &other), HAWSER_INVALID, "rights = 9");
  options.rights = HAWSER_RIGHTS_NONE;
  REFUSED(hawser_agent_allocate(pair->a, &options, &other), HAWSER_INVALID, "base is not null");
  options.base = NULL;
  REFUSED(hawser_agent_add_region(pair->a, &options, &other), HAWSER_INVALID, "base is null");
  options.huge_pages = 9;
  REFUSED(hawser_agent_allocate(pair->a, &options, &other), HAWSER_INVALID, "huge_pages = 9");
  options.huge_pages = HAWSER_HUGE_PAGES_OFF;
  REFUSED(hawser_agent_allocate(pair->a, NULL, &other), HAWSER_INVALID, "options is null");
  REFUSED(hawser_agent_add_region(pair->a, &options, NULL), HAWSER_INVALID, "out is null");
  CHECK(other.id == 0);
  MUST(hawser_agent_allocate(pair->a, &options, &other));
  CHECK(info_of(other).rights == HAWSER_RIGHTS_NONE && !info_of(other).huge_pages);
  MUST(hawser_region_mappable(other));
  MUST(hawser_region_release(other));
  test_tables(pair);
}

static void test_cards(const Pair* pair) {
  uint64_t before = 0, after = 0;
  hawser_buffer card;
  hawser_peer peer = {0};
  MUST(hawser_agent_card_revision(pair->b, &before));
  hawser_region_options options = HAWSER_INIT(hawser_region_options);
  options.name = "later";
  options.bytes = kBlock;
  hawser_region later;
  MUST(hawser_agent_allocate(pair->b, &options, &later));
  MUST(hawser_agent_card_revision(pair->b, &after));
  CHECK(after > before);
  hawser_buffer ticket = HAWSER_INIT(hawser_buffer);
  MUST(hawser_agent_ticket(pair->b, &ticket));
  CHECK(ticket.size == 64);
  hawser_buffer_free(&ticket);
  MUST(hawser_agent_card_delta(pair->b, before, &card));
  MUST(hawser_agent_add_peer(pair->a, card.data, card.size, &peer));
  hawser_buffer_free(&card);
  hawser_region_info info = HAWSER_INIT(hawser_region_info);
  MUST(hawser_peer_region(peer, "later", &info));
  CHECK(info.bytes == kBlock && info.base == NULL && info.rights == HAWSER_RIGHTS_READ_WRITE);
  CHECK(info.index == info_of(later).index && strcmp(info.name, "later") == 0);
  MUST(hawser_peer_release(peer));

  const uint32_t index = info.index;
  MUST(hawser_agent_partial_card(pair->b, &index, 1, &card));
  MUST(hawser_agent_add_peer(pair->a, card.data, card.size, &peer));
  MUST(hawser_peer_release(peer));
  hawser_buffer_free(&card);
  REFUSED(hawser_agent_partial_card(pair->b, NULL, 1, &card), HAWSER_INVALID, "regions is null");
  REFUSED(hawser_agent_add_peer(pair->a, NULL, 0, &peer), HAWSER_INVALID, "card is null");
  REFUSED(hawser_agent_add_peer(pair->a, "no card", 7, &peer), HAWSER_CORRUPT, "");
  MUST(hawser_region_close(later, PATIENCE));
  MUST(hawser_region_release(later));
}

void test_peers(const Pair* pair) {
  test_cards(pair);
  hawser_peer_info info = HAWSER_INIT(hawser_peer_info);
  MUST(hawser_peer_info_get(pair->to_b, &info));
  CHECK(strcmp(info.name, "b") == 0 && !info.is_self && info.state >= HAWSER_PEER_KNOWN);
  hawser_peer_info same = HAWSER_INIT(hawser_peer_info);
  hawser_peer again = know(pair->a, pair->b);
  MUST(hawser_peer_info_get(again, &same));
  CHECK(memcmp(info.incarnation, same.incarnation, sizeof info.incarnation) == 0);
  MUST(hawser_peer_release(again));
  info.size = 2;
  REFUSED(hawser_peer_info_get(pair->to_b, &info), HAWSER_INVALID, "hawser_peer_info.size is 2");
  REFUSED(hawser_peer_info_get(pair->to_b, NULL), HAWSER_INVALID, "null");

  hawser_buffer json;
  MUST(hawser_peer_regions(pair->to_b, &json));
  CHECK(strstr(json.data, "\"target\"") != NULL);
  hawser_buffer_free(&json);
  hawser_region_info region = HAWSER_INIT(hawser_region_info);
  REFUSED(hawser_peer_region(pair->to_b, "nothing", &region), HAWSER_NOT_FOUND, "target");
  REFUSED(hawser_peer_region(pair->to_b, NULL, &region), HAWSER_INVALID, "name is null");

  hawser_peer peers[4] = {{0}};
  size_t count = 0;
  MUST(hawser_agent_peers(pair->a, peers, 4, &count));
  CHECK(count == 1 && peers[0].id != 0 && peers[1].id == 0);
  MUST(hawser_peer_release(peers[0]));
  MUST(hawser_agent_peers(pair->a, NULL, 0, &count));
  CHECK(count == 1);
  REFUSED(hawser_agent_peers(pair->a, NULL, 1, &count), HAWSER_INVALID, "out is null");
  MUST(hawser_agent_find_peer(pair->a, "b", PATIENCE, &again));
  MUST(hawser_peer_release(again));
  REFUSED(hawser_agent_find_peer(pair->a, "nobody", 0, &again), HAWSER_NOT_FOUND, "nobody");
}
