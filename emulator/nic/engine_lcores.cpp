// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/nic/engine_lcores.h"

#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>
#include <sched.h>

#include <array>

namespace peal::nic {
namespace {

constexpr uint32_t kRingFrames = 8192;
// Looks in vain before the processor is given away once: it may be shared with hosts.
constexpr uint32_t kVainLooks = 64;

rte_ring* create_ring(const std::string& name, unsigned flags) {
  return rte_ring_create(name.c_str(), kRingFrames, SOCKET_ID_ANY, flags);
}

std::string no_ring(const std::string& whose) {
  return "cannot create the ring of " + whose + ": " + rte_strerror(rte_errno);
}

}  // namespace

std::string EngineLcores::start(uint32_t engines, uint32_t lcores,
                                const std::vector<rte_ring*>& receivers) {
  receivers_ = receivers;
  returned_ = create_ring("peal_returned", RING_F_SC_DEQ);
  if (returned_ == nullptr) return no_ring("what finds no room");
  for (uint32_t engine = 0; engine < engines; engine++) {
    rte_ring* const ring =
        create_ring("peal_engine_" + std::to_string(engine), RING_F_SP_ENQ | RING_F_SC_DEQ);
    if (ring == nullptr) return no_ring("transmit engine " + std::to_string(engine));
    engines_.push_back(ring);
  }
  for (uint32_t i = 0; i < lcores; i++) {
    workers_.push_back(std::make_unique<Worker>());
    Worker& worker = *workers_.back();
    worker.all = this;
    for (uint32_t engine = i; engine < engines; engine += lcores)
      worker.engines.push_back(engines_[engine]);
    if (rte_eal_remote_launch(&EngineLcores::serve, &worker, 1 + i) != 0) {
      workers_.pop_back();
      return "lcore " + std::to_string(1 + i) + " of the transmit engines does not start";
    }
  }
  return {};
}

EngineLcores::~EngineLcores() {
  stopping_.store(true, std::memory_order_release);
  resume();
  for (uint32_t i = 0; i < workers_.size(); i++) {
    // One that has no room for what it returns waits for us.
    while (rte_eal_get_lcore_state(1 + i) == RUNNING) {
      collect();
      sched_yield();
    }
    rte_eal_wait_lcore(1 + i);
  }
  if (returned_ != nullptr) collect();
  for (rte_ring* ring : engines_) rte_ring_free(ring);
  rte_ring_free(returned_);
}

bool EngineLcores::push(uint32_t engine, uint32_t to_card, Packet* packet) {
  PacketPool::set_receiver(packet, to_card);
  if (rte_ring_sp_enqueue(engines_[engine], PacketPool::mbuf_of(packet)) != 0) return false;
  pushed_++;
  return true;
}

uint32_t EngineLcores::collect() {
  uint32_t all = 0;
  std::array<void*, 32> mbufs;
  while (const uint32_t count =
             rte_ring_sc_dequeue_burst(returned_, mbufs.data(), mbufs.size(), nullptr)) {
    for (uint32_t i = 0; i < count; i++)
      pool_.release(PacketPool::packet_of(static_cast<rte_mbuf*>(mbufs[i])));
    all += count;
  }
  return all;
}

uint64_t EngineLcores::under_way() const {
  uint64_t carried = 0;
  for (const auto& worker : workers_) carried += worker->carried.load(std::memory_order_acquire);
  return pushed_ - carried;
}

std::vector<uint64_t> EngineLcores::carried() const {
  std::vector<uint64_t> all;
  for (const auto& worker : workers_)
    all.push_back(worker->carried.load(std::memory_order_relaxed));
  return all;
}

void EngineLcores::pause() { awake_.store(false, std::memory_order_release); }

// The notice looks for waiters: an exchange is ordered before that look, a store would not be.
void EngineLcores::resume() {
  awake_.exchange(true, std::memory_order_seq_cst);
  awake_.notify_all();
}

bool EngineLcores::carry_one(Worker& worker, rte_ring* engine) {
  void* mbuf = nullptr;
  if (rte_ring_sc_dequeue(engine, &mbuf) != 0) return false;
  const uint32_t to_card =
      PacketPool::receiver(PacketPool::packet_of(static_cast<rte_mbuf*>(mbuf)));
  if (rte_ring_enqueue(receivers_[to_card], mbuf) != 0) {
    while (rte_ring_mp_enqueue(returned_, mbuf) != 0) sched_yield();
  }
  // Behind the frame: who sees the number finds it there.
  worker.carried.store(worker.carried.load(std::memory_order_relaxed) + 1,
                       std::memory_order_release);
  return true;
}

int EngineLcores::serve(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  EngineLcores& all = *worker.all;
  uint32_t looks = 0;
  while (true) {
    // Before the look, so that what was pushed before the end was asked for is carried.
    const bool stopping = all.stopping_.load(std::memory_order_acquire);
    bool any = false;
    for (rte_ring* engine : worker.engines) any |= all.carry_one(worker, engine);
    if (any) {
      looks = 0;
    } else if (stopping) {
      return 0;
    } else if (!all.awake_.load(std::memory_order_acquire)) {
      all.awake_.wait(false, std::memory_order_acquire);
    } else if (++looks < kVainLooks) {
      rte_pause();
    } else {
      looks = 0;
      sched_yield();
    }
  }
}

}  // namespace peal::nic
