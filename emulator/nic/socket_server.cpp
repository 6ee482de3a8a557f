// SPDX-License-Identifier: BSD-2-Clause
// The loop's side first, then the control thread's: accept, receive, hand over, reply, sweep.
#include "emulator/nic/socket_server.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/unix_socket.h"

namespace peal::nic {
namespace {

constexpr uint32_t kSpareClients = 32;  // beside one per context
constexpr uint32_t kStrikes = 16;
constexpr size_t kRefusalsMax = 32;    // under way: each may cost a thread
constexpr int kLookMs = 100;           // at what ends without a word
constexpr uint64_t kLookEveryMs = 10;  // at most
constexpr int kPeerPidfd = 77;  // SO_PEERPIDFD, which older headers have not; since Linux 6.5

bool pass_credentials(int socket) {
  const int on = 1;
  return setsockopt(socket, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) == 0;
}

// The process that connected, which by now may be gone and its number another's: then -1, or what
// is_gone() says so of. Older kernels know only the number.
int peer_pidfd(int socket, pid_t pid) {
  int pidfd = -1;
  socklen_t length = sizeof(pidfd);
  if (pid <= 0) return -1;  // not within our sight
  if (getsockopt(socket, SOL_SOCKET, kPeerPidfd, &pidfd, &length) == 0) return pidfd;
  if (errno != ENOPROTOOPT) return -1;
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<long>(pid), 0L));
}

bool epoll_add(int epoll_fd, int fd, void* data) {
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.ptr = data;
  return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

int open_spare() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

}  // namespace

SocketServer::SocketServer(const SocketOptions& options, LoopServices& loop,
                           const LoopHelpers& helpers)
    : options_(options), loop_(loop), helper_(helpers.wakes), copies_(helpers.copies), call_(loop) {
  if (options_.clients_max == 0)
    options_.clients_max = loop.card_count() * emulator::kContexts + kSpareClients;
  shares_ = std::make_shared<Shares>(options_.shares, loop.card_count(), options_.clients_max,
                                     options_.memory_budget_bytes);
}

std::unique_ptr<SocketServer> SocketServer::create(const SocketOptions& options, LoopServices& loop,
                                                   const LoopHelpers& helpers, std::string* error) {
  std::unique_ptr<SocketServer> server(new SocketServer(options, loop, helpers));
  *error = server->open();
  if (!error->empty()) return nullptr;
  return server;
}

std::string SocketServer::open() {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  control_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  spare_fd_ = open_spare();
  if (epoll_fd_ < 0 || control_fd_ < 0 || spare_fd_ < 0 || !call_.open())
    return system_error("cannot create descriptors for the control thread");
  services_.loop = &loop_;
  services_.helper = &helper_;
  services_.copies = &copies_;
  services_.control_slot = helper_.add_eventfd(control_fd_);
  services_.control_fd = control_fd_;
  services_.bin = &bin_;
  services_.memory = &options_.memory;
  services_.openings = &openings_;
  services_.capabilities =
      options_.capabilities | PEAL_CAPABILITY_SHARED_MEMORY | PEAL_CAPABILITY_PROCESS_MEMORY;
  if (services_.control_slot == kNoWakeSlot) return "no wake slot is left for the socket";
  if (std::string error =
          listener_.listen(options_.path, SOCK_SEQPACKET, shares_->serves_others() ? 0666 : 0600);
      !error.empty())
    return error;
  // Messages say who sent them, from the first one on.
  if (!pass_credentials(listener_.fd()) || !epoll_add(epoll_fd_, listener_.fd(), &listener_) ||
      !epoll_add(epoll_fd_, control_fd_, &control_fd_))
    return system_error("cannot watch the socket");
  accepting_ = true;
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

SocketServer::~SocketServer() {
  // After shut_down(), or after open() failed before there was a thread.
  if (thread_.joinable()) {
    stopping_.store(true);
    call_.close_calls();
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(control_fd_, &one, sizeof(one));
    thread_.join();
  }
  helper_.remove(services_.control_slot);
  clients_.clear();
  bin_.empty();
  // Whoever was never accepted may have sent something already.
  if (const int fd = listener_.release(); fd >= 0) closer_.close(fd);
  for (const int fd : {epoll_fd_, control_fd_, spare_fd_}) {
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
    if (client->connected()) close_connection(*client);
    if (client->has_context())
      loop_.card(client->card()).admin->close_context(client->context(), now);
  }
  listener_.remove_name();
}

nlohmann::ordered_json SocketServer::counters_json() const {
  const struct {
    const char* name;
    const std::atomic<uint64_t>& value;
  } counts[] = {{"accepted", counts_.accepted},
                {"closed", counts_.closed},
                {"refused_user", counts_.refused_user},
                {"refused_too_many", counts_.refused_too_many},
                {"refused_descriptors", counts_.refused_descriptors},
                {"refused_process", counts_.refused_process},
                {"refused_size", counts_.refused_size},
                {"refused_card", counts_.refused_card},
                {"refused_context", counts_.refused_context},
                {"no_memory", counts_.no_memory},
                {"half_open_closed", counts_.half_open_closed},
                {"strikes_closed", counts_.strikes_closed},
                {"overdue_closed", counts_.overdue_closed},
                {"wild_index_closed", counts_.wild_index_closed},
                {"slow_reader_closed", counts_.slow_reader_closed}};
  nlohmann::ordered_json all = {{"kind", "socket"}};
  for (const auto& count : counts) all[count.name] = count.value.load();
  all.update(shares_->counters_json());
  return all;
}

// --- the control thread ---

void SocketServer::control() {
  std::array<epoll_event, 32> events;
  while (!stopping_.load()) {
    const int count = epoll_wait(epoll_fd_, events.data(), events.size(), sweep_timeout_ms());
    // One message per client and round, so that a client that floods waits for the others.
    for (int i = 0; i < count && !stopping_.load(); i++) {
      void* const who = events[static_cast<size_t>(i)].data.ptr;
      if (who == &listener_) {
        accept_client();
      } else if (who == &control_fd_) {
        uint64_t flags = 0;
        [[maybe_unused]] const ssize_t got = read(control_fd_, &flags, sizeof(flags));
      } else {
        serve(*static_cast<SocketClient*>(who));
      }
    }
    sweep(options_.now_ms());
  }
}

int SocketServer::sweep_timeout_ms() const {
  if (!accepting_ || closer_.pending() > 0 || refusals_.pending() > 0) return kLookMs;
  int timeout_ms = bin_.has_kept() ? 1000 : -1;  // nobody has a time that runs out
  for (const auto& [key, client] : clients_) {
    if (!client->connected()) continue;
    if (client->opens()) return kLookMs;
    if (!client->had_context) timeout_ms = 1000;
  }
  return timeout_ms;
}

void SocketServer::refuse_connection_without_descriptor() {
  // Otherwise the waiting connection would keep us spinning.
  close(spare_fd_);
  const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
  if (fd >= 0) refuse_connection(fd, counts_.refused_too_many);
  // The descriptor is still the connection's, until that is closed.
  spare_fd_ = open_spare();
  if (spare_fd_ < 0) stop_accepting();
}

void SocketServer::refuse_connection(int fd, std::atomic<uint64_t>& count) {
  count++;
  shutdown(fd, SHUT_RDWR);
  refusals_.close(fd);
  if (refusals_.pending() >= kRefusalsMax) stop_accepting();
}

void SocketServer::stop_accepting() {
  if (accepting_) epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, listener_.fd(), nullptr);
  accepting_ = false;
}

void SocketServer::accept_again() {
  if (accepting_ || refusals_.pending() >= kRefusalsMax) return;
  if (spare_fd_ < 0) spare_fd_ = open_spare();
  if (spare_fd_ >= 0) accepting_ = epoll_add(epoll_fd_, listener_.fd(), &listener_);
}

void SocketServer::close_connection(SocketClient& client) {
  closer_.close(client.release_connection(),
                [place = client.release_place()]() mutable { place.reset(); });
}

void SocketServer::accept_client() {
  const int fd = accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) {
    if (errno == EMFILE || errno == ENFILE) refuse_connection_without_descriptor();
    return;
  }
  ucred credentials = {};
  socklen_t length = sizeof(credentials);
  std::optional<UserIndex> user;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0)
    user = shares_->user(credentials.uid);
  if (!user) {
    refuse_connection(fd, counts_.refused_user);
    return;
  }
  // A connection that is not closed yet counts: it holds a descriptor, and maybe a thread.
  if (!shares_->connections().take(*user, 1)) {
    refuse_connection(fd, counts_.refused_too_many);
    return;
  }
  PeerIdentity peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  peer.pidfd = peer_pidfd(fd, peer.pid);
  peer.user = *user;
  std::shared_ptr<void> place(
      nullptr, [shares = shares_, user = *user](void*) { shares->connections().give(user, 1); });
  auto client = std::make_unique<SocketClient>(fd, peer, std::make_shared<Account>(shares_, *user),
                                               std::move(place), options_.now_ms(), services_);
  if (!pass_credentials(fd) || !epoll_add(epoll_fd_, fd, client.get())) {
    counts_.refused_too_many++;
    close_connection(*client);
    return;
  }
  counts_.accepted++;
  SocketClient* const key = client.get();
  clients_.emplace(key, std::move(client));
}

void SocketServer::serve(SocketClient& client) {
  if (!client.connected()) return;  // closed earlier in this round
  AdminMessage message;
  switch (receive_message(client.fd(), &message)) {
    case Received::kNothing:
      return;
    case Received::kClosed:
      disconnect(client);
      return;
    case Received::kMessage:
      take(client, message);
  }
}

// What is wrong with the message as such; the command itself is Admin's to check.
peal_status SocketServer::check_message(const AdminMessage& message) {
  if (message.carries_descriptors) return PEAL_STATUS_BAD_ADDRESS;
  if (message.bytes != PEAL_ADMIN_BYTES) {
    counts_.refused_size++;
    return PEAL_STATUS_BAD_VERSION;
  }
  const peal_admin_command& command = message.command;
  if (command.context != 0) {
    counts_.refused_context++;
    return PEAL_STATUS_BAD_FLAGS;
  }
  // Whether it has a context or not: the loop may take that away meanwhile.
  if (command.opcode == PEAL_ADMIN_OPEN_CONTEXT &&
      command.u.open.card_index >= loop_.card_count()) {
    counts_.refused_card++;
    return PEAL_STATUS_BAD_ADDRESS;
  }
  return PEAL_STATUS_OK;
}

void SocketServer::take(SocketClient& client, const AdminMessage& message) {
  peal_status status = check_message(message);
  if (status != PEAL_STATUS_OK) {
    client.strikes++;
  } else {
    status = client.prepare(message.command, message.sender);
    if (client.opens()) return wait_for_memory(client, message);
    if (status == PEAL_STATUS_NO_RESOURCES) counts_.no_memory++;
    if (status == PEAL_STATUS_BAD_ADDRESS) counts_.refused_process++;
  }
  execute(client, message, status);
}

void SocketServer::wait_for_memory(SocketClient& client, const AdminMessage& message) {
  client.asked = message;
  client.asked_ms = options_.now_ms();
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, client.fd(), nullptr);
}

void SocketServer::go_on(SocketClient& client) {
  bool not_as_user = false;
  const peal_status status = client.take_opened(&not_as_user);
  if (status == PEAL_STATUS_NO_RESOURCES) counts_.no_memory++;
  if (not_as_user) tell_unreached(client.peer());
  if (epoll_add(epoll_fd_, client.fd(), &client)) {
    execute(client, client.asked, status);
  } else {
    disconnect(client);
  }
}

// Operations say only that an address is out of reach.
void SocketServer::tell_unreached(const PeerIdentity& peer) {
  if (std::count(unreached_.begin(), unreached_.end(), peer.user) != 0) return;
  unreached_.push_back(peer.user);
  log_.write("memory that processes of user " + std::to_string(peer.uid) +
                 " register is out of reach: peal-nic may not become that user (CAP_SETUID, "
                 "CAP_SETGID)",
             options_.now_ms());
}

void SocketServer::execute(SocketClient& client, const AdminMessage& message, peal_status status) {
  const peal_admin_command& command = message.command;
  peal_admin_reply reply;
  if (status == PEAL_STATUS_OK) {
    Call call = {Call::Kind::kExecute, &client, &command, message.bytes, &reply};
    if (!call_.run(&call)) return;  // the process ends
  } else {
    emulator::Admin::refuse(command, status, &reply);
  }
  client.finish(command, reply);
  const bool sent = send_reply(client, reply);
  client.clear_reply_fds();
  if (message.carries_descriptors) {
    expel(client, counts_.refused_descriptors,
          "sent file descriptors, which the card takes from nobody");
  } else if (!sent) {
    expel(client, counts_.slow_reader_closed, "does not read its replies");
  } else if (client.strikes >= kStrikes) {
    expel(client, counts_.strikes_closed, "sent too many malformed messages");
  }
}

bool SocketServer::send_reply(SocketClient& client, const peal_admin_reply& reply) {
  return send_with_descriptors(client.fd(), &reply, sizeof(reply), client.reply_fds(),
                               MSG_DONTWAIT) == static_cast<ssize_t>(sizeof(reply));
}

// Closes the connection and asks the loop to close the context. The client itself goes in sweep(),
// once the loop has let go.
void SocketServer::disconnect(SocketClient& client) {
  if (!client.connected()) return;
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, client.fd(), nullptr);
  close_connection(client);
  counts_.closed++;
  if (client.has_context()) {
    Call call = {Call::Kind::kClose, &client, nullptr, 0, nullptr};
    call_.run(&call);
  }
}

void SocketServer::expel(SocketClient& client, std::atomic<uint64_t>& count, const char* why) {
  count++;
  log_.write("process " + std::to_string(client.peer().pid) + " of user " +
                 std::to_string(client.peer().uid) + " " + why + ": its connection is closed",
             options_.now_ms());
  disconnect(client);
}

void SocketServer::sweep(uint64_t now_ms) {
  for (const auto& [key, client] : clients_) {
    // The loop ended the context of a connected client: a wild index, a reset, or its own
    // CLOSE_CONTEXT. The client learns it from the closed connection.
    const bool gone = client->take_gone();
    const emulator::EndReason fault = client->take_fault();
    if (fault == emulator::EndReason::kCopyOverdue && client->connected()) {
      expel(*client, counts_.overdue_closed, "did not let the card reach its memory in time");
    } else if (fault == emulator::EndReason::kWildIndex && client->connected()) {
      expel(*client, counts_.wild_index_closed, "wrote an impossible index");
    } else if (gone) {
      disconnect(*client);
    } else if (client->connected() && client->has_opened()) {
      go_on(*client);
    } else if (client->connected() && client->opens() &&
               now_ms - client->asked_ms > options_.copy_deadline_ms) {
      expel(*client, counts_.overdue_closed, "did not let the card open its memory in time");
    } else if (client->connected() && !client->had_context &&
               now_ms - client->accepted_ms() > options_.half_open_ms) {
      expel(*client, counts_.half_open_closed, "opens no context");
    }
  }
  std::erase_if(clients_, [](const auto& entry) {
    return !entry.second->connected() && !entry.second->has_context();
  });
  bin_.empty();
  if (now_ms - looked_ms_ >= kLookEveryMs) look_after_what_ends(now_ms);
  accept_again();
}

void SocketServer::look_after_what_ends(uint64_t now_ms) {
  looked_ms_ = now_ms;
  bin_.look_again();
  for (Closer* const closer : {&closer_, &refusals_}) {
    if (closer->pending() > 0) closer->hurry();
  }
  openings_.retry();
}

}  // namespace peal::nic
