// SPDX-License-Identifier: BSD-2-Clause
// A guest of the PCI card, as its driver sees it, and the loop as the card's interface sees it: one
// real card, descriptors that are watched, and wakes by name. All on the test's thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/names.h"
#include "base/unix_socket.h"
#include "emulator/nic/pci/pci_interface.h"
#include "tests/unit/emulator/lone_card.h"
#include "tests/unit/emulator/temporary_folder.h"

namespace peal::nic::test {

// Watches and wake slots are counted: what an interface leaves behind, left() names.
class OneCardLoop final : public LoopServices, public CopyLanes {
 public:
  emulator::test::LoneCard lone;
  std::string rung;                // interrupts since the last look, by name
  uint32_t watches_left = 1000;    // watch() fails when there are none
  uint32_t wake_slots_left = 100;  // the same

  [[nodiscard]] uint32_t card_count() const override { return 1; }
  CardHost card(uint32_t /*index*/) override {
    return {&lone.card(), &lone.admin(), &lone.windows(), &lone.regions, this, 0};
  }
  bool watch(int fd) override {
    if (watches_left == 0) return false;
    watches_left--;
    return watched_.insert(fd).second;
  }
  void unwatch(int fd) override { watched_.erase(fd); }
  WakeSlot add_wake_eventfd(int /*fd*/) override {
    if (wake_slots_left == 0) return kNoWakeSlot;
    wake_slots_left--;
    slots_.insert(next_slot_);
    return next_slot_++;
  }
  void remove_wake(WakeSlot slot) override { slots_.erase(slot); }
  // Slots are made in the order of the vectors.
  void ring(WakeSlot slot) override {
    EXPECT_TRUE(slots_.contains(slot));
    const auto place = std::distance(slots_.begin(), slots_.find(slot));
    rung += place % PEAL_PCI_VECTORS == PEAL_PCI_VECTOR_ADMIN ? " admin" : " queues";
  }
  void attach_lane(ContextId, CopyLane*) override {}
  void detach_lane(ContextId) override {}

  [[nodiscard]] std::string left() const {
    return std::to_string(watched_.size()) + " watched, " + std::to_string(slots_.size()) +
           " wake slots";
  }

 private:
  std::set<int> watched_;
  std::set<WakeSlot> slots_;
  WakeSlot next_slot_ = 0;
};

// QEMU and the driver together: the socket, and BAR2 once the greeting has come.
class PciGuest {
 public:
  explicit PciGuest(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    UnixAddress address;
    EXPECT_TRUE(address.set(path));
    EXPECT_EQ(connect(socket_.get(), address.get(), UnixAddress::bytes()), 0);
  }
  ~PciGuest() {
    if (bar_ != nullptr) munmap(bar_, bar_bytes_);
  }
  PciGuest(const PciGuest&) = delete;
  PciGuest& operator=(const PciGuest&) = delete;

  // What the greeting says, in order; a number with a descriptor has a +. Then BAR2 is there.
  std::string greeting() {
    std::string text;
    int64_t number = 0;
    FileDescriptor with[1];
    while (true) {
      const ReceivedMessage got =
          receive_with_descriptors(socket_.get(), &number, sizeof(number), with, MSG_DONTWAIT);
      if (got.bytes == 0) return text + "end";
      if (got.bytes != sizeof(number)) return text;
      text += std::to_string(number) + (got.descriptors > 0 ? "+ " : " ");
      if (number == -1 && got.descriptors == 1) map(with[0].get());
      if (got.descriptors > 0) with[0].reset();
    }
  }
  // Waits for what comes next: is it the end?
  [[nodiscard]] bool ends() {
    int64_t number = 0;
    FileDescriptor with[1];
    return receive_with_descriptors(socket_.get(), &number, sizeof(number), with, 0).bytes == 0;
  }
  void hang_up() { socket_.reset(); }

  [[nodiscard]] bool has_bar() const { return bar_ != nullptr; }
  [[nodiscard]] const peal_pci_card_page& card() const {
    return *reinterpret_cast<const peal_pci_card_page*>(bar_ + PEAL_PCI_CARD_PAGE);
  }
  [[nodiscard]] peal_pci_host_page& host() const {
    return *reinterpret_cast<peal_pci_host_page*>(bar_ + PEAL_PCI_HOST_PAGE);
  }
  [[nodiscard]] uint8_t* at(uint64_t offset) const { return bar_ + offset; }

 private:
  void map(int fd) {
    struct stat info = {};
    ASSERT_EQ(fstat(fd, &info), 0);
    bar_bytes_ = static_cast<size_t>(info.st_size);
    void* const at = mmap(nullptr, bar_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(at, MAP_FAILED);
    bar_ = static_cast<uint8_t*>(at);
  }

  FileDescriptor socket_;
  uint8_t* bar_ = nullptr;
  size_t bar_bytes_ = 0;
};

class PciTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kRamBytes = uint64_t{64} << 20;

  PciTest() {
    EXPECT_EQ(pci->start({socket_path, folder.path() + "/ram", kRamBytes}), "");
    const FileDescriptor fd(open((folder.path() + "/ram").c_str(), O_RDWR | O_CLOEXEC));
    void* const at = mmap(nullptr, kRamBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
    EXPECT_NE(at, MAP_FAILED);
    ram = static_cast<uint8_t*>(at);
  }
  ~PciTest() override {
    pci->shut_down(loop.lone.now);
    loop.lone.run();
    pci.reset();
    munmap(ram, kRamBytes);
    EXPECT_EQ(loop.left(), "0 watched, 0 wake slots");
  }

  // One of the loop's, late enough to look at the socket.
  bool turn() {
    loop.lone.now += 10'000'000;
    const bool busy = pci->poll(loop.lone.now);
    loop.lone.run();
    return busy;
  }
  std::unique_ptr<PciGuest> join() {
    auto guest = std::make_unique<PciGuest>(socket_path);
    EXPECT_TRUE(turn());
    EXPECT_EQ(guest->greeting(), "0 0 -1+ 1+ 1+ 0+ 0+ ");
    return guest;
  }
  // The answer's status, and who was interrupted.
  std::string ask(PciGuest& guest, const peal_admin_command& command) {
    loop.rung.clear();
    guest.host().command = command;
    const uint64_t serial = guest.host().command_serial + 1;
    __atomic_store_n(&guest.host().command_serial, serial, __ATOMIC_RELEASE);
    EXPECT_TRUE(turn());
    EXPECT_EQ(guest.card().reply_serial, serial);
    EXPECT_EQ(guest.card().reply.opcode, command.opcode);
    return names::status(guest.card().reply.status) + loop.rung;
  }
  std::string ask(PciGuest& guest, peal_admin_opcode opcode, uint32_t window = 0) {
    peal_admin_command command = emulator::test::make_command(opcode);
    command.context = window;
    return ask(guest, command);
  }
  // Of what was counted, what is not zero.
  [[nodiscard]] std::string counted() const {
    std::string text;
    const nlohmann::ordered_json counters = pci->counters_json();
    for (const auto& [name, value] : counters.items()) {
      if (value != 0) text += name + " " + value.dump() + " ";
    }
    return text;
  }

  const TemporaryFolder folder{"pci"};
  const std::string socket_path = folder.path() + "/socket";
  OneCardLoop loop;
  std::unique_ptr<PciInterface> pci = std::make_unique<PciInterface>(loop.card(0), loop);
  uint8_t* ram = nullptr;
};

}  // namespace peal::nic::test
