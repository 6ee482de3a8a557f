// SPDX-License-Identifier: BSD-2-Clause
// What a card writes into its window is checked before anybody relies on it.
#include "hostlib/window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

class Windows : public testing::Test {
 protected:
  static constexpr uint32_t kBytes = PEAL_WINDOW_BYTES(kFakeEntries);

  void SetUp() override {
    fd = memfd_create("window", 0);
    ASSERT_GE(fd, 0);
    ASSERT_EQ(ftruncate(fd, kBytes), 0);
    void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ASSERT_NE(memory, MAP_FAILED);
    page = static_cast<peal_card_page*>(memory);
    lay_out_window(memory, kFakeEntries);
    ASSERT_EQ(map_window(fd, 0, kBytes, &window), PEAL_OK);
  }
  void TearDown() override {
    unmap_window(&window);
    munmap(page, kBytes);
    close(fd);
  }

  int fd = -1;
  peal_card_page* page = nullptr;
  Window window;
};

TEST_F(Windows, Good) {
  EXPECT_EQ(check_window(&window), PEAL_OK);
  EXPECT_EQ(window.entries, kFakeEntries);
}

TEST_F(Windows, CardPageIsReadOnlyHere) {
  EXPECT_DEATH(window.base[8] = 1, "");
  window.base[PEAL_WINDOW_HOST_PAGE + 64] = 1;
}

TEST_F(Windows, WrongMagic) {
  page->directory.magic++;
  EXPECT_EQ(check_window(&window), PEAL_ERR_BAD_VERSION);
}

TEST_F(Windows, WrongVersion) {
  page->directory.abi_version++;
  EXPECT_EQ(check_window(&window), PEAL_ERR_BAD_VERSION);
}

TEST_F(Windows, MissingAndMovedBlocks) {
  for (uint32_t i = 0; i < page->directory.block_count; i++) {
    peal_block& block = page->directory.blocks[i];
    const peal_block good = block;
    block.version = 2;
    EXPECT_EQ(check_window(&window), PEAL_ERR_BAD_VERSION) << i;
    block = good;
    block.type = 99;
    EXPECT_EQ(check_window(&window), PEAL_ERR_BAD_VERSION) << i;
    block = good;
    block.offset += 64;
    EXPECT_EQ(check_window(&window), PEAL_ERR_BAD_VERSION) << i;
    block = good;
    block.bytes = 1;
    EXPECT_EQ(check_window(&window), PEAL_ERR_BAD_VERSION) << i;
    block = good;
  }
  EXPECT_EQ(check_window(&window), PEAL_OK);
}

TEST_F(Windows, UnknownBlocksAreSkipped) {
  peal_block& extra = page->directory.blocks[page->directory.block_count++];
  extra = {77, 3, 0xffffffff, 0xffffffff, 0};
  EXPECT_EQ(check_window(&window), PEAL_OK);
  page->directory.block_count = 0xffffffff;  // more than there is room for
  EXPECT_EQ(check_window(&window), PEAL_OK);
}

TEST_F(Windows, SenselessRings) {
  for (const uint32_t entries : {0u, 8u, 17u, 64u, 8192u, 0x80000000u, 0xffffffffu}) {
    page->device.ring_entries = entries;
    EXPECT_EQ(check_window(&window), PEAL_ERR_CARD_ANSWER) << entries;
  }
}

TEST_F(Windows, SenselessSizes) {
  Window other;
  for (const size_t bytes : {size_t{0}, size_t{4096}, size_t{kBytes - 1}, size_t{1} << 30}) {
    EXPECT_EQ(map_window(fd, 0, bytes, &other), PEAL_ERR_CARD_ANSWER) << bytes;
    EXPECT_EQ(other.base, nullptr);
  }
}

}  // namespace
}  // namespace peal::host
