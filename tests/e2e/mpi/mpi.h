/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tools/openmpi-twin uses of the MPI standard, declared only: it is compiled against this also
 * where there is no Open MPI, so that it keeps up with peal.h. Nothing is linked with it.
 */
#ifndef PEAL_MPI_DECLARATIONS_H
#define PEAL_MPI_DECLARATIONS_H

/* The standard's names. NOLINTBEGIN(readability-identifier-naming) */
typedef struct peal_mpi_comm* MPI_Comm;
typedef struct peal_mpi_request* MPI_Request;
typedef struct peal_mpi_datatype* MPI_Datatype;
typedef struct peal_mpi_status MPI_Status;
typedef struct peal_mpi_info* MPI_Info;
typedef struct peal_mpi_window* MPI_Win;
typedef long MPI_Aint;

extern MPI_Comm MPI_COMM_WORLD;
extern MPI_Datatype MPI_BYTE;
extern MPI_Request MPI_REQUEST_NULL;
extern MPI_Info MPI_INFO_NULL;
#define MPI_IN_PLACE ((void*)1)
#define MPI_STATUS_IGNORE ((MPI_Status*)0)
#define MPI_MAX_LIBRARY_VERSION_STRING 256

int MPI_Init(int* argc, char*** argv);
int MPI_Finalize(void);
int MPI_Get_library_version(char* version, int* length);
int MPI_Comm_rank(MPI_Comm comm, int* rank);
int MPI_Comm_size(MPI_Comm comm, int* size);
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy);
int MPI_Comm_free(MPI_Comm* comm);
int MPI_Barrier(MPI_Comm comm);
int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int MPI_Iallgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request);
int MPI_Alltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                 int receive_count, MPI_Datatype receive_type, MPI_Comm comm);
int MPI_Allgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                   const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                   MPI_Comm comm);
int MPI_Iallgatherv(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                    const int* receive_counts, const int* displacements, MPI_Datatype receive_type,
                    MPI_Comm comm, MPI_Request* request);
int MPI_Alltoallv(const void* send, const int* send_counts, const int* send_displacements,
                  MPI_Datatype send_type, void* receive, const int* receive_counts,
                  const int* receive_displacements, MPI_Datatype receive_type, MPI_Comm comm);
int MPI_Ialltoallv(const void* send, const int* send_counts, const int* send_displacements,
                   MPI_Datatype send_type, void* receive, const int* receive_counts,
                   const int* receive_displacements, MPI_Datatype receive_type, MPI_Comm comm,
                   MPI_Request* request);
int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm);
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request);
int MPI_Ialltoall(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm,
                  MPI_Request* request);
int MPI_Ibcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm,
               MPI_Request* request);
int MPI_Isend(const void* send, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Irecv(void* receive, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request);
int MPI_Win_create(void* base, MPI_Aint bytes, int unit, MPI_Info info, MPI_Comm comm,
                   MPI_Win* window);
int MPI_Win_free(MPI_Win* window);
int MPI_Win_lock_all(int assertion, MPI_Win window);
int MPI_Win_unlock_all(MPI_Win window);
int MPI_Win_flush(int rank, MPI_Win window);
int MPI_Put(const void* send, int count, MPI_Datatype type, int to, MPI_Aint offset, int there,
            MPI_Datatype type_there, MPI_Win window);
int MPI_Get(void* receive, int count, MPI_Datatype type, int from, MPI_Aint offset, int there,
            MPI_Datatype type_there, MPI_Win window);
int MPI_Test(MPI_Request* request, int* done, MPI_Status* status);
int MPI_Wait(MPI_Request* request, MPI_Status* status);
/* NOLINTEND(readability-identifier-naming) */

#endif
