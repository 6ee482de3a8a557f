// SPDX-License-Identifier: BSD-2-Clause
// A rank's program for engine e looks after tree e: what comes down it is told here. With children
// there, it passes segments on to the first, as they come: the scheduling pointer moves with
// arrivals. Each further child of a tree is looked after by the program of an engine whose own tree
// ends here; the tree's program moves that one's pointer, and is not over before it is.
#include "hostlib/trinary.h"

#include <algorithm>

namespace peal::host {
namespace {

constexpr uint8_t kEngines = TrinaryTrees::kTrees;

// All programs have the same counters.
enum Counter : uint16_t {
  kPace,     // segments that may be passed on: the scheduling pointer
  kArrived,  // where the own tree ends: segments
  kReady,    // the child that is sent to
  kOver,     // lender: own puts; with lenders: those that are done
};

struct Fragment {
  uint64_t first;
  uint64_t bytes;
  uint64_t segments;
};

Fragment fragment_of(uint32_t tree, uint64_t bytes, uint64_t segment_bytes) {
  const uint64_t third = (bytes + TrinaryTrees::kTrees - 1) / TrinaryTrees::kTrees;
  const uint64_t first = std::min(bytes, tree * third);
  const uint64_t own = std::min(third, bytes - first);
  return {first, own, std::max<uint64_t>((own + segment_bytes - 1) / segment_bytes, 1)};
}

class Writer {
 public:
  Writer(const TrinaryTrees& trees, uint32_t rank, void* buffer, uint64_t bytes,
         uint64_t segment_bytes, const std::vector<Program::Remote>& buffers)
      : trees_(trees),
        rank_(rank),
        buffer_(static_cast<const uint8_t*>(buffer)),
        bytes_(bytes),
        segment_bytes_(std::max<uint64_t>(segment_bytes, 1)),
        buffers_(buffers) {
    for (uint8_t engine = 0; engine < kEngines; engine++) add_program(engine);
  }

  Programs write() {
    for (uint8_t engine = 0; engine < kEngines; engine++) write_program(engine);
    return std::move(programs_);
  }

 private:
  struct Stream {
    bool any = false;
    uint32_t tree = 0;
    TrinaryTrees::Child child = {};
  };

  [[nodiscard]] Stream stream_of(uint8_t engine) const {
    Stream stream;
    stream.any = trees_.stream_of(rank_, engine, &stream.tree, &stream.child);
    return stream;
  }
  [[nodiscard]] bool is_root() const { return trees_.at(0, rank_).parent == TrinaryTrees::kNoRank; }
  [[nodiscard]] static bool lends(uint8_t engine, const Stream& stream) {
    return stream.any && stream.tree != engine;
  }

  void add_program(uint8_t engine) {
    const Stream stream = stream_of(engine);
    const bool paced = stream.any && !is_root();
    programs_.push_back(std::make_unique<Program>(
        Program::Shape{.rank = rank_,
                       .ranks = trees_.ranks(),
                       .mode = paced ? PEAL_PROGRAM_MODE_SESSION : PEAL_PROGRAM_MODE_TASKS,
                       .engine = engine}));
    Program& program = *programs_.back();
    const uint32_t above = is_root() ? rank_ : trees_.at(engine, rank_).parent;
    program.add_counter(lends(engine, stream) ? rank_ : above);
    program.add_counter(above);
    program.add_counter(stream.any ? stream.child.rank : rank_);
    program.add_counter(rank_);
  }

  // What a child is told when a segment has come: the last lets go of what stands behind it, too.
  [[nodiscard]] Program::Notice arrival_at(uint32_t child, uint32_t tree, bool last) const {
    const Program* program = programs_[tree].get();
    const auto children = static_cast<uint32_t>(trees_.at(tree, child).children.size());
    if (children == 0) return {.program = program, .counter = kArrived};
    const uint32_t behind = last && children > 1 ? 1 : 0;
    return {.program = program, .counter = kPace, .steps = children + behind};
  }

  // Programs that pass on what comes down this tree, but for the tree's own.
  [[nodiscard]] std::vector<const Program*> lenders_of(uint32_t tree) const {
    std::vector<const Program*> lenders;
    for (const auto& child : trees_.at(tree, rank_).children) {
      if (child.engine != tree) lenders.push_back(programs_[child.engine].get());
    }
    return lenders;
  }

  void write_program(uint8_t engine) {
    Program& program = *programs_[engine];
    const Stream stream = stream_of(engine);
    if (!is_root()) {
      const Program* above = programs_[trees_.engine_to(engine, rank_)].get();
      program.signal(trees_.at(engine, rank_).parent, {.program = above, .counter = kReady});
    }
    if (stream.any) program.wait(kReady, 1);
    if (stream.any && !is_root()) {
      program.schedule(static_cast<uint32_t>(program.steps().size()));
    }
    if (stream.any) pass_on(engine, stream);
    const uint64_t lenders = lenders_of(engine).size();
    if (lenders > 0 && !is_root()) program.wait(kOver, lenders);
    if (trees_.at(engine, rank_).children.empty() && !is_root()) {
      program.wait(kArrived, fragment_of(engine, bytes_, segment_bytes_).segments);
    }
  }

  void pass_on(uint8_t engine, const Stream& stream) {
    Program& program = *programs_[engine];
    const bool lent = lends(engine, stream);
    const Fragment fragment = fragment_of(stream.tree, bytes_, segment_bytes_);
    const auto lenders = lent ? std::vector<const Program*>() : lenders_of(stream.tree);
    for (uint64_t i = 0; i < fragment.segments; i++) {
      const bool last = i + 1 == fragment.segments;
      for (const Program* lender : lenders) {
        program.signal(
            rank_, {.program = lender, .counter = kPace, .steps = 1 + (last ? kBehindLent : 0)});
      }
      const uint64_t offset = fragment.first + i * segment_bytes_;
      const uint64_t bytes = std::min(segment_bytes_, fragment.first + fragment.bytes - offset);
      const Program::Notice notice = arrival_at(stream.child.rank, stream.tree, last);
      const Program::Remote& to = buffers_[stream.child.rank];
      program.put(stream.child.rank, buffer_ + offset, bytes, {to.key, to.offset + offset}, &notice,
                  lent ? uint16_t{kOver} : uint16_t{PEAL_NO_COUNTER});
    }
    if (!lent) return;
    program.wait(kOver, fragment.segments);
    program.signal(rank_, {.program = programs_[stream.tree].get(), .counter = kOver});
  }

  // Behind a lender's last put: its own wait, the word that it is done, and the wait of its tree.
  static constexpr uint32_t kBehindLent = 3;

  const TrinaryTrees& trees_;
  uint32_t rank_;
  const uint8_t* buffer_;
  uint64_t bytes_;
  uint64_t segment_bytes_;
  const std::vector<Program::Remote>& buffers_;
  Programs programs_;
};

}  // namespace

Programs trinary_broadcast(const TrinaryTrees& trees, uint32_t rank, void* buffer, uint64_t bytes,
                           uint64_t segment_bytes, const std::vector<Program::Remote>& buffers) {
  return Writer(trees, rank, buffer, bytes, segment_bytes, buffers).write();
}

}  // namespace peal::host
