/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * See stuck_file.h. A file that is opened once more loses its cached pages (no FOPEN_KEEP_CACHE); a dirty one is written back
 * first, and the kernel keeps it locked until the server has answered. The file is the root of its file system, which is
 * mounted on a file.
 */
#define _GNU_SOURCE
#include "tests/guest/stuck_file.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/guest/device.h"

#define PAGE 4096u
#define PATH "/tmp/stuck"

static void reply(int device, uint64_t unique, int error, const void* body, size_t bytes) {
  struct fuse_out_header head = {(uint32_t)(sizeof(head) + bytes), error, unique};
  struct iovec parts[] = {{&head, sizeof(head)}, {(void*)(uintptr_t)body, bytes}};

  CHECK_EQ(writev(device, parts, 2), head.len);
}

static void serve_one(int device, const struct fuse_in_header* head, int written, int answer) {
  static const uint8_t contents[PAGE];
  static int answers;
  const struct fuse_init_out init = {
      .major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = PAGE};
  const struct fuse_attr_out attributes = {
      .attr_valid = 1u << 30,
      .attr = {.ino = FUSE_ROOT_ID, .size = PAGE, .mode = S_IFREG | 0600, .nlink = 1}};
  const struct fuse_open_out open = {0};
  const struct fuse_write_out wrote = {.size = PAGE};
  char unused;

  switch (head->opcode) {
    case FUSE_INIT:
      reply(device, head->unique, 0, &init, sizeof(init));
      break;
    case FUSE_GETATTR:
      reply(device, head->unique, 0, &attributes, sizeof(attributes));
      break;
    case FUSE_OPEN:
      reply(device, head->unique, 0, &open, sizeof(open));
      break;
    case FUSE_READ:
      reply(device, head->unique, 0, contents, sizeof(contents));
      break;
    case FUSE_WRITE:
      if (!answers) {
        CHECK_EQ(write(written, "x", 1), 1);
        CHECK_EQ(read(answer, &unused, 1), 1);
        answers = 1;
      }
      reply(device, head->unique, 0, &wrote, sizeof(wrote));
      break;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      break;
    default:
      reply(device, head->unique, -ENOSYS, NULL, 0);
  }
}

/* Until it is killed, or its file system is no more. */
static void serve(int device, int written, int answer) {
  static union {
    struct fuse_in_header head;
    uint8_t bytes[FUSE_MIN_READ_BUFFER + PAGE];
  } request;

  while (read(device, &request, sizeof(request)) > 0)
    serve_one(device, &request.head, written, answer);
  CHECK_EQ(errno, ENODEV);
  _exit(0);
}

static int mount_it(void) {
  int device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  int place = open(PATH, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  char options[128];

  CHECK(device >= 0 && place >= 0);
  CHECK_EQ(close(place), 0);
  snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=0,group_id=0", device);
  CHECK_EQ(mount("stuck", PATH, "fuse", MS_NOSUID | MS_NODEV, options), 0);
  return device;
}

/* A page that is dirty stays so until the file is opened again: it is not written back because of its age, nor because a server
 * that is new and of a user's is allowed next to no dirty page. */
static void be_patient_with(dev_t device) {
  char folder[64], path[96];

  write_file("/proc/sys/vm/dirty_writeback_centisecs", "0");
  snprintf(folder, sizeof(folder), "/sys/class/bdi/%u:%u", major(device), minor(device));
  snprintf(path, sizeof(path), "%s/max_ratio", folder);
  write_file(path, "100");
  snprintf(path, sizeof(path), "%s/min_ratio", folder);
  write_file(path, "50");
}

void stuck_file_make(struct stuck_file* file) {
  int device = mount_it(), written[2], answer[2], fd;
  struct stat status;

  CHECK_EQ(pipe(written), 0);
  CHECK_EQ(pipe(answer), 0);
  file->server = fork();
  CHECK(file->server >= 0);
  if (file->server == 0) serve(device, written[1], answer[0]);
  CHECK_EQ(close(device), 0);
  CHECK_EQ(close(written[1]), 0);
  CHECK_EQ(close(answer[0]), 0);
  file->written = written[0];
  file->answer = answer[1];

  fd = open(PATH, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  CHECK_EQ(fstat(fd, &status), 0);
  CHECK_EQ(status.st_size, PAGE);
  be_patient_with(status.st_dev);
  file->page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(file->page != MAP_FAILED);
  /* A process that ends with it would write it back, and wait for the server itself. */
  CHECK_EQ(madvise(file->page, PAGE, MADV_DONTFORK), 0);
  CHECK_EQ(close(fd), 0);
}

void stuck_file_begin(struct stuck_file* file) {
  char unused;

  file->opener = fork();
  CHECK(file->opener >= 0);
  if (file->opener == 0) {
    /* The device's files are not this one's to keep. */
    CHECK_EQ(close_range(3, ~0u, 0), 0);
    CHECK(open(PATH, O_RDONLY) >= 0);
    _exit(0);
  }
  CHECK_EQ(read(file->written, &unused, 1), 1);
}

void stuck_file_end(struct stuck_file* file) {
  int status;

  CHECK_EQ(write(file->answer, "x", 1), 1);
  CHECK_EQ(waitpid(file->opener, &status, 0), file->opener);
  CHECK_EQ(status, 0);
}

void stuck_file_drop(struct stuck_file* file) {
  CHECK_EQ(munmap(file->page, PAGE), 0);
  CHECK_EQ(umount2(PATH, MNT_DETACH), 0);
  CHECK_EQ(kill(file->server, SIGKILL), 0);
  CHECK_EQ(waitpid(file->server, NULL, 0), file->server);
  CHECK_EQ(close(file->written), 0);
  CHECK_EQ(close(file->answer), 0);
}
