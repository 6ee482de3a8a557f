// SPDX-License-Identifier: BSD-2-Clause
// The driver's argument checks (driver/checks.h, the code the kernel runs), with the fuzzer as the
// user: whatever passes must be a request that the driver can carry out without overflow, and what
// is right must pass.
#include <cerrno>

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

void check_register(FuzzInput& input) {
  auto argument = input.take<peal_ioctl_register>();
  const uint32_t page_shift = 12 + input.byte() % 5;
  // Mostly plausible, so that the arithmetic behind the first checks is reached.
  if (input.byte() % 4 != 0) {
    argument.reserved = 0;
    argument.access = 1 + argument.access % 3;
    argument.bytes_ >>= input.byte() % 64;
  }
  uint64_t pages = 0;
  const Wide end = Wide{argument.address} + argument.bytes_;
  const bool right = argument.reserved == 0 && argument.access >= 1 && argument.access <= 3 &&
                     argument.bytes_ > 0 && argument.bytes_ <= PEAL_REGISTER_BYTES_MAX &&
                     end <= UINT64_MAX;
  fuzz_require((peal_check_register(&argument, page_shift, &pages) == 0) == right, "register");
  if (!right) return;
  const Wide page = Wide{1} << page_shift;
  const Wide first = argument.address / page;
  fuzz_require((first + pages) * page >= end, "pages do not reach the end");
  fuzz_require((first + pages - 1) * page < end, "a page too many");
}

void check_groups(FuzzInput& input) {
  auto reserve = input.take<peal_ioctl_reserve_group>();
  if (input.byte() % 2 != 0) reserve.reserved = 0;
  fuzz_require((peal_check_reserve(&reserve) == 0) == (reserve.reserved == 0), "reserve");
  auto connect = input.take<peal_ioctl_connect_group>();
  if (input.byte() % 2 != 0) connect.reserved = 0;
  if (input.byte() % 2 != 0) connect.peer_count %= 2 * PEAL_PEERS_MAX;
  const bool fits = connect.reserved == 0 && connect.peer_count * sizeof(peal_peer_address) <=
                                                 sizeof(peal_connect_group{}.peers);
  fuzz_require((peal_check_connect(&connect) == 0) == fits, "connect");
}

void check_others(FuzzInput& input) {
  auto event = input.take<peal_ioctl_eventfd>();
  if (input.byte() % 2 != 0) event.reserved = 0;
  fuzz_require((peal_check_eventfd(&event) == 0) == (event.reserved == 0 && event.fd >= -1),
               "eventfd");
  const auto counters = input.take<peal_ioctl_counters>();
  const bool fits = Wide{counters.values} + Wide{8} * counters.capacity <= UINT64_MAX;
  fuzz_require((peal_check_counters(&counters) == 0) == fits, "counters");
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
        peal::test::check_register(input);
        break;
      case 2:
        peal::test::check_groups(input);
        break;
      default:
        peal::test::check_others(input);
    }
  }
  return 0;
}
