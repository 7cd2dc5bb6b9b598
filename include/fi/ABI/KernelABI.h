/*===- KernelABI.h - what a compiled kernel and the runtime agree on -------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * Plain C, no dependencies. The compiler (lib/) reads field offsets from this
 * header when it emits loads; the runtime (runtime/) fills the structures at
 * plan time. A change here is a change of FI_ABI_VERSION. docs/abi.md tells the
 * same in prose, with the manifest that travels beside the code.
 *
 *===----------------------------------------------------------------------===*/
#ifndef FI_ABI_KERNELABI_H
#define FI_ABI_KERNELABI_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the structures below and of the kernel entry point. */
#define FI_ABI_VERSION 1
/* Version of the manifest's JSON. A runtime reads every older one. */
#define FI_MANIFEST_VERSION 1

/* Scratch and workspace pointers are aligned to this many bytes. */
#define FI_ALIGNMENT 64

/* A range of keys [begin, end) of one request's view, by key index (0 is the
 * first key of the view, whatever its position). `begin` is a multiple of the
 * body's tile_keys. */
typedef struct fi_key_range {
  int64_t begin;
  int64_t end;
} fi_key_range;

/* One work item: a tile of packed query rows of one request and one KV head,
 * over some of its keys. A packed row is `token * group + head_in_group`, so
 * that all query heads which share a KV head share its keys.
 *
 * The key ranges of an item are `ranges[range_begin ...]`: first `full_ranges`
 * ranges in which every key is visible to every row and both ends are
 * multiples of tile_keys; then `partial_ranges` ranges in which the mask (and
 * the end of the keys) must be tested. An item without ranges is legal: its
 * rows are empty states. On a GPU an item with a row_count of 0 is surplus: a
 * kernel whose manifest says `empty_items` passes over it. */
typedef struct fi_item {
  int32_t request;
  int32_t kv_head;
  int32_t row_begin;   /* first packed row, within the request */
  int32_t row_count;   /* valid packed rows, 1 ... tile_rows */
  int32_t range_begin; /* index into fi_work.ranges */
  int32_t full_ranges;
  int32_t partial_ranges;
  int32_t slot;        /* attention: state slot to write, or -1 for outputs;
                          merge: first slot to read */
  int32_t slot_count;  /* merge: number of consecutive slots; a piece for a body
                          that merges itself: slots of its tile; else 1 */
  int32_t first_slot;  /* such a piece: first slot of its tile; else 0 */
  int64_t q_begin;     /* row of the request's token 0 in the query tensor */
  int64_t q_len;       /* query tokens of the request */
  int64_t kv_len;      /* keys of the request's view */
  int64_t kv_origin;   /* position of key 0 */
  int64_t table_begin; /* paged: first entry of the request in the page
                          table; ragged: row of key 0 in the pool */
} fi_item;

/* What a launch works on; one per stage and body. */
typedef struct fi_work {
  const fi_item *items;
  const fi_key_range *ranges;
  float *state_o; /* [slot][tile_rows][dim_vo], normalised over its own keys */
  float *state_lse; /* [slot][tile_rows], base 2; -inf for an empty row */
} fi_work;

/* Kernel entry on the CPU: does items [begin, end).
 *
 * `params` are 8-byte slots. The manifest lists the stage's buffers in order; a
 * buffer of rank r takes 1 + 2r slots (data pointer, r sizes, r strides in
 * elements); a scalar takes one (f32: in the low 32 bits; integers: sign
 * extended). `scratch` has the bytes that the manifest states for the body,
 * private to the calling thread, aligned to FI_ALIGNMENT, contents arbitrary.
 */
typedef void (*fi_cpu_kernel)(const int64_t *params, const fi_work *work,
                              int64_t begin, int64_t end, void *scratch);

/* Kernel entry on a GPU: `.visible .entry SYMBOL(...)`, all parameters of 8
 * bytes (.b64): the stage's buffers as slots exactly as in `params` above, then
 *
 *   const fi_item *items, const fi_key_range *ranges,
 *   float *state_o, float *state_lse,  as in fi_work (null without states)
 *   uint32_t *counters,                null where the body has none; else
 *                                      one for each slot, 0 before and after
 *   int64_t begin, int64_t end
 *
 * All pointers are memory of the device, `ranges` with room for `end` entries
 * at least, which kernels may prefetch. The grid and the CTAs have one
 * dimension. CTA c does items begin + c, begin + c + gridDim.x, ... below end.
 */
#define FI_GPU_TAIL_SLOTS 7

/* Checked kernels (`faults` in the manifest's launch) have one more parameter
 * after `end`: the log of the launch, host memory that the device reaches, so
 * that it can be read when a fault has broken the context. After the log come
 * gridDim.x words: while CTA c does item i, word c is i + 1, else it is 0. */
typedef struct fi_fault_log {
  uint32_t code;  /* fi_fault_code: of the check that failed first */
  uint32_t item;  /* that did it, as an index into `items` */
  int64_t value;  /* what was found */
  int64_t limit;  /* what it had to be below */
  uint32_t taken; /* checks that failed: the first has written the rest */
  uint32_t reserved;
} fi_fault_log;

typedef enum fi_fault_code {
  FI_FAULT_NONE = 0,
  FI_FAULT_PAGE = 1 /* a page index outside the pool of keys; page 0 was read */
} fi_fault_code;

/* Kernels of profile builds (`profile` in the manifest's launch) have one more
 * parameter, behind the log of faults if there is one: the log of the launch,
 * memory of the device. Behind its head come parts of warps, those of CTA 0
 * first; each is a fi_warp_marks and `capacity` times a fi_mark. A warp writes
 * its marks in the order of its program, and the rest when it ends. */
typedef struct fi_mark_log {
  uint32_t capacity; /* marks for which a warp has room; the runtime's */
  uint32_t run;      /* not 0; the runtime's */
  uint32_t reserved[2];
} fi_mark_log;

typedef struct fi_warp_marks {
  uint64_t begin_time;  /* %globaltimer when the warp began ... */
  uint64_t begin_clock; /* ... and %clock64 then */
  uint64_t end_time;    /* the same when it ended */
  uint64_t end_clock;
  uint32_t written; /* marks that follow */
  uint32_t dropped; /* marks for which there was no room */
  uint32_t sm;      /* %smid */
  uint32_t run;     /* that of the log: the warp has written all this */
} fi_warp_marks;

typedef struct fi_mark {
  uint64_t clock; /* %clock64 of the warp's multiprocessor */
  uint32_t mark;  /* an index into the marks of the launch in the manifest */
  int32_t item;   /* an index into `items`; -1: of no item */
} fi_mark;

/* Every package for the CPU defines this symbol, with FI_ABI_VERSION as its
 * value. */
#define FI_ABI_VERSION_SYMBOL "fi_package_abi_version"

#ifdef __cplusplus
} /* extern "C" */

static_assert(sizeof(fi_key_range) == 16, "fi_key_range is part of the ABI");
static_assert(sizeof(fi_item) == 80, "fi_item is part of the ABI");
static_assert(offsetof(fi_item, q_begin) == 40, "fi_item is part of the ABI");
static_assert(sizeof(fi_work) == 32, "fi_work is part of the ABI");
static_assert(sizeof(fi_fault_log) == 32, "fi_fault_log is part of the ABI");
static_assert(sizeof(fi_mark_log) == 16, "fi_mark_log is part of the ABI");
static_assert(sizeof(fi_warp_marks) == 48, "fi_warp_marks is part of the ABI");
static_assert(sizeof(fi_mark) == 16, "fi_mark is part of the ABI");
#endif

#endif /* FI_ABI_KERNELABI_H */
