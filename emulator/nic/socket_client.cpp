// SPDX-License-Identifier: BSD-2-Clause
// Memory for one client, within its share (shares.h).
#include "emulator/nic/socket_client.h"
#include "firmware/channels.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/file_descriptor.h"

namespace peal::nic {

// Memory of the process that somebody opens, who may outlive the client.
struct SocketClient::Opening {
  FileDescriptor pidfd;
  FileDescriptor control_fd;
  std::atomic<bool> done{false};
  // Whoever opens it writes them first.
  FileDescriptor memory;
  bool no_resources = false;
  bool not_as_user = false;
};

SocketClient::SocketClient(int fd, PeerIdentity peer, std::shared_ptr<Account> account,
                           std::shared_ptr<void> place, uint64_t accepted_ms,
                           ClientServices& services)
    : services_(services),
      fd_(fd),
      peer_(peer),
      account_(std::move(account)),
      place_(std::move(place)),
      accepted_ms_(accepted_ms) {}

SocketClient::~SocketClient() {
  clear_reply_fds();
  if (prepared_ != nullptr) services_.bin->throw_in(prepared_);
  close_prepared();
  if (window_ != nullptr) services_.bin->throw_in(window_);
  services_.copies->release(lane_);
  services_.helper->remove(broadcast_slot_);
  destroy(broadcast_);
  for (const int fd : {kick_fd_, broadcast_fd_, peer_.pidfd, fd_}) {
    if (fd >= 0) close(fd);
  }
}

int SocketClient::release_connection() {
  const int fd = fd_;
  fd_ = -1;
  if (fd >= 0) shutdown(fd, SHUT_RDWR);
  return fd;
}

peal_status SocketClient::prepare_shared(const char* name, uint64_t bytes) {
  const size_t pages = whole_pages(bytes);
  if (pages == 0) return PEAL_STATUS_BAD_LENGTH;
  if (!account_->take_shared_memory(pages)) {
    // What was unregistered may be the client's no longer.
    services_.bin->look_again();
    if (!account_->take_shared_memory(pages)) return PEAL_STATUS_NO_RESOURCES;
  }
  prepared_ = create_shared(name, pages, Sharing::kReadWrite, &prepared_fd_);
  if (prepared_ == nullptr) {
    account_->give_shared_memory(pages);
    return PEAL_STATUS_NO_RESOURCES;
  }
  prepared_->let_go = [account = account_](size_t freed) { account->give_shared_memory(freed); };
  return know_holders(prepared_, &prepared_fd_) ? PEAL_STATUS_OK : PEAL_STATUS_NO_RESOURCES;
}

peal_status SocketClient::prepare_private(uint64_t bytes) {
  if (!account_->take_memory(bytes)) return PEAL_STATUS_NO_RESOURCES;
  prepared_ = create_private(bytes);
  if (prepared_ == nullptr) {
    account_->give_memory(bytes);
    return PEAL_STATUS_NO_RESOURCES;
  }
  prepared_->let_go = [account = account_](size_t freed) { account->give_memory(freed); };
  return PEAL_STATUS_OK;
}

peal_status SocketClient::prepare_context() {
  if (has_context()) return PEAL_STATUS_BUSY;
  const peal_status status = prepare_shared("peal-window", emulator::kWindowBytes);
  if (status != PEAL_STATUS_OK) return status;
  if (kick_fd_ < 0) kick_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (broadcast_ == nullptr)
    broadcast_ = create_shared("peal-broadcast", sizeof(peal_broadcast_page),
                               Sharing::kReadOnlyForOthers, &broadcast_fd_);
  if (broadcast_ != nullptr && broadcast_slot_ == kNoWakeSlot)
    broadcast_slot_ = services_.helper->add_futex(
        &static_cast<peal_broadcast_page*>(broadcast_->base)->wake_word);
  return kick_fd_ < 0 || broadcast_slot_ == kNoWakeSlot ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_status SocketClient::prepare_process_memory(pid_t sender) {
  // An address means something in the process that connected; a child that inherited the
  // connection would get its parent's memory.
  if (sender != peer_.pid || peer_.pidfd < 0 || is_gone(peer_.pidfd))
    return PEAL_STATUS_BAD_ADDRESS;
  if (!has_context()) return PEAL_STATUS_OK;
  if (lane_ == nullptr) lane_ = services_.copies->acquire();
  if (lane_ == nullptr) return PEAL_STATUS_NO_RESOURCES;
  return services_.memory->is_opened(peer_.uid) ? begin_opening() : PEAL_STATUS_OK;
}

// The kernel lets nobody at the memory of a process that executes another program, until the
// descriptors that are closed meanwhile are; and one may be a file whose server never answers.
peal_status SocketClient::begin_opening() {
  auto opening = std::make_shared<Opening>();
  opening->pidfd.reset(fcntl(peer_.pidfd, F_DUPFD_CLOEXEC, 0));
  opening->control_fd.reset(fcntl(services_.control_fd, F_DUPFD_CLOEXEC, 0));
  if (!opening->pidfd.valid() || !opening->control_fd.valid()) return PEAL_STATUS_NO_RESOURCES;
  opening_ = opening;
  // A connection's place is not another's before the thread has come back: so there are not more of
  // these than connections, whoever hangs up.
  services_.openings->add([opening, open = services_.memory->open, pid = peer_.pid, uid = peer_.uid,
                           gid = peer_.gid, place = place_] {
    const OpenedMemory memory = open(pid, opening->pidfd.get(), uid, gid);
    opening->memory.reset(memory.fd);
    opening->no_resources = memory.no_resources;
    opening->not_as_user = memory.not_as_user;
    opening->done.store(true, std::memory_order_release);
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = write(opening->control_fd.get(), &one, sizeof(one));
  });
  return PEAL_STATUS_OK;
}

bool SocketClient::has_opened() const {
  return opening_ != nullptr && opening_->done.load(std::memory_order_acquire);
}

peal_status SocketClient::take_opened(bool* not_as_user) {
  const std::shared_ptr<Opening> opening = std::exchange(opening_, nullptr);
  *not_as_user = opening->not_as_user;
  if (opening->no_resources) return PEAL_STATUS_NO_RESOURCES;
  // What its user cannot reach is no error here: it is found out by the copies, as elsewhere.
  prepared_memory_ =
      opening->memory.valid() ? opening->memory.release() : emulator::RegionTable::kOutOfReach;
  return PEAL_STATUS_OK;
}

peal_status SocketClient::prepare(const peal_admin_command& command, pid_t sender) {
  switch (command.opcode) {
    case PEAL_ADMIN_OPEN_CONTEXT:
      return prepare_context();
    case PEAL_ADMIN_REGISTER_MEMORY:
      if (command.u.register_memory.kind == PEAL_MEMORY_PROCESS)
        return prepare_process_memory(sender);
      if (!has_context() || command.u.register_memory.kind != PEAL_MEMORY_ALLOCATE ||
          command.u.register_memory.bytes == 0)
        return PEAL_STATUS_OK;
      return prepare_shared("peal-memory", command.u.register_memory.bytes);
    case PEAL_ADMIN_RESERVE_GROUP:
      return has_context() ? prepare_private(kChannelsBytes) : PEAL_STATUS_OK;
    default:
      return PEAL_STATUS_OK;
  }
}

void SocketClient::finish(const peal_admin_command& command, const peal_admin_reply& reply) {
  if (prepared_ != nullptr) {
    // Not taken. Unmapped by this very thread when it empties the bin, which settles the budget.
    services_.bin->throw_in(prepared_);
    prepared_ = nullptr;
  }
  if (reply.status == PEAL_STATUS_OK && prepared_fd_ >= 0) {
    reply_fds_.push_back(prepared_fd_);
    prepared_fd_ = -1;
    if (command.opcode == PEAL_ADMIN_OPEN_CONTEXT) {
      had_context = true;
      const int others[] = {broadcast_fd_, kick_fd_};
      for (const int other : others) {
        const int copy = fcntl(other, F_DUPFD_CLOEXEC, 0);
        if (copy >= 0) reply_fds_.push_back(copy);
      }
    }
  }
  close_prepared();
}

void SocketClient::close_prepared() {
  for (const int fd : {prepared_fd_, prepared_memory_}) {
    if (fd >= 0) close(fd);
  }
  prepared_fd_ = -1;
  prepared_memory_ = emulator::RegionTable::kByNumber;
}

void SocketClient::clear_reply_fds() {
  for (const int fd : reply_fds_) close(fd);
  reply_fds_.clear();
}

// Regions may outlive us (channels do), so the functions hold what they need, and not us.
emulator::RegionTable::Release SocketClient::key_freed(Mapping* mapping) {
  return [services = &services_, account = account_, card = card_, mapping] {
    account->give_key(card);
    if (mapping == nullptr) return;
    services->bin->throw_in(mapping);
    services->loop->ring(services->control_slot);
  };
}

emulator::RegionTable::Release SocketClient::group_freed(Mapping* mapping) {
  return [services = &services_, account = account_, card = card_, mapping] {
    account->give_group(card);
    services->bin->throw_in(mapping);
    services->loop->ring(services->control_slot);
  };
}

peal_status SocketClient::open_window(ContextId context, uint64_t* offset) {
  if (prepared_ == nullptr || prepared_->bytes < emulator::kWindowBytes)
    return PEAL_STATUS_NO_RESOURCES;
  if (!account_->take_context(card_)) return PEAL_STATUS_NO_RESOURCES;
  if (!services_.loop->watch(kick_fd_)) {
    account_->give_context(card_);
    return PEAL_STATUS_NO_RESOURCES;
  }
  window_ = prepared_;
  prepared_ = nullptr;
  services_.loop->card(card_).windows->open(context, window_->base, services_.capabilities, this);
  *offset = 0;
  context_.store(context, std::memory_order_release);
  return PEAL_STATUS_OK;
}

void SocketClient::context_ending(ContextId, emulator::EndReason reason) {
  if (reason != emulator::EndReason::kCopyOverdue && reason != emulator::EndReason::kWildIndex)
    return;
  fault_.store(reason, std::memory_order_release);
  services_.loop->ring(services_.control_slot);
}

void SocketClient::context_gone(ContextId context) {
  services_.loop->unwatch(kick_fd_);
  services_.loop->card(card_).lanes->detach_lane(context);
  account_->give_context(card_);
  services_.bin->throw_in(window_);
  window_ = nullptr;
  // Last touch by the loop: afterwards the control thread may delete this client.
  WakeSlot const slot = services_.control_slot;
  LoopServices* const loop = services_.loop;
  gone_.store(true, std::memory_order_release);
  context_.store(emulator::kNoContext, std::memory_order_release);
  loop->ring(slot);
}

peal_status SocketClient::make_memory(const peal_register_memory& request, RegionId* region) {
  if (request.kind == PEAL_MEMORY_ALLOCATE) return make_allocated(request, region);
  if (request.kind == PEAL_MEMORY_PROCESS) return make_process(request, region);
  return PEAL_STATUS_BAD_ADDRESS;
}

peal_status SocketClient::make_allocated(const peal_register_memory& request, RegionId* region) {
  if (request.address != 0) return PEAL_STATUS_BAD_ADDRESS;
  if (prepared_ == nullptr || prepared_->bytes < request.bytes || !account_->take_key(card_))
    return PEAL_STATUS_NO_RESOURCES;
  Mapping* const mapping = std::exchange(prepared_, nullptr);
  *region = services_.loop->card(card_).regions->put_mapped(static_cast<uint8_t*>(mapping->base),
                                                            request.bytes, key_freed(mapping));
  return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_status SocketClient::make_process(const peal_register_memory& request, RegionId* region) {
  if (request.address == 0 || peer_.pid <= 0 || peer_.pidfd < 0 || lane_ == nullptr)
    return PEAL_STATUS_BAD_ADDRESS;
  if (!account_->take_key(card_)) return PEAL_STATUS_NO_RESOURCES;
  const bool by_number = prepared_memory_ == emulator::RegionTable::kByNumber;
  // A descriptor of memory says by itself when that is gone.
  const int pidfd = by_number ? fcntl(peer_.pidfd, F_DUPFD_CLOEXEC, 0) : -1;
  if (by_number && pidfd < 0) {
    account_->give_key(card_);
    return PEAL_STATUS_NO_RESOURCES;
  }
  const CardHost host = services_.loop->card(card_);
  host.lanes->attach_lane(context(), lane_);
  *region = host.regions->put_process(
      peer_.pid, pidfd, request.address, request.bytes, key_freed(nullptr),
      std::exchange(prepared_memory_, emulator::RegionTable::kByNumber));
  return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

peal_status SocketClient::make_channels(const peal_reserve_group& request, RegionId* region) {
  // Over a socket the card brings the memory.
  if (request.channel_pages != 0 || request.channel_list_bytes != 0) return PEAL_STATUS_BAD_FLAGS;
  if (prepared_ == nullptr || prepared_->bytes < kChannelsBytes || !account_->take_group(card_))
    return PEAL_STATUS_NO_RESOURCES;
  Mapping* const mapping = std::exchange(prepared_, nullptr);
  *region = services_.loop->card(card_).regions->put_mapped(static_cast<uint8_t*>(mapping->base),
                                                            kChannelsBytes, group_freed(mapping));
  return *region == emulator::kNoRegion ? PEAL_STATUS_NO_RESOURCES : PEAL_STATUS_OK;
}

void SocketClient::wake_host(emulator::ContextWindow&) {
  // Sleepers compare the word before they sleep, so it changes before they are woken.
  auto* const page = static_cast<peal_broadcast_page*>(broadcast_->base);
  __atomic_fetch_add(&page->wake_word, 1, __ATOMIC_RELEASE);
  services_.loop->ring(broadcast_slot_);
}

}  // namespace peal::nic
