//===- Device.cpp - a device of the runtime as a memory -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include "fi-emulator/fi_emulator_driver.h"
#include "fi/Support/Batch.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <vector>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

bool Device::isName(StringRef backend) {
  StringRef kind = backend.split(':').first;
  return kind == "cuda" || kind == "emulated";
}

Error Device::check(StringRef backend) {
  auto [kind, which] = backend.split(':');
  int32_t ordinal = 0;
  if (kind == "emulated") {
    if (auto chip = sm::find(which.split(':').first); !chip)
      return createStringError("backend 'emulated': " +
                               llvm::toString(chip.takeError()));
  } else if (backend != "cuda" &&
             (which.getAsInteger(10, ordinal) || ordinal < 0)) {
    return createStringError("backend: expected 'cuda', or 'cuda:N' with the "
                             "number of a GPU, but got '" +
                             backend + "'");
  }
  return Error::success();
}

Expected<std::shared_ptr<Device>> Device::open(StringRef backend) {
  if (Error error = check(backend))
    return std::move(error);
  // The constructor is private.
  std::shared_ptr<Device> made(new Device());
  made->backend = backend.str();
  auto [kind, which] = backend.split(':');
  int32_t ordinal = 0;
  if (kind == "emulated") {
    auto [name, options] = which.split(':');
    made->chip = llvm::cantFail(sm::find(name));
    // Whoever emulates wants to know of mistakes.
    std::string wanted = "check";
    for (StringRef option : llvm::split(options, ':'))
      if (!option.empty())
        wanted += "," + option.str();
    made->driver = made->emulator =
        fi_emulator_driver(made->chip->chip.str().c_str(), wanted.c_str());
    if (!made->emulator)
      return createStringError("backend '" + backend +
                               "': " + fi_emu_last_error());
  } else {
    which.getAsInteger(10, ordinal);
    if (fi_cuda_driver(&made->driver) != FI_OK)
      return createStringError("backend 'cuda': " + Twine(fi_last_error()));
  }
  if (Error error = made->openOn(ordinal))
    return std::move(error);
  return made;
}

Error Device::openOn(int32_t ordinal) {
  if (fi_device_open(driver, ordinal, &device) != FI_OK ||
      fi_device_describe(device, &info) != FI_OK)
    return createStringError("backend '" + backend + "': " + fi_last_error());
  if (!chip)
    chip = sm::lookupForDevice(info.compute_major, info.compute_minor);
  if (!chip)
    return createStringError(
        "backend '" + backend +
        "': expected a GPU of compute capability 7.5 or later, but " +
        info.name + " has " + Twine(info.compute_major) + "." +
        Twine(info.compute_minor));
  if (driver->context_open(driver->self, ordinal, &context))
    return createStringError("backend '" + backend + "': opening a context: " +
                             driver->last_error(driver->self));
  return inContext("making a stream", [&]() -> int {
    if (int result = driver->stream_create(driver->self, &stream))
      return result;
    if (int result = driver->event_create(driver->self, &first))
      return result;
    return driver->event_create(driver->self, &last);
  });
}

Device::~Device() {
  if (context) {
    llvm::consumeError(inContext("closing", [&] {
      if (stream) {
        driver->stream_synchronize(driver->self, stream);
        driver->stream_destroy(driver->self, stream);
      }
      for (void *event : {first, last})
        if (event)
          driver->event_destroy(driver->self, event);
      return 0;
    }));
    driver->context_close(driver->self, context);
  }
  fi_device_release(device);
  fi_emulator_driver_destroy(emulator);
}

std::string Device::describe() const {
  if (isEmulated())
    return std::to_string(info.multiprocessors) + " multiprocessors";
  return std::string(info.name) + " (" + chip->name.str() + "), " + info.driver;
}

Error Device::inContext(const char *doing,
                        llvm::function_ref<int()> work) const {
  int32_t changed = 0;
  int result = driver->context_enter(driver->self, context, &changed);
  if (result == FI_DRIVER_OK)
    result = work();
  Error error = Error::success();
  if (result != FI_DRIVER_OK)
    error = createStringError(Twine(info.name) + ": " + doing +
                              " failed: " + driver->last_error(driver->self));
  if (changed)
    driver->context_leave(driver->self, context);
  return error;
}

Expected<double> Device::measure(llvm::function_ref<Error()> launch) const {
  auto record = [&](void *event) {
    return inContext("recording an event", [&] {
      return driver->event_record(driver->self, event, stream);
    });
  };
  if (Error error = record(first))
    return std::move(error);
  if (Error error = launch())
    return std::move(error);
  if (Error error = record(last))
    return std::move(error);
  float milliseconds = 0;
  if (Error error = inContext("running", [&] {
        int result = driver->stream_synchronize(driver->self, stream);
        if (result == FI_DRIVER_OK)
          result = driver->event_milliseconds(driver->self, first, last,
                                              &milliseconds);
        return result;
      }))
    return std::move(error);
  return milliseconds;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

void Device::release(void *memory) const {
  llvm::consumeError(inContext("giving back memory", [&] {
    return driver->memory_free(driver->self, memory);
  }));
}

Expected<HostTensor> Device::allocate(DType type,
                                      llvm::ArrayRef<int64_t> shape) {
  int64_t bytes = getByteSize(type);
  for (int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes))
      return createStringError("a tensor of shape " + formatShape(shape) +
                               " has no address");
  void *memory = nullptr;
  // Empty tensors have an address, too.
  if (Error error = inContext("allocating", [&] {
        return driver->memory_alloc(driver->self, std::max<int64_t>(bytes, 1),
                                    &memory);
      }))
    return createStringError("no memory for a tensor of " + Twine(bytes >> 20) +
                             " MiB: " + llvm::toString(std::move(error)));
  std::shared_ptr<const Device> self = shared_from_this();
  return HostTensor(
      type, shape,
      std::shared_ptr<void>(memory, [self](void *at) { self->release(at); }));
}

Error Device::write(void *to, const void *from, int64_t bytes) {
  if (bytes == 0)
    return Error::success();
  return inContext("copying to the device", [&] {
    int result = driver->copy_to_device(driver->self, to, from, bytes, stream);
    return result ? result : driver->stream_synchronize(driver->self, stream);
  });
}

Error Device::read(void *to, const void *from, int64_t bytes) {
  if (bytes == 0)
    return Error::success();
  return inContext("copying from the device", [&] {
    int result = driver->copy_to_host(driver->self, to, from, bytes, stream);
    return result ? result : driver->stream_synchronize(driver->self, stream);
  });
}

Error Device::fill(void *to, int byte, int64_t bytes) {
  // Drivers here have no fill; pieces keep the host's copy small.
  constexpr int64_t piece = 16 << 20;
  std::vector<char> bytesOfPiece(std::min(bytes, piece), char(byte));
  for (int64_t done = 0; done < bytes; done += piece)
    if (Error error = write(static_cast<char *>(to) + done, bytesOfPiece.data(),
                            std::min(piece, bytes - done)))
      return error;
  return Error::success();
}
