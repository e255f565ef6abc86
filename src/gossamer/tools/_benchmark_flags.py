"""Flags of TFLite's benchmark_model, and of the delegates that it knows, which are not options of `gossamer benchmark`.

With the options, they are all of them. What a flag says of hardware that is not asked for has no effect in
benchmark_model either.
"""

from __future__ import annotations

IGNORED = {
    "allow_dynamic_profiling_buffer_increase": "a profile keeps all that happens",
    "delegate_serialize_dir": "programs and kernels are kept anyway, in the folder that GOSSAMER_CACHE_DIR names",
    "delegate_serialize_token": "programs and kernels are kept anyway, and told apart by the model",
    "enable_builtin_cast_constant_cache": "what depends on constants alone is computed once",
    "external_delegate_options": "it speaks of a delegate that is not here",
    "gpu_backend": "it speaks of a delegate that is not here",
    "gpu_experimental_enable_quant": "it speaks of a delegate that is not here",
    "gpu_inference_for_sustained_speed": "it speaks of a delegate that is not here",
    "gpu_invoke_loop_times": "it speaks of a delegate that is not here",
    "gpu_precision_loss_allowed": "it speaks of a delegate that is not here",
    "gpu_wait_type": "it speaks of a delegate that is not here",
    "hexagon_lib_path": "it speaks of a delegate that is not here",
    "hexagon_profiling": "it speaks of a delegate that is not here",
    "coreml_version": "it speaks of a delegate that is not here",
    "disable_nnapi_cpu": "it speaks of a delegate that is not here",
    "max_profiling_buffer_entries": "a profile keeps all that happens",
    "memory_footprint_check_interval_ms": "the peak is that of the operating system, which misses nothing",
    "nnapi_accelerator_name": "it speaks of a delegate that is not here",
    "nnapi_allow_dynamic_dimensions": "it speaks of a delegate that is not here",
    "nnapi_allow_fp16": "it speaks of a delegate that is not here",
    "nnapi_execution_preference": "it speaks of a delegate that is not here",
    "nnapi_execution_priority": "it speaks of a delegate that is not here",
    "nnapi_support_library_path": "it speaks of a delegate that is not here",
    "nnapi_use_burst_mode": "it speaks of a delegate that is not here",
    "optimize_memory_for_large_tensors": "large tensors are planned like all others",
    "output_prefix": "nothing is named after it in benchmark_model either",
    "release_dynamic_tensors": "dynamic tensors are released as soon as nothing needs them",
    "use_caching": "weights are always packed once",
    "xnnpack_runtime_flags": "it speaks of XNNPACK",
    "xnnpack_weight_cache_file_path": "packed weights are shared by all interpreters of a process, not kept in files",
    "ynnpack_consistent_arithmetic": "it speaks of a delegate that is not here",
    "ynnpack_fast_math": "it speaks of a delegate that is not here",
    "ynnpack_no_excess_precision": "it speaks of a delegate that is not here",
    "ynnpack_static_shape": "it speaks of a delegate that is not here",
}
"""Those that are taken with any value and change nothing, and why they need not."""

REFUSED = {
    "export_model_runtime_info": "use gossamer inspect --json.",
    "external_delegate_path": "native delegates cannot be loaded; Interpreter takes those of gossamer.load_delegate.",
    "first_delegate_node_index": "the default delegate takes all that it can; preview others in Python.",
    "last_delegate_node_index": "the default delegate takes all that it can; preview others in Python.",
    "max_delegated_partitions": "the default delegate takes all that it can.",
    "min_nodes_per_partition": "the default delegate takes all that it can.",
    "model_runtime_info_output_file": "use gossamer inspect --json.",
    "option_benchmark_run_delay": "it is of benchmark_model_performance_options; run this for each setting.",
    "output_proto_filepath": "use --output_filepath, or gossamer run --save.",
    "perf_options_list": "it is of benchmark_model_performance_options; run this for each setting.",
    "random_shuffle_benchmark_runs": "it is of benchmark_model_performance_options; run this for each setting.",
    "result_file_path": "no proto is written; use --report=FILE.json, or --json.",
    "stable_delegate_settings_file": "native delegates cannot be loaded.",
    "use_coreml": "there is no Core ML delegate.",
    "use_gpu": "there is no GPU delegate.",
    "use_hexagon": "there is no Hexagon delegate.",
    "use_nnapi": "there is no NNAPI delegate.",
    "use_ynnpack": "there is no YNNPACK here.",
    "xnnpack_force_fp16": "use --allow_fp16.",
}
"""Those that are refused, unless their value is false, and why: what they ask for would not be done."""
