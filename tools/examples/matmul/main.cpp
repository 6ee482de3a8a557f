// SPDX-License-Identifier: BSD-2-Clause
// C = A * B by several processes. Rank 0 broadcasts what the matrices are made of. Each rank owns a
// band of rows, but makes a band of columns of B: an alltoallv turns columns into rows, and an
// allgatherv gives everybody all of B. Then each rank computes its band of C in strips, and while
// it computes a strip the cards gather the one before. Rows need not divide evenly: bands differ by
// a row, strips do not, and an allgatherv gathers what is left of the bands. At the end every rank
// has all of C and checks it against the serial product.
//
//   pealrun -n 8 --loss 0.01 peal-matmul
#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "emulator/common/command_line.h"
#include "peal/oob.h"
#include "peal/peal.h"

namespace {

struct Job {
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = nullptr;
  peal_context* card = nullptr;
  peal_group* group = nullptr;
};

[[noreturn]] void give_up(const Job& job, const char* what) {
  fprintf(stderr, "peal-matmul: rank %u: %s: %s\n", job.rank, what, peal_last_error_text());
  fflush(nullptr);
  _Exit(1);
}

void check(const Job& job, peal_error error, const char* what) {
  if (error != PEAL_OK) give_up(job, what);
}

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(now.tv_nsec);
}

template <typename Element>
Element* allocate(const Job& job, size_t count) {
  void* memory = nullptr;
  check(job, peal_alloc(job.card, std::max<size_t>(count, 1) * sizeof(Element), &memory),
        "allocating memory");
  return static_cast<Element*>(memory);
}

void release(const Job& job, void* memory) {
  check(job, peal_free(job.card, memory), "freeing memory");
}

// What a matrix is made of. The elements are small multiples of 1/64, so that sums of products are
// exact and the order of summing does not matter: the gathered product must equal the serial one
// bit by bit.
struct Recipe {
  uint32_t by_row;
  uint32_t by_column;
  uint32_t first;
  uint32_t modulus;

  [[nodiscard]] double element(uint32_t row, uint32_t column) const {
    return static_cast<double>((row * by_row + column * by_column + first) % modulus) / 64.0 - 1.0;
  }
};
struct Recipes {
  Recipe a;
  Recipe b;
};
constexpr Recipes kRecipes = {{31, 17, 7, 129}, {13, 37, 5, 127}};

// How rows are dealt: this share's, from the first to behind the last.
struct Rows {
  uint32_t first;
  uint32_t end;

  [[nodiscard]] uint32_t count() const { return end - first; }
};
Rows dealt(uint32_t rows, uint32_t share, uint32_t shares) {
  const auto begin = [&](uint32_t i) { return static_cast<uint32_t>(uint64_t{rows} * i / shares); };
  return {begin(share), begin(share + 1)};
}

// What one kind of collective took on this rank.
struct Series {
  const char* name;
  uint64_t block_bytes;
  std::vector<double> host_us;  // from the call, or the post, to the end of the wait
  std::vector<double> card_us;  // on the card's clock
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Product {
 public:
  Product(const Job& job, uint32_t order, uint32_t strips)
      : job_(job),
        order_(order),
        strips_(strips),
        strip_rows_(order / job.size / strips),
        band_(band_of(job.rank)) {}

  void run();
  [[nodiscard]] bool is_right() const;
  [[nodiscard]] std::vector<Series> series() const {
    return {tell_, ask_, turn_, spread_, strip_, rest_, ready_};
  }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  void broadcast_recipes();
  void exchange_lengths(const size_t* sent, size_t* received);
  void make_rows_of_b();
  void spread_b();
  void compute(Rows rows);
  void post_strip(uint32_t strip);
  void post_rest();
  void finish(uint32_t part, Series* series);
  void place_strip(uint32_t strip);
  [[nodiscard]] Rows band_of(uint32_t rank) const { return dealt(order_, rank, job_.size); }
  [[nodiscard]] Rows strip_of(uint32_t rank, uint32_t strip) const {
    const uint32_t first = band_of(rank).first + strip * strip_rows_;
    return {first, first + strip_rows_};
  }
  [[nodiscard]] Rows rest_of(uint32_t rank) const {
    return {band_of(rank).first + strips_ * strip_rows_, band_of(rank).end};
  }
  [[nodiscard]] size_t bytes_of(Rows rows) const {
    return size_t{rows.count()} * order_ * sizeof(double);
  }
  [[nodiscard]] double* row_of_c(uint32_t row) const { return c_ + size_t{row} * order_; }
  // Of all ranks, one behind the other.
  [[nodiscard]] double* gathered(uint32_t strip) const {
    return strips_of_c_ + size_t{strip} * job_.size * strip_rows_ * order_;
  }

  const Job& job_;
  uint32_t order_;
  uint32_t strips_;
  uint32_t strip_rows_;  // of each rank
  Rows band_;            // this rank's
  Recipes* recipes_ = nullptr;
  double* b_ = nullptr;
  double* c_ = nullptr;
  double* strips_of_c_ = nullptr;  // as they are gathered
  std::vector<peal_request*> requests_;
  std::vector<uint64_t> posted_ns_;
  double seconds_ = 0;
  Series tell_ = {"broadcast of the recipes", 0, {}, {}};
  Series ask_ = {"alltoall of lengths", 0, {}, {}};
  Series turn_ = {"alltoallv of B", 0, {}, {}};
  Series spread_ = {"allgatherv of B (in place)", 0, {}, {}};
  Series strip_ = {"allgather of C, overlapped", 0, {}, {}};
  Series rest_ = {"allgatherv of C's last rows", 0, {}, {}};
  Series ready_ = {"barrier", 0, {}, {}};
};

void Product::run() {
  const size_t all = size_t{order_} * order_;
  recipes_ = allocate<Recipes>(job_, 1);
  b_ = allocate<double>(job_, all);
  c_ = allocate<double>(job_, all);
  strips_of_c_ = allocate<double>(job_, size_t{strips_} * job_.size * strip_rows_ * order_);
  requests_.resize(strips_ + 1);
  posted_ns_.resize(strips_ + 1);

  for (int i = 0; i < 10; i++) {  // everybody is here; and what a barrier takes
    const uint64_t start = now_ns();
    check(job_, peal_barrier(job_.group), "barrier");
    ready_.host_us.push_back(static_cast<double>(now_ns() - start) * 1e-3);
  }
  const uint64_t start = now_ns();
  broadcast_recipes();
  make_rows_of_b();
  spread_b();
  for (uint32_t strip = 0; strip < strips_; strip++) {
    compute(strip_of(job_.rank, strip));
    post_strip(strip);
  }
  compute(rest_of(job_.rank));
  post_rest();
  for (uint32_t strip = 0; strip < strips_; strip++) {
    finish(strip, &strip_);
    place_strip(strip);
  }
  finish(strips_, &rest_);
  seconds_ = static_cast<double>(now_ns() - start) * 1e-9;
}

void Product::broadcast_recipes() {
  if (job_.rank == 0) *recipes_ = kRecipes;
  tell_.block_bytes = sizeof(Recipes);
  const uint64_t start = now_ns();
  check(job_, peal_bcast(job_.group, recipes_, sizeof(Recipes), 0), "broadcast of the recipes");
  tell_.host_us.push_back(static_cast<double>(now_ns() - start) * 1e-3);
}

// A rank knows what it has for whom. What comes from whom, the others say first.
void Product::exchange_lengths(const size_t* sent, size_t* received) {
  ask_.block_bytes = sizeof(size_t);
  const uint64_t start = now_ns();
  check(job_, peal_alltoall(job_.group, sent, received, sizeof(size_t)), "alltoall of lengths");
  ask_.host_us.push_back(static_cast<double>(now_ns() - start) * 1e-3);
}

// A block is what one rank made of another's rows: [row][column], both within their bands.
void Product::make_rows_of_b() {
  auto* made = allocate<double>(job_, size_t{order_} * band_.count());
  auto* got = allocate<double>(job_, size_t{band_.count()} * order_);
  auto* made_bytes = allocate<size_t>(job_, job_.size);
  auto* got_bytes = allocate<size_t>(job_, job_.size);
  double* next = made;
  for (uint32_t row = 0; row < order_; row++) {
    for (uint32_t column = band_.first; column < band_.end; column++) {
      *next++ = recipes_->b.element(row, column);
    }
  }
  for (uint32_t to = 0; to < job_.size; to++) {
    made_bytes[to] = size_t{band_of(to).count()} * band_.count() * sizeof(double);
  }
  exchange_lengths(made_bytes, got_bytes);
  turn_.block_bytes = made_bytes[0];
  const uint64_t start = now_ns();
  check(job_, peal_alltoallv(job_.group, made, made_bytes, nullptr, got, got_bytes, nullptr),
        "alltoallv of B");
  turn_.host_us.push_back(static_cast<double>(now_ns() - start) * 1e-3);
  const double* block = got;
  for (uint32_t from = 0; from < job_.size; from++) {
    const Rows columns = band_of(from);
    for (uint32_t row = band_.first; row < band_.end; row++, block += columns.count()) {
      std::copy_n(block, columns.count(), b_ + size_t{row} * order_ + columns.first);
    }
  }
  for (void* memory : {static_cast<void*>(made), static_cast<void*>(got),
                       static_cast<void*>(made_bytes), static_cast<void*>(got_bytes)}) {
    release(job_, memory);
  }
}

void Product::spread_b() {
  std::vector<size_t> bytes;
  for (uint32_t rank = 0; rank < job_.size; rank++) bytes.push_back(bytes_of(band_of(rank)));
  spread_.block_bytes = bytes[job_.rank];
  const uint64_t start = now_ns();
  check(job_, peal_allgatherv(job_.group, PEAL_IN_PLACE, b_, bytes.data(), nullptr),
        "allgatherv of B");
  spread_.host_us.push_back(static_cast<double>(now_ns() - start) * 1e-3);
}

void Product::compute(Rows rows) {
  for (uint32_t row = rows.first; row < rows.end; row++) {
    double* out_row = row_of_c(row);
    std::fill_n(out_row, order_, 0.0);
    for (uint32_t k = 0; k < order_; k++) {
      const double a = recipes_->a.element(row, k);
      const double* b_row = b_ + size_t{k} * order_;
      for (uint32_t column = 0; column < order_; column++) out_row[column] += a * b_row[column];
    }
  }
}

void Product::post_strip(uint32_t strip) {
  const Rows rows = strip_of(job_.rank, strip);
  strip_.block_bytes = bytes_of(rows);
  posted_ns_[strip] = now_ns();
  check(job_,
        peal_iallgather(job_.group, row_of_c(rows.first), gathered(strip), strip_.block_bytes,
                        &requests_[strip]),
        "allgather of C");
}

// Each rank's last rows go straight to where they belong. The call keeps neither array.
void Product::post_rest() {
  std::vector<size_t> bytes;
  std::vector<size_t> offsets;
  for (uint32_t rank = 0; rank < job_.size; rank++) {
    const Rows rows = rest_of(rank);
    bytes.push_back(bytes_of(rows));
    offsets.push_back(bytes_of({0, rows.first}));
  }
  rest_.block_bytes = bytes[job_.rank];
  posted_ns_[strips_] = now_ns();
  check(job_,
        peal_iallgatherv(job_.group, PEAL_IN_PLACE, c_, bytes.data(), offsets.data(),
                         &requests_[strips_]),
        "allgatherv of C");
}

void Product::finish(uint32_t part, Series* series) {
  check(job_, peal_wait(requests_[part]), series->name);
  series->host_us.push_back(static_cast<double>(now_ns() - posted_ns_[part]) * 1e-3);
  series->card_us.push_back(static_cast<double>(peal_request_card_ns(requests_[part])) * 1e-3);
  check(job_, peal_request_free(requests_[part]), "freeing a request");
}

void Product::place_strip(uint32_t strip) {
  const double* block = gathered(strip);
  for (uint32_t rank = 0; rank < job_.size; rank++) {
    const Rows rows = strip_of(rank, strip);
    const size_t elements = size_t{rows.count()} * order_;
    std::copy_n(block, elements, row_of_c(rows.first));
    block += elements;
  }
}

// The serial product, on every rank, row by row.
bool Product::is_right() const {
  std::vector<double> row_wanted(order_);
  for (uint32_t row = 0; row < order_; row++) {
    std::fill(row_wanted.begin(), row_wanted.end(), 0.0);
    for (uint32_t k = 0; k < order_; k++) {
      const double a = kRecipes.a.element(row, k);
      for (uint32_t column = 0; column < order_; column++) {
        row_wanted[column] += a * kRecipes.b.element(k, column);
      }
    }
    if (memcmp(row_of_c(row), row_wanted.data(), order_ * sizeof(double)) != 0) {
      fprintf(stderr, "peal-matmul: rank %u: row %u is not that of the serial product\n", job_.rank,
              row);
      return false;
    }
  }
  return true;
}

// --- the report ---

struct CardReport {
  uint8_t mac[6];
  uint16_t unused;
  uint32_t counters;
  uint64_t values[96];
};

uint64_t counter(const CardReport& report, const char* name) {
  for (uint32_t i = 0; i < report.counters; i++) {
    const char* each = peal_counter_name(i);
    if (each != nullptr && strcmp(each, name) == 0) return report.values[i];
  }
  return 0;
}

uint64_t dropped(const CardReport& report) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < report.counters; i++) {
    const char* each = peal_counter_name(i);
    if (each != nullptr && strncmp(each, "drop_", 5) == 0) sum += report.values[i];
  }
  return sum;
}

std::vector<CardReport> gather_reports(const Job& job) {
  CardReport own = {};
  peal_card_info info = {};
  info.struct_bytes = sizeof(info);
  size_t count = 0;
  check(job, peal_card_query(job.card, &info), "asking the card");
  check(job, peal_counters(job.card, own.values, std::size(own.values), &count),
        "reading counters");
  memcpy(own.mac, info.mac, sizeof(own.mac));
  own.counters = static_cast<uint32_t>(std::min(count, std::size(own.values)));
  std::vector<CardReport> all(job.size);
  check(job, static_cast<peal_error>(peal_oob_exchange(job.oob, &own, all.data(), sizeof(own))),
        "exchanging counters");
  return all;
}

void print_cards(const std::vector<CardReport>& reports) {
  printf("\n%-18s %9s %9s %8s %8s %8s %8s %8s %10s\n", "card", "data", "forwarded", "signals",
         "NACKs", "not yet", "repairs", "dropped", "DMA KiB");
  for (size_t i = 0; i < reports.size(); i++) {
    const CardReport& report = reports[i];
    const bool seen =
        std::any_of(reports.begin(), reports.begin() + static_cast<ptrdiff_t>(i),
                    [&](const CardReport& r) { return memcmp(r.mac, report.mac, 6) == 0; });
    if (seen) continue;  // several ranks on one card
    printf("%02x:%02x:%02x:%02x:%02x:%02x  %9" PRIu64 " %9" PRIu64 " %8" PRIu64 " %8" PRIu64
           " %8" PRIu64 " %8" PRIu64 " %8" PRIu64 " %10" PRIu64 "\n",
           report.mac[0], report.mac[1], report.mac[2], report.mac[3], report.mac[4], report.mac[5],
           counter(report, "sent_data"), counter(report, "forwarded"),
           counter(report, "sent_signal") + counter(report, "sent_recycle"),
           counter(report, "sent_nack"), counter(report, "sent_not_yet"),
           counter(report, "sent_repair"), dropped(report),
           (counter(report, "dma_read_bytes") + counter(report, "dma_write_bytes")) / 1024);
  }
}

void print_series(const std::vector<Series>& all) {
  printf("\n%-28s %6s %14s %14s %14s\n", "collective (on rank 0)", "count", "bytes per rank",
         "median us", "on the card us");
  for (const Series& series : all) {
    printf("%-28s %6zu %14" PRIu64 " %14.1f ", series.name, series.host_us.size(),
           series.block_bytes, median(series.host_us));
    if (series.card_us.empty()) {
      printf("%14s\n", "-");
    } else {
      printf("%14.1f\n", median(series.card_us));
    }
  }
}

// All ranks must agree, and nobody's counters are read while others still check.
ptrdiff_t count_right(const Job& job, bool right) {
  auto* verdicts = allocate<uint8_t>(job, job.size);
  verdicts[job.rank] = right ? 1 : 0;
  check(job, peal_allgather(job.group, PEAL_IN_PLACE, verdicts, 1), "allgather of verdicts");
  const ptrdiff_t count = std::count(verdicts, verdicts + job.size, uint8_t{1});
  release(job, verdicts);
  return count;
}

int multiply(Job& job, uint32_t order, uint32_t strips) {
  check(job, peal_launch_rank(&job.rank, &job.size), "start");
  check(job, peal_oob_connect(nullptr, job.rank, job.size, 0, &job.oob), "start");
  check(job, peal_open(nullptr, &job.card), "opening the card");
  check(job,
        peal_group_create(job.card, job.rank, job.size, peal_oob_exchange, job.oob, nullptr,
                          &job.group),
        "making the group");
  Product product(job, order, strips);
  product.run();
  const ptrdiff_t right_ranks = count_right(job, product.is_right());
  const std::vector<CardReport> reports = gather_reports(job);
  if (job.rank == 0) {
    printf("%u ranks multiplied two %u x %u matrices in %.3f s\n", job.size, order, order,
           product.seconds());
    print_series(product.series());
    print_cards(reports);
    printf("\n%s: on %td of %u ranks all %u rows equal the serial product's\n",
           right_ranks == ptrdiff_t{job.size} ? "correct" : "WRONG", right_ranks, job.size, order);
  }
  check(job, peal_group_destroy(job.group), "destroying the group");
  peal_close(job.card);
  peal_oob_close(job.oob);
  return right_ranks == ptrdiff_t{job.size} ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  namespace command_line = peal::command_line;
  command_line::App app(
      "peal-matmul", "pealrun -n RANKS [--loss P] peal-matmul [ORDER [STRIPS]]",
      "Multiplies two ORDER x ORDER matrices on all ranks: a broadcast says what they are made of, "
      "an alltoallv\nturns columns into rows, and the rows of the product are gathered in STRIPS "
      "parts, all through the cards.\nRows need not divide evenly. Checks the product against the "
      "serial one. Prints what each collective took\nand what the cards did.");
  uint32_t order = 500;
  uint32_t strips = 8;
  command_line::Group group(app);
  group.add("ORDER", order, "", "Is the number of rows and columns, 1 to 16384.")
      .check(command_line::whole(1, 1u << 14))
      .show_default();
  group.add("STRIPS", strips, "", "Is in how many parts a rank's rows are gathered.")
      .check(command_line::whole(1, 1u << 14))
      .show_default();
  if (const auto status = app.parse(argc, argv)) return *status;
  Job job;
  return multiply(job, order, strips);
}
