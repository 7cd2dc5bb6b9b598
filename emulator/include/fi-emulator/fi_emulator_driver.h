/*===- fi_emulator_driver.h - The emulator as a device of the runtime -----===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * A driver for fi_device_open whose one device is emulated: packages, plans and
 * runs are those of a GPU. Work is done when it is put into a stream, and what
 * a kernel does wrong makes its launch fail with all reports as the sentence.
 *
 *===----------------------------------------------------------------------===*/
#ifndef FI_EMULATOR_DRIVER_H
#define FI_EMULATOR_DRIVER_H

#include "fi-emulator/fi_emulator.h"
#include "fi-runtime/fi_driver.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A driver whose device is `chip` ("sm_80"); options as in
 * fi_emu_device_create. NULL on failure: fi_emu_last_error has the sentence.
 * Must outlive devices, packages and plans that were made with it. */
FI_EMU_API const fi_driver *fi_emulator_driver(const char *chip,
                                               const char *options);
FI_EMU_API void fi_emulator_driver_destroy(const fi_driver *driver);

/* Lets kernels use memory of the host as the device's, and ends that. 0, or 1
 * with a sentence in the driver's last_error. */
FI_EMU_API int fi_emulator_driver_register(const fi_driver *driver,
                                           void *memory, size_t bytes,
                                           int writable);
FI_EMU_API int fi_emulator_driver_unregister(const fi_driver *driver,
                                             void *memory);
/* Warp instructions of all launches so far. */
FI_EMU_API uint64_t fi_emulator_driver_instructions(const fi_driver *driver);

#ifdef __cplusplus
}
#endif

#endif /* FI_EMULATOR_DRIVER_H */
