/*===- fi_emulator.h - PTX on the host, in C -----------------------*- C
-*-===*\
|*                                                                            *|
|* Part of fi, under the Apache License v2.0 with LLVM Exceptions.            *|
|* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception                    *|
|*                                                                            *|
|* The C form of Emulator.h. Functions return 0, or 1 with a sentence in      *|
|* fi_emu_last_error (of the calling thread). Addresses of the device are     *|
|* host addresses.                                                            *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/
#ifndef FI_EMULATOR_C_H
#define FI_EMULATOR_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(FI_EMULATOR_STATIC)
#define FI_EMU_API
#else
#define FI_EMU_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fi_emu_device fi_emu_device;
typedef struct fi_emu_module fi_emu_module;
typedef struct fi_emu_function fi_emu_function;

FI_EMU_API const char *fi_emu_last_error(void);

/* options: "check", "stats", "stop", "seed=N", "steps=N", "sms=N", separated by
 * commas; may be NULL. */
FI_EMU_API int fi_emu_device_create(const char *target, const char *options,
                                    fi_emu_device **out);
FI_EMU_API void fi_emu_device_destroy(fi_emu_device *device);

FI_EMU_API int fi_emu_mem_alloc(fi_emu_device *device, size_t bytes,
                                uint64_t *out);
FI_EMU_API int fi_emu_mem_free(fi_emu_device *device, uint64_t address);
FI_EMU_API int fi_emu_mem_register(fi_emu_device *device, void *pointer,
                                   size_t bytes, int writable);
FI_EMU_API int fi_emu_mem_unregister(fi_emu_device *device, void *pointer);
FI_EMU_API int fi_emu_memcpy_to_device(fi_emu_device *device, uint64_t to,
                                       const void *from, size_t bytes);
FI_EMU_API int fi_emu_memcpy_to_host(fi_emu_device *device, void *to,
                                     uint64_t from, size_t bytes);

/* As cuTensorMapEncodeTiled, with its numbers, for kernels in the emulator: an
 * opaque map of 128 bytes at `map`, which is aligned to 64. `strides` are bytes
 * of dimensions 1 to rank - 1; the arrays have `rank` entries otherwise. */
FI_EMU_API int fi_emu_tensor_map_encode_tiled(
    void *map, uint32_t type, uint32_t rank, uint64_t address,
    const uint64_t *dims, const uint64_t *strides, const uint32_t *box,
    const uint32_t *element_strides, uint32_t interleave, uint32_t swizzle,
    uint32_t promotion, uint32_t fill);

FI_EMU_API int fi_emu_module_load(fi_emu_device *device, const char *name,
                                  const char *ptx, fi_emu_module **out);
FI_EMU_API void fi_emu_module_unload(fi_emu_device *device,
                                     fi_emu_module *module);
FI_EMU_API int fi_emu_module_get_function(fi_emu_module *module,
                                          const char *name,
                                          fi_emu_function **out);
FI_EMU_API size_t
fi_emu_function_parameter_bytes(const fi_emu_function *function);
FI_EMU_API uint32_t
fi_emu_function_shared_bytes(const fi_emu_function *function);

/* Reports make it fail; fi_emu_last_error then has all of them. */
FI_EMU_API int fi_emu_launch(fi_emu_device *device,
                             const fi_emu_function *function,
                             const uint32_t grid[3], const uint32_t block[3],
                             uint32_t dynamic_shared, const void *params,
                             size_t param_bytes);
/* Of the last launch on the device. */
FI_EMU_API uint64_t fi_emu_last_warp_instructions(const fi_emu_device *device);
FI_EMU_API uint32_t fi_emu_last_report_count(const fi_emu_device *device);

#ifdef __cplusplus
}
#endif

#endif /* FI_EMULATOR_C_H */
