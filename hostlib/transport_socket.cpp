// SPDX-License-Identifier: BSD-2-Clause
// emu: a card of a peal-nic process, behind a SOCK_SEQPACKET Unix socket. Each message is one
// 512-byte command or reply (abi/admin.h); the first reply brings the window, the broadcast page
// and the kick eventfd. The connection is the context:
// when it closes, either side is dead for the other.
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <ctime>
#include <mutex>
#include <new>
#include <string>

#include "abi/window.h"
#include "base/clock.h"
#include "base/unix_socket.h"
#include "hostlib/administration.h"
#include "hostlib/fork_guard.h"
#include "hostlib/mutex.h"
#include "hostlib/transport.h"
#include "hostlib/window.h"

namespace peal::host {
namespace {

constexpr int kReplyDescriptorsMax = 3;
// A card answers within microseconds; one that needs this long is stuck.
constexpr int kAnswerTimeoutMs = 30'000;

size_t round_to_pages(size_t bytes) {
  return (bytes + PEAL_PAGE_BYTES - 1) & ~static_cast<size_t>(PEAL_PAGE_BYTES - 1);
}

// A card that could shrink what it handed over would kill us with SIGBUS.
peal_error check_memory_file(int fd, size_t bytes_min, const char* what) {
  struct stat status = {};
  if (fstat(fd, &status) != 0) return fail_errno(PEAL_ERR_SYSTEM, "fstat of the %s", what);
  if (static_cast<size_t>(status.st_size) < bytes_min) {
    return fail(PEAL_ERR_CARD_ANSWER, "the %s has %lld bytes, less than %zu", what,
                static_cast<long long>(status.st_size), bytes_min);
  }
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return fail(PEAL_ERR_CARD_ANSWER, "the %s is not sealed against shrinking", what);
  }
  return PEAL_OK;
}

// Who may reach into this process.
struct Reaching {
  Mutex mutex;
  // In a child nobody is left who would let go of it.
  ForkGuard guard{[](void* lock) { (void)static_cast<Mutex*>(lock)->release(); }, &mutex};
};

// Under Yama a process names whom it lets reach into its memory, and the kernel keeps one name:
// where it has cards of several processes, each is named anew whenever it is to open memory, and
// stays it until the lock is given back. Elsewhere this fails harmlessly.
std::unique_lock<Mutex> allow_reaching(pid_t process) {
  static auto& reaching = *new Reaching;  // threads may use it until the very end
  std::unique_lock<Mutex> lock(reaching.mutex);
  if (process > 0) prctl(PR_SET_PTRACER, static_cast<unsigned long>(process), 0, 0, 0);
  return lock;
}

class SocketTransport final : public Transport {
 public:
  ~SocketTransport() override {
    unmap_window(&window_);
    if (broadcast_ != nullptr) munmap(broadcast_, PEAL_PAGE_BYTES);
  }

  peal_error connect(const CardUrl& url);

  [[nodiscard]] const Window& window() const override { return window_; }
  peal_error allocate(size_t bytes, Allocation* allocation) override;
  peal_error release(const Allocation& allocation) override;
  void unmap(const Allocation& allocation) override;
  void end_context(int patience_ms) override;
  peal_error ask(const peal_admin_command& command, peal_admin_reply* reply) override {
    return exchange(command, reply, nullptr, 0);
  }
  void ring_doorbell() override;
  uint32_t sleep_token() override;
  void sleep(uint32_t token, int timeout_ms) override;
  void wake() override;
  bool connected() override;
  // Whoever waits for an answer learns it, and so does the card, should it go on.
  void give_up() noexcept override { shutdown(socket_.get(), SHUT_RDWR); }
  void leave_to_parent() noexcept override {
    socket_.leave();
    window_file_.reset();
    kick_.reset();
  }

 private:
  peal_error open_context(uint32_t card);
  // ask(), with so many descriptors beside a reply that is OK.
  peal_error exchange(peal_admin_command command, peal_admin_reply* reply,
                      FileDescriptor* descriptors, int descriptors_wanted,
                      int timeout_ms = kAnswerTimeoutMs);
  peal_error receive(uint64_t tag, peal_admin_reply* reply, FileDescriptor* descriptors,
                     int descriptors_wanted, int timeout_ms);
  // The card closes the connection within that time, or has done so.
  bool hangs_up(int timeout_ms);

  std::mutex mutex_;  // one command at a time
  OwnDescriptor socket_;
  FileDescriptor window_file_;  // kept open, so that an observer can find the rings (/proc/PID/fd)
  FileDescriptor kick_;
  Window window_;
  peal_broadcast_page* broadcast_ = nullptr;  // read-only
  uint64_t tag_ = 0;
  pid_t card_ = 0;  // its process; 0: the kernel does not say
  // (While the card is being asked for a context there is nobody else to do so.)
  ForkGuard guard_{[](void* own) { static_cast<SocketTransport*>(own)->leave_to_parent(); }, this};
};

peal_error SocketTransport::connect(const CardUrl& url) {
  UnixAddress address;
  if (!address.set(url.path)) {
    return fail(PEAL_ERR_INVALID_ARGUMENT, "socket path of %zu characters, the limit is %zu: %s",
                url.path.size(), kUnixPathMax, url.path.c_str());
  }
  if (!socket_.open([] { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }))
    return fail_errno(PEAL_ERR_SYSTEM, "socket");
  // Where a signal interrupts it, it was still waiting for a place among those that connect.
  if (retried([&] { return ::connect(socket_.get(), address.get(), UnixAddress::bytes()); }) != 0) {
    return fail_errno(PEAL_ERR_NO_CARD, "no peal-nic listens at %s", url.path.c_str());
  }
  ucred peer = {};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0) card_ = peer.pid;
  return open_context(url.card);
}

peal_error SocketTransport::open_context(uint32_t card) {
  peal_admin_reply reply = {};
  FileDescriptor descriptors[3];
  peal_error error = exchange(open_command(card), &reply, descriptors, 3);
  if (error != PEAL_OK) return error;
  const size_t window_bytes = reply.u.open.window_bytes;
  error = check_memory_file(descriptors[0].get(), window_bytes, "window");
  if (error != PEAL_OK) return error;
  error = check_memory_file(descriptors[1].get(), PEAL_PAGE_BYTES, "broadcast page");
  if (error != PEAL_OK) return error;
  error = map_window(descriptors[0].get(), 0, window_bytes, &window_);
  if (error != PEAL_OK) return error;
  error = check_window(&window_);
  if (error != PEAL_OK) return error;
  void* broadcast = mmap(nullptr, PEAL_PAGE_BYTES, PROT_READ, MAP_SHARED, descriptors[1].get(), 0);
  if (broadcast == MAP_FAILED) return fail_errno(PEAL_ERR_SYSTEM, "mmap of the broadcast page");
  broadcast_ = static_cast<peal_broadcast_page*>(broadcast);
  window_file_ = std::move(descriptors[0]);
  kick_ = std::move(descriptors[2]);
  return PEAL_OK;
}

peal_error SocketTransport::exchange(peal_admin_command command, peal_admin_reply* reply,
                                     FileDescriptor* descriptors, int descriptors_wanted,
                                     int timeout_ms) {
  const std::lock_guard<std::mutex> guard(mutex_);
  std::unique_lock<Mutex> reached;
  if (command.opcode == PEAL_ADMIN_REGISTER_MEMORY &&
      command.u.register_memory.kind == PEAL_MEMORY_PROCESS)
    reached = allow_reaching(card_);
  command.tag = ++tag_;
  const ssize_t sent = send_with_descriptors(socket_.get(), &command, sizeof(command), {}, 0);
  if (sent != static_cast<ssize_t>(sizeof(command))) {
    return fail_errno(PEAL_ERR_CARD_GONE, "%s: the card closed the connection",
                      command_name(command.opcode));
  }
  const peal_error error = receive(tag_, reply, descriptors, descriptors_wanted, timeout_ms);
  if (error != PEAL_OK) return error;
  if (reply->opcode != command.opcode) {
    return fail(PEAL_ERR_CARD_ANSWER, "%s: answered with opcode %u", command_name(command.opcode),
                reply->opcode);
  }
  return verdict(command, *reply);
}

// Waits for the reply with that tag; others are thrown away. Neither those nor signals begin the
// wait anew.
peal_error SocketTransport::receive(uint64_t tag, peal_admin_reply* reply,
                                    FileDescriptor* descriptors, int descriptors_wanted,
                                    int timeout_ms) {
  const uint64_t end_ms = monotonic_ms() + static_cast<uint64_t>(timeout_ms);
  while (true) {
    const uint64_t now_ms = monotonic_ms();
    if (now_ms >= end_ms) {
      give_up();
      return fail(PEAL_ERR_CARD_GONE, "the card did not answer within %d ms", timeout_ms);
    }
    pollfd wait = {socket_.get(), POLLIN, 0};
    const int ready = poll(&wait, 1, static_cast<int>(end_ms - now_ms));
    if (ready < 0 && errno != EINTR) return fail_errno(PEAL_ERR_SYSTEM, "poll");
    if (ready <= 0) continue;
    // The descriptors come into our care first, whatever the message turns out to be.
    FileDescriptor received[kReplyDescriptorsMax];
    const ReceivedMessage got =
        receive_with_descriptors(socket_.get(), reply, sizeof(*reply), received, 0);
    if (got.bytes < 0) return fail_errno(PEAL_ERR_CARD_GONE, "recvmsg from the card");
    if (got.bytes == 0) return fail(PEAL_ERR_CARD_GONE, "the card closed the connection");
    if (got.bytes >= 8 && reply->version != PEAL_ABI_VERSION) {
      return fail(PEAL_ERR_BAD_VERSION, "the card speaks ABI version %u, this library %u",
                  reply->version, PEAL_ABI_VERSION);
    }
    if (got.bytes != static_cast<ssize_t>(sizeof(*reply)) || got.cut ||
        reply->bytes != PEAL_ADMIN_BYTES) {
      return fail(PEAL_ERR_CARD_ANSWER, "a reply of %zd bytes, version %u, size %u", got.bytes,
                  got.bytes >= 8 ? reply->version : 0u, got.bytes >= 8 ? reply->bytes : 0u);
    }
    if (reply->tag != tag) continue;
    const int count = static_cast<int>(got.descriptors);
    if (reply->status == PEAL_STATUS_OK && count != descriptors_wanted) {
      return fail(PEAL_ERR_CARD_ANSWER, "a reply with %d descriptors instead of %d", count,
                  descriptors_wanted);
    }
    for (int i = 0; i < descriptors_wanted && i < count; i++) {
      descriptors[i] = std::move(received[i]);
    }
    return PEAL_OK;
  }
}

peal_error SocketTransport::allocate(size_t bytes, Allocation* allocation) {
  peal_admin_reply reply = {};
  FileDescriptor memory;
  peal_error error = exchange(register_command(PEAL_MEMORY_ALLOCATE, nullptr, round_to_pages(bytes),
                                               PEAL_ACCESS_READ | PEAL_ACCESS_WRITE),
                              &reply, &memory, 1);
  if (error != PEAL_OK) return error;
  allocation->key = reply.u.register_memory.key;
  allocation->mapped_bytes = round_to_pages(bytes);
  error = check_memory_file(memory.get(), allocation->mapped_bytes, "allocated memory");
  if (error == PEAL_OK) {
    void* address = mmap(nullptr, allocation->mapped_bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
                         memory.get(), 0);
    if (address != MAP_FAILED) {
      allocation->address = static_cast<uint8_t*>(address);
      return PEAL_OK;
    }
    error = fail_errno(PEAL_ERR_NO_MEMORY, "mmap of %zu bytes", allocation->mapped_bytes);
  }
  (void)unregister_memory(*this, allocation->key);
  return error;
}

peal_error SocketTransport::release(const Allocation& allocation) {
  const peal_error error = unregister_memory(*this, allocation.key);
  if (error != PEAL_ERR_BUSY) unmap(allocation);
  return error;
}

void SocketTransport::unmap(const Allocation& allocation) {
  munmap(allocation.address, allocation.mapped_bytes);
}

// The card reaches into this process, and may be in the middle of a copy. It says BUSY while it is,
// and closes the connection once it is not.
void SocketTransport::end_context(int patience_ms) {
  const std::string text = last_error_text();  // of what failed before
  const auto end_ms = static_cast<int64_t>(monotonic_ms()) + patience_ms;
  const auto left_ms = [end_ms] {
    return std::max(static_cast<int>(end_ms - static_cast<int64_t>(monotonic_ms())), 0);
  };
  peal_admin_reply reply = {};
  int pause_ms = 1;
  while (left_ms() > 0 &&
         exchange(close_command(), &reply, nullptr, 0, left_ms()) == PEAL_ERR_BUSY &&
         !hangs_up(std::min(pause_ms, left_ms()))) {
    pause_ms = std::min(2 * pause_ms, patience_ms);  // signals may have cut it short ever so often
  }
  fail(PEAL_OK, "%s", text.c_str());
}

void SocketTransport::ring_doorbell() {
  const uint64_t one = 1;
  // Full (EAGAIN) means that the card has been told often enough.
  [[maybe_unused]] const ssize_t written = ::write(kick_.get(), &one, sizeof(one));
}

uint32_t SocketTransport::sleep_token() {
  return __atomic_load_n(&broadcast_->wake_word, __ATOMIC_ACQUIRE);
}

void SocketTransport::sleep(uint32_t token, int timeout_ms) {
  const timespec timeout = {timeout_ms / 1000, (timeout_ms % 1000) * 1'000'000L};
  syscall(SYS_futex, &broadcast_->wake_word, FUTEX_WAIT, token, &timeout, nullptr, 0);
}

// Sleepers of other processes on the same word wake too, look, and sleep again; it is rare.
void SocketTransport::wake() {
  syscall(SYS_futex, &broadcast_->wake_word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool SocketTransport::connected() { return !hangs_up(0); }

bool SocketTransport::hangs_up(int timeout_ms) {
  pollfd state = {socket_.get(), POLLRDHUP, 0};
  if (poll(&state, 1, timeout_ms) <= 0) return false;
  return (state.revents & (POLLRDHUP | POLLHUP | POLLERR | POLLNVAL)) != 0;
}

}  // namespace

peal_error open_socket_transport(const CardUrl& url, std::unique_ptr<Transport>* transport) {
  auto made = std::make_unique<SocketTransport>();
  const peal_error error = made->connect(url);
  if (error == PEAL_OK) *transport = std::move(made);
  return error;
}

}  // namespace peal::host
