// SPDX-License-Identifier: BSD-2-Clause
// Arbitrary frames into a card with live groups: raw bytes, and good packets with a stretch spoilt
// and the checksums put right again, so that every later check is reached. Between them the host
// posts, DMA finishes or fails, time passes, pools run dry. Whatever comes, the card stays within
// its memory and its books balance.
#include <algorithm>
#include <cstring>

#include "firmware/collective/alltoallv/bruck_blocks.h"
#include "firmware/operation/frame.h"
#include "firmware/operation/layout.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/broadcast_pieces.h"
#include "tests/support/pattern.h"
#include "tests/support/talk_draw.h"
#include "tests/support/wire_maker.h"

namespace peal::test {
namespace {

constexpr size_t kRegionBytes = 128 * 1024;
constexpr int kEventsMax = 200;

class PacketFuzz {
 public:
  explicit PacketFuzz(FuzzInput& input)
      : input_(input),
        bench_(BenchOptions{.index = 1}),
        memory_(bench_.add_memory("memory", kRegionBytes)),
        table_(bench_.add_memory("table", 10 * sizeof(peal_part), PEAL_ACCESS_READ)),
        members_{bench_.join(4, 1), bench_.join(5, 3, 0x7705)},
        talk_(input_, members_[0], memory_) {
    bench_.port.log_dma = false;
  }

  void run() {
    for (int i = 0; i < kEventsMax && !input_.empty(); i++) event();
    settle();
  }

 private:
  Membership& member() { return members_[input_.byte() % 2]; }

  void event() {
    switch (input_.byte() % 16) {
      case 0:
        raw_frame();
        break;
      case 1:
        post();
        break;
      case 2:
        finish_dma();
        break;
      case 3:
        bench_.advance(TimeNs{input_.byte()} * 50'000);
        break;
      case 4:
        bench_.port.fail_allocations = {input_.byte() % 4u, input_.byte() % 4u};
        break;
      case 5:
        bench_.port.refuse_dmas = {input_.byte() % 4u, input_.byte() % 4u};
        break;
      case 6:
        bench_.port.fault_dmas = {input_.byte() % 8u, input_.byte() % 2u};
        break;
      case 7:
        bench_.finish_all_dma();
        break;
      case 8:
      case 9:
        bench_.deliver(talk_.packet());
        break;
      case 10:
        bench_.submit(talk_.submission(++cookie_of_talk_));
        break;
      default:
        made_frame();
    }
    talk_.learn(bench_.port.take_sent());
    bench_.port.take_log();
    bench_.port.take_completions();
  }

  void raw_frame() {
    Frame frame;
    frame.header = input_.take<peal_wire_header>();
    frame.payload.resize(input_.below(CONFIG_MTU_BYTES + 64));
    for (size_t i = 0; i < frame.payload.size() && i < 32; i++) frame.payload[i] = input_.byte();
    const uint32_t bytes =
        input_.byte() % 8 == 0 ? input_.byte() % PEAL_HEADER_BYTES : frame.bytes();
    bench_.deliver_raw(frame, bytes);
  }

  OperationShape shape() {
    static constexpr uint64_t kLengths[] = {0, 1, 64, 65, 1000, 1024, 5000, 0xffffffff, 90000};
    const uint64_t length = kLengths[input_.byte() % 9];
    const uint8_t drawn = input_.byte();
    switch (drawn % 10) {
      case 8:
        return {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, 0};
      case 9:
        return {PEAL_OPERATION_ALLTOALLV,
                drawn / 10 % 3 == 0 ? PEAL_ALGORITHM_DIRECT : PEAL_ALGORITHM_BRUCK, 0};
      case 6:
        if (drawn / 10 % 2 == 0) return direct_shape(length);
        if (drawn / 20 % 2 == 0) return ring_shape(length);
        return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, length};
      case 0:
        return kBarrierShape;
      case 1:
        return kDestroyShape;
      case 2:
        return broadcast_shape(length);
      case 3:
        return doubling_shape(length);
      case 4:
        return binomial_shape(length, input_.byte() % 3);
      case 5:
        return bruck_shape(length);
      default:
        return {PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_BINOMIAL, 0};
    }
  }

  // Of iterations of programs 0 to 3 that have failed, or of a rank that is dead.
  Frame verdict(const WireMaker& wire, uint32_t sender, uint8_t drawn) {
    if (drawn < 64) return wire.death(sender, drawn % 8);
    const uint64_t from = drawn % 8;
    const uint8_t more = input_.byte();
    const peal_failed body = {.from = from,
                              .to = from + more % 3,
                              .rank = more / 4u % 6,
                              .index = 0,
                              .program = static_cast<uint16_t>(more / 32 % 4),
                              .status = static_cast<uint16_t>(1 + drawn % PEAL_STATUS_COUNT),
                              .reason = static_cast<uint16_t>(drawn / 8 % 18),
                              .hops = static_cast<uint8_t>(more % 4),
                              .begun = input_.byte()};
    return wire.failed(sender, body, drawn % 5 == 0 ? PEAL_PACKET_KNOWN : PEAL_PACKET_FAILURE);
  }

  // Of the tree by which epochs end, along an edge that there may be.
  Frame recycling(const WireMaker& wire, const Membership& to, uint32_t epoch) {
    const uint32_t about = input_.byte() % 2;
    const uint32_t root = input_.byte() % to.ranks;
    const uint32_t hop = input_.byte() % 2;  // both groups have that
    Frame frame;
    switch (input_.byte() % 4) {
      case 0:
        frame = wire.recycle_nack(about, epoch, root, hop);
        break;
      case 1:
        frame = wire.recycle_not_yet(about, epoch, root, hop, 0, input_.byte() % 5);
        break;
      default:
        frame = about == PEAL_RECYCLE_BELOW ? wire.recycle_below(epoch, root, hop)
                                            : wire.recycle_all(epoch, root, hop);
    }
    if (input_.byte() % 4 == 0) frame.header.flags |= PEAL_PACKET_LOSSES;
    return frame;
  }

  void made_frame() {
    const Membership& to = member();
    const WireMaker wire(to);
    const OperationShape what = shape();
    const uint32_t sequence = input_.byte() % (2 * CONFIG_CHANNELS);
    const uint8_t drawn = input_.byte();
    const uint32_t piece = in_steps(what) && drawn % 4 != 0 ? PEAL_PIECE_STEP : drawn % 8;
    const uint32_t step = input_.byte() % 4;
    const uint32_t other = (to.rank + 1 + input_.byte() % (to.ranks - 1)) % to.ranks;
    Frame frame;
    switch (what.operation == PEAL_OPERATION_RECYCLE ? 9 : input_.byte() % 9) {
      case 9:
        frame = recycling(wire, to, sequence / (CONFIG_CHANNELS / 2));
        break;
      case 0:
        frame = what.operation == PEAL_OPERATION_BROADCAST
                    ? wire.credit(other, what, sequence, step, piece)
                    : wire.signal(other, what, sequence, step);
        break;
      case 1:
        if (what.operation == PEAL_OPERATION_BROADCAST) {
          frame = wire.nack(other, what, sequence, piece, what.root, step,
                            input_.take<uint64_t>() >> input_.byte() % 64, input_.byte() % 8);
          break;
        }
        frame = wire.nack(other, what, sequence, piece, input_.byte() % to.ranks, step,
                          input_.take<uint64_t>());
        break;
      case 2:
        frame = wire.not_yet(other, what, sequence, piece, input_.byte() % to.ranks, step);
        break;
      case 3:
        frame = wire.refuse(other, what, sequence, input_.byte() % 8);
        break;
      case 4:
        frame = verdict(wire, other, input_.byte());
        break;
      case 5:
        switch (input_.byte() % 3) {
          case 0:
            frame = wire.alive(other);
            break;
          case 1:
            frame = wire.probe(other);
            break;
          default:
            frame = wire.farewell(other);
        }
        break;
      default:
        frame = piece == PEAL_PIECE_STEP ? step_of_parts(wire, to, what, sequence, step)
                                         : data(wire, what, sequence, piece, step, other);
    }
    if (input_.byte() % 4 == 0) WireMaker::make_repair(frame);
    if (input_.byte() % 2 == 0) {
      const uint16_t length = frame.header.length;
      input_.spoil(&frame.header, sizeof(frame.header));
      if (input_.byte() % 4 == 0 && !frame.payload.empty()) {
        input_.spoil(frame.payload.data(), frame.payload.size());
      }
      if (input_.byte() % 4 != 0) frame.header.length = length;
    }
    seal_checksums(frame);
    bench_.deliver(frame);
  }

  // As long as the piece or fragment ought to be, most of the time.
  Frame data(const WireMaker& wire, OperationShape what, uint32_t sequence, uint32_t piece,
             uint32_t step, uint32_t origin) {
    if (what.operation == PEAL_OPERATION_BROADCAST) return binomial(wire, what, sequence, piece);
    if (has_parts(what)) return part(wire, what, sequence, piece, origin);
    if (what.algorithm == PEAL_ALGORITHM_DIRECT) return direct(wire, what, sequence, piece, origin);
    if (what.operation == PEAL_OPERATION_ALLTOALL) return bruck(wire, what, sequence, piece, step);
    const uint64_t share = CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / 5 & ~7u;
    const uint64_t full = std::min<uint64_t>(share, CONFIG_MTU_BYTES);
    const bool doubles = what.algorithm == PEAL_ALGORITHM_RECURSIVE_DOUBLING;
    const uint64_t before = piece * full;
    uint64_t length = what.block_bytes > before ? std::min(full, what.block_bytes - before) : 0;
    if (doubles) length = std::min<uint64_t>(length << step, CONFIG_MTU_BYTES);
    if (input_.byte() % 8 == 0) length = input_.below(CONFIG_MTU_BYTES + 1);
    auto payload = pattern_block(sequence, origin, before, length);
    if (what.algorithm == PEAL_ALGORITHM_RING) {
      return wire.ring(what, sequence, piece, origin, std::move(payload), input_.byte() % 4);
    }
    if (!doubles) return wire.hopping(what, sequence, piece, origin, std::move(payload));
    step %= 2;  // a step that both groups have; spoiling makes the others
    return wire.doubling(what, sequence, piece, step, input_.byte() % 4, std::move(payload));
  }

  Frame binomial(const WireMaker& wire, OperationShape what, uint32_t sequence, uint32_t piece) {
    const uint32_t fragment = input_.byte() % (kBroadcastFragments + 1);
    const uint64_t before = piece * kBroadcastPiece + fragment * uint64_t{CONFIG_MTU_BYTES};
    uint64_t length = what.block_bytes > before ? what.block_bytes - before : 0;
    length = std::min<uint64_t>(length, CONFIG_MTU_BYTES);
    if (input_.byte() % 8 == 0) length = input_.below(CONFIG_MTU_BYTES + 1);
    return wire.binomial(what, sequence, piece, fragment,
                         pattern_block(sequence, what.root, before, length));
  }

  Frame direct(const WireMaker& wire, OperationShape what, uint32_t sequence, uint32_t piece,
               uint32_t origin) {
    const uint64_t full = piece_bytes_for(input_.byte() % 2 ? 4 : 5);
    const uint64_t before = piece * full;
    uint64_t length = what.block_bytes > before ? std::min(full, what.block_bytes - before) : 0;
    if (input_.byte() % 8 == 0) length = input_.below(CONFIG_MTU_BYTES + 1);
    return wire.direct(origin, what, sequence, piece,
                       pattern_block(sequence, origin, before, length));
  }

  static bool has_parts(const OperationShape& what) {
    return what.operation == PEAL_OPERATION_ALLGATHERV ||
           what.operation == PEAL_OPERATION_ALLTOALLV;
  }

  static bool may_be_in_place(const OperationShape& what) {
    return what.operation == PEAL_OPERATION_ALLGATHER ||
           what.operation == PEAL_OPERATION_ALLTOALL || has_parts(what);
  }

  static bool in_steps(const OperationShape& what) {
    return what.operation == PEAL_OPERATION_ALLTOALLV && what.algorithm == PEAL_ALGORITHM_BRUCK;
  }

  // What every rank has for every other, as post() says it.
  static uint64_t part_bytes(uint32_t from) { return from * uint64_t{from % 2 == 0 ? 90u : 700u}; }

  // Blocks that go on or end here, or the heads of those that go directly; sometimes too many, or
  // of any length.
  Frame step_of_parts(const WireMaker& wire, const Membership& to, OperationShape what,
                      uint32_t sequence, uint32_t step) {
    step %= 2;  // as in a fragment of Bruck's
    const uint32_t most = bruckv::short_bytes(to.ranks);
    std::vector<uint8_t> payload;
    const uint32_t ranks = input_.byte() % 8 == 0 ? 8 : to.ranks;
    for (uint32_t way = 1u << step; way < ranks; way++) {
      if ((way >> step & 1) == 0 && input_.byte() % 16 != 0) continue;
      const uint32_t left = bruckv::bits_from(way, step + 1);
      const uint32_t destination = (to.rank + 2 * to.ranks - left % to.ranks) % to.ranks;
      const uint32_t origin = (destination + way) % to.ranks;
      const uint64_t longer = std::max(part_bytes(origin), part_bytes(destination));
      uint64_t bytes = longer > most ? 0 : part_bytes(origin);
      if (input_.byte() % 16 == 0) bytes = input_.below(most + 8);
      if (bytes == 0 && longer <= most) continue;
      uint8_t head[bruckv::kHeadBytes];
      bruckv::put_head(head, way, static_cast<uint32_t>(bytes));
      payload.insert(payload.end(), head, head + sizeof(head));
      const auto block = pattern_block(sequence, origin, 0, bytes);
      payload.insert(payload.end(), block.begin(), block.end());
    }
    payload.resize(std::min<size_t>(payload.size(), CONFIG_MTU_BYTES));
    return wire.bruck(what, sequence, PEAL_PIECE_STEP, step, 0, std::move(payload));
  }

  Frame part(const WireMaker& wire, OperationShape what, uint32_t sequence, uint32_t piece,
             uint32_t origin) {
    const uint64_t full = piece_bytes_for(input_.byte() % 2 ? 4 : 5) - kFrameBytes;
    const uint64_t whole = input_.byte() % 8 == 0 ? input_.take<uint16_t>() : part_bytes(origin);
    const uint64_t before = piece * full;
    uint64_t length = whole > before ? std::min(full, whole - before) : 0;
    if (input_.byte() % 8 == 0) length = input_.below(CONFIG_MTU_BYTES + 1);
    Frame frame =
        wire.direct(origin, what, sequence, piece, pattern_block(sequence, origin, before, length));
    frame.header.block_bytes = static_cast<uint32_t>(whole);
    return frame;
  }

  // A table of parts, now and then not quite right.
  peal_submission parts_entry(const Membership& from, uint64_t sequence, OperationShape what,
                              bool in_place) {
    peal_submission entry = barrier_entry(from, sequence, sequence);
    entry.operation = static_cast<uint8_t>(what.operation);
    entry.algorithm = static_cast<uint8_t>(what.algorithm);
    entry.send_key = entry.receive_key = memory_.key;
    entry.parts_key = table_.key;
    std::vector<peal_part> parts;
    const auto add = [&](uint64_t bytes) { parts.push_back({parts.size() * 4000, bytes}); };
    const bool to_each = what.operation == PEAL_OPERATION_ALLTOALLV && !in_place;
    for (uint32_t rank = 0; to_each && rank < from.ranks; rank++) add(part_bytes(from.rank));
    for (uint32_t rank = 0; rank < from.ranks; rank++) add(part_bytes(rank));
    auto* table = bench_.port.bytes(table_.region).data();
    std::memcpy(table, parts.data(), parts.size() * sizeof(peal_part));
    if (input_.byte() % 4 == 0) input_.spoil(table, parts.size() * sizeof(peal_part));
    return entry;
  }

  Frame bruck(const WireMaker& wire, OperationShape what, uint32_t sequence, uint32_t piece,
              uint32_t step) {
    step %= 2;  // of two blocks, among four ranks as among five
    const uint64_t full = piece_bytes_for(input_.byte() % 2 ? 8 : 10);
    const uint64_t before = piece * full;
    uint64_t length = what.block_bytes > before ? std::min(full, what.block_bytes - before) : 0;
    if (2 * length <= CONFIG_MTU_BYTES) length *= 2;
    if (input_.byte() % 8 == 0) length = input_.below(CONFIG_MTU_BYTES + 1);
    return wire.bruck(what, sequence, piece, step, input_.byte() % 2,
                      pattern_block(sequence, step, before, length));
  }

  void post() {
    const uint8_t drawn = input_.byte();
    const Membership& from = members_[drawn % 2];
    const bool in_place = drawn / 2 % 4 == 0;
    const uint64_t sequence = next_[&from == &members_[1]];
    const OperationShape what = shape();
    if (what.operation == PEAL_OPERATION_RECYCLE) return;
    peal_submission entry = barrier_entry(from, sequence, sequence);
    if (what.operation == PEAL_OPERATION_DESTROY) entry = destroy_entry(from, sequence, sequence);
    if (what.operation == PEAL_OPERATION_ALLGATHER) {
      entry = allgather_entry(from, sequence, sequence, what.algorithm, what.block_bytes,
                              memory_.key, memory_.key);
    }
    if (what.operation == PEAL_OPERATION_ALLTOALL) {
      entry = alltoall_entry(from, sequence, sequence, what.block_bytes, memory_.key, memory_.key);
      entry.algorithm = static_cast<uint8_t>(what.algorithm);
    }
    if (what.operation == PEAL_OPERATION_BROADCAST) {
      entry = broadcast_entry(from, sequence, sequence, what.root, what.block_bytes, memory_.key,
                              memory_.key);
    }
    if (has_parts(what)) entry = parts_entry(from, sequence, what, in_place);
    if (in_place && may_be_in_place(what)) entry.flags |= PEAL_SUBMIT_IN_PLACE;
    bench_.port.take_completions();
    bench_.submit(entry);
    bool refused = false;
    for (const auto& [context, done] : bench_.port.take_completions()) {
      refused = refused || (done.sequence == sequence && done.status >= PEAL_STATUS_BAD_OPCODE &&
                            done.status != PEAL_STATUS_DMA_FAULT);
    }
    if (!refused) next_[&from == &members_[1]]++;
  }

  void finish_dma() {
    if (bench_.port.dma_count() == 0) return;
    bench_.finish_dma(input_.byte() % bench_.port.dma_count());
  }

  // Nothing more comes: all DMA ends, and what the card holds is what the port gave it.
  void settle() {
    bench_.port.fail_allocations = {};
    bench_.port.refuse_dmas = {};
    bench_.port.fault_dmas = {};
    for (int i = 0; i < 50; i++) {
      bench_.finish_all_dma();
      bench_.port.take_sent();
      if (!bench_.advance_to_deadline()) break;
    }
    bench_.finish_all_dma();
    bench_.port.take_sent();
    const std::string problems = bench_.problems();
    fuzz_require(problems.empty(), problems);
  }

  FuzzInput& input_;
  CardBench bench_;
  Memory memory_;
  Memory table_;  // of parts
  Membership members_[2];
  uint64_t next_[2] = {0, 0};
  TalkDraw<FuzzInput> talk_;
  uint64_t cookie_of_talk_ = uint64_t{1} << 32;
};

}  // namespace
}  // namespace peal::test

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
  peal::test::FuzzInput input(data, bytes);
  peal::test::PacketFuzz(input).run();
  return 0;
}
