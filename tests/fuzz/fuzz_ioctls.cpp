// SPDX-License-Identifier: BSD-2-Clause
// The driver's argument checks (driver/checks.h, the code the kernel runs), with the fuzzer as the
// user: whatever passes must be a request that the driver can carry out without overflow, and what
// is right must pass.
#include <array>
#include <cerrno>
#include <cstring>

#include "driver/checks.h"
#include "tests/fuzz/fuzz_input.h"

namespace peal::test {
namespace {

using Wide = unsigned __int128;

void check_header(FuzzInput& input) {
  const auto header = input.take<peal_ioctl_header>();
  const uint32_t bytes = input.below(512);
  const bool right = header.version == PEAL_ABI_VERSION && header.bytes == bytes;
  fuzz_require((peal_check_header(&header, bytes) == 0) == right, "header");
}

void check_command(FuzzInput& input) {
  // The checks look at the head only; so do we, to leave input for more.
  const auto head = input.take<std::array<uint8_t, offsetof(peal_admin_command, u)>>();
  peal_admin_command command = {};
  memcpy(&command, head.data(), head.size());
  // Mostly one thing at a time is wrong.
  const uint8_t mended = input.byte();
  if ((mended & 1) != 0) command.version = PEAL_ABI_VERSION;
  if ((mended & 2) != 0) command.bytes = PEAL_ADMIN_BYTES;
  if ((mended & 4) != 0) command.context = 0;
  if ((mended & 8) != 0) command.tag = 0;
  if ((mended & 16) != 0) command.reserved = 0;
  if ((mended & 32) != 0) command.opcode %= 2 * PEAL_ADMIN_OPCODE_COUNT;
  const bool right = command.version == PEAL_ABI_VERSION && command.bytes == PEAL_ADMIN_BYTES &&
                     command.context == 0 && command.tag == 0 && command.reserved == 0 &&
                     command.opcode >= PEAL_ADMIN_OPEN_CONTEXT &&
                     command.opcode < PEAL_ADMIN_OPCODE_COUNT;
  fuzz_require((peal_check_command(&command) == 0) == right, "command");
}

void check_register(FuzzInput& input) {
  auto body = input.take<peal_register_memory>();
  const uint32_t page_shift = 12 + input.byte() % 5;
  // Mostly plausible, so that the arithmetic behind the first checks is reached.
  if (input.byte() % 4 != 0) {
    body.kind = PEAL_MEMORY_PROCESS;
    body.first_page_offset = 0;
    body.page_shift = 0;
    body.access = 1 + body.access % 3;
    body.bytes >>= input.byte() % 64;
  }
  uint64_t pages = 0;
  const Wide end = Wide{body.address} + body.bytes;
  const bool right = body.kind == PEAL_MEMORY_PROCESS && body.first_page_offset == 0 &&
                     body.page_shift == 0 && body.access >= 1 && body.access <= 3 &&
                     body.bytes > 0 && body.bytes <= PEAL_REGISTER_BYTES_MAX && end <= UINT64_MAX;
  fuzz_require((peal_check_register(&body, page_shift, &pages) == 0) == right, "register");
  if (!right) return;
  const Wide page = Wide{1} << page_shift;
  const Wide first = body.address / page;
  fuzz_require((first + pages) * page >= end, "pages do not reach the end");
  fuzz_require((first + pages - 1) * page < end, "a page too many");
}

void check_others(FuzzInput& input) {
  auto reserve = input.take<peal_reserve_group>();
  if (input.byte() % 2 != 0) reserve.channel_pages = 0;
  if (input.byte() % 2 != 0) reserve.channel_list_bytes = 0;
  fuzz_require((peal_check_reserve(&reserve) == 0) ==
                   (reserve.channel_pages == 0 && reserve.channel_list_bytes == 0),
               "reserve");
  auto event = input.take<peal_ioctl_eventfd>();
  if (input.byte() % 2 != 0) event.reserved = 0;
  fuzz_require((peal_check_eventfd(&event) == 0) == (event.reserved == 0 && event.fd >= -1),
               "eventfd");
  auto departed = input.take<peal_ioctl_departed>();
  if (input.byte() % 2 != 0) departed.key = 0;
  if (input.byte() % 2 != 0) departed.found = 0;
  fuzz_require((peal_check_departed(&departed) == 0) == (departed.key == 0 && departed.found == 0),
               "departed");
}

}  // namespace
}  // namespace peal::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  peal::test::FuzzInput input(data, bytes);
  while (!input.empty()) {
    switch (input.byte() % 4) {
      case 0:
        peal::test::check_header(input);
        break;
      case 1:
        peal::test::check_command(input);
        break;
      case 2:
        peal::test::check_register(input);
        break;
      default:
        peal::test::check_others(input);
    }
  }
  return 0;
}
