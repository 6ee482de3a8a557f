// SPDX-License-Identifier: BSD-2-Clause
// Listening, greeting, hanging up.
#include "emulator/nic/pci/ivshmem_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace peal::nic {
namespace {

constexpr int64_t kProtocolVersion = 0;
constexpr int64_t kGuestPeer = 0;
constexpr int64_t kSharedMemory = -1;

std::string system_error(const std::string& what) { return what + ": " + std::strerror(errno); }

// A number, with a descriptor unless fd is negative.
bool send_number(int socket, int64_t number, int fd) {
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(int))> control = {};
  iovec part = {&number, sizeof(number)};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &fd, sizeof(int));
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(number);
}

// Left by a process that was killed? Then nobody answers there.
bool is_abandoned(const sockaddr_un& address) {
  struct stat info = {};
  if (lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return false;
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return false;
  const bool refused =
      connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno == ECONNREFUSED;
  ::close(probe);
  return refused;
}

}  // namespace

std::string IvshmemServer::listen(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path))
    return "the path '" + path + "' of the ivshmem socket must have 1 to " +
           std::to_string(sizeof(address.sun_path) - 1) + " characters";
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  listen_fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listen_fd_ < 0) return system_error("cannot create the ivshmem socket");
  if (is_abandoned(address)) unlink(path.c_str());
  // Whoever connects reaches the guest's memory: only its owner may.
  const mode_t mask = umask(0177);
  const int bound = bind(listen_fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address));
  const int bind_error = errno;
  umask(mask);
  errno = bind_error;
  if (bound != 0) return system_error("cannot listen on '" + path + "'");
  path_ = path;
  if (::listen(listen_fd_, 4) != 0) return system_error("cannot listen on '" + path + "'");
  return {};
}

void IvshmemServer::close() {
  hang_up();
  if (listen_fd_ >= 0) ::close(listen_fd_);
  listen_fd_ = -1;
  if (!path_.empty()) unlink(path_.c_str());
  path_.clear();
}

int IvshmemServer::accept_one() {
  return accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
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
  const ssize_t got = recv(guest_fd_, &byte, sizeof(byte), MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

void IvshmemServer::hang_up() {
  if (guest_fd_ >= 0) ::close(guest_fd_);
  guest_fd_ = -1;
}

bool IvshmemServer::turn_away() {
  const int other = accept_one();
  if (other < 0) return false;
  ::close(other);
  return true;
}

}  // namespace peal::nic
