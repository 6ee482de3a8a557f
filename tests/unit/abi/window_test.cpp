// SPDX-License-Identifier: BSD-2-Clause
// The window's map: blocks on their own cache lines, writers on their own pages,
// sizes that can be mapped.
#include "abi/window.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "abi/pci.h"

namespace {

struct Stretch {
  const char* name;
  size_t offset;
  size_t bytes;
};

void expect_apart(const std::vector<Stretch>& stretches, size_t limit) {
  for (size_t i = 0; i < stretches.size(); i++) {
    EXPECT_EQ(stretches[i].offset % PEAL_CACHE_LINE_BYTES, 0u) << stretches[i].name;
    const size_t end = i + 1 < stretches.size() ? stretches[i + 1].offset : limit;
    EXPECT_LE(stretches[i].offset + stretches[i].bytes, end) << stretches[i].name;
  }
}

TEST(Window, CardPageBlocksDoNotOverlap) {
  expect_apart({{"directory", offsetof(peal_card_page, directory), sizeof(peal_directory)},
                {"device", offsetof(peal_card_page, device), sizeof(peal_device)},
                {"heartbeat", offsetof(peal_card_page, heartbeat), sizeof(peal_heartbeat)},
                {"reset", offsetof(peal_card_page, reset), sizeof(peal_reset_acknowledge)},
                {"indices", offsetof(peal_card_page, indices), sizeof(peal_card_indices)},
                {"sleep", offsetof(peal_card_page, sleep), sizeof(peal_card_sleep)}},
               PEAL_PAGE_BYTES);
}

TEST(Window, EveryRingSizeIsLaidOutInWholePages) {
  for (uint32_t entries = PEAL_RING_ENTRIES_MIN; entries <= PEAL_RING_ENTRIES_MAX; entries *= 2) {
    EXPECT_EQ(PEAL_WINDOW_BYTES(entries) % PEAL_PAGE_BYTES, 0u) << entries;
    expect_apart(
        {{"card page", PEAL_WINDOW_CARD_PAGE, sizeof(peal_card_page)},
         {"host page", PEAL_WINDOW_HOST_PAGE, sizeof(peal_host_page)},
         {"submissions", PEAL_WINDOW_SUBMISSIONS, entries * sizeof(peal_submission)},
         {"completions", PEAL_WINDOW_COMPLETIONS(entries), entries * sizeof(peal_completion)}},
        PEAL_WINDOW_BYTES(entries));
  }
}

TEST(Window, PciMailboxHasOnePagePerWriter) {
  expect_apart({{"card page", PEAL_PCI_CARD_PAGE, sizeof(peal_pci_card_page)},
                {"host page", PEAL_PCI_HOST_PAGE, sizeof(peal_pci_host_page)}},
               PEAL_PCI_WINDOWS);
  EXPECT_EQ(offsetof(peal_pci_card_page, reply_serial) % PEAL_CACHE_LINE_BYTES, 0u);
  EXPECT_EQ(offsetof(peal_pci_host_page, command_serial) % PEAL_CACHE_LINE_BYTES, 0u);
}

TEST(Window, MagicsReadAsText) {
  const auto text = [](uint32_t magic) {
    return std::string(reinterpret_cast<const char*>(&magic), sizeof(magic));
  };
  EXPECT_EQ(text(PEAL_WINDOW_MAGIC), "peal");
  EXPECT_EQ(text(PEAL_PCI_MAGIC), "plpc");
}

}  // namespace
