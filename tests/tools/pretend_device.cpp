// A pretend accelerator: torch's PrivateUse1 device with its memory on the host.
//
// Kernels are the CPU's, run on aliases of the device's memory. What is strict on CUDA is strict here: tensors of two devices and CPU generators
// raise, and whatever would make CUDA wait for the host is reported to Python with its kind and its operator.
#include <ATen/core/Tensor.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_sparse_csr_tensor_unsafe.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_nnz_native.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/col_indices_native.h>
#include <ATen/ops/crow_indices_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/values_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_set>
#if defined(__SSE__)
#include <immintrin.h>
#endif

using at::Tensor;
using c10::IValue;
using c10::IntArrayRef;
using Options = std::optional<at::ScalarType>;

namespace py = pybind11;

namespace {

constexpr auto KIND = c10::DeviceType::PrivateUse1;
const c10::Device HERE(KIND, 0);

// --- reports of crossings ---------------------------------------------------------------------------------------------------------------

py::object* listener = nullptr;

void report(const char* kind, const std::string& op, int64_t bytes) {
  if (listener == nullptr) return;
  py::gil_scoped_acquire gil;
  (*listener)(kind, op, bytes);
}

// --- the device -------------------------------------------------------------------------------------------------------------------------

struct Guard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return KIND; }
  c10::Device exchangeDevice(c10::Device) const override { return HERE; }
  c10::Device getDevice() const override { return HERE; }
  void setDevice(c10::Device) const override {}
  void uncheckedSetDevice(c10::Device) const noexcept override {}
  c10::Stream getStream(c10::Device) const noexcept override { return stream(); }
  c10::Stream getNewStream(c10::Device, int) const override { return stream(); }
  c10::Stream getDefaultStream(c10::Device) const override { return stream(); }
  c10::Stream exchangeStream(c10::Stream) const noexcept override { return stream(); }
  c10::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const c10::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const c10::DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}

 private:
  static c10::Stream stream() { return c10::Stream(c10::Stream::DEFAULT, HERE); }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

void release(void* memory) { std::free(memory); }

struct Memory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* at = bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    return {at, at, &release, HERE};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};
Memory memory;
REGISTER_ALLOCATOR(KIND, &memory);

// Pinned memory of the host: ordinary memory whose blocks are known.
std::mutex of_pinned;
std::map<const char*, size_t> pinned;

void unpin(void* block) {
  {
    const std::lock_guard<std::mutex> held(of_pinned);
    pinned.erase(static_cast<const char*>(block));
  }
  std::free(block);
}

struct PinnedMemory final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    void* at = bytes ? std::aligned_alloc(64, (bytes + 63) / 64 * 64) : nullptr;
    if (at) {
      const std::lock_guard<std::mutex> held(of_pinned);
      pinned[static_cast<const char*>(at)] = bytes;
    }
    return {at, at, &unpin, c10::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &unpin; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override { std::memcpy(to, from, bytes); }
};
PinnedMemory pinned_memory;

bool is_pinned(const void* at) {
  const std::lock_guard<std::mutex> held(of_pinned);
  auto next = pinned.upper_bound(static_cast<const char*>(at));
  if (next == pinned.begin()) return false;
  const auto& [start, bytes] = *std::prev(next);
  return static_cast<const char*>(at) < start + bytes;
}

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  bool isPinnedPtr(const void* at) const override { return is_pinned(at); }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory; }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    auto fresh = memory.allocate(bytes);
    if (storage.nbytes() && storage.data()) std::memcpy(fresh.get(), storage.data(), std::min(bytes, storage.nbytes()));
    auto& changed = const_cast<c10::Storage&>(storage);
    changed.set_data_ptr_noswap(std::move(fresh));
    changed.set_nbytes(bytes);
  }
};
[[maybe_unused]] Hooks* const hooks = [] {
  auto* made = new Hooks();
  at::RegisterPrivateUse1HooksInterface(made);
  return made;
}();

// --- aliases ----------------------------------------------------------------------------------------------------------------------------

bool here(const Tensor& t) { return t.defined() && t.device().type() == KIND; }

Tensor csr(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& like, c10::Device device) {
  return at::_sparse_csr_tensor_unsafe(crow, col, values, like.sizes(), like.scalar_type(), at::kSparseCsr, device, std::nullopt);
}

// The same memory as a CPU tensor.
Tensor lowered(const Tensor& t) {
  if (!here(t)) return t;
  if (t.layout() == at::kSparseCsr) {
    return csr(lowered(at::native::crow_indices_sparse_csr(t)), lowered(at::native::col_indices_sparse_csr(t)),
               lowered(at::native::values_sparse_csr(t)), t, at::kCPU);
  }
  auto options = at::TensorOptions().dtype(t.dtype()).device(at::kCPU);
  if (t.numel() == 0) return at::empty_strided(t.sizes(), t.strides(), options);
  c10::Storage keep = t.storage();
  Tensor out = at::from_blob(const_cast<void*>(t.const_data_ptr()), t.sizes(), t.strides(), [keep](void*) {}, options);
  if (t.unsafeGetTensorImpl()->is_wrapped_number()) out.unsafeGetTensorImpl()->set_wrapped_number(true);
  return out;
}

// A CPU result as a tensor of the device, which keeps its memory.
Tensor lifted(const Tensor& r) {
  if (!r.defined() || r.device().type() != at::kCPU) return r;
  if (r.layout() == at::kSparseCsr) return csr(lifted(r.crow_indices()), lifted(r.col_indices()), lifted(r.values()), r, HERE);
  auto options = at::TensorOptions().dtype(r.dtype()).device(HERE);
  if (r.numel() == 0) return at::empty_strided(r.sizes(), r.strides(), options);
  return at::for_blob(r.data_ptr(), r.sizes()).strides(r.strides()).deleter([r](void*) {}).options(options).target_device(HERE).make_tensor();
}

// The autograd engine runs a device's part in threads of its own; they must treat subnormal numbers as the main thread does.
void same_arithmetic() {
#if defined(__SSE__)
  static const auto main = std::this_thread::get_id();
  static std::atomic<unsigned> control{_mm_getcsr()};
  if (std::this_thread::get_id() == main) control = _mm_getcsr();
  else _mm_setcsr(control);
#endif
}

// --- every operator ---------------------------------------------------------------------------------------------------------------------

// Operators whose output size depends on values, or that return a value: CUDA waits for them.
const std::unordered_set<std::string> WAITS = {
    "aten::nonzero", "aten::_unique", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::masked_select",
    "aten::bincount", "aten::equal", "aten::repeat_interleave"};
// Operators that upload an index given on the CPU.
const std::unordered_set<std::string> TAKES_CPU_INDEX = {
    "aten::index", "aten::index_put_", "aten::_index_put_impl_", "aten::_unsafe_index", "aten::_unsafe_index_put"};

struct Seen {
  bool on_device = false, on_cpu = false, device_first = false, any = false, mask = false, generator = false;

  void tensor(const Tensor& t) {
    if (!t.defined()) return;
    if (here(t)) {
      on_device = true;
      if (!any) device_first = true;
    } else if (t.dim() > 0) {
      on_cpu = true;  // scalars on the CPU are admitted, as on CUDA
    }
    any = true;
  }
};

Seen look(const torch::jit::Stack& stack, size_t base) {
  Seen seen;
  for (size_t i = base; i < stack.size(); i++) {
    const IValue& v = stack[i];
    if (v.isTensor()) {
      seen.tensor(v.toTensor());
    } else if (v.isTensorList()) {
      for (const Tensor& t : v.toTensorVector()) seen.tensor(t);
    } else if (v.isOptionalTensorList()) {
      for (const auto& t : v.toOptionalTensorVector()) {
        if (!t.has_value() || !t->defined()) continue;
        seen.tensor(*t);
        seen.mask |= t->scalar_type() == at::kBool || t->scalar_type() == at::kByte;
      }
    } else if (v.isGenerator()) {
      seen.generator |= v.toGenerator().defined();
    } else if (v.isDevice() && v.toDevice().type() == KIND) {
      seen.on_device = true;
    }
  }
  return seen;
}

void fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  same_arithmetic();
  const auto& schema = op.schema();
  const std::string& name = schema.name();
  const size_t base = stack->size() - schema.arguments().size();
  const Seen seen = look(*stack, base);
  if (seen.on_device && seen.on_cpu) {
    TORCH_CHECK(seen.device_first && TAKES_CPU_INDEX.count(name),
                "Expected all tensors to be on the same device, but found at least two devices, pretend:0 and cpu! (", op.operator_name(), ")");
    report("cpu-index", name, 0);
  }
  TORCH_CHECK(!(seen.on_device && seen.generator), "Expected a 'pretend' device type for generator but found 'cpu' (", op.operator_name(), ")");
  if (WAITS.count(name)) report("wait", name, 0);
  if (name.find("index_put") != std::string::npos) {
    const Tensor& value = (*stack)[base + 2].toTensor();
    // One value is filled in through a mask without waiting; reading by a mask calls nonzero, which is reported.
    if (seen.mask && value.numel() != 1) report("wait", name + "[mask]", 0);
    // Through indices CUDA uploads a number first, from memory that is not pinned. Here Python has made a tensor of the number; of a tensor
    // with one value it would have made a view.
    const bool number = !here(value) || (value.dim() == 0 && value.storage().use_count() == 1);
    if (!seen.mask && seen.on_device && number) report("blocking-upload", name + "[number]", static_cast<int64_t>(value.nbytes()));
  }

  std::vector<std::pair<Tensor, Tensor>> lent;  // a tensor of the device and its alias
  auto down = [&](const Tensor& t) {
    if (!here(t)) return t;
    for (const auto& [given, alias] : lent)
      if (given.is_same(t)) return alias;
    lent.emplace_back(t, lowered(t));
    return lent.back().second;
  };
  for (size_t i = base; i < stack->size(); i++) {
    IValue& v = (*stack)[i];
    if (v.isTensor()) {
      v = down(v.toTensor());
    } else if (v.isTensorList()) {
      std::vector<Tensor> all;
      for (const Tensor& t : v.toTensorVector()) all.push_back(down(t));
      v = c10::List<Tensor>(all);
    } else if (v.isOptionalTensorList()) {
      c10::List<std::optional<Tensor>> all;
      for (const auto& t : v.toOptionalTensorVector()) all.push_back(t.has_value() && t->defined() ? std::optional<Tensor>(down(*t)) : t);
      v = all;
    } else if (v.isDevice() && v.toDevice().type() == KIND) {
      v = c10::Device(at::kCPU);
    }
  }
  op.callBoxed(stack);
  for (const auto& [given, alias] : lent) {
    if (given.layout() != at::kStrided || given.sizes().equals(alias.sizes())) continue;
    at::native::resize_(given, alias.sizes(), std::nullopt);  // an output that the kernel has resized
    if (alias.numel()) std::memcpy(const_cast<void*>(given.const_data_ptr()), alias.const_data_ptr(), alias.nbytes());
  }
  auto back = [&](const Tensor& r) {
    if (!r.defined()) return r;
    for (const auto& [given, alias] : lent)
      if (alias.is_same(r)) return given;
    return seen.on_device ? lifted(r) : r;
  };
  for (size_t i = stack->size() - schema.returns().size(); i < stack->size(); i++) {
    IValue& v = (*stack)[i];
    if (v.isTensor()) {
      v = back(v.toTensor());
    } else if (v.isTensorList()) {
      std::vector<Tensor> all;
      for (const Tensor& r : v.toTensorVector()) all.push_back(back(r));
      v = c10::List<Tensor>(all);
    }
  }
}

// --- operators that need kernels of their own -------------------------------------------------------------------------------------------

Tensor empty(IntArrayRef size, Options dtype, std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
             std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &memory, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), dtype.value_or(at::kFloat), format);
}

Tensor empty_strided(IntArrayRef size, IntArrayRef stride, Options dtype, std::optional<at::Layout>, std::optional<at::Device>,
                     std::optional<bool>) {
  const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);
  return at::detail::empty_strided_generic(size, stride, &memory, keys, dtype.value_or(at::kFloat));
}

// Autograd's zeros without memory, with memory: the CPU's would be aliased as if they had some.
Tensor zeros(IntArrayRef size, Options dtype, std::optional<at::Layout> layout, std::optional<at::Device> device, std::optional<bool> pinned) {
  return empty(size, dtype, layout, device, pinned, std::nullopt).zero_();
}

// CUDA waits for all earlier work before a copy to the device unless it may be queued and comes from pinned memory. A single number is
// reported as queued: CUDA passes those that operators are given along with the kernel.
Tensor copy_from(const Tensor& self, const Tensor& to, bool non_blocking) {
  if (here(self) && !here(to)) report("download", "aten::copy_", static_cast<int64_t>(self.nbytes()));
  if (!here(self) && here(to) && self.numel() > 0) {
    const bool queued = self.numel() == 1 || (non_blocking && is_pinned(self.const_data_ptr()));
    report(queued ? "upload" : "blocking-upload", "aten::copy_", static_cast<int64_t>(self.nbytes()));
  }
  lowered(to).copy_(lowered(self));
  return to;
}

Tensor copy_from_and_resize(const Tensor& self, const Tensor& to) {
  at::native::resize_(to, self.sizes(), std::nullopt);
  return copy_from(self, to, false);
}

at::Scalar item(const Tensor& t) {
  report("download", "aten::item", static_cast<int64_t>(t.nbytes()));
  return at::_local_scalar_dense(lowered(t));
}

Tensor& set_storage(Tensor& self, at::Storage storage, int64_t offset, IntArrayRef size, IntArrayRef stride) {
  auto* impl = self.unsafeGetTensorImpl();
  impl->set_storage_keep_dtype(std::move(storage));
  impl->set_storage_offset(offset);
  if (stride.data() && stride.size() == size.size()) impl->set_sizes_and_strides(size, stride);
  else impl->set_sizes_contiguous(size);
  return self;
}

Tensor& set_whole_storage(Tensor& self, at::Storage storage) {
  const auto n = static_cast<int64_t>(storage.nbytes() / self.itemsize());
  return set_storage(self, std::move(storage), 0, {n}, {});
}

Tensor& set_tensor(Tensor& self, const Tensor& other) {
  return set_storage(self, other.storage(), other.storage_offset(), other.sizes(), other.strides());
}

Tensor sparse_product(const Tensor& a, const Tensor& b) {
  same_arithmetic();
  TORCH_CHECK(here(a) && here(b), "Expected all tensors to be on the same device, but found at least two devices, pretend:0 and cpu! (aten::mm)");
  return lifted(at::mm(lowered(a), lowered(b)));
}

std::optional<Tensor> lowered(const std::optional<Tensor>& t) { return t.has_value() && t->defined() ? std::optional<Tensor>(lowered(*t)) : t; }

void same_device(const Tensor& input, const Tensor& weight) {
  TORCH_CHECK(here(input) && here(weight),
              "Expected all tensors to be on the same device, but found at least two devices, pretend:0 and cpu! (aten::convolution)");
}

Tensor convolution(const Tensor& input, const Tensor& weight, const std::optional<Tensor>& bias, c10::SymIntArrayRef stride,
                   c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
                   c10::SymInt groups) {
  same_arithmetic();
  same_device(input, weight);
  return lifted(at::convolution_symint(lowered(input), lowered(weight), lowered(bias), stride, padding, dilation, transposed, output_padding,
                                       std::move(groups)));
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(const Tensor& gradient, const Tensor& input, const Tensor& weight,
                                                        c10::SymIntArrayRef stride, c10::SymIntArrayRef padding,
                                                        c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
                                                        c10::SymInt groups, std::array<bool, 3> wanted) {
  same_arithmetic();
  same_device(input, weight);
  const std::vector<c10::SymInt> of_bias{weight.sym_size(transposed ? 1 : 0) * (transposed ? groups : c10::SymInt(1))};
  auto [a, b, c] = at::convolution_backward_symint(lowered(gradient), lowered(input), lowered(weight), c10::SymIntArrayRef(of_bias), stride,
                                                   padding, dilation, transposed, output_padding, std::move(groups), wanted);
  return {lifted(a), lifted(b), lifted(c)};
}

// A GRU cell of the same operators, in the same order, as the CPU's; CUDA has one fused kernel for it. Autograd records the operators.
Tensor gru_cell(const Tensor& input, const Tensor& hidden, const Tensor& w_input, const Tensor& w_hidden, const std::optional<Tensor>& b_input,
                const std::optional<Tensor>& b_hidden) {
  const auto of_input = at::linear(input, w_input, b_input).unsafe_chunk(3, 1);
  const auto of_hidden = at::linear(hidden, w_hidden, b_hidden).unsafe_chunk(3, 1);
  const Tensor reset = of_hidden[0].add_(of_input[0]).sigmoid_();
  const Tensor update = of_hidden[1].add_(of_input[1]).sigmoid_();
  const Tensor fresh = of_input[2].add(of_hidden[2].mul_(reset)).tanh_();
  return hidden.sub(fresh).mul_(update).add_(fresh);
}

}  // namespace

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(_, SparseCsrPrivateUse1, m) { m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>()); }
TORCH_LIBRARY_IMPL(aten, AutogradPrivateUse1, m) { m.impl("gru_cell", gru_cell); }
TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_efficientzerotensor", zeros);
  m.impl("as_strided", at::native::as_strided_tensorimpl);
  m.impl("view", at::native::view);
  m.impl("_reshape_alias", at::native::_reshape_alias);
  m.impl("resize_", at::native::resize_);
  m.impl("_copy_from", copy_from);
  m.impl("_copy_from_and_resize", copy_from_and_resize);
  m.impl("_local_scalar_dense", item);
  m.impl("set_.source_Storage_storage_offset", set_storage);
  m.impl("set_.source_Storage", set_whole_storage);
  m.impl("set_.source_Tensor", set_tensor);
  m.impl("convolution_overrideable", convolution);
  m.impl("convolution_backward_overrideable", convolution_backward);
  m.impl("gru_cell", gru_cell);
}
TORCH_LIBRARY_IMPL(aten, SparseCsrPrivateUse1, m) {
  m.impl("mm", sparse_product);
  m.impl("crow_indices", at::native::crow_indices_sparse_csr);
  m.impl("col_indices", at::native::col_indices_sparse_csr);
  m.impl("values", at::native::values_sparse_csr);
  m.impl("_nnz", at::native::_nnz_sparse_csr);
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The kernels of the pretend accelerator; see pretend_device.py.";
  m.def("listen", [](const py::object& f) {
    delete listener;
    listener = f.is_none() ? nullptr : new py::object(f);
  });
}
