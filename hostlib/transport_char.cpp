// SPDX-License-Identifier: BSD-2-Clause
// char: a card behind the kernel driver (abi/ioctl.h). The descriptor is the context, which it
// takes by the first ioctl. The doorbell is a write to a mapped page where the platform gives it
// one, else an ioctl; completions of a sleeping context signal an eventfd.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "abi/ioctl.h"
#include "abi/window.h"
#include "base/file_descriptor.h"
#include "hostlib/administration.h"
#include "hostlib/fork_guard.h"
#include "hostlib/transport.h"
#include "hostlib/window.h"

namespace peal::host {
namespace {

template <typename Argument>
Argument make_argument() {
  Argument argument = {};
  argument.header.version = PEAL_ABI_VERSION;
  argument.header.bytes = sizeof(Argument);
  return argument;
}

class CharTransport final : public Transport {
 public:
  ~CharTransport() override {
    if (departures_page_ != nullptr) munmap(departures_page_, departures_bytes_);
    if (doorbell_page_ != nullptr) munmap(doorbell_page_, doorbell_bytes_);
    unmap_window(&window_);
  }

  peal_error open_device(const CardUrl& url);

  [[nodiscard]] const Window& window() const override { return window_; }
  peal_error allocate(size_t bytes, Allocation* allocation) override;
  peal_error release(const Allocation& allocation) override;
  void unmap(const Allocation& allocation) override;
  peal_error ask(const peal_admin_command& command, peal_admin_reply* reply) override;
  [[nodiscard]] const std::atomic<uint64_t>* departures() const override {
    return static_cast<const std::atomic<uint64_t>*>(departures_page_);
  }
  bool next_departed(uint32_t* key) override;
  void ring_doorbell() override;
  uint32_t sleep_token() override { return 0; }
  void sleep(uint32_t token, int timeout_ms) override;
  void wake() override;
  bool connected() override;
  void leave_to_parent() noexcept override {
    device_.reset();
    event_.reset();
  }

 private:
  peal_error map_doorbell(const peal_ioctl_info& info);
  peal_error map_departures();
  template <typename Argument>
  peal_error control(unsigned long request, const char* name, Argument* argument);

  FileDescriptor device_;  // whose closing asks the card, so forks do not wait for that
  FileDescriptor event_;
  Window window_;
  void* doorbell_page_ = nullptr;  // write-only
  size_t doorbell_bytes_ = 0;
  volatile uint32_t* doorbell_ = nullptr;
  uint32_t doorbell_value_ = 0;
  void* departures_page_ = nullptr;  // read-only
  size_t departures_bytes_ = 0;
  // (While the card is being asked for a context there is nobody else to do so.)
  ForkGuard guard_{[](void* own) { static_cast<CharTransport*>(own)->leave_to_parent(); }, this};
};

template <typename Argument>
peal_error CharTransport::control(unsigned long request, const char* name, Argument* argument) {
  if (retried([&] { return ioctl(device_.get(), request, argument); }) >= 0) return PEAL_OK;
  switch (errno) {
    case ENODEV:
    case EIO:
    case ENXIO:
      return fail_errno(PEAL_ERR_CARD_GONE, "%s: the device is gone", name);
    case E2BIG:
    case EMSGSIZE:
    case ENOTTY:
      return fail_errno(PEAL_ERR_BAD_VERSION, "%s: the driver has another version", name);
    case ENOMEM:
    case ENOSPC:
      return fail_errno(PEAL_ERR_NO_MEMORY,
                        "%s (is RLIMIT_MEMLOCK large enough? see peal-driver(4))", name);
    case EFAULT:
      return fail_errno(PEAL_ERR_BAD_ADDRESS, "%s", name);
    case EBUSY:
      return fail(PEAL_ERR_NO_RESOURCES, "%s: all contexts of the card are taken", name);
    default:
      return fail_errno(PEAL_ERR_SYSTEM, "%s", name);
  }
}

peal_error CharTransport::ask(const peal_admin_command& command, peal_admin_reply* reply) {
  auto argument = make_argument<peal_ioctl_ask>();
  argument.command = reinterpret_cast<uintptr_t>(&command);
  argument.reply = reinterpret_cast<uintptr_t>(reply);
  const peal_error error = control(PEAL_IOCTL_ASK, command_name(command.opcode), &argument);
  return error == PEAL_OK ? verdict(command, *reply) : error;
}

peal_error CharTransport::open_device(const CardUrl& url) {
  {
    const NoFork lock;
    device_ = FileDescriptor(open(url.path.c_str(), O_RDWR | O_CLOEXEC));
  }
  if (!device_.valid()) return fail_errno(PEAL_ERR_NO_CARD, "%s", url.path.c_str());
  auto info = make_argument<peal_ioctl_info>();
  peal_error error = control(PEAL_IOCTL_INFO, "query the device", &info);
  if (error != PEAL_OK) return error;
  error = map_window(device_.get(), PEAL_MMAP_WINDOW, info.window_bytes, &window_);
  if (error != PEAL_OK) return error;
  error = check_window(&window_);
  if (error != PEAL_OK) return error;
  error = map_doorbell(info);
  if (error == PEAL_OK) error = map_departures();
  if (error != PEAL_OK) return error;
  event_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!event_.valid()) return fail_errno(PEAL_ERR_SYSTEM, "eventfd");
  auto argument = make_argument<peal_ioctl_eventfd>();
  argument.fd = event_.get();
  return control(PEAL_IOCTL_EVENTFD, "set the eventfd", &argument);
}

peal_error CharTransport::map_doorbell(const peal_ioctl_info& info) {
  if (info.doorbell_bytes == 0) return PEAL_OK;  // PEAL_IOCTL_KICK then
  if (info.doorbell_offset % sizeof(uint32_t) != 0 || info.doorbell_bytes < sizeof(uint32_t) ||
      info.doorbell_offset > info.doorbell_bytes - sizeof(uint32_t)) {
    return fail(PEAL_ERR_BAD_VERSION, "the driver's doorbell is at %u of %u bytes",
                info.doorbell_offset, info.doorbell_bytes);
  }
  void* page =
      mmap(nullptr, info.doorbell_bytes, PROT_WRITE, MAP_SHARED, device_.get(), PEAL_MMAP_DOORBELL);
  if (page == MAP_FAILED) return fail_errno(PEAL_ERR_SYSTEM, "mmap of the doorbell");
  doorbell_page_ = page;
  doorbell_bytes_ = info.doorbell_bytes;
  doorbell_ =
      reinterpret_cast<volatile uint32_t*>(static_cast<uint8_t*>(page) + info.doorbell_offset);
  doorbell_value_ = info.doorbell_value;
  return PEAL_OK;
}

peal_error CharTransport::map_departures() {
  static_assert(sizeof(std::atomic<uint64_t>) == sizeof(uint64_t));
  const auto bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, device_.get(), PEAL_MMAP_DEPARTURES);
  if (page == MAP_FAILED) return fail_errno(PEAL_ERR_SYSTEM, "mmap of the departures");
  departures_page_ = page;
  departures_bytes_ = bytes;
  return PEAL_OK;
}

bool CharTransport::next_departed(uint32_t* key) {
  auto argument = make_argument<peal_ioctl_departed>();
  // Of a card that is gone nothing is found any more, and nothing can be used.
  if (control(PEAL_IOCTL_DEPARTED, "departed memory", &argument) != PEAL_OK) return false;
  *key = argument.key;
  return argument.found != 0;
}

peal_error CharTransport::allocate(size_t bytes, Allocation* allocation) {
  const size_t mapped = (bytes + PEAL_PAGE_BYTES - 1) & ~static_cast<size_t>(PEAL_PAGE_BYTES - 1);
  void* address = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return fail_errno(PEAL_ERR_NO_MEMORY, "mmap of %zu bytes", mapped);
  // A child's copy-on-write would leave the pinned pages with the child.
  madvise(address, mapped, MADV_DONTFORK);
  const peal_error error = register_memory(*this, address, mapped,
                                           PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, &allocation->key);
  if (error != PEAL_OK) {
    munmap(address, mapped);
    return error;
  }
  allocation->address = static_cast<uint8_t*>(address);
  allocation->mapped_bytes = mapped;
  return PEAL_OK;
}

peal_error CharTransport::release(const Allocation& allocation) {
  const peal_error error = unregister_memory(*this, allocation.key);
  if (error != PEAL_ERR_BUSY) unmap(allocation);
  return error;
}

void CharTransport::unmap(const Allocation& allocation) {
  munmap(allocation.address, allocation.mapped_bytes);
}

void CharTransport::ring_doorbell() {
  if (doorbell_ != nullptr) {
    peal_ring_mapped_doorbell(doorbell_, doorbell_value_);
    return;
  }
  auto argument = make_argument<peal_ioctl_kick>();
  (void)control(PEAL_IOCTL_KICK, "kick", &argument);
}

void CharTransport::sleep(uint32_t token, int timeout_ms) {
  (void)token;  // the eventfd itself remembers what came between
  pollfd wait = {event_.get(), POLLIN, 0};
  if (poll(&wait, 1, timeout_ms) > 0) {
    uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = read(event_.get(), &count, sizeof(count));
  }
}

void CharTransport::wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof(one));
}

bool CharTransport::connected() {
  pollfd state = {device_.get(), 0, 0};
  if (poll(&state, 1, 0) <= 0) return true;
  return (state.revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

}  // namespace

peal_error open_char_transport(const CardUrl& url, std::unique_ptr<Transport>* transport) {
  auto made = std::make_unique<CharTransport>();
  const peal_error error = made->open_device(url);
  if (error == PEAL_OK) *transport = std::move(made);
  return error;
}

}  // namespace peal::host
