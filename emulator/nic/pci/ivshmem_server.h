// SPDX-License-Identifier: BSD-2-Clause
// The server's side of QEMU's ivshmem protocol (docs/specs/ivshmem-spec.txt of QEMU), for one guest
// at a time: 8-byte little-endian numbers over a Unix stream socket, some with a descriptor. The
// guest is peer 0, the card peer 1. After the greeting the guest has nothing to say; that it closes
// the socket is how we learn that it is gone.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "abi/pci.h"
#include "emulator/nic/closer.h"
#include "emulator/nic/unix_listener.h"

namespace peal::nic {

// What a guest is given. The descriptors stay the caller's.
struct IvshmemGreeting {
  int bar_fd;                                       // BAR2
  std::array<int, PEAL_PCI_VECTORS> doorbell_fds;   // the guest's writes arrive here
  std::array<int, PEAL_PCI_VECTORS> interrupt_fds;  // writes raise MSI-X
};

class IvshmemServer {
 public:
  IvshmemServer() = default;
  ~IvshmemServer() { close(); }
  IvshmemServer(const IvshmemServer&) = delete;
  IvshmemServer& operator=(const IvshmemServer&) = delete;

  // Empty, or what was wrong and what to do. A socket that nobody listens on is replaced.
  std::string listen(const std::string& path);
  // Also removes the socket's name.
  void close();

  // None of these block.
  // Takes a waiting guest; false when there is none. Ours must have been closed before.
  bool accept();
  // Sends everything; false when the guest did not take it.
  [[nodiscard]] bool greet(const IvshmemGreeting& greeting);
  // Whether the guest is still there. It may not send anything: if it does, it is not QEMU.
  [[nodiscard]] bool guest_present();
  void hang_up();
  // A second guest is told so by being hung up on; true when there was one.
  bool turn_away();

  [[nodiscard]] int listen_fd() const { return listener_.fd(); }
  [[nodiscard]] int guest_fd() const { return guest_fd_; }

 private:
  int accept_one();

  UnixListener listener_;
  Closer closer_;  // all this happens on the loop, which waits for nobody
  int guest_fd_ = -1;
};

}  // namespace peal::nic
