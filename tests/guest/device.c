/* SPDX-License-Identifier: BSD-2-Clause */
/* See device.h. */
#include "tests/guest/device.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* Software emulation on a busy machine; nothing below takes a second otherwise. */
#define PATIENCE_MS 60000

void check_failed(const char* file, int line, const char* text, int valued, long long got,
                  long long wanted) {
  const char* name = strrchr(file, '/');

  printf("%s:%d: %s", name ? name + 1 : file, line, text);
  if (valued) printf(" (got %lld, wanted %lld)", got, wanted);
  printf("; errno is %d (%s)\n", errno, strerror(errno));
  fflush(stdout);
  _exit(1);
}

int open_device(void) { return open(DEVICE, O_RDWR | O_CLOEXEC); }

int take_context(int fd) {
  struct peal_ioctl_info info = {.header = HEADER(peal_ioctl_info)};

  return ioctl(fd, PEAL_IOCTL_INFO, &info);
}

int open_context(void) {
  int fd = open_device(), error;

  if (fd < 0 || take_context(fd) == 0) return fd;
  error = errno;
  CHECK_EQ(close(fd), 0);
  errno = error;
  return -1;
}

int count_contexts(void) {
  static int fds[4096];
  int count = 0, left;

  while (count < 4096 && (fds[count] = open_context()) >= 0) count++;
  CHECK_EQ(errno, EBUSY);
  for (left = count; left > 0; left--) CHECK_EQ(close(fds[left - 1]), 0);
  return count;
}

static void map_doorbell(struct device* device) {
  uint8_t* page;

  device->doorbell = NULL;
  if (device->info.doorbell_bytes == 0) return;
  page = mmap(NULL, device->info.doorbell_bytes, PROT_WRITE, MAP_SHARED, device->fd,
              PEAL_MMAP_DOORBELL);
  CHECK(page != MAP_FAILED);
  device->doorbell = (volatile uint32_t*)(void*)(page + device->info.doorbell_offset);
}

void device_open(struct device* device) {
  struct peal_ioctl_eventfd event = {.header = HEADER(peal_ioctl_eventfd)};
  struct peal_card_page* card;

  memset(device, 0, sizeof(*device));
  device->fd = open_device();
  CHECK(device->fd >= 0);
  device->info = (struct peal_ioctl_info){.header = HEADER(peal_ioctl_info)};
  CHECK_EQ(ioctl(device->fd, PEAL_IOCTL_INFO, &device->info), 0);
  device->window = mmap(NULL, device->info.window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                        device->fd, PEAL_MMAP_WINDOW);
  CHECK(device->window != MAP_FAILED);
  card = (struct peal_card_page*)(void*)device->window;
  CHECK_EQ(__atomic_load_n(&card->directory.magic, __ATOMIC_ACQUIRE), PEAL_WINDOW_MAGIC);
  peal_host_ring_init(&device->ring, device->window, card->device.ring_entries);
  map_doorbell(device);
  device->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  event.fd = device->event;
  CHECK_EQ(ioctl(device->fd, PEAL_IOCTL_EVENTFD, &event), 0);
}

void device_close(struct device* device) {
  if (device->doorbell)
    CHECK_EQ(munmap((uint8_t*)(uintptr_t)device->doorbell - device->info.doorbell_offset,
                    device->info.doorbell_bytes),
             0);
  CHECK_EQ(munmap(device->window, device->info.window_bytes), 0);
  CHECK_EQ(close(device->event), 0);
  CHECK_EQ(close(device->fd), 0);
}

void device_doorbell(struct device* device) {
  struct peal_ioctl_kick kick = {HEADER(peal_ioctl_kick)};

  if (device->doorbell)
    peal_ring_mapped_doorbell(device->doorbell, device->info.doorbell_value);
  else
    CHECK_EQ(ioctl(device->fd, PEAL_IOCTL_KICK, &kick), 0);
}

struct peal_admin_command make_command(uint16_t opcode) {
  struct peal_admin_command command;

  memset(&command, 0, sizeof(command));
  command.version = PEAL_ABI_VERSION;
  command.bytes = PEAL_ADMIN_BYTES;
  command.opcode = opcode;
  return command;
}

struct peal_admin_command register_command(uint64_t address, uint64_t bytes, uint32_t access) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_REGISTER_MEMORY);

  command.u.register_memory.kind = PEAL_MEMORY_PROCESS;
  command.u.register_memory.access = access;
  command.u.register_memory.address = address;
  command.u.register_memory.bytes = bytes;
  return command;
}

struct peal_admin_command reserve_command(uint32_t ranks, uint32_t rank) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_RESERVE_GROUP);

  command.u.reserve.ranks = ranks;
  command.u.reserve.rank = rank;
  return command;
}

int ask(int fd, const struct peal_admin_command* command, struct peal_admin_reply* reply) {
  struct peal_ioctl_ask argument = {
      .header = HEADER(peal_ioctl_ask), .command = (uintptr_t)command, .reply = (uintptr_t)reply};

  return ioctl(fd, PEAL_IOCTL_ASK, &argument);
}

int try_ask(int fd, const struct peal_admin_command* command) {
  struct peal_admin_reply reply, untouched;
  int result;

  memset(&reply, 0x5a, sizeof(reply));
  untouched = reply;
  result = ask(fd, command, &reply);
  if (result != 0) {
    int error = errno;

    CHECK_EQ(memcmp(&reply, &untouched, sizeof(reply)), 0);
    errno = error;
  }
  return result;
}

uint32_t answer(int fd, const struct peal_admin_command* command, struct peal_admin_reply* reply) {
  CHECK_EQ(ask(fd, command, reply), 0);
  CHECK_EQ(reply->version, PEAL_ABI_VERSION);
  CHECK_EQ(reply->bytes, PEAL_ADMIN_BYTES);
  CHECK_EQ(reply->opcode, command->opcode);
  CHECK_EQ(reply->tag, 0);
  CHECK_EQ(reply->reserved, 0);
  return reply->status;
}

uint32_t register_memory(int fd, void* address, uint64_t bytes, uint32_t access, uint32_t* key) {
  struct peal_admin_command command = register_command((uintptr_t)address, bytes, access);
  struct peal_admin_reply reply;
  uint32_t status = answer(fd, &command, &reply);

  *key = reply.u.register_memory.key;
  return status;
}

uint32_t unregister_memory(int fd, uint32_t key) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_UNREGISTER_MEMORY);
  struct peal_admin_reply reply;

  command.u.unregister_memory.key = key;
  return answer(fd, &command, &reply);
}

uint32_t reserve_group(int fd, uint32_t ranks, uint32_t rank, struct peal_peer_address* address) {
  struct peal_admin_command command = reserve_command(ranks, rank);
  struct peal_admin_reply reply;
  uint32_t status = answer(fd, &command, &reply);

  *address = reply.u.reserve.address;
  return status;
}

uint32_t connect_group(int fd, uint32_t member, uint64_t group, uint32_t count,
                       const struct peal_peer_address* peers) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_CONNECT_GROUP);
  struct peal_admin_reply reply;

  CHECK(count <= PEAL_PEERS_PER_COMMAND);
  command.u.connect.member = member;
  command.u.connect.group = group;
  command.u.connect.peer_count = count;
  memcpy(command.u.connect.peers, peers, count * sizeof(*peers));
  return answer(fd, &command, &reply);
}

uint32_t abandon_group(int fd, uint32_t member) {
  struct peal_admin_command command = make_command(PEAL_ADMIN_ABANDON_GROUP);
  struct peal_admin_reply reply;

  command.u.abandon.member = member;
  return answer(fd, &command, &reply);
}

void submit(struct device* device, const struct peal_submission* entry) {
  CHECK(peal_host_ring_submit(&device->ring, entry));
  if (peal_host_ring_card_sleeps(&device->ring)) device_doorbell(device);
}

void wait_completion(struct device* device, struct peal_completion* entry) {
  struct pollfd wait = {device->event, POLLIN, 0};
  uint64_t count;

  peal_host_ring_set_sleeping(&device->ring, 1);
  while (!peal_host_ring_poll(&device->ring, entry)) {
    /* No other way out: without an interrupt this fails. */
    CHECK_EQ(poll(&wait, 1, PATIENCE_MS), 1);
    CHECK_EQ(read(device->event, &count, sizeof(count)), sizeof(count));
  }
  peal_host_ring_set_sleeping(&device->ring, 0);
}

long driver_count(const char* name) {
  char path[128];
  long value;
  FILE* file;

  snprintf(path, sizeof(path), "/sys/module/peal/parameters/%s", name);
  file = fopen(path, "r");
  CHECK(file);
  CHECK_EQ(fscanf(file, "%ld", &value), 1);
  fclose(file);
  return value;
}

long vmstat(const char* name) {
  FILE* file = fopen("/proc/vmstat", "r");
  char key[64];
  long value;

  CHECK(file);
  while (fscanf(file, "%63s %ld", key, &value) == 2) {
    if (!strcmp(key, name)) {
      fclose(file);
      return value;
    }
  }
  CHECK(!"vmstat has that line");
  return 0;
}

long pinned_pages(void) {
  int fd = open("/proc/sys/vm/stat_refresh", O_WRONLY);
  long released;

  /* Each processor counts for itself for a while; this adds them up. */
  CHECK(fd >= 0);
  CHECK_EQ(write(fd, "1", 1), 1);
  close(fd);
  released = vmstat("nr_foll_pin_released");
  return vmstat("nr_foll_pin_acquired") - released;
}

void wait_pinned(long wanted) {
  struct timespec pause = {0, 10000000};
  int left = PATIENCE_MS / 10;

  while (pinned_pages() > wanted && left-- > 0) nanosleep(&pause, NULL);
  CHECK_EQ(pinned_pages(), wanted);
}

void wait_blocked(pid_t task) {
  char path[64], state;
  int left = 2 * PATIENCE_MS;

  snprintf(path, sizeof(path), "/proc/%d/stat", task);
  do {
    FILE* file = fopen(path, "r");

    CHECK(file);
    CHECK_EQ(fscanf(file, "%*d (%*[^)]) %c", &state), 1);
    fclose(file);
    CHECK(left-- > 0);
    poll(NULL, 0, 1);
  } while (state != 'D');
}

void ask_outside(const char* what) {
  char byte;

  printf("%s\n", what);
  fflush(stdout);
  /* Standard output is the port to the world outside, and goes both ways. */
  do {
    CHECK_EQ(read(STDOUT_FILENO, &byte, 1), 1);
  } while (byte != '\n');
}

void write_file(const char* path, const char* text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);

  CHECK(fd >= 0);
  CHECK_EQ(write(fd, text, strlen(text)), strlen(text));
  CHECK_EQ(close(fd), 0);
}

void remove_device(const char* pci_folder) {
  char path[256];

  snprintf(path, sizeof(path), "%s/remove", pci_folder);
  write_file(path, "1");
}

void wait_open(void) {
  int left = PATIENCE_MS, fd;

  while ((fd = open_context()) < 0) {
    CHECK(errno == ENOENT || errno == ENODEV || errno == EIO || errno == EBUSY || errno == ENXIO);
    if (errno == EBUSY) return;
    CHECK(left-- > 0);
    poll(NULL, 0, 1);
  }
  CHECK_EQ(close(fd), 0);
}

void card_dies_and_returns(void) {
  struct pollfd wait;
  int fd;

  wait_open();
  fd = open_device();
  CHECK(fd >= 0);
  ask_outside("stop the card");
  wait = (struct pollfd){fd, 0, 0};
  CHECK_EQ(poll(&wait, 1, PATIENCE_MS), 1);
  CHECK_EQ(wait.revents & POLLERR, POLLERR);
  ask_outside("continue the card");
  CHECK_EQ(close(fd), 0);
  wait_open();
}
