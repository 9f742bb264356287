/* Files as regions: by path and by descriptor, moved there and back, durable, and used wrongly. */

#define _POSIX_C_SOURCE 200809L /* mkdtemp, opendir, unlinkat */

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "c_api.h"

enum { kOffset = 4096 + 7, kBytes = 3 * kBlock + 1 };

typedef struct {
  char folder[256], path[300];
  hawser_peer self;
  hawser_region region;
  hawser_region_info info;
} Spill;

void make_scratch(char* folder, size_t size) {
  const char* base = getenv("TMPDIR");
  snprintf(folder, size, "%s/hawser-c-XXXXXX", base == NULL ? "/tmp" : base);
  if (mkdtemp(folder) == NULL) {
    perror(folder);
    exit(1);
  }
}

void remove_scratch(const char* folder) {
  DIR* files = opendir(folder);
  CHECK(files != NULL);
  if (files == NULL) return;
  for (struct dirent* file = readdir(files); file != NULL; file = readdir(files)) {
    if (file->d_name[0] != '.' || file->d_name[1] != '\0') (void)unlinkat(dirfd(files), file->d_name, 0);
  }
  closedir(files);
  CHECK(rmdir(folder) == 0);
}

static hawser_file_options file_options(const char* path, uint32_t flags) {
  hawser_file_options options = HAWSER_INIT(hawser_file_options);
  options.path = path;
  options.flags = flags;
  return options;
}

static hawser_file_info query(const char* path) {
  hawser_file_info info = HAWSER_INIT(hawser_file_info);
  MUST(hawser_query_file(path, &info));
  return info;
}

static void test_wrong_files(const Pair* pair, const char* path) {
  hawser_region region = {0};
  hawser_file_options options = file_options(path, 0);
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_NOT_FOUND, path);
  REFUSED(hawser_agent_add_file(pair->a, NULL, &region), HAWSER_INVALID, "options is null");
  REFUSED(hawser_agent_add_file(pair->a, &options, NULL), HAWSER_INVALID, "out is null");
  REFUSED(hawser_agent_add_file((hawser_agent){0}, &options, &region), HAWSER_INVALID, "is null");
  options.flags = HAWSER_FILE_DESCRIPTOR;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "either a path or");
  options.path = NULL;
  options.flags = 0;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "either a path or");
  options.flags = HAWSER_FILE_DESCRIPTOR;
  options.descriptor = -1;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "negative");
  options.descriptor = 1 << 20;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "1048576");
  options.flags = HAWSER_FILE_DESCRIPTOR | HAWSER_FILE_CREATE;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "with a path only");
  options = file_options(path, 1u << 9);
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "unknown bits");
  options = file_options(path, HAWSER_FILE_CREATE);
  options.direct = 9;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "direct = 9");
  options.direct = HAWSER_DIRECT_OFF;
  options.rights = HAWSER_RIGHTS_NONE;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "right");
  options.size = 8;
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "hawser_file_options.size is 8");
  CHECK(region.id == 0 && !query(path).exists);

  hawser_file_info info = HAWSER_INIT(hawser_file_info);
  REFUSED(hawser_query_file(NULL, &info), HAWSER_INVALID, "path is null");
  REFUSED(hawser_query_file("", &info), HAWSER_INVALID, "empty");
  REFUSED(hawser_query_file(path, NULL), HAWSER_INVALID, "null");
  REFUSED(hawser_query_descriptor(-1, &info), HAWSER_INVALID, "descriptor -1");
}

/* Moves `size` bytes between the region `source` of a, at `local`, and the file, at `offset`. */
static int move(const Pair* pair, const Spill* spill, int operation, uint64_t local, uint64_t offset, uint64_t size,
                const hawser_submit_options* options) {
  const hawser_local_range here = {pair->source, local, size};
  const hawser_remote_range there = {spill->info.index, 0, offset, size};
  hawser_plan plan;
  hawser_transfer transfer;
  MUST(hawser_plan_ranges(pair->a, operation, spill->self, &here, &there, 1, &plan));
  MUST(hawser_plan_submit(plan, options, &transfer));
  const int outcome = finish(pair, transfer);
  MUST(hawser_transfer_release(transfer));
  MUST(hawser_plan_release(plan));
  return outcome;
}

static void test_there_and_back(const Pair* pair, const Spill* spill) {
  fill(pair->source_bytes, kRegionBytes, 21);
  hawser_submit_options options = HAWSER_INIT(hawser_submit_options);
  options.durable = 1;
  options.notify = "on the device";
  options.notify_size = 13;
  MUST(move(pair, spill, HAWSER_WRITE, 0, kOffset, kBytes, &options));
  hawser_news news = next_notification(pair, pair->a);
  CHECK(strcmp(news.data.data, "on the device") == 0);
  hawser_news_clear(&news);
  /* An older header's options, which end before `durable`. */
  options.size = offsetof(hawser_submit_options, durable);
  MUST(move(pair, spill, HAWSER_READ, 1 << 19, kOffset, kBytes, &options));
  news = next_notification(pair, pair->a);
  hawser_news_clear(&news);
  CHECK(memcmp(pair->source_bytes, pair->source_bytes + (1 << 19), kBytes) == 0);

  char bytes[64];
  FILE* file = fopen(spill->path, "rb");
  CHECK(file != NULL && fseek(file, kOffset, SEEK_SET) == 0 && fread(bytes, sizeof bytes, 1, file) == 1);
  CHECK(memcmp(bytes, pair->source_bytes, sizeof bytes) == 0);
  if (file != NULL) fclose(file);
  const hawser_file_info info = query(spill->path);
  CHECK(info.exists && info.bytes == kOffset + kBytes && (info.mode & 0777) != 0 && info.mtime_ns > 0);

  /* By tables, scattered; and a read that goes beyond the end names it. */
  const hawser_strided_range blocks = {.offset = 0, .size = kBlock, .stride = 2 * kBlock, .count = 8};
  const uint32_t here[] = {5, 6, 7}, there[] = {7, 0, 3};
  hawser_table local, remote;
  hawser_plan plan;
  hawser_transfer transfer;
  MUST(hawser_region_blocks(pair->source, kBlock, &local));
  MUST(hawser_peer_table(spill->self, "spill", &blocks, 1, &remote));
  MUST(hawser_plan_tables(pair->a, HAWSER_WRITE, spill->self, local, here, remote, there, 3, &plan));
  MUST(hawser_plan_submit(plan, NULL, &transfer));
  MUST(finish(pair, transfer));
  CHECK(query(spill->path).bytes == 15 * kBlock);
  CHECK(move(pair, spill, HAWSER_READ, 0, 15 * kBlock - 10, 20, NULL) == HAWSER_FAILED);
  CHECK(strstr(why(), "61440") != NULL);
  MUST(hawser_transfer_release(transfer));
  MUST(hawser_plan_release(plan));
  MUST(hawser_table_release(local));
  MUST(hawser_table_release(remote));
}

static void test_file_misuse(const Pair* pair, const Spill* spill) {
  hawser_plan plan = {0};
  hawser_transfer transfer = {0};
  hawser_region_info source = info_of(pair->source);
  const hawser_local_range in_file = {spill->region, 0, 8}, in_memory = {pair->source, 0, 8};
  const hawser_remote_range memory = {source.index, 0, 4096, 8};
  REFUSED(hawser_plan_ranges(pair->a, HAWSER_READ, spill->self, &in_file, &memory, 1, &plan), HAWSER_UNSUPPORTED,
          "file");
  REFUSED(hawser_read_signal(pair->a, &in_file, &(uint64_t){0}), HAWSER_INVALID, "");
  MUST(hawser_plan_ranges(pair->a, HAWSER_WRITE, spill->self, &in_memory, &memory, 1, &plan));
  hawser_submit_options options = HAWSER_INIT(hawser_submit_options);
  options.durable = 1;
  REFUSED(hawser_plan_submit(plan, &options, &transfer), HAWSER_INVALID, "durable");
  MUST(hawser_plan_release(plan));
}

static void test_descriptors(const Pair* pair, Spill* spill) {
  const int fd = open(spill->path, O_RDONLY | O_CLOEXEC);
  CHECK(fd >= 0);
  hawser_file_options options = file_options(NULL, HAWSER_FILE_DESCRIPTOR);
  options.descriptor = fd;
  options.name = "by descriptor";
  options.bytes = 2 * kBlock;
  hawser_region region = {0};
  REFUSED(hawser_agent_add_file(pair->a, &options, &region), HAWSER_INVALID, "reading only");
  options.rights = HAWSER_RIGHTS_READ;
  MUST(hawser_agent_add_file(pair->a, &options, &region));
  hawser_file_info found = HAWSER_INIT(hawser_file_info);
  MUST(hawser_query_descriptor(fd, &found));
  CHECK(found.exists && found.bytes == 15 * kBlock);
  close(fd); /* It was duplicated. */
  Spill other = *spill;
  other.info = info_of(region);
  CHECK(other.info.bytes == 2 * kBlock && other.info.rights == HAWSER_RIGHTS_READ);
  MUST(move(pair, &other, HAWSER_READ, 1 << 19, 0, kBlock, NULL));
  CHECK(memcmp(pair->source_bytes + (1 << 19), pair->source_bytes + 6 * kBlock, kBlock) == 0);
  MUST(hawser_region_close(region, PATIENCE));
  MUST(hawser_region_release(region));
}

void test_files(const Pair* pair) {
  Spill spill;
  make_scratch(spill.folder, sizeof spill.folder);
  snprintf(spill.path, sizeof spill.path, "%s/spill", spill.folder);
  hawser_file_options options = file_options(spill.path, HAWSER_FILE_CREATE);
  options.name = "spill";
  REFUSED(hawser_agent_add_file(pair->a, &options, &spill.region), HAWSER_UNSUPPORTED, "without the backend file");
  CHECK(!query(spill.path).exists);
  MUST(hawser_agent_add_backend(pair->a, "file", NULL, 0));
  test_wrong_files(pair, spill.path);
  MUST(hawser_agent_self(pair->a, &spill.self));
  MUST(hawser_agent_add_file(pair->a, &options, &spill.region));
  spill.info = info_of(spill.region);
  CHECK(spill.info.device_kind == HAWSER_DEVICE_FILE && spill.info.base == NULL && spill.info.bytes == INT64_MAX);
  CHECK(strcmp(spill.info.name, "spill") == 0 && query(spill.path).exists);
  hawser_region_info seen = HAWSER_INIT(hawser_region_info);
  MUST(hawser_peer_region_at(spill.self, spill.info.index, &seen));
  CHECK(strcmp(seen.name, "spill") == 0 && seen.device_kind == HAWSER_DEVICE_FILE);
  REFUSED(hawser_peer_region_at(spill.self, 9999, &seen), HAWSER_NOT_FOUND, "9999");
  test_there_and_back(pair, &spill);
  test_file_misuse(pair, &spill);
  test_descriptors(pair, &spill);
  MUST(hawser_region_close(spill.region, PATIENCE));
  MUST(hawser_region_release(spill.region));
  MUST(hawser_peer_release(spill.self));
  remove_scratch(spill.folder);
}
