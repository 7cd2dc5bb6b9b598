/*===- DeviceTensors.c - tensors of a device without a library ------------===*
 *
 * Part of fi, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===*
 *
 * The Python module device_tensors: a type Tensor that offers DLPack's C
 * functions as the type of torch does, over memory that it is given or that it
 * takes from FakeCuda. With that, calls of fi from Python are tested and
 * measured on machines without torch and without a GPU.
 *
 *===----------------------------------------------------------------------===*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { maxRank = 8 };

/* DLPack 1, as in python/src/DLPack.h. */
typedef struct {
  void *data;
  int32_t deviceType, deviceId, rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t offset;
} View;
typedef struct Managed {
  uint32_t major, minor;
  void *context;
  void (*deleter)(struct Managed *);
  uint64_t flags;
  View view;
} Managed;
typedef struct {
  uint32_t major, minor;
  void *previous;
  int (*allocate)(View *, Managed **, void *,
                  void (*)(void *, const char *, const char *));
  int (*managedFromObject)(void *, Managed **);
  int (*managedToObject)(Managed *, void **);
  int (*viewOfObject)(void *, View *);
  int (*currentStream)(int32_t, int32_t, void **);
} Api;

typedef struct {
  PyObject_HEAD View view;
  int64_t shape[maxRank], strides[maxRank];
  int owned;
} Tensor;

static PyTypeObject TensorType;
static uintptr_t stream;
static int (*cudaAlloc)(unsigned long long *, size_t);
static int (*cudaFree)(unsigned long long);

static void setShape(Tensor *tensor, const int64_t *shape, int32_t rank) {
  int64_t step = 1;
  for (int32_t d = rank - 1; d >= 0; --d) {
    tensor->shape[d] = shape[d];
    tensor->strides[d] = step;
    step *= shape[d];
  }
  tensor->view.rank = rank;
  tensor->view.shape = tensor->shape;
  tensor->view.strides = tensor->strides;
}

static size_t bytesOf(const View *view) {
  size_t bytes = view->bits / 8;
  for (int32_t d = 0; d < view->rank; ++d)
    bytes *= (size_t)view->shape[d];
  return bytes ? bytes : 1;
}

static int takeMemory(Tensor *tensor) {
  unsigned long long at = 0;
  if (!cudaAlloc || cudaAlloc(&at, bytesOf(&tensor->view))) {
    PyErr_SetString(PyExc_MemoryError, "device_tensors: no memory");
    return -1;
  }
  tensor->view.data = (void *)(uintptr_t)at;
  tensor->owned = 1;
  return 0;
}

static void deallocate(PyObject *object) {
  Tensor *tensor = (Tensor *)object;
  if (tensor->owned)
    cudaFree((unsigned long long)(uintptr_t)tensor->view.data);
  Py_TYPE(object)->tp_free(object);
}

/* Tensor(shape, code, bits, device): zeros. */
static PyObject *create(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
  PyObject *sizes;
  int code, bits, device;
  (void)kwargs;
  if (!PyArg_ParseTuple(args, "O!iii", &PyTuple_Type, &sizes, &code, &bits,
                        &device))
    return NULL;
  int64_t shape[maxRank];
  Py_ssize_t rank = PyTuple_GET_SIZE(sizes);
  for (Py_ssize_t d = 0; d < rank && d < maxRank; ++d)
    shape[d] = PyLong_AsLongLong(PyTuple_GET_ITEM(sizes, d));
  Tensor *tensor = (Tensor *)type->tp_alloc(type, 0);
  if (!tensor || rank > maxRank || PyErr_Occurred())
    return NULL;
  tensor->view.deviceType = 2;
  tensor->view.deviceId = device;
  tensor->view.code = (uint8_t)code;
  tensor->view.bits = (uint8_t)bits;
  tensor->view.lanes = 1;
  setShape(tensor, shape, (int32_t)rank);
  if (takeMemory(tensor)) {
    Py_DECREF(tensor);
    return NULL;
  }
  memset(tensor->view.data, 0, bytesOf(&tensor->view));
  return (PyObject *)tensor;
}

static PyObject *getAddress(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromVoidPtr(((Tensor *)self)->view.data);
}
static PyObject *getShape(PyObject *self, void *closure) {
  (void)closure;
  const View *view = &((Tensor *)self)->view;
  PyObject *shape = PyTuple_New(view->rank);
  for (int32_t d = 0; shape && d < view->rank; ++d)
    PyTuple_SET_ITEM(shape, d, PyLong_FromLongLong(view->shape[d]));
  return shape;
}
static PyGetSetDef properties[] = {{"address", getAddress, NULL, NULL, NULL},
                                   {"shape", getShape, NULL, NULL, NULL},
                                   {NULL, NULL, NULL, NULL, NULL}};

static PyTypeObject TensorType = {
    PyVarObject_HEAD_INIT(NULL, 0).tp_name = "device_tensors.Tensor",
    .tp_basicsize = sizeof(Tensor),
    .tp_dealloc = deallocate,
    .tp_flags = Py_TPFLAGS_DEFAULT,
    .tp_new = create,
    .tp_getset = properties,
};

static void freeManaged(Managed *managed) {
  Py_XDECREF((PyObject *)managed->context);
  free(managed);
}

static int allocate(View *like, Managed **out, void *context,
                    void (*setError)(void *, const char *, const char *)) {
  Tensor *tensor = (Tensor *)TensorType.tp_alloc(&TensorType, 0);
  if (!tensor)
    return -1;
  tensor->view = *like;
  setShape(tensor, like->shape, like->rank);
  Managed *managed = calloc(1, sizeof(Managed));
  if (!managed || takeMemory(tensor)) {
    setError(context, "MemoryError", "no memory");
    free(managed);
    Py_DECREF(tensor);
    return -1;
  }
  managed->major = 1;
  managed->context = tensor;
  managed->deleter = freeManaged;
  managed->view = tensor->view;
  *out = managed;
  return 0;
}

static int managedToObject(Managed *managed, void **out) {
  *out = managed->context;
  managed->context = NULL;
  managed->deleter(managed);
  return 0;
}

static int viewOfObject(void *object, View *out) {
  *out = ((Tensor *)object)->view;
  return 0;
}

static int currentStream(int32_t type, int32_t id, void **out) {
  (void)type, (void)id;
  *out = (void *)stream;
  return 0;
}

static Api api = {
    1, 1, NULL, allocate, NULL, managedToObject, viewOfObject, currentStream};

/* use(alloc, free): addresses of cuMemAlloc_v2 and cuMemFree_v2. */
static PyObject *use(PyObject *self, PyObject *args) {
  unsigned long long alloc, release;
  (void)self;
  if (!PyArg_ParseTuple(args, "KK", &alloc, &release))
    return NULL;
  memcpy(&cudaAlloc, &alloc, sizeof(cudaAlloc));
  memcpy(&cudaFree, &release, sizeof(cudaFree));
  Py_RETURN_NONE;
}
static PyObject *setStream(PyObject *self, PyObject *value) {
  (void)self;
  stream = (uintptr_t)PyLong_AsUnsignedLongLong(value);
  if (PyErr_Occurred())
    return NULL;
  Py_RETURN_NONE;
}
static PyMethodDef functions[] = {{"use", use, METH_VARARGS, NULL},
                                  {"set_stream", setStream, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT,
                                    "device_tensors",
                                    NULL,
                                    -1,
                                    functions,
                                    NULL,
                                    NULL,
                                    NULL,
                                    NULL};

PyMODINIT_FUNC PyInit_device_tensors(void) {
  if (PyType_Ready(&TensorType))
    return NULL;
  PyObject *capsule = PyCapsule_New(&api, "dlpack_exchange_api", NULL);
  if (!capsule || PyDict_SetItemString(TensorType.tp_dict,
                                       "__dlpack_c_exchange_api__", capsule))
    return NULL;
  Py_DECREF(capsule);
  PyObject *made = PyModule_Create(&module);
  if (made)
    PyModule_AddObjectRef(made, "Tensor", (PyObject *)&TensorType);
  return made;
}
