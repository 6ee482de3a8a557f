// SPDX-License-Identifier: BSD-2-Clause
// The seam between the loop of peal-nic and the ways a host reaches its cards: the Unix socket
// (socket_server.h) and the PCI card (pci/). An interface brings clients in and carries their
// administrative commands; the rings themselves are polled by the loop, through each card's
// Windows, so that the hot path makes no virtual call per window.
//
// Everything here is called on the loop's thread and must be bounded and must not block: a slow or
// hostile client may never stall the cards.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "emulator/common/admin.h"
#include "emulator/common/mapped_windows.h"
#include "emulator/common/region_table.h"
#include "firmware/card.h"

namespace peal::nic {

class CopyLane;

// Where the copies of a context's process memory queue (copy_pool.h).
class CopyLanes {
 public:
  virtual void attach_lane(ContextId context, CopyLane* lane) = 0;
  // When the context is gone.
  virtual void detach_lane(ContextId context) = 0;

 protected:
  ~CopyLanes() = default;
};

// One card, as interfaces see it.
struct CardHost {
  Card* card;
  emulator::Admin* admin;  // OPEN_CONTEXT and so on
  emulator::MappedWindows* windows;
  emulator::RegionTable* regions;
  CopyLanes* lanes;
  uint32_t index;  // within the process
};

// A place in the helper thread that makes wake-up system calls for the loop.
using WakeSlot = uint32_t;
inline constexpr WakeSlot kNoWakeSlot = ~0u;

// What the loop offers to interfaces. It outlives them.
class LoopServices {
 public:
  [[nodiscard]] virtual uint32_t card_count() const = 0;
  virtual CardHost card(uint32_t index) = 0;

  // The loop sleeps in epoll_wait: anything written to this descriptor (edge-triggered, so nobody
  // need read it) ends the sleep. The descriptor stays the caller's; unwatch before closing it.
  virtual bool watch(int fd) = 0;
  virtual void unwatch(int fd) = 0;

  // The helper thread writes 1 to this eventfd (a duplicate is kept) each time ring() is called;
  // several calls may become one. kNoWakeSlot when there is no room.
  virtual WakeSlot add_wake_eventfd(int fd) = 0;
  virtual void remove_wake(WakeSlot slot) = 0;
  // Cheap and without system call unless the helper is parked.
  virtual void ring(WakeSlot slot) = 0;

 protected:
  ~LoopServices() = default;
};

class HostInterface {
 public:
  virtual ~HostInterface() = default;

  // Once per turn while the loop is awake: at most a few commands. True when it did anything (keeps
  // the loop awake). Must cost next to nothing when there is nothing to do:
  // no system call in most turns.
  virtual bool poll(TimeNs now) = 0;

  // The loop wants to sleep: announce it where the interface has sleeping flags of its own (the
  // windows' flags are the loop's), fence; afterwards poll() is called once more. False: not now.
  virtual bool prepare_to_sleep() = 0;
  // Awake again; some watched descriptor may have been written to, or a time-out passed.
  virtual void awake(TimeNs now) = 0;

  // Several times a second, asleep or not: heartbeat blocks outside windows.
  // interval_us is what to announce.
  virtual void beat(uint64_t beats, uint32_t interval_us) = 0;

  // The process ends: close clients' contexts, remove files, unwatch descriptors.
  // poll() is not called afterwards.
  virtual void shut_down(TimeNs now) = 0;

  // For --counters-json: an object of names and values.
  [[nodiscard]] virtual nlohmann::ordered_json counters_json() const = 0;
};

struct PciOptions {
  std::string socket_path;
  std::string ram_path;
  uint64_t ram_bytes = uint64_t{256} << 20;
};

// `--pci SOCKET,RAMFILE[,SIZE_MIB]`: one guest with one card (emulator/nic/pci/pci_interface.cpp).
// Null on failure, with *error saying what was wrong and what to do.
std::unique_ptr<HostInterface> make_pci_interface(const PciOptions& options, CardHost card,
                                                  LoopServices& services, std::string* error);

}  // namespace peal::nic
