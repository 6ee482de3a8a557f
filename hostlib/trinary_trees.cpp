// SPDX-License-Identifier: BSD-2-Clause
// How the trees are found: all three grow at once, an edge at a time, from the rank that has least
// choice left; where they grow into a corner they begin anew, in another order. A torus whose nodes
// have more than three links has many such trees (Edmonds, "Edge-Disjoint Branchings": as many as
// links must be cut to part any node from the root).
#include <algorithm>
#include <optional>

#include "hostlib/trinary.h"

namespace peal::host {
namespace {

constexpr uint32_t kTrees = TrinaryTrees::kTrees;
constexpr uint32_t kStreams = 3;  // that a rank passes on
constexpr uint32_t kTries = 2000;
constexpr uint32_t kUnreached = ~0u;

// Three trees that grow from rank 0.
class Growth {
 public:
  Growth(const std::vector<std::vector<uint32_t>>& links, uint64_t seed)
      : state_(seed * 2 + 1), links_(links), into_(links.size()), streams_(links.size(), 0) {
    const size_t ranks = links.size();
    for (uint32_t from = 0; from < ranks; from++) {
      for (const uint32_t to : links[from]) into_[to].push_back({from, false});
    }
    for (uint32_t tree = 0; tree < kTrees; tree++) {
      parents_[tree].assign(ranks, kUnreached);
      depths_[tree].assign(ranks, kUnreached);
      depths_[tree][0] = 0;
    }
  }

  // False: some rank cannot be reached any more.
  bool run() {
    for (size_t edges = kTrees * (links_.size() - 1); edges > 0; edges--) {
      if (!grow(smallest_tree())) return false;
    }
    return true;
  }
  [[nodiscard]] uint32_t parent(uint32_t tree, uint32_t rank) const { return parents_[tree][rank]; }
  [[nodiscard]] uint32_t depth() const {
    uint32_t most = 0;
    for (const auto& depths : depths_) most = std::max(most, *std::ranges::max_element(depths));
    return most;
  }

 private:
  struct Link {
    uint32_t from;
    bool used;
  };
  // What is better to take comes first.
  struct Choice {
    std::array<int64_t, 4> order;
    uint32_t to;
    Link* link;
  };

  uint32_t draw() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }

  uint32_t smallest_tree() {
    uint32_t best = 0;
    std::pair<size_t, uint32_t> least = {~size_t{0}, 0};
    for (uint32_t tree = 0; tree < kTrees; tree++) {
      const std::pair<size_t, uint32_t> size = {reached_[tree], draw()};
      if (size >= least) continue;
      least = size;
      best = tree;
    }
    return best;
  }

  [[nodiscard]] bool is_free(const Link& link) const {
    return !link.used && streams_[link.from] < kStreams;
  }
  // How many more ways into the rank there are than trees that still need one.
  [[nodiscard]] int64_t slack(uint32_t rank) const {
    const auto ways =
        std::ranges::count_if(into_[rank], [&](const Link& link) { return is_free(link); });
    const auto needed = std::ranges::count_if(
        depths_, [&](const auto& depths) { return depths[rank] == kUnreached; });
    return ways - needed;
  }

  bool grow(uint32_t tree) {
    std::optional<Choice> best;
    for (uint32_t to = 1; to < links_.size(); to++) {
      if (depths_[tree][to] != kUnreached) continue;
      for (Link& link : into_[to]) {
        const uint32_t depth = depths_[tree][link.from];
        if (depth == kUnreached || !is_free(link)) continue;
        // Each tree needs one of the root's streams.
        if (link.from == 0 && reached_[tree] > 0) continue;
        const Choice choice = {{slack(to), streams_[link.from], depth, draw()}, to, &link};
        if (!best || choice.order < best->order) best = choice;
      }
    }
    if (!best) return false;
    best->link->used = true;
    streams_[best->link->from]++;
    parents_[tree][best->to] = best->link->from;
    depths_[tree][best->to] = depths_[tree][best->link->from] + 1;
    reached_[tree]++;
    return true;
  }

  uint64_t state_;
  const std::vector<std::vector<uint32_t>>& links_;
  std::vector<std::vector<Link>> into_;
  std::vector<uint32_t> streams_;  // that a rank passes on, of all trees
  std::array<std::vector<uint32_t>, kTrees> parents_;
  std::array<std::vector<uint32_t>, kTrees> depths_;
  std::array<size_t, kTrees> reached_ = {};
};

std::string name_of(const Torus& torus) {
  return std::to_string(torus.size[0]) + "x" + std::to_string(torus.size[1]) + "x" +
         std::to_string(torus.size[2]);
}

// The shallowest of a few.
std::optional<Growth> find_trees(const std::vector<std::vector<uint32_t>>& links) {
  constexpr uint32_t kEnough = 16;
  std::optional<Growth> best;
  uint32_t found = 0;
  for (uint64_t seed = 0; seed < kTries && found < kEnough; seed++) {
    Growth growth(links, seed);
    if (!growth.run()) continue;
    found++;
    if (!best || growth.depth() < best->depth()) best.emplace(growth);
  }
  return best;
}

}  // namespace

std::vector<uint32_t> Torus::neighbours(uint32_t rank) const {
  std::vector<uint32_t> found;
  uint32_t stride = 1;
  for (const uint32_t extent : size) {
    const uint32_t place = rank / stride % extent;
    const auto beside = [&](uint32_t to) { found.push_back(rank + (to - place) * stride); };
    if (extent > 1) beside((place + 1) % extent);
    if (extent > 2) beside((place + extent - 1) % extent);
    stride *= extent;
  }
  return found;
}

std::string TrinaryTrees::plan(const Torus& torus, uint32_t root, TrinaryTrees* trees) {
  const std::string name = "a torus of " + name_of(torus);
  for (const uint32_t extent : torus.size) {
    if (extent == 0 || extent > kRanksMax) {
      return name + ": each dimension is 1 to " + std::to_string(kRanksMax);
    }
  }
  const uint64_t count = torus.ranks();
  if (count > kRanksMax) {
    return name + " has " + std::to_string(count) + " ranks; three trees are looked for among " +
           std::to_string(kRanksMax) + " at most";
  }
  if (root >= count) return name + " has no rank " + std::to_string(root);
  const size_t ways = torus.neighbours(0).size();
  if (ways < kTrees) {
    return name + " has " + std::to_string(ways) +
           " links from each node; three trees without a common link need three";
  }
  std::vector<std::vector<uint32_t>> links;
  for (uint32_t rank = 0; rank < count; rank++) links.push_back(torus.neighbours(rank));
  const std::optional<Growth> growth = find_trees(links);
  if (!growth) return name + ": no three trees without a common link were found";

  // From any root it looks the same.
  const auto from_root = [&](uint32_t rank) {
    uint32_t moved = 0;
    uint32_t stride = 1;
    for (const uint32_t extent : torus.size) {
      moved += (rank / stride % extent + root / stride % extent) % extent * stride;
      stride *= extent;
    }
    return moved;
  };
  for (uint32_t tree = 0; tree < kTrees; tree++) {
    auto& nodes = trees->nodes_[tree];
    nodes.assign(count, {});
    for (uint32_t rank = 1; rank < count; rank++) {
      const uint32_t parent = from_root(growth->parent(tree, rank));
      nodes[from_root(rank)].parent = parent;
      nodes[parent].children.push_back({from_root(rank), static_cast<uint8_t>(tree)});
    }
  }
  // A leaf of one tree lends that tree's engine to a second child in another.
  for (uint32_t rank = 0; rank < count; rank++) {
    uint8_t lender = 0;
    for (auto& nodes : trees->nodes_) {
      auto& children = nodes[rank].children;
      for (size_t i = 1; i < children.size(); i++) {
        while (!trees->nodes_[lender][rank].children.empty()) lender++;
        children[i].engine = lender++;
      }
    }
  }
  return {};
}

uint8_t TrinaryTrees::engine_to(uint32_t tree, uint32_t rank) const {
  const Node& parent = at(tree, at(tree, rank).parent);
  return std::ranges::find(parent.children, rank, &Child::rank)->engine;
}

bool TrinaryTrees::stream_of(uint32_t rank, uint8_t engine, uint32_t* tree, Child* child) const {
  for (*tree = 0; *tree < kTrees; ++*tree) {
    for (const Child& each : at(*tree, rank).children) {
      if (each.engine != engine) continue;
      *child = each;
      return true;
    }
  }
  return false;
}

}  // namespace peal::host
