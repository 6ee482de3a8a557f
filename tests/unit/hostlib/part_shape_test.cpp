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
  const void* send = kBuffer;
  const uint8_t* receive = kBuffer + 100;

  PartsCall call() const {
    const auto arrays = [](const std::vector<size_t>& bytes, const std::vector<size_t>& offsets) {
      return PartArrays{bytes.data(), offsets.empty() ? nullptr : offsets.data()};
    };
    return {operation, send, receive, arrays(received, to), arrays(sent, from)};
  }
};

void remember(PartShape& shape, const AnyCall& call) {
  Posting posting = {};
  posting.send_key = 9;
  shape.remember(call.call(), static_cast<uint32_t>(call.received.size()), call.version, posting);
}

bool is_of(const PartShape& shape, const AnyCall& call) {
  return shape.is_of(call.call(), call.version);
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

// Who knows that there is room for the arrays allocates none.
TEST(PartShape, RememberedAnewWhereThereIsRoom) {
  PartShape shape;
  AnyCall call;
  const auto again = [&] { return shape.remember_in_room(call.call(), 3, call.version); };
  EXPECT_FALSE(again());
  EXPECT_FALSE(is_of(shape, call));
  remember(shape, call);
  call.sent.back()++;
  call.version++;
  EXPECT_TRUE(again());
  EXPECT_TRUE(is_of(shape, call));
  EXPECT_FALSE(is_of(shape, {}));
  EXPECT_EQ(shape.posting().send_key, 9u) << "which is the writer's";
  call.to = {0, 10, 20};
  EXPECT_FALSE(again()) << "an array more";
  EXPECT_FALSE(is_of(shape, call));
  call.send = PEAL_IN_PLACE;
  EXPECT_TRUE(again()) << "an array less";
  EXPECT_TRUE(is_of(shape, call));
  remember(shape, call);
  call.send = kBuffer;
  call.to = {};
  EXPECT_TRUE(again()) << "there was room once";
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
      [](AnyCall& call) { call.send = kBuffer + 1; },
      [](AnyCall& call) { call.receive++; },
      [](AnyCall& call) { call.send = PEAL_IN_PLACE; },
      [](AnyCall& call) {
        call.from = {};
        call.to = {0, 10, 20};
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
  const AnyCall any;
  PartsCall call = any.call();
  call.received.bytes = nullptr;
  EXPECT_FALSE(shape.is_of(call, any.version));
  call = any.call();
  call.sent.bytes = nullptr;
  EXPECT_FALSE(shape.is_of(call, any.version));
}

// Wherever a number is, whichever offsets are said; in so many ranks as are compared four at once
// and singly.
TEST(PartShape, EveryNumberOfEveryArrayIsCompared) {
  constexpr size_t kRanks = 11;
  for (const bool sent_at : {false, true}) {
    for (const bool received_at : {false, true}) {
      AnyCall call;
      for (std::vector<size_t>* array : {&call.sent, &call.from, &call.received, &call.to})
        array->assign(kRanks, 5);
      if (!sent_at) call.from = {};
      if (!received_at) call.to = {};
      PartShape shape;
      remember(shape, call);
      EXPECT_TRUE(is_of(shape, call));
      for (std::vector<size_t>* array : {&call.sent, &call.from, &call.received, &call.to}) {
        for (size_t& number : *array) {
          number++;
          EXPECT_FALSE(is_of(shape, call)) << sent_at << received_at;
          number--;
        }
      }
      EXPECT_TRUE(is_of(shape, call));
    }
  }
}

TEST(PartShape, OffsetsOfBothSidesAreCompared) {
  AnyCall call;
  call.to = {0, 10, 20};
  PartShape shape;
  remember(shape, call);
  EXPECT_TRUE(is_of(shape, call));
  call.to.back()++;
  EXPECT_FALSE(is_of(shape, call));
  call.to.back()--;
  call.from.back()++;
  EXPECT_FALSE(is_of(shape, call));
  call.from = {};
  EXPECT_FALSE(is_of(shape, call));
}

TEST(PartShape, LengthsOfBothSidesAreCompared) {
  AnyCall call;
  call.from = {};
  PartShape shape;
  remember(shape, call);
  EXPECT_TRUE(is_of(shape, call));
  for (size_t* const number : {&call.sent.back(), &call.received.back()}) {
    ++*number;
    EXPECT_FALSE(is_of(shape, call));
    --*number;
  }
}

// Offsets of one side alone, be it the one or the other.
TEST(PartShape, OffsetsOfOneSideAreCompared) {
  for (const bool sent : {false, true}) {
    AnyCall call;
    call.from = {};
    std::vector<size_t>& offsets = sent ? call.from : call.to;
    offsets = {0, 10, 20};
    PartShape shape;
    remember(shape, call);
    EXPECT_TRUE(is_of(shape, call));
    for (size_t* const number : {&offsets.back(), &call.sent.back(), &call.received.front()}) {
      ++*number;
      EXPECT_FALSE(is_of(shape, call)) << sent;
      --*number;
    }
    std::swap(call.from, call.to);
    EXPECT_FALSE(is_of(shape, call)) << "the other side's";
  }
}

// In place, and of an allgather, the arrays of what is sent may be anything.
TEST(PartShape, WhatNobodySendsIsNotCompared) {
  for (const peal_operation operation : {PEAL_OPERATION_ALLTOALLV, PEAL_OPERATION_ALLGATHERV}) {
    AnyCall any;
    any.operation = operation;
    if (operation == PEAL_OPERATION_ALLTOALLV) any.send = PEAL_IN_PLACE;
    PartShape shape;
    remember(shape, any);
    PartsCall call = any.call();
    call.sent = {};
    EXPECT_TRUE(shape.is_of(call, any.version));
    any.to = {0, 10, 20};
    EXPECT_FALSE(is_of(shape, any));
    remember(shape, any);
    EXPECT_TRUE(is_of(shape, any));
    any.to.back()++;
    EXPECT_FALSE(is_of(shape, any));
  }
}

}  // namespace
}  // namespace peal::host
