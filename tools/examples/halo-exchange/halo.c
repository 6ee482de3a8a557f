/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Heat in a square plate, by Jacobi's method: a point's next temperature is the mean of its four
 * neighbours'. The plate is cut into tiles, one for each rank, in a grid; after each step a tile
 * needs its neighbours' edges. That exchange is a program of the card: described once, and then one
 * entry a step, with no host in between. Three plates are relaxed at once, so that three starts are
 * outstanding while the inside of the tiles is computed.
 *
 * Each rank computes the whole plate as well, alone, and compares: not one bit may differ.
 *
 *   pealrun -n 6 peal-halo-exchange [ORDER [STEPS]]
 */
#include <peal/oob.h>
#include <peal/peal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kPlates = 3, kOrderMax = 2000, kStepsMax = 100000 };
enum { kNorth, kSouth, kWest, kEast, kSides };

struct tile {
  size_t rows, columns;           /* without the border */
  size_t first_row, first_column; /* in the plate */
  long neighbour[kSides];         /* rank, or -1 at the plate's rim */
};

/* What a rank tells the others of: where its neighbours put their edges. */
struct name {
  uint32_t key;
  uint32_t reserved;
  uint64_t offset;
};

struct plate {
  double *now, *next; /* the tile, with a border one point wide */
  double* edges;      /* own, north to east, as they are put */
  double* ghosts;     /* neighbours', north to east, as they come */
  peal_program* exchange;
  peal_request* started;
};

static void must(peal_error error) {
  if (error == PEAL_OK) return;
  fprintf(stderr, "peal-halo-exchange: %s: %s\n", peal_strerror(error), peal_last_error_text());
  exit(1);
}

static void* zeroed(size_t count) {
  void* memory = calloc(count, sizeof(double));
  if (memory != NULL) return memory;
  fprintf(stderr, "peal-halo-exchange: no memory\n");
  exit(1);
}

/* The most square grid of so many tiles: its number of rows. */
static uint32_t grid_rows(uint32_t size) {
  uint32_t rows = 1;
  for (uint32_t i = 1; i * i <= size; i++) {
    if (size % i == 0) rows = i;
  }
  return rows;
}

/* The part `index` of `order` points that are dealt to `parts`. */
static size_t deal(size_t order, uint32_t parts, uint32_t index, size_t* first) {
  const size_t more = order % parts;
  *first = index * (order / parts) + (index < more ? index : more);
  return order / parts + (index < more ? 1 : 0);
}

static struct tile tile_of(size_t order, uint32_t size, uint32_t rank) {
  const uint32_t rows = grid_rows(size), columns = size / rows;
  const uint32_t row = rank / columns, column = rank % columns;
  struct tile tile;
  tile.rows = deal(order, rows, row, &tile.first_row);
  tile.columns = deal(order, columns, column, &tile.first_column);
  tile.neighbour[kNorth] = row > 0 ? (long)(rank - columns) : -1;
  tile.neighbour[kSouth] = row + 1 < rows ? (long)(rank + columns) : -1;
  tile.neighbour[kWest] = column > 0 ? (long)rank - 1 : -1;
  tile.neighbour[kEast] = column + 1 < columns ? (long)rank + 1 : -1;
  return tile;
}

static int opposite(int side) { return side ^ 1; }

static size_t edge_points(const struct tile* tile, int side) {
  return side == kNorth || side == kSouth ? tile->columns : tile->rows;
}

/* Where a side's points lie among a tile's edges, or ghosts. */
static size_t edge_first(const struct tile* tile, int side) {
  size_t first = 0;
  for (int before = 0; before < side; before++) first += edge_points(tile, before);
  return first;
}

/* The temperature that the rim of a plate is kept at, and its inside begins with. */
static double at_rim(int plate, size_t row, size_t column) {
  return (double)((row * 7 + column * 3 + (size_t)plate * 5) % 101);
}

/* Of a whole plate and of a tile; rows and columns are the plate's, from 0 at its rim. */
static void begin(double* to, int plate, size_t first_row, size_t first_column, size_t rows,
                  size_t columns, size_t order) {
  for (size_t i = 0; i < rows + 2; i++) {
    for (size_t j = 0; j < columns + 2; j++) {
      const size_t row = first_row + i, column = first_column + j;
      const int rim = row == 0 || column == 0 || row == order + 1 || column == order + 1;
      to[i * (columns + 2) + j] = rim ? at_rim(plate, row, column) : 0;
    }
  }
}

/* Rows and columns from first to last of the next step. */
static void relax(const double* now, double* next, size_t width, size_t first_row, size_t last_row,
                  size_t first_column, size_t last_column) {
  for (size_t i = first_row; i <= last_row; i++) {
    for (size_t j = first_column; j <= last_column; j++) {
      const double* at = now + i * width + j;
      next[i * width + j] = 0.25 * (((at[-(long)width] + at[width]) + at[-1]) + at[1]);
    }
  }
}

/* A point of the tile's border (ghost), or next to it (edge), by its number along the side. */
static double* border(const struct tile* tile, double* points, int side, size_t index, int ghost) {
  const size_t width = tile->columns + 2, inset = ghost ? 0 : 1;
  switch (side) {
    case kNorth:
      return points + inset * width + 1 + index;
    case kSouth:
      return points + (tile->rows + 1 - inset) * width + 1 + index;
    case kWest:
      return points + (1 + index) * width + inset;
    default:
      return points + (1 + index) * width + tile->columns + 1 - inset;
  }
}

static void pack(const struct tile* tile, struct plate* plate) {
  double* to = plate->edges;
  for (int side = 0; side < kSides; side++) {
    for (size_t i = 0; i < edge_points(tile, side); i++) {
      *to++ = *border(tile, plate->now, side, i, 0);
    }
  }
}

static void unpack(const struct tile* tile, struct plate* plate) {
  for (int side = 0; side < kSides; side++) {
    if (tile->neighbour[side] < 0) continue; /* the rim stays as it is */
    const double* from = plate->ghosts + edge_first(tile, side);
    for (size_t i = 0; i < edge_points(tile, side); i++) {
      *border(tile, plate->now, side, i, 1) = from[i];
    }
  }
}

/* Counters of a side: its neighbour is ready for this tile's edge; its neighbour's has arrived. */
static uint32_t ready(int side) { return 2 * (uint32_t)side; }
static uint32_t arrived(int side) { return 2 * (uint32_t)side + 1; }

/* The exchange of one plate's edges: everybody says to its neighbours that it is ready, puts each
 * edge when that neighbour is, and waits until all of theirs have arrived. */
static peal_program* describe(const struct tile* tile, uint32_t rank, uint32_t size, size_t order,
                              const struct plate* plate, const struct name* ghosts) {
  peal_program* program = NULL;
  must(peal_program_create(rank, size, NULL, &program));
  for (int side = 0; side < kSides; side++) {
    const uint32_t source = tile->neighbour[side] < 0 ? rank : (uint32_t)tile->neighbour[side];
    uint32_t counter;
    must(peal_program_counter(program, source, &counter)); /* ready() */
    must(peal_program_counter(program, source, &counter)); /* arrived() */
  }
  for (int side = 0; side < kSides; side++) {
    const peal_program_notice is_ready = {NULL, ready(opposite(side)), 1};
    if (tile->neighbour[side] < 0) continue;
    must(peal_program_signal(program, (uint32_t)tile->neighbour[side], &is_ready, PEAL_NO_COUNT));
  }
  for (int side = 0; side < kSides; side++) {
    if (tile->neighbour[side] < 0) continue;
    const uint32_t to = (uint32_t)tile->neighbour[side];
    const struct tile theirs = tile_of(order, size, to);
    const uint64_t offset =
        ghosts[to].offset + edge_first(&theirs, opposite(side)) * sizeof(double);
    const peal_program_notice has_arrived = {NULL, arrived(opposite(side)), 1};
    must(peal_program_wait(program, ready(side), 1));
    must(peal_program_put(program, to, plate->edges + edge_first(tile, side),
                          edge_points(tile, side) * sizeof(double), ghosts[to].key, offset,
                          &has_arrived, PEAL_NO_COUNT));
  }
  for (int side = 0; side < kSides; side++) {
    if (tile->neighbour[side] >= 0) must(peal_program_wait(program, arrived(side), 1));
  }
  return program;
}

/* The same plate without anybody's help: does the tile agree with it? */
static int agrees(const struct tile* tile, const struct plate* plate, int number, size_t order,
                  unsigned long steps) {
  const size_t width = order + 2;
  double *now = zeroed(width * width), *next = zeroed(width * width);
  begin(now, number, 0, 0, order, order, order);
  begin(next, number, 0, 0, order, order, order);
  for (unsigned long step = 0; step < steps; step++) {
    double* const last = now;
    relax(now, next, width, 1, order, 1, order);
    now = next;
    next = last;
  }
  int right = 1;
  for (size_t i = 1; i <= tile->rows; i++) {
    const double* ours = plate->now + i * (tile->columns + 2) + 1;
    const double* wanted = now + (tile->first_row + i) * width + tile->first_column + 1;
    right = right && memcmp(ours, wanted, tile->columns * sizeof(double)) == 0;
  }
  free(now);
  free(next);
  return right;
}

static void step(const struct tile* tile, struct plate* plates) {
  const size_t width = tile->columns + 2;
  for (int i = 0; i < kPlates; i++) {
    pack(tile, &plates[i]);
    must(peal_program_start(plates[i].exchange, 1, &plates[i].started));
  }
  for (int i = 0; i < kPlates; i++) /* what needs nobody's edge */
    relax(plates[i].now, plates[i].next, width, 2, tile->rows - 1, 2, tile->columns - 1);
  for (int i = 0; i < kPlates; i++) {
    struct plate* plate = &plates[i];
    double* const last = plate->now;
    must(peal_wait(plate->started));
    must(peal_request_free(plate->started));
    unpack(tile, plate);
    relax(plate->now, plate->next, width, 1, 1, 1, tile->columns);
    relax(plate->now, plate->next, width, tile->rows, tile->rows, 1, tile->columns);
    relax(plate->now, plate->next, width, 1, tile->rows, 1, 1);
    relax(plate->now, plate->next, width, 1, tile->rows, tile->columns, tile->columns);
    plate->now = plate->next;
    plate->next = last;
  }
}

static void prepare(peal_context* card, peal_group* group, const struct tile* tile, size_t order,
                    int number, struct plate* plate) {
  const uint32_t rank = peal_group_rank(group), size = peal_group_size(group);
  const size_t points = (tile->rows + 2) * (tile->columns + 2);
  const size_t edges = edge_first(tile, kSides);
  void *memory = NULL, *exchanged = NULL;
  plate->now = zeroed(points);
  plate->next = zeroed(points);
  begin(plate->now, number, tile->first_row, tile->first_column, tile->rows, tile->columns, order);
  begin(plate->next, number, tile->first_row, tile->first_column, tile->rows, tile->columns, order);
  must(peal_alloc(card, 2 * edges * sizeof(double), &memory));
  plate->edges = memory;
  plate->ghosts = plate->edges + edges;
  /* Everybody's ghosts get names that others can put to. */
  must(peal_alloc(card, (1 + (size_t)size) * sizeof(struct name), &exchanged));
  struct name *own = exchanged, *all = own + 1;
  must(peal_memory_name(card, plate->ghosts, edges * sizeof(double), &own->key, &own->offset));
  must(peal_allgather(group, own, all, sizeof(*own)));
  plate->exchange = describe(tile, rank, size, order, plate, all);
  must(peal_program_commit(group, plate->exchange));
  must(peal_free(card, exchanged));
}

/* Zero where it is no number, which is refused. */
static unsigned long number(const char* text) {
  char* end = NULL;
  const unsigned long value = strtoul(text, &end, 10);
  return *text != '-' && *end == '\0' ? value : 0;
}

int main(int argc, char** argv) {
  const size_t order = argc > 1 ? number(argv[1]) : 60;
  const unsigned long steps = argc > 2 ? number(argv[2]) : 200;
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = NULL;
  peal_context* card = NULL;
  peal_group* group = NULL;
  if (argc > 3 || order < 1 || order > kOrderMax || steps < 1 || steps > kStepsMax) {
    fprintf(stderr, "peal-halo-exchange: expected an ORDER from 1 to %d, and STEPS from 1 to %d\n",
            kOrderMax, kStepsMax);
    return 2;
  }
  must(peal_launch_rank(&rank, &size));
  if (order < 2 * (size_t)(size / grid_rows(size))) {
    fprintf(stderr, "peal-halo-exchange: %zu points are too few for tiles of %u ranks\n", order,
            size);
    return 2;
  }
  must(peal_oob_connect(NULL, rank, size, 0, &oob));
  must(peal_open(NULL, &card));
  must(peal_group_create(card, rank, size, peal_oob_exchange, oob, NULL, &group));

  const struct tile tile = tile_of(order, size, rank);
  struct plate plates[kPlates];
  for (int i = 0; i < kPlates; i++) prepare(card, group, &tile, order, i, &plates[i]);
  for (unsigned long i = 0; i < steps; i++) step(&tile, plates);

  int right = 1;
  for (int i = 0; i < kPlates; i++) right = right && agrees(&tile, &plates[i], i, order, steps);
  if (rank == 0 || !right) {
    printf("rank %u of %u x %u has %zu x %zu points: after %lu steps of %d plates %s\n", rank,
           grid_rows(size), size / grid_rows(size), tile.rows, tile.columns, steps, kPlates,
           right ? "all as computed alone" : "WRONG");
  }
  for (int i = 0; i < kPlates; i++) {
    must(peal_program_free(plates[i].exchange));
    free(plates[i].now);
    free(plates[i].next);
  }
  must(peal_group_destroy(group));
  peal_close(card);
  peal_oob_close(oob);
  return right ? 0 : 1;
}
