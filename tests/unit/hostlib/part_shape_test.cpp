// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/part_shape.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

namespace peal::host {
namespace {

const auto* const kBuffer = reinterpret_cast<const uint8_t*>(0x10000);

// An alltoallv of three ranks; a test changes what it likes.
struct AnyCall {
  peal_operation operation = PEAL_OPERATION_ALLTOALLV;
  uint64_t version = 7;
  std::vector<size_t> sent = {1, 2, 3};
  std::vector<size_t> from = {0, 10, 20};
  std::vector<size_t> received = {4, 5, 6};
  std::vector<size_t> to = {};  // none: one behind the other
  const uint8_t* send = kBuffer;
  const uint8_t* receive = kBuffer + 100;
  bool in_place = false;

  // Calls `use` with its arguments.
  template <typename Use>
  auto with(Use use) const {
    const auto blocks = [](const uint8_t* address, const std::vector<size_t>& bytes,
                           const std::vector<size_t>& offsets) {
      return Blocks{address, bytes.data(), offsets.empty() ? nullptr : offsets.data(),
                    static_cast<uint32_t>(bytes.size()), ""};
    };
    const Blocks sends = in_place ? Blocks() : blocks(send, sent, from);
    const Blocks receives = blocks(receive, received, to);
    return use(PartArguments{operation, version, sends, receives});
  }
};

void remember(PartShape& shape, const AnyCall& call) {
  Posting posting = {};
  posting.send_key = 9;
  call.with([&](const PartArguments& arguments) { shape.remember(arguments, posting); });
}

bool is_of(const PartShape& shape, const AnyCall& call) {
  return call.with([&](const PartArguments& arguments) { return shape.is_of(arguments); });
}

TEST(PartShape, OfNothingAtFirstAndWhenForgotten) {
  PartShape shape;
  EXPECT_FALSE(is_of(shape, {}));
  remember(shape, {});
  EXPECT_TRUE(is_of(shape, {}));
  EXPECT_EQ(shape.posting().send_key, 9u);
  shape.forget();
  EXPECT_FALSE(is_of(shape, {}));
}

// Whatever differs, be it in the last number, is another call; and each is known once it is
// remembered.
TEST(PartShape, EveryDifferenceIsSeen) {
  const std::function<void(AnyCall&)> changes[] = {
      [](AnyCall& call) { call.operation = PEAL_OPERATION_ALLGATHERV; },
      [](AnyCall& call) { call.version = 8; },
      [](AnyCall& call) { call.sent.back()++; },
      [](AnyCall& call) { call.from.back()++; },
      [](AnyCall& call) { call.from = {}; },
      [](AnyCall& call) { call.received.back()++; },
      [](AnyCall& call) {
        call.to = {0, 4, 9};
      },
      [](AnyCall& call) { call.send++; },
      [](AnyCall& call) { call.receive++; },
      [](AnyCall& call) { call.in_place = true; },
      [](AnyCall& call) {
        call.sent.pop_back();
        call.from.pop_back();
      },
  };
  for (size_t i = 0; i < std::size(changes); i++) {
    AnyCall changed;
    changes[i](changed);
    PartShape shape;
    remember(shape, {});
    EXPECT_FALSE(is_of(shape, changed)) << i;
    remember(shape, changed);
    EXPECT_TRUE(is_of(shape, changed)) << i;
    EXPECT_FALSE(is_of(shape, {})) << i;
  }
}

TEST(PartShape, WithoutLengthsItIsNoCall) {
  PartShape shape;
  remember(shape, {});
  const AnyCall call;
  const Blocks send = {call.send, call.sent.data(), call.from.data(), 3, ""};
  const Blocks receive = {call.receive, nullptr, nullptr, 3, ""};
  EXPECT_FALSE(shape.is_of({call.operation, call.version, send, receive}));
}

}  // namespace
}  // namespace peal::host
