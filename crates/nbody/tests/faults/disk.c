/* A disk that fails on demand, loaded before the C library (LD_PRELOAD). It counts the calls that change or read files whose
   path contains FAULTY_ROOT, and does at the call of number FAULTY_AT what FAULTY_DO says:
     kill         ends the process as kill -9 does, before the call
     half         does half of a write and then ends the process; before other calls
     wrong        writes with one bit changed, and says that all is well
     signal N     sends the process the signal N and goes on
     N            fails with the error number N, this call only
     from N       fails with the error number N, this call and all later ones that write
   FAULTY_ONLY, a list of the letters below, names the calls that count; all do without it.
   FAULTY_LOG, a file, gets a line for each call that counts and has succeeded: a letter, the path, and
     O open (path, 1 if emptied or created)   W write (path, offset, bytes; then the bytes)   S sync (path)   R rename (from, to)
     U unlink (path)   M make a folder (path)   C close (path)   I read (path)   T truncate (path, length)
   The numbers of FAULTY_AT are those of its lines, from 1. Calls past the C library (fallocate, fadvise and flock, which rustix makes
   itself) are not seen. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#define FILES 4096
static char *path_of[FILES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long counted, at = -1;
static int log_to = -1;
static const char *root, *action, *only;

#define REAL(result, name, ...) ((result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

static void begin(void) {
  if (at >= 0) return;
  root = getenv("FAULTY_ROOT");
  action = getenv("FAULTY_DO");
  only = getenv("FAULTY_ONLY");
  const char *number = getenv("FAULTY_AT"), *log = getenv("FAULTY_LOG");
  at = number ? atol(number) : 0;
  if (log) log_to = REAL(int, open, const char *, int, ...)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static int watched(const char *path) {
  begin();
  return root && path && strstr(path, root) != NULL;
}

static const char *name_of(int fd) { return fd >= 0 && fd < FILES ? path_of[fd] : NULL; }

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/* What a write is to do other than it should: its half and die, or all of it with a wrong bit. */
enum { HALF = 1, WRONG = 2 };

/* The data of a write, as the disk will have them. */
static const void *taken(const void *data, size_t size, int fault) {
  if (fault != WRONG || size == 0) return data;
  char *copy = memcpy(malloc(size), data, size);
  copy[size / 2] ^= 1;
  return copy;
}

/* Counts a call; -1 where it must fail, with errno set. `fault` says how a write fails. */
static int count(char letter, int *fault) {
  if (only && !strchr(only, letter)) return 0;
  pthread_mutex_lock(&lock);
  long now = ++counted;
  pthread_mutex_unlock(&lock);
  if (!action || at == 0 || now < at) return 0;
  int from = strncmp(action, "from ", 5) == 0;
  if (now > at && !(from && strchr("OWSRMT", letter))) return 0;
  if (strcmp(action, "kill") == 0) die();
  if (strcmp(action, "half") == 0) {
    if (letter != 'W') die();
    *fault = HALF;
    return 0;
  }
  if (strcmp(action, "wrong") == 0) {
    if (letter == 'W') *fault = WRONG;
    return 0;
  }
  if (strncmp(action, "signal ", 7) == 0) {
    kill(getpid(), atoi(action + 7));
    return 0;
  }
  errno = atoi(from ? action + 5 : action);
  return -1;
}

static void note(char letter, const char *format, const void *data, size_t size, ...) {
  if (log_to < 0 || (only && !strchr(only, letter))) return;
  char line[8400];
  va_list rest;
  va_start(rest, size);
  int n = snprintf(line, sizeof line, "%c ", letter);
  n += vsnprintf(line + n, sizeof line - n - 1, format, rest);
  va_end(rest);
  line[n++] = '\n';
  struct iovec parts[2] = {{line, n}, {(void *)data, size}};
  int saved = errno;
  REAL(ssize_t, writev, int, const struct iovec *, int)(log_to, parts, 2);
  errno = saved;
}

/* Whether the file could be written through what is opened with these flags, or has its place only now. */
static void opened(int fd, const char *path, int flags) {
  if (fd < 0 || fd >= FILES) return;
  free(path_of[fd]);
  path_of[fd] = strdup(path);
  note('O', "%s\t%d", NULL, 0, path, (flags & (O_CREAT | O_TRUNC)) != 0);
}

#define OPEN(name)                                                          \
  int name(const char *path, int flags, ...) {                              \
    va_list rest;                                                           \
    va_start(rest, flags);                                                  \
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, mode_t) : 0; \
    va_end(rest);                                                           \
    int fault = 0, seen = watched(path);                                    \
    if (seen && count('O', &fault)) return -1;                              \
    int fd = REAL(int, name, const char *, int, ...)(path, flags, mode);    \
    if (seen) opened(fd, path, flags);                                      \
    return fd;                                                              \
  }
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *data, size_t size) {
  const char *path = name_of(fd);
  int fault = 0;
  if (path && count('W', &fault)) return -1;
  ssize_t n = REAL(ssize_t, write, int, const void *, size_t)(fd, taken(data, size, fault), fault == HALF ? size / 2 : size);
  if (fault == HALF) die();
  if (path && n > 0) note('W', "%s\t%ld\t%ld", data, n, path, (long)lseek(fd, 0, SEEK_CUR) - (long)n, (long)n);
  return n;
}

#define PWRITE(name, offset_t)                                                                     \
  ssize_t name(int fd, const void *data, size_t size, offset_t offset) {                           \
    const char *path = name_of(fd);                                                                \
    int fault = 0;                                                                                 \
    if (path && count('W', &fault)) return -1;                                                     \
    const void *bytes = taken(data, size, fault);                                                  \
    const size_t part = fault == HALF ? size / 2 : size;                                           \
    ssize_t n = REAL(ssize_t, name, int, const void *, size_t, offset_t)(fd, bytes, part, offset); \
    if (fault == HALF) die();                                                                      \
    if (path && n > 0) note('W', "%s\t%ld\t%ld", data, n, path, (long)offset, (long)n);            \
    return n;                                                                                      \
  }
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define READ(name, arguments, ...)                                              \
  ssize_t name arguments {                                                      \
    const char *path = name_of(fd);                                             \
    int fault = 0;                                                              \
    if (path && count('I', &fault)) return -1;                                  \
    ssize_t n = REAL(ssize_t, name, int, void *, size_t, off64_t)(__VA_ARGS__); \
    if (path) note('I', "%s", NULL, 0, path);                                   \
    return n;                                                                   \
  }
READ(read, (int fd, void *data, size_t size), fd, data, size, 0)
READ(pread, (int fd, void *data, size_t size, off_t offset), fd, data, size, offset)
READ(pread64, (int fd, void *data, size_t size, off64_t offset), fd, data, size, offset)

#define ON_FILE(name, letter)                                   \
  int name(int fd) {                                            \
    const char *path = name_of(fd);                             \
    int fault = 0;                                              \
    if (path && count(letter, &fault)) return -1;               \
    int result = REAL(int, name, int)(fd);                      \
    if (path && result == 0) note(letter, "%s", NULL, 0, path); \
    return result;                                              \
  }
ON_FILE(fsync, 'S')
ON_FILE(fdatasync, 'S')

int close(int fd) {
  const char *path = name_of(fd);
  int fault = 0, failed = path ? count('C', &fault) : 0, why = errno;
  if (path) {
    note('C', "%s", NULL, 0, path);
    free(path_of[fd]);
    path_of[fd] = NULL;
  }
  int result = REAL(int, close, int)(fd);
  if (failed) errno = why;
  return failed ? -1 : result;
}

#define TRUNCATE(name, offset_t)                                                \
  int name(int fd, offset_t length) {                                           \
    const char *path = name_of(fd);                                             \
    int fault = 0;                                                              \
    if (path && count('T', &fault)) return -1;                                  \
    int result = REAL(int, name, int, offset_t)(fd, length);                    \
    if (path && result == 0) note('T', "%s\t%ld", NULL, 0, path, (long)length); \
    return result;                                                              \
  }
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int rename(const char *from, const char *to) {
  int fault = 0, seen = watched(to);
  if (seen && count('R', &fault)) return -1;
  int result = REAL(int, rename, const char *, const char *)(from, to);
  if (seen && result == 0) note('R', "%s\t%s", NULL, 0, from, to);
  return result;
}

int unlink(const char *path) {
  int fault = 0, seen = watched(path);
  if (seen && count('U', &fault)) return -1;
  int result = REAL(int, unlink, const char *)(path);
  if (seen && result == 0) note('U', "%s", NULL, 0, path);
  return result;
}

int mkdir(const char *path, mode_t mode) {
  int fault = 0, seen = watched(path);
  if (seen && count('M', &fault)) return -1;
  int result = REAL(int, mkdir, const char *, mode_t)(path, mode);
  if (seen && result == 0) note('M', "%s", NULL, 0, path);
  return result;
}
