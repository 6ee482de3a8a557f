// SPDX-License-Identifier: BSD-2-Clause
// Unix sockets: names, and messages that carry descriptors.
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/file_descriptor.h"

namespace peal {

// Of the path of a socket; the last byte ends it.
inline constexpr size_t kUnixPathMax = sizeof(sockaddr_un::sun_path) - 1;

struct UnixAddress {
  sockaddr_un name = {};

  // False, with errno ENAMETOOLONG, for a path of no or too many characters.
  [[nodiscard]] bool set(const std::string& path) {
    name = {};
    name.sun_family = AF_UNIX;
    if (path.empty() || path.size() > kUnixPathMax) {
      errno = ENAMETOOLONG;
      return false;
    }
    std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
    return true;
  }
  [[nodiscard]] const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
  static constexpr socklen_t bytes() { return sizeof(sockaddr_un); }
};

// Of one message here; the kernel's own limit is 253.
inline constexpr size_t kDescriptorsMax = 8;

// One message; the descriptors stay the sender's. As sendmsg(): bytes sent, or -1 with errno.
inline ssize_t send_with_descriptors(int socket, const void* data, size_t bytes,
                                     std::span<const int> descriptors, int flags) {
  if (descriptors.size() > kDescriptorsMax) {
    errno = EINVAL;
    return -1;
  }
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control = {};
  iovec part = {const_cast<void*>(data), bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return retried([&] { return sendmsg(socket, &message, flags | MSG_NOSIGNAL); });
}

struct ReceivedMessage {
  ssize_t bytes = -1;      // as recvmsg(): 0 when the other side has gone, -1 with errno
  size_t descriptors = 0;  // how many are in `descriptors` now, close-on-exec
  bool cut = false;        // the message was longer than `bytes`
};

// One message of up to `bytes`, and as many descriptors as there is room for; the kernel closes the
// others. They are received before anything is judged, so that nothing stays open with nobody.
inline ReceivedMessage receive_with_descriptors(int socket, void* data, size_t bytes,
                                                std::span<FileDescriptor> descriptors, int flags) {
  ReceivedMessage received;
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(kDescriptorsMax * sizeof(int))> control = {};
  iovec part = {data, bytes};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(std::min(descriptors.size(), kDescriptorsMax) * sizeof(int));
  received.bytes = retried([&] { return recvmsg(socket, &message, flags | MSG_CMSG_CLOEXEC); });
  if (received.bytes < 0) return received;
  received.cut = (message.msg_flags & MSG_TRUNC) != 0;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; i++) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      FileDescriptor owned(fd);  // CMSG_SPACE rounds up: there may be one more than was wanted
      if (received.descriptors < descriptors.size())
        descriptors[received.descriptors++] = std::move(owned);
    }
  }
  return received;
}

}  // namespace peal
