/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The largest eigenvalue of a matrix whose rows are dealt to the ranks, which need not divide
 * evenly: each rank multiplies its rows by the vector, and an allgatherv in place gives everybody
 * the product, which is the next vector. What one rank writes next is its own again, whatever
 * others still do. Row i of the matrix has min(i, j) + 1 in column j, so the
 * right answer is known.
 *
 *   pealrun -n 8 peal-eigenvalue [ORDER]
 */
#include <math.h>
#include <peal/oob.h>
#include <peal/peal.h>
#include <stdio.h>
#include <stdlib.h>

enum { kRanksMax = 1024, kOrderMax = 100000, kSteps = 20 };
static const double kPi = 3.14159265358979323846;

static void must(peal_error error) {
  if (error == PEAL_OK) return;
  fprintf(stderr, "peal-eigenvalue: %s: %s\n", peal_strerror(error), peal_last_error_text());
  exit(1);
}

/* Rows first to last - 1 of the product. */
static void multiply(const double* vector, size_t order, size_t first, size_t last,
                     double* product) {
  for (size_t i = first; i < last; i++) {
    double sum = 0;
    for (size_t j = 0; j < order; j++) sum += (double)((i < j ? i : j) + 1) * vector[j];
    product[i] = sum;
  }
}

static double length(const double* vector, size_t order) {
  double sum = 0;
  for (size_t i = 0; i < order; i++) sum += vector[i] * vector[i];
  return sqrt(sum);
}

/* Zero where it is no number, which is refused. */
static unsigned long number(const char* text) {
  char* end = NULL;
  const unsigned long value = strtoul(text, &end, 10);
  return *text != '-' && *end == '\0' ? value : 0;
}

int main(int argc, char** argv) {
  const size_t order = argc > 1 ? number(argv[1]) : 1001;
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = NULL;
  peal_context* card = NULL;
  peal_group* group = NULL;
  void* memory = NULL;
  size_t bytes[kRanksMax]; /* of each rank's rows in the vector, one behind the other */
  if (argc > 2 || order < 1 || order > kOrderMax) {
    fprintf(stderr, "peal-eigenvalue: expected one ORDER from 1 to %d\n", kOrderMax);
    return 2;
  }
  must(peal_launch_rank(&rank, &size));
  must(peal_oob_connect(NULL, rank, size, 0, &oob));
  must(peal_open(NULL, &card));
  must(peal_group_create(card, rank, size, peal_oob_exchange, oob, NULL, &group));
  must(peal_alloc(card, order * sizeof(double), &memory));

  size_t first = 0;
  for (uint32_t r = 0; r < size; r++) {
    const size_t rows = order / size + (r < order % size ? 1 : 0);
    if (r < rank) first += rows;
    bytes[r] = rows * sizeof(double);
  }
  const size_t last = first + bytes[rank] / sizeof(double);
  double* product = memory;
  double* vector = malloc(order * sizeof(double));
  if (vector == NULL) return 1;
  for (size_t i = 0; i < order; i++) vector[i] = 1 / sqrt((double)order);
  double eigenvalue = 0;
  for (int step = 0; step < kSteps; step++) {
    multiply(vector, order, first, last, product);
    must(peal_allgatherv(group, PEAL_IN_PLACE, product, bytes, NULL));
    eigenvalue = length(product, order);
    for (size_t i = 0; i < order; i++) vector[i] = product[i] / eigenvalue;
  }

  const double wanted = 1 / (2 - 2 * cos(kPi / (2 * (double)order + 1)));
  const int right = fabs(eigenvalue - wanted) <= 1e-9 * wanted;
  if (rank == 0 || !right) {
    printf("rank %u has rows %zu to %zu of %zu: the largest eigenvalue is %.3f, %s\n", rank, first,
           last, order, eigenvalue, right ? "as it should be" : "which is WRONG");
  }
  free(vector);
  must(peal_group_destroy(group));
  peal_close(card);
  peal_oob_close(oob);
  return right ? 0 : 1;
}
