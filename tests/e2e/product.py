# SPDX-License-Identifier: BSD-2-Clause
"""All that peal-matmul says when its product is right, as a regular expression."""

import re

TITLE = "collective (on rank 0)        count bytes per rank      median us on the card us"
NAMES = ("broadcast of the recipes", "alltoall of lengths", "alltoallv of B", "allgatherv of B (in place)", "allgather of C, overlapped",
         "allgatherv of C's last rows", "barrier")
CARDS = "card                    data forwarded  signals    NACKs  not yet  repairs  dropped    DMA KiB"
BESIDE = ("Peal: through packets, 1% of them lost, of cards that share one processor. Open MPI: through shared memory that loses\n"
          "nothing, on all processors. The same program, data and checks.\n")


def report(ranks, order, cards, open_mpi=False):
    """Of a run on that many cards; with the column that the demo adds for Open MPI."""
    more = (r" \(over Open MPI \d+\.\d{3} s\)", re.escape(f"{'Open MPI us':>15}"), r" +\d+\.\d", re.escape(BESIDE)) if open_mpi else ("",) * 4
    rows = "".join(re.escape(f"{name:28}") + r" +\d+ +\d+ +\d+\.\d +(?:\d+\.\d|-)" + more[2] + r"\n" for name in NAMES)
    return (rf"\A{ranks} ranks multiplied two {order} x {order} matrices in \d+\.\d{{3}} s{more[0]}\n"
            rf"\n{re.escape(TITLE)}{more[1]}\n{rows}"
            rf"\n{re.escape(CARDS)}\n(?:(?:[0-9a-f]{{2}}:){{5}}[0-9a-f]{{2}} (?: +\d+){{8}}\n){{{cards}}}"
            rf"\ncorrect: on {ranks} of {ranks} ranks all {order} rows equal the serial product's\n{more[3]}\Z")
