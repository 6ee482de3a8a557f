// SPDX-License-Identifier: BSD-2-Clause
// A socket whose close() does not return: it lingers over data that its peer never reads.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>
#include <utility>

namespace peal::nic::test {

class LingeringSocket {
 public:
  LingeringSocket() {
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, name, length) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, name, &length) != 0 || connect(fd_, name, length) != 0)
      throw std::runtime_error("no loopback");
    peer_ = accept(listener, nullptr, nullptr);
    close(listener);
    std::array<char, 65536> bytes = {};
    while (send(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
    }
    const linger forever = {1, 100'000};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &forever, sizeof(forever));
  }
  // With the peer gone nobody lingers any more.
  ~LingeringSocket() {
    const linger never = {1, 0};
    setsockopt(peer_, SOL_SOCKET, SO_LINGER, &never, sizeof(never));
    close(peer_);
    if (fd_ >= 0) close(fd_);
  }
  LingeringSocket(const LingeringSocket&) = delete;
  LingeringSocket& operator=(const LingeringSocket&) = delete;

  [[nodiscard]] int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
  int peer_;
};

}  // namespace peal::nic::test
