// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/admin_message.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace peal::nic {

Received receive_message(int fd, AdminMessage* message) {
  // One byte more than a command, so that a longer message shows.
  std::array<uint8_t, PEAL_ADMIN_BYTES + 1> bytes;
  // Room for the credentials and for nothing else.
  alignas(cmsghdr) std::array<uint8_t, CMSG_SPACE(sizeof(ucred))> control;
  iovec part = {bytes.data(), bytes.size()};
  msghdr header = {};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t received = recvmsg(fd, &header, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (received < 0 && (errno == EAGAIN || errno == EINTR)) return Received::kNothing;
  if (received <= 0) return Received::kClosed;
  *message = {};
  message->bytes = static_cast<uint32_t>(received);
  std::memcpy(&message->command, bytes.data(),
              std::min(static_cast<size_t>(received), sizeof(message->command)));
  const cmsghdr* const first = CMSG_FIRSTHDR(&header);
  if (first != nullptr && first->cmsg_level == SOL_SOCKET && first->cmsg_type == SCM_CREDENTIALS &&
      first->cmsg_len == CMSG_LEN(sizeof(ucred))) {
    ucred sender = {};
    std::memcpy(&sender, CMSG_DATA(first), sizeof(sender));
    message->sender = sender.pid;
  }
  message->carries_descriptors = (header.msg_flags & MSG_CTRUNC) != 0;
  // Nothing comes with it: taking it throws nothing of anybody's away.
  if (!message->carries_descriptors) recv(fd, bytes.data(), 1, MSG_DONTWAIT);
  return Received::kMessage;
}

}  // namespace peal::nic
