// SPDX-License-Identifier: BSD-2-Clause
// The seam between the library and the way to a card: a Unix socket to an emulated card
// (transport_socket.cpp), or the kernel driver (transport_char.cpp). It sets up; operations go
// through the window that it maps (abi/window.h).
//
// Administrative calls (allocate, release, ask) may come from any thread; the transport serialises
// them. The others are called under the context's lock, except sleep(), which one thread at a time
// calls without it, and wake(), which ends that sleep early.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "abi/admin.h"
#include "hostlib/error.h"
#include "hostlib/url.h"

namespace peal::host {

// The context window as mapped here, already checked (window.h).
struct Window {
  uint8_t* base = nullptr;
  size_t bytes = 0;
  uint32_t entries = 0;  // of both rings
};

// Memory that the transport made for peal_alloc().
struct Allocation {
  uint8_t* address = nullptr;
  size_t mapped_bytes = 0;
  uint32_t key = 0;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual const Window& window() const = 0;

  virtual peal_error allocate(size_t bytes, Allocation* allocation) = 0;
  // Unregisters and unmaps. BUSY leaves everything as it was.
  virtual peal_error release(const Allocation& allocation) = 0;
  // Only unmaps, for whoever closes the context: the card drops what it has with the connection.
  virtual void unmap(const Allocation& allocation) = 0;
  // Ends the context, and waits until the card has let go of what this process registered, so long
  // at most. Afterwards only unmap() and the destructor may be called. Nothing where a driver ends
  // contexts: it keeps the pages until the card has let go.
  virtual void end_context(int patience_ms) { (void)patience_ms; }

  // Carries one administrative command to the card (administration.h makes them) and brings its
  // reply. A status other than OK is an error here, whose text names the command and the status.
  virtual peal_error ask(const peal_admin_command& command, peal_admin_reply* reply) = 0;

  // Counts how often registered memory has left the process (munmap, mremap, MADV_DONTNEED and the
  // like), where a registration means pages and not addresses; null where it means addresses, and
  // what is mapped there now is what the card reaches.
  [[nodiscard]] virtual const std::atomic<uint64_t>* departures() const { return nullptr; }
  // A key whose memory has left, each once; false when there is none.
  virtual bool next_departed(uint32_t* key) {
    (void)key;
    return false;
  }

  // Makes a sleeping card look at the rings.
  virtual void ring_doorbell() = 0;
  // A token taken after the ring's sleeping flag was set and before it was looked at once more;
  // sleep() returns at once when the card has announced something since.
  virtual uint32_t sleep_token() = 0;
  virtual void sleep(uint32_t token, int timeout_ms) = 0;
  virtual void wake() = 0;
  // False once it is certain that the card is gone. May make a system call.
  virtual bool connected() = 0;
  // The card was silent for so long that it counts as gone: from now on it does so here as well,
  // and each administrative call ends with CARD_GONE at once. Nothing where a driver sees to that.
  virtual void give_up() noexcept {}

  // In a child of fork(): closes its copies of the descriptors, and nothing else;
  // async-signal-safe. Afterwards only the destructor may be called, and need not be.
  virtual void leave_to_parent() noexcept = 0;
};

peal_error open_socket_transport(const CardUrl& url, std::unique_ptr<Transport>* transport);
peal_error open_char_transport(const CardUrl& url, std::unique_ptr<Transport>* transport);

}  // namespace peal::host
