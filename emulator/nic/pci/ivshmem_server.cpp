// SPDX-License-Identifier: BSD-2-Clause
// Listening, greeting, hanging up.
#include "emulator/nic/pci/ivshmem_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "base/unix_socket.h"

namespace peal::nic {
namespace {

constexpr int64_t kProtocolVersion = 0;
constexpr int64_t kGuestPeer = 0;
constexpr int64_t kSharedMemory = -1;

// A number, with a descriptor unless fd is negative.
bool send_number(int socket, int64_t number, int fd) {
  const std::span<const int> descriptors(&fd, fd >= 0 ? 1 : 0);
  return send_with_descriptors(socket, &number, sizeof(number), descriptors, MSG_DONTWAIT) ==
         sizeof(number);
}

}  // namespace

std::string IvshmemServer::listen(const std::string& path) {
  // Whoever connects reaches the guest's memory: only its owner may.
  return listener_.listen(path, SOCK_STREAM, 0600);
}

void IvshmemServer::close() {
  hang_up();
  if (const int fd = listener_.release(); fd >= 0) closer_.close(fd);
}

int IvshmemServer::accept_one() {
  return accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

bool IvshmemServer::accept() {
  guest_fd_ = accept_one();
  return guest_fd_ >= 0;
}

bool IvshmemServer::greet(const IvshmemGreeting& greeting) {
  bool ok = send_number(guest_fd_, kProtocolVersion, -1) &&
            send_number(guest_fd_, kGuestPeer, -1) &&
            send_number(guest_fd_, kSharedMemory, greeting.bar_fd);
  for (const int fd : greeting.doorbell_fds)
    ok = ok && send_number(guest_fd_, PEAL_PCI_CARD_PEER, fd);
  for (const int fd : greeting.interrupt_fds) ok = ok && send_number(guest_fd_, kGuestPeer, fd);
  return ok;
}

bool IvshmemServer::guest_present() {
  uint8_t byte = 0;
  // Not taken: what comes with it may not be thrown away here (closer.h).
  const ssize_t got = recv(guest_fd_, &byte, sizeof(byte), MSG_DONTWAIT | MSG_PEEK);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void IvshmemServer::hang_up() {
  if (guest_fd_ >= 0) {
    shutdown(guest_fd_, SHUT_RDWR);
    closer_.close(guest_fd_);
  }
  guest_fd_ = -1;
}

bool IvshmemServer::turn_away() {
  const int other = accept_one();
  if (other < 0) return false;
  closer_.close(other);
  return true;
}

}  // namespace peal::nic
