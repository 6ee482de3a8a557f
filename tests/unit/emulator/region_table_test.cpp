// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/common/region_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <numeric>

namespace peal::emulator {
namespace {

using Bytes = std::array<uint8_t, 64>;

Bytes counting() {
  Bytes bytes;
  std::iota(bytes.begin(), bytes.end(), uint8_t{1});
  return bytes;
}

TEST(RegionTable, MappedCopiesBothWays) {
  RegionTable table(4);
  Bytes host = counting();
  const RegionId region = table.put_mapped(host.data(), host.size(), {});
  ASSERT_NE(region, kNoRegion);
  Bytes card = {};
  EXPECT_TRUE(table.copy_in({region, 8}, card.data(), 4));
  EXPECT_EQ(card[0], 9);
  EXPECT_EQ(card[3], 12);
  EXPECT_EQ(card[4], 0);
  const Bytes out = {0xaa, 0xbb};
  EXPECT_TRUE(table.copy_out(out.data(), {region, 62}, 2));
  EXPECT_EQ(host[61], 62);
  EXPECT_EQ(host[62], 0xaa);
  EXPECT_EQ(host[63], 0xbb);
}

TEST(RegionTable, NothingOutsideIsTouched) {
  RegionTable table(4);
  Bytes host = counting();
  const RegionId region = table.put_mapped(host.data() + 8, 16, {});
  Bytes card = {};
  const Bytes before = host;
  const struct {
    uint64_t offset;
    uint32_t bytes;
  } outside[] = {{0, 17}, {16, 1}, {15, 2}, {17, 0}, {~uint64_t{0}, 1}, {~uint64_t{0} - 3, 8}};
  for (const auto& range : outside) {
    EXPECT_FALSE(table.copy_in({region, range.offset}, card.data(), range.bytes)) << range.offset;
    EXPECT_FALSE(table.copy_out(card.data(), {region, range.offset}, range.bytes)) << range.offset;
  }
  EXPECT_EQ(host, before);
  EXPECT_EQ(card, Bytes{});
  EXPECT_EQ(table.faults(), 12u);
  EXPECT_TRUE(table.copy_in({region, 16}, card.data(), 0));
}

TEST(RegionTable, StaleIdsReachNothing) {
  RegionTable table(2);
  Bytes first = {};
  Bytes second = {};
  const RegionId old = table.put_mapped(first.data(), first.size(), {});
  EXPECT_TRUE(table.free(old));
  const RegionId fresh = table.put_mapped(second.data(), second.size(), {});
  EXPECT_NE(old, fresh);
  EXPECT_EQ(old & 0xffff, fresh & 0xffff);  // the same slot
  Bytes card = counting();
  EXPECT_FALSE(table.copy_out(card.data(), {old, 0}, 8));
  EXPECT_FALSE(table.free(old));
  EXPECT_FALSE(table.contains(old));
  EXPECT_EQ(table.bytes_of(old), 0u);
  EXPECT_EQ(second, Bytes{});
  EXPECT_FALSE(table.copy_in({kNoRegion, 0}, card.data(), 1));
  EXPECT_FALSE(table.copy_in({fresh + 1, 0}, card.data(), 1));  // never given out
}

TEST(RegionTable, CapacityIsFixed) {
  Bytes host = {};
  int released = 0;  // by the table's end, too
  RegionTable table(2);
  const auto release = [&released] { released++; };
  const RegionId a = table.put_mapped(host.data(), 8, release);
  const RegionId b = table.put_mapped(host.data(), 8, release);
  EXPECT_EQ(table.used(), 2u);
  EXPECT_EQ(table.put_mapped(host.data(), 8, release), kNoRegion);
  EXPECT_EQ(released, 1);  // the one that found no place
  EXPECT_TRUE(table.free(a));
  EXPECT_EQ(released, 2);
  EXPECT_NE(table.put_mapped(host.data(), 8, release), kNoRegion);
  EXPECT_TRUE(table.free(b));
  EXPECT_EQ(table.used(), 1u);
}

TEST(RegionTable, MemoryThatIsNoneIsRefused) {
  RegionTable table(2);
  Bytes host = {};
  EXPECT_EQ(table.put_mapped(host.data(), 0, {}), kNoRegion);
  EXPECT_EQ(table.put_mapped(nullptr, 8, {}), kNoRegion);
  EXPECT_EQ(table.put_process(getpid(), -1, ~uint64_t{0} - 3, 8, {}), kNoRegion);
  EXPECT_EQ(table.used(), 0u);
}

TEST(RegionTable, WhatIsLeftIsReleasedAtTheEnd) {
  int released = 0;
  Bytes host = {};
  {
    RegionTable table(2);
    table.put_mapped(host.data(), 8, [&released] { released++; });
  }
  EXPECT_EQ(released, 1);
}

// Who has addresses of it hears of it while the memory is still there.
TEST(RegionTable, TellsBeforeMemoryGoes) {
  std::vector<uint8_t> memory(64);
  std::string order;
  {
    RegionTable table(4);
    table.set_before_free([&](const uint8_t* base, uint64_t bytes) {
      EXPECT_EQ(base, memory.data());
      order += "before " + std::to_string(bytes) + " ";
    });
    const RegionId first = table.put_mapped(memory.data(), 64, [&order] { order += "first "; });
    const RegionId owned = table.put_mapped(memory.data(), 64, [&order] { order += "owned "; });
    table.set_owner(owned, 1, RegionUse::kMemory);
    table.put_mapped(memory.data(), 32, [&order] { order += "left "; });
    table.put_process(getpid(), -1, 4096, 8, [&order] { order += "process "; });
    EXPECT_TRUE(table.free(first));
    EXPECT_FALSE(table.free(first));
    EXPECT_EQ(order, "before 64 first ");
    table.free_owned(1, RegionUse::kMemory);
  }
  EXPECT_EQ(order, "before 64 first before 64 owned before 32 left process ");
}

TEST(RegionTable, FreesByOwnerAndUse) {
  RegionTable table(8);
  Bytes host = {};
  const RegionId memory = table.put_mapped(host.data(), 8, {});
  const RegionId channels = table.put_mapped(host.data(), 8, {});
  const RegionId foreign = table.put_mapped(host.data(), 8, {});
  table.set_owner(memory, 1, RegionUse::kMemory);
  table.set_owner(channels, 1, RegionUse::kChannels);
  table.set_owner(foreign, 2, RegionUse::kMemory);
  table.free_owned(1, RegionUse::kMemory);
  EXPECT_FALSE(table.contains(memory));
  EXPECT_TRUE(table.contains(channels));
  EXPECT_TRUE(table.contains(foreign));
}

int open_pidfd(pid_t pid) {
  return static_cast<int>(syscall(SYS_pidfd_open, static_cast<long>(pid), 0L));
}

TEST(RegionTable, ProcessMemory) {
  RegionTable table(4);
  Bytes host = counting();
  const RegionId region = table.put_process(getpid(), open_pidfd(getpid()),
                                            reinterpret_cast<uint64_t>(host.data()), 32, {});
  Bytes card = {};
  EXPECT_TRUE(table.copy_in({region, 4}, card.data(), 8));
  EXPECT_EQ(card[0], 5);
  card.fill(0xcc);
  EXPECT_TRUE(table.copy_out(card.data(), {region, 30}, 2));
  EXPECT_EQ(host[29], 30);
  EXPECT_EQ(host[31], 0xcc);
  EXPECT_EQ(host[32], 33);
  EXPECT_FALSE(table.copy_out(card.data(), {region, 31}, 2));
  EXPECT_EQ(host[32], 33);
}

TEST(RegionTable, UnmappedProcessMemoryIsAFault) {
  RegionTable table(4);
  const long page = sysconf(_SC_PAGESIZE);
  void* const area =
      mmap(nullptr, static_cast<size_t>(page), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  const RegionId region = table.put_process(getpid(), -1, reinterpret_cast<uint64_t>(area), 64, {});
  Bytes card = {};
  EXPECT_FALSE(table.copy_in({region, 0}, card.data(), 8));
  EXPECT_FALSE(table.copy_out(card.data(), {region, 0}, 8));
  EXPECT_EQ(table.faults(), 2u);
  munmap(area, static_cast<size_t>(page));
}

// Half of it is there: what was copied is no result.
TEST(RegionTable, ACopyInPartIsAFault) {
  RegionTable table(4);
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  void* const area =
      mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(area, MAP_FAILED);
  auto* const second = static_cast<uint8_t*>(area) + page;
  ASSERT_EQ(mprotect(second, page, PROT_NONE), 0);
  const RegionId region =
      table.put_process(getpid(), -1, reinterpret_cast<uint64_t>(second) - 4, 64, {});
  Bytes card = {};
  EXPECT_FALSE(table.copy_in({region, 0}, card.data(), 8));
  EXPECT_FALSE(table.copy_out(card.data(), {region, 0}, 8));
  EXPECT_TRUE(table.copy_in({region, 0}, card.data(), 4));
  EXPECT_EQ(table.faults(), 2u);
  munmap(area, 2 * page);
}

// A pid may be reused; the descriptor still says that the process is gone.
TEST(RegionTable, DeadProcessIsNeverTouched) {
  RegionTable table(4);
  static Bytes host = counting();
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  ASSERT_GT(child, 0);
  const int pidfd = open_pidfd(child);
  ASSERT_GE(pidfd, 0);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  // As if the number were another process's by now: this one's.
  const RegionId region =
      table.put_process(getpid(), pidfd, reinterpret_cast<uint64_t>(host.data()), 64, {});
  Bytes card = {};
  EXPECT_FALSE(table.copy_in({region, 0}, card.data(), 8));
  EXPECT_FALSE(table.copy_out(card.data(), {region, 0}, 8));
  EXPECT_EQ(card, Bytes{});
  EXPECT_EQ(host, counting());
  EXPECT_TRUE(table.free(region));
  EXPECT_EQ(fcntl(pidfd, F_GETFD), -1);  // closed with the region
}

class PageTest : public ::testing::Test {
 protected:
  PageTest() : memory_(16 * 4096) {
    for (size_t i = 0; i < memory_.size(); i++) memory_[i] = static_cast<uint8_t>(i >> 12);
    bus_ = {memory_.data(), memory_.size()};
  }
  std::vector<uint8_t> memory_;
  BusWindow bus_;
};

TEST_F(PageTest, CopiesAcrossPages) {
  RegionTable table(4);
  const PageList pages = {{3 * 4096, 1 * 4096, 15 * 4096}, 12, 4000};
  ASSERT_TRUE(pages_fit(bus_, pages, 8000));
  const RegionId region = table.put_pages(bus_, pages, 8000, {});
  std::vector<uint8_t> card(8000);
  EXPECT_TRUE(table.copy_in({region, 0}, card.data(), 8000));
  EXPECT_EQ(card[95], 3);
  EXPECT_EQ(card[96], 1);
  EXPECT_EQ(card[96 + 4095], 1);
  EXPECT_EQ(card[96 + 4096], 15);
  const uint8_t out[] = {0xaa, 0xbb};
  EXPECT_TRUE(table.copy_out(out, {region, 95}, 2));
  EXPECT_EQ(memory_[3 * 4096 + 4095], 0xaa);
  EXPECT_EQ(memory_[1 * 4096], 0xbb);
  EXPECT_FALSE(table.copy_out(out, {region, 7999}, 2));
}

TEST_F(PageTest, OneHugePage) {
  RegionTable table(4);
  const PageList pages = {{0}, 16, 100};
  ASSERT_TRUE(pages_fit(bus_, pages, 65536 - 100));
  const RegionId region = table.put_pages(bus_, pages, 65536 - 100, {});
  uint8_t byte = 0;
  EXPECT_TRUE(table.copy_in({region, 65535 - 100}, &byte, 1));
  EXPECT_EQ(byte, 15);
}

TEST_F(PageTest, ListsThatLeaveTheGuestAreRefused) {
  EXPECT_FALSE(pages_fit(bus_, {{16 * 4096}, 12, 0}, 4096));        // behind the end
  EXPECT_FALSE(pages_fit(bus_, {{15 * 4096}, 13, 0}, 4096));        // hangs over, unaligned
  EXPECT_FALSE(pages_fit(bus_, {{~uint64_t{4095}}, 12, 0}, 4096));  // wraps around
  EXPECT_FALSE(pages_fit(bus_, {{100}, 12, 0}, 4096));              // not aligned
  EXPECT_FALSE(pages_fit(bus_, {{0}, 12, 0}, 4097));                // too few pages
  EXPECT_FALSE(pages_fit(bus_, {{0}, 12, 1}, 4096));                // with the offset
  EXPECT_FALSE(pages_fit(bus_, {{0}, 12, 4096}, 1));                // offset behind a page
  EXPECT_FALSE(pages_fit(bus_, {{}, 12, 0}, 1));                    // none
  EXPECT_FALSE(pages_fit(bus_, {{0}, 11, 0}, 16));                  // odd sizes
  EXPECT_FALSE(pages_fit(bus_, {{0}, 31, 0}, 16));
  EXPECT_FALSE(pages_fit(bus_, {{0}, 17, 0}, 16));      // larger than the guest
  EXPECT_TRUE(pages_fit(bus_, {{0, 0}, 12, 0}, 8192));  // twice the same: its own
}

}  // namespace
}  // namespace peal::emulator
