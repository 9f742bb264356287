// Loaded before libc (LD_PRELOAD): writes down, in their order, which files a program hands to its device and which it
// names, into the file $SYNC_LOG. With $SYNC_FAILS set, files (not folders) fail to be handed over.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void note(const char* call, int fd, const char* name) {
  char link[64], path[4096] = "", line[8300];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof(path) - 1);
  path[length < 0 ? 0 : length] = 0;
  if (name == NULL) name = "";
  const int size = snprintf(line, sizeof(line), "%s %s%s%s\n", call, path, *name == 0 ? "" : "/", name);
  const int log = open(getenv("SYNC_LOG"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (write(log, line, (size_t)size) != size) abort();
  close(log);
}

static int sync_it(const char* call, int fd) {
  struct stat is;
  if (getenv("SYNC_FAILS") != NULL && fstat(fd, &is) == 0 && S_ISREG(is.st_mode)) {
    errno = EIO;
    return -1;
  }
  int (*const real)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
  note("fsync", fd, NULL);
  return real(fd);
}

int fsync(int fd) { return sync_it("fsync", fd); }
int fdatasync(int fd) { return sync_it("fdatasync", fd); }

int renameat(int from_folder, const char* from, int to_folder, const char* to) {
  int (*const real)(int, const char*, int, const char*) =
      (int (*)(int, const char*, int, const char*))dlsym(RTLD_NEXT, "renameat");
  note("rename", from_folder, from);
  return real(from_folder, from, to_folder, to);
}

int rename(const char* from, const char* to) {
  int (*const real)(const char*, const char*) = (int (*)(const char*, const char*))dlsym(RTLD_NEXT, "rename");
  note("rename", -1, from);
  return real(from, to);
}
