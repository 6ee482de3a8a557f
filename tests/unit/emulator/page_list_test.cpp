// SPDX-License-Identifier: BSD-2-Clause
// Lists of pages in a guest's memory: to the byte, what is taken and what is refused by name.
#include "emulator/nic/pci/page_list.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace peal::nic {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kGuestPages = 16;  // of the guest

class PageListTest : public ::testing::Test {
 protected:
  // The list, at an address of the guest.
  void write(uint64_t address, const std::vector<uint64_t>& pages) {
    std::memcpy(&ram[address], pages.data(), 8 * pages.size());
  }
  peal_status copy(uint64_t address, uint64_t bytes, uint32_t offset = 0, uint32_t shift = 12) {
    return copy_page_list({ram.data(), ram.size()}, {address, bytes, offset, shift}, &copied);
  }

  std::vector<uint8_t> ram = std::vector<uint8_t>(kGuestPages * kPage);
  emulator::PageList copied;
};

TEST_F(PageListTest, IsCopiedSoThatTheGuestCannotChangeIt) {
  write(64, {3 * kPage, kPage, 9 * kPage});
  ASSERT_EQ(copy(64, 2 * kPage + 1, 100), PEAL_STATUS_OK);
  write(64, {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}});
  EXPECT_EQ(copied.addresses, (std::vector<uint64_t>{3 * kPage, kPage, 9 * kPage}));
  EXPECT_EQ(copied.page_shift, 12u);
  EXPECT_EQ(copied.first_page_offset, 100u);
}

// The first page's offset counts: the last byte of the last page, and one more.
TEST_F(PageListTest, HasAsManyPagesAsTheBytesTouch) {
  write(0, {kPage, 2 * kPage, 3 * kPage});
  ASSERT_EQ(copy(0, kPage, 0), PEAL_STATUS_OK);
  EXPECT_EQ(copied.addresses.size(), 1u);
  ASSERT_EQ(copy(0, kPage, 1), PEAL_STATUS_OK);
  EXPECT_EQ(copied.addresses.size(), 2u);
  ASSERT_EQ(copy(0, 2 * kPage - 5, 5), PEAL_STATUS_OK);
  EXPECT_EQ(copied.addresses.size(), 2u);
  ASSERT_EQ(copy(0, 2 * kPage - 4, 5), PEAL_STATUS_OK);
  EXPECT_EQ(copied.addresses.size(), 3u);
}

TEST_F(PageListTest, PagesMayBeLarge) {
  write(0, {0, 8 * kPage});
  ASSERT_EQ(copy(0, 9 * kPage, 0, 15), PEAL_STATUS_OK);
  EXPECT_EQ(copied.addresses.size(), 2u);
  EXPECT_EQ(copy(0, kPage, kPage - 1, 11), PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(copy(0, kPage, 0, 31), PEAL_STATUS_BAD_FLAGS);
  EXPECT_EQ(copy(0, kPage, kPage, 12), PEAL_STATUS_BAD_FLAGS);
}

TEST_F(PageListTest, LengthsThatNoGuestCanHave) {
  EXPECT_EQ(copy(0, 0), PEAL_STATUS_BAD_LENGTH);
  EXPECT_EQ(copy(0, kGuestPages * kPage + 1), PEAL_STATUS_BAD_LENGTH);
  EXPECT_EQ(copy(0, ~uint64_t{0}), PEAL_STATUS_BAD_LENGTH);
}

TEST_F(PageListTest, TheListLiesInTheGuestsMemory) {
  const uint64_t end = kGuestPages * kPage;
  write(end - 16, {kPage, 2 * kPage});
  EXPECT_EQ(copy(end - 16, 2 * kPage), PEAL_STATUS_OK);
  EXPECT_EQ(copy(end - 8, 2 * kPage), PEAL_STATUS_BAD_ADDRESS);
  EXPECT_EQ(copy(end - 12, kPage), PEAL_STATUS_BAD_ADDRESS) << "not aligned";
  EXPECT_EQ(copy(end, kPage), PEAL_STATUS_BAD_ADDRESS);
  EXPECT_EQ(copy(~uint64_t{7}, kPage), PEAL_STATUS_BAD_ADDRESS);
}

TEST_F(PageListTest, SoDoAllItsPages) {
  write(0, {kPage, (kGuestPages - 1) * kPage});
  EXPECT_EQ(copy(0, 2 * kPage), PEAL_STATUS_OK);
  write(0, {kPage, kGuestPages * kPage});
  EXPECT_EQ(copy(0, 2 * kPage), PEAL_STATUS_BAD_ADDRESS);
  write(0, {kPage, ~uint64_t{0} << 12});
  EXPECT_EQ(copy(0, 2 * kPage), PEAL_STATUS_BAD_ADDRESS);
  write(0, {kPage, 2 * kPage + 8});
  EXPECT_EQ(copy(0, 2 * kPage), PEAL_STATUS_BAD_ADDRESS) << "not aligned";
}

}  // namespace
}  // namespace peal::nic
