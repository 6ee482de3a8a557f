// SPDX-License-Identifier: BSD-2-Clause
// One administrative message, read from a client's socket without taking anything else. Descriptors
// that come with it are never received, nor discarded: the last close of a stranger's descriptor
// may block. They stay in the queue, which goes with the connection (closer.h).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "abi/admin.h"

namespace peal::nic {

struct AdminMessage {
  peal_admin_command command;  // zeros behind what was received
  uint32_t bytes;              // of the message; more than a command has when it is longer
  pid_t sender;                // who sent it, by the kernel's word; 0 when unknown
  bool carries_descriptors;    // it was left in the queue: take nothing more from this socket
};

enum class Received : uint8_t { kMessage, kNothing, kClosed };

// Never blocks. The socket must have SO_PASSCRED.
Received receive_message(int fd, AdminMessage* message);

}  // namespace peal::nic
