//===- Buffer.h - Growable array without initialisation --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What planning fills again and again: an array of plain data that keeps its
// capacity when cleared and leaves new elements uninitialised (std::vector
// would write every work item twice).
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_SUPPORT_BUFFER_H
#define FI_RUNTIME_SUPPORT_BUFFER_H

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace fi::runtime {

template <typename T> class Buffer {
  static_assert(std::is_trivially_copyable_v<T>, "plain data only");

public:
  Buffer() = default;
  Buffer(Buffer &&other) noexcept
      : pointer(std::exchange(other.pointer, nullptr)),
        count(std::exchange(other.count, 0)),
        capacity(std::exchange(other.capacity, 0)) {}
  Buffer &operator=(Buffer &&) = delete;
  ~Buffer() { std::free(pointer); }

  T *data() { return pointer; }
  const T *data() const { return pointer; }
  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  T &operator[](size_t i) { return pointer[i]; }
  const T &operator[](size_t i) const { return pointer[i]; }
  T *begin() { return pointer; }
  T *end() { return pointer + count; }
  const T *begin() const { return pointer; }
  const T *end() const { return pointer + count; }
  T &back() { return pointer[count - 1]; }

  void clear() { count = 0; }

  /// Keeps the elements; new ones are uninitialised.
  void resize(size_t n) {
    if (n > capacity)
      grow(n);
    count = n;
  }
  void assign(size_t n, T value) {
    resize(n);
    std::fill(pointer, pointer + n, value);
  }
  __attribute__((always_inline)) void push(const T &value) {
    if (__builtin_expect(count == capacity, 0))
      return pushGrowing(value);
    pointer[count++] = value;
  }

private:
  __attribute__((noinline)) void pushGrowing(T value) {
    grow(count + 1); // by value: the argument may lie in the memory that moves
    pointer[count++] = value;
  }

  __attribute__((noinline)) void grow(size_t n) {
    size_t wanted = std::max<size_t>({n, capacity + capacity / 2, 16});
    void *moved = wanted > SIZE_MAX / sizeof(T)
                      ? nullptr
                      : std::realloc(pointer, wanted * sizeof(T));
    if (!moved)
      throw std::bad_alloc();
    pointer = static_cast<T *>(moved);
    capacity = wanted;
  }

  T *pointer = nullptr;
  size_t count = 0;
  size_t capacity = 0;
};

} // namespace fi::runtime

#endif // FI_RUNTIME_SUPPORT_BUFFER_H
