// SPDX-License-Identifier: BSD-2-Clause
// The loop's side first, then the control thread's: accept, receive, hand over, reply, sweep.
#include "emulator/nic/socket_server.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

namespace peal::nic {
namespace {

constexpr uint32_t kSpareClients = 32;  // beside one per context
constexpr uint32_t kStrikes = 16;
constexpr int kBacklog = 128;
constexpr uint32_t kDescriptorsPerMessage = 16;

uint64_t monotonic_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

bool epoll_add(int epoll_fd, int fd, void* data) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = data;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

// One message; closes whatever descriptors came with it.
ssize_t receive_message(int fd, peal_admin_command* command, bool* carried_descriptors) {
  // One byte more than a command, so that a longer message shows.
  std::array<uint8_t, PEAL_ADMIN_BYTES + 1> bytes;
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(kDescriptorsPerMessage * sizeof(int))> control;
  iovec part = {bytes.data(), bytes.size()};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t received = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received < 0) return received;
  *carried_descriptors = (message.msg_flags & MSG_CTRUNC) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    *carried_descriptors = true;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int unwanted = -1;
      std::memcpy(&unwanted, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      close(unwanted);
    }
  }
  std::memset(command, 0, sizeof(*command));
  std::memcpy(command, bytes.data(), std::min(static_cast<size_t>(received), sizeof(*command)));
  return received;
}

}  // namespace

SocketServer::SocketServer(const SocketOptions& options, LoopServices& loop, WakeHelper& helper)
    : options_(options), loop_(loop), helper_(helper), call_(loop) {
  if (options_.clients_max == 0)
    options_.clients_max = loop.card_count() * emulator::Admin::kContexts + kSpareClients;
}

std::unique_ptr<SocketServer> SocketServer::create(const SocketOptions& options, LoopServices& loop,
                                                   WakeHelper& helper, std::string* error) {
  std::unique_ptr<SocketServer> server(new SocketServer(options, loop, helper));
  *error = server->open();
  if (!error->empty()) return nullptr;
  return server;
}

std::string SocketServer::open() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  control_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  spare_fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (epoll_fd_ < 0 || control_fd_ < 0 || spare_fd_ < 0 || !call_.open())
    return system_error("cannot create descriptors for the control thread");
  broadcast_ = create_shared("peal-broadcast", sizeof(peal_broadcast_page),
                             Sharing::kReadOnlyForOthers, &broadcast_fd_);
  if (broadcast_ == nullptr) return system_error("cannot create the broadcast page");
  auto* const page = static_cast<peal_broadcast_page*>(broadcast_->base);
  services_.loop = &loop_;
  services_.broadcast_word = &page->wake_word;
  services_.broadcast_slot = helper_.add_futex(&page->wake_word);
  services_.control_slot = helper_.add_eventfd(control_fd_);
  services_.bin = &bin_;
  services_.capabilities =
      options_.capabilities | PEAL_CAPABILITY_SHARED_MEMORY | PEAL_CAPABILITY_PROCESS_MEMORY;
  services_.budget_bytes = options_.memory_budget_bytes;
  if (services_.broadcast_slot == kNoWakeSlot || services_.control_slot == kNoWakeSlot)
    return "no wake slot is left for the socket";
  if (std::string error = listen_on_path(); !error.empty()) return error;
  if (!epoll_add(epoll_fd_, listen_fd_, &listen_fd_) ||
      !epoll_add(epoll_fd_, control_fd_, &control_fd_))
    return system_error("cannot watch the socket");
  thread_ = std::thread([this] { control(); });
  pthread_setname_np(thread_.native_handle(), "peal-control");
  if (!options_.control_cpus.empty()) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    for (const int cpu : options_.control_cpus) CPU_SET(static_cast<size_t>(cpu), &cpus);
    pthread_setaffinity_np(thread_.native_handle(), sizeof(cpus), &cpus);
  }
  return {};
}

std::string SocketServer::listen_on_path() {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (options_.path.empty() || options_.path.size() >= sizeof(address.sun_path))
    return "socket path '" + options_.path + "' must have 1 to " +
           std::to_string(sizeof(address.sun_path) - 1) + " characters";
  std::memcpy(address.sun_path, options_.path.c_str(), options_.path.size() + 1);
  listen_fd_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listen_fd_ < 0) return system_error("cannot create a socket");
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  const mode_t mask = umask(0177);
  int bound = bind(listen_fd_, name, sizeof(address));
  if (bound != 0 && errno == EADDRINUSE) {
    // Left by a process that was killed, or in use? Only a socket that nobody listens on is
    // removed.
    struct stat info = {};
    const int probe = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const bool refused =
        probe >= 0 && connect(probe, name, sizeof(address)) != 0 && errno == ECONNREFUSED;
    if (probe >= 0) close(probe);
    if (refused && lstat(address.sun_path, &info) == 0 && S_ISSOCK(info.st_mode)) {
      unlink(address.sun_path);
      bound = bind(listen_fd_, name, sizeof(address));
    } else {
      errno = EADDRINUSE;
    }
  }
  const int bind_error = errno;
  umask(mask);
  errno = bind_error;
  if (bound != 0)
    return system_error("cannot listen on '" + options_.path + "'") +
           (bind_error == EADDRINUSE ? " (another peal-nic? give another --socket)" : "");
  bound_ = true;
  if (listen(listen_fd_, kBacklog) != 0) return system_error("cannot listen on the socket");
  return {};
}

SocketServer::~SocketServer() {
  // After shut_down(), or after open() failed before there was a thread.
  if (thread_.joinable()) {
    stopping_.store(true);
    call_.close_calls();
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(control_fd_, &one, sizeof(one));
    thread_.join();
  }
  helper_.remove(services_.broadcast_slot);
  helper_.remove(services_.control_slot);
  clients_.clear();
  bin_.empty();
  destroy(broadcast_);
  if (bound_) unlink(options_.path.c_str());
  for (const int fd : {broadcast_fd_, listen_fd_, epoll_fd_, control_fd_, spare_fd_}) {
    if (fd >= 0) close(fd);
  }
}

// --- the loop ---

bool SocketServer::poll(TimeNs now) {
  Call* const call = call_.pending();
  if (call == nullptr) return false;
  SocketClient& client = *call->client;
  if (call->kind == Call::Kind::kClose) {
    const ContextId context = client.context();
    if (context != emulator::kNoContext)
      loop_.card(client.card()).admin->close_context(context, now);
  } else {
    if (call->command->opcode == PEAL_ADMIN_OPEN_CONTEXT &&
        client.context() == emulator::kNoContext)
      client.set_card(call->command->u.open.card_index);
    loop_.card(client.card())
        .admin->execute(*call->command, call->received_bytes, client.context(), client, now,
                        call->reply);
  }
  call_.answer();
  return true;
}

void SocketServer::shut_down(TimeNs now) {
  stopping_.store(true);
  call_.close_calls();
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(control_fd_, &one, sizeof(one));
  if (thread_.joinable()) thread_.join();
  for (const auto& [key, client] : clients_) {
    client->close_connection();
    if (client->has_context())
      loop_.card(client->card()).admin->close_context(client->context(), now);
  }
  if (bound_) unlink(options_.path.c_str());
  bound_ = false;
}

std::string SocketServer::counters_json() const {
  const struct {
    const char* name;
    const std::atomic<uint64_t>& value;
  } counts[] = {{"accepted", counts_.accepted},
                {"closed", counts_.closed},
                {"refused_user", counts_.refused_user},
                {"refused_too_many", counts_.refused_too_many},
                {"refused_descriptors", counts_.refused_descriptors},
                {"refused_size", counts_.refused_size},
                {"refused_card", counts_.refused_card},
                {"refused_context", counts_.refused_context},
                {"no_memory", counts_.no_memory},
                {"half_open_closed", counts_.half_open_closed},
                {"strikes_closed", counts_.strikes_closed},
                {"slow_reader_closed", counts_.slow_reader_closed},
                {"memory_bytes", services_.used_bytes}};
  std::string text = "\"kind\":\"socket\"";
  for (const auto& count : counts)
    text += std::string(",\"") + count.name + "\":" + std::to_string(count.value.load());
  return text;
}

// --- the control thread ---

void SocketServer::control() {
  std::array<epoll_event, 32> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_fd_, events.data(), events.size(), sweep_timeout_ms());
    // One message per client and round, so that a client that floods waits for the others.
    for (int i = 0; i < count && !stopping_.load(); i++) {
      void* const who = events[static_cast<size_t>(i)].data.ptr;
      if (who == &listen_fd_) {
        accept_client();
      } else if (who == &control_fd_) {
        uint64_t flags = 0;
        [[maybe_unused]] const ssize_t got = read(control_fd_, &flags, sizeof(flags));
      } else {
        serve(*static_cast<SocketClient*>(who));
      }
    }
    sweep(monotonic_ms());
  }
}

int SocketServer::sweep_timeout_ms() const {
  for (const auto& [key, client] : clients_) {
    if (client->connected() && !client->had_context) return 1000;
  }
  return -1;
}

void SocketServer::refuse_connection_without_descriptor() {
  // Otherwise the waiting connection would keep us spinning.
  close(spare_fd_);
  const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) close(fd);
  spare_fd_ = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  counts_.refused_too_many++;
}

void SocketServer::accept_client() {
  const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE) refuse_connection_without_descriptor();
    return;
  }
  ucred credentials = {};
  socklen_t length = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0 ||
      (credentials.uid != geteuid() && credentials.uid != 0)) {
    counts_.refused_user++;
    close(fd);
    return;
  }
  if (clients_.size() >= options_.clients_max) {
    counts_.refused_too_many++;
    close(fd);
    return;
  }
  PeerIdentity peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  if (peer.pid > 0)
    peer.pidfd = static_cast<int>(syscall(SYS_pidfd_open, static_cast<long>(peer.pid), 0L));
  auto client = std::make_unique<SocketClient>(fd, peer, monotonic_ms(), services_);
  client->set_broadcast_fd(broadcast_fd_);
  if (!epoll_add(epoll_fd_, fd, client.get())) {
    counts_.refused_too_many++;
    return;
  }
  counts_.accepted++;
  SocketClient* const key = client.get();
  clients_.emplace(key, std::move(client));
}

void SocketServer::serve(SocketClient& client) {
  if (!client.connected()) return;  // closed earlier in this round
  peal_admin_command command;
  bool carried_descriptors = false;
  const ssize_t received = receive_message(client.fd(), &command, &carried_descriptors);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (received <= 0) {
    disconnect(client);
    return;
  }
  execute(client, command, static_cast<uint32_t>(received), carried_descriptors);
}

// What is wrong with the message as such; the command itself is Admin's to check.
peal_status SocketServer::check_message(const SocketClient& client,
                                        const peal_admin_command& command, uint32_t received_bytes,
                                        bool carried_descriptors) {
  if (carried_descriptors) {
    counts_.refused_descriptors++;
    return PEAL_STATUS_BAD_ADDRESS;
  }
  if (received_bytes != PEAL_ADMIN_BYTES) {
    counts_.refused_size++;
    return PEAL_STATUS_BAD_VERSION;
  }
  if (command.context != 0) {
    counts_.refused_context++;
    return PEAL_STATUS_BAD_FLAGS;
  }
  if (command.opcode == PEAL_ADMIN_OPEN_CONTEXT && !client.has_context() &&
      command.u.open.card_index >= loop_.card_count()) {
    counts_.refused_card++;
    return PEAL_STATUS_BAD_ADDRESS;
  }
  return PEAL_STATUS_OK;
}

void SocketServer::execute(SocketClient& client, const peal_admin_command& command,
                           uint32_t received_bytes, bool carried_descriptors) {
  peal_admin_reply reply;
  peal_status status = check_message(client, command, received_bytes, carried_descriptors);
  if (status != PEAL_STATUS_OK) client.strikes++;
  if (status == PEAL_STATUS_OK) {
    status = client.prepare(command);
    if (status == PEAL_STATUS_NO_RESOURCES) counts_.no_memory++;
  }
  if (status == PEAL_STATUS_OK) {
    Call call = {Call::Kind::kExecute, &client, &command, received_bytes, &reply};
    if (!call_.run(&call)) return;  // the process ends
  } else {
    emulator::Admin::refuse(command, status, &reply);
  }
  client.finish(command, reply);
  const bool sent = send_reply(client, reply);
  client.clear_reply_fds();
  if (!sent) {
    counts_.slow_reader_closed++;
    disconnect(client);
  } else if (client.strikes >= kStrikes) {
    counts_.strikes_closed++;
    disconnect(client);
  }
}

bool SocketServer::send_reply(SocketClient& client, const peal_admin_reply& reply) {
  peal_admin_reply copy = reply;
  iovec part = {&copy, sizeof(copy)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(3 * sizeof(int))> control = {};
  const std::vector<int>& fds = client.reply_fds();
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  return sendmsg(client.fd(), &message, MSG_DONTWAIT | MSG_NOSIGNAL) ==
         static_cast<ssize_t>(sizeof(copy));
}

// Closes the connection and asks the loop to close the context. The client itself goes in sweep(),
// once the loop has let go.
void SocketServer::disconnect(SocketClient& client) {
  if (!client.connected()) return;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, client.fd(), nullptr);
  client.close_connection();
  counts_.closed++;
  if (client.has_context()) {
    Call call = {Call::Kind::kClose, &client, nullptr, 0, nullptr};
    call_.run(&call);
  }
}

void SocketServer::sweep(uint64_t now_ms) {
  for (const auto& [key, client] : clients_) {
    // The loop ended the context of a connected client: a wild index, a reset, or its own
    // CLOSE_CONTEXT. The client learns it from the closed connection.
    if (client->take_gone()) {
      disconnect(*client);
    } else if (client->connected() && !client->had_context &&
               now_ms - client->accepted_ms() > options_.half_open_ms) {
      counts_.half_open_closed++;
      disconnect(*client);
    }
  }
  std::erase_if(clients_, [](const auto& entry) {
    return !entry.second->connected() && !entry.second->has_context();
  });
  const size_t freed = bin_.empty();
  services_.used_bytes.fetch_sub(freed, std::memory_order_relaxed);
}

}  // namespace peal::nic
